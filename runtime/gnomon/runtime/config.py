"""Settings: typed, documented, and told where each value came from when it is wrong.

Later sources win: the defaults below; a TOML file (``$GNOMON_CONFIG``, else ``~/.config/gnomon/gnomon.toml``) with one
table per section; the environment (``GNOMON_SECTION__NAME``, such as ``GNOMON_COMM__BACKEND=tornado``); ``config.set``.

    from gnomon.runtime import config
    config.get().scheduler.allowed_failures
    with config.set({"scheduler.allowed_failures": 10}): ...

Times are seconds and sizes bytes; text may carry a unit (``"300 ms"``, ``"5 min"``, ``"64 MiB"``). An unknown name or a
bad value is a ConfigError, from the first ``get`` on. No secret is ever a setting: settings are shown and logged. This
module imports nothing of ours but the errors; nor a settings library, so that every error can name its source and an
import costs little.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
import threading
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from gnomon.runtime.errors import ConfigError

__all__ = [
    "CommSettings",
    "Config",
    "DashboardSettings",
    "ExecutorSettings",
    "InstrumentSettings",
    "SchedulerSettings",
    "SecuritySettings",
    "WorkerSettings",
    "describe",
    "environment",
    "get",
    "reload",
    "set",
]

_Value = TypeVar("_Value")


def _setting(
    default: _Value,
    doc: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> _Value:
    """A field with its documentation, its unit (``s``, ``B``, ``B/s`` or none) and what it may be (bounds included)."""
    metadata = {"doc": doc, "unit": unit, "low": low, "high": high, "choices": choices}
    field: Any = dataclasses.field(default=default, metadata=metadata)
    return field  # type: ignore[no-any-return]


# -- The settings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SchedulerSettings:
    """How the scheduler decides, and how long it waits."""

    worker_saturation: float = _setting(
        1.1, "root tasks given to a worker per thread, at least; inf turns queueing off", low=0
    )
    backlog_seconds: float = _setting(
        0.05, "measured work per thread that a worker may hold, so that a round trip never starves it", unit="s", low=0
    )
    allowed_failures: int = _setting(3, "deaths of a task's workers before it is given up (KilledWorker)", low=0)
    bandwidth: float = _setting(100e6, "transfer rate assumed until one was measured", unit="B/s", low=1)
    unknown_task_duration: float = _setting(0.5, "run time assumed for a task whose like never ran", unit="s", low=0)
    work_stealing: bool = _setting(True, "whether idle workers take tasks that wait on busy ones")
    work_stealing_interval: float = _setting(0.1, "time between two rounds of balancing", unit="s", low=0.001)
    worker_ttl: float | None = _setting(
        300.0, "silence after which a worker counts as dead; none: never", unit="s", low=0.1
    )
    idle_timeout: float | None = _setting(
        None, "time without work after which the scheduler closes; none: never", unit="s", low=0
    )
    validate: bool = _setting(False, "check every invariant after every event (very slow; for tests)")
    telemetry_length: int = _setting(100_000, "finished runs and transfers that the telemetry ring holds", low=1)


@dataclass(frozen=True)
class WorkerSettings:
    """How a worker's agent feeds its executor and talks to others."""

    prefetch_seconds: float = _setting(
        0.005, "measured work per thread that is handed to the executor ahead of time", unit="s", low=0
    )
    connections: int = _setting(10, "fetches from other workers at one time", low=1)
    transfer_bytes: int = _setting(50_000_000, "bytes asked for in one fetch from one worker", unit="B", low=1)
    heartbeat: float = _setting(1.0, "time between two signs of life to the scheduler", unit="s", low=0.01)
    close_grace: float = _setting(2.0, "time that running tasks have to end when the worker closes", unit="s", low=0)


@dataclass(frozen=True)
class ExecutorSettings:
    """How user code is run and its values handled."""

    inline_bytes: int = _setting(
        512, "pickled size up to which a result of a simple type travels at once", unit="B", low=0
    )


@dataclass(frozen=True)
class CommSettings:
    """The control plane's connections."""

    backend: str = _setting("asyncio", "what carries tcp:// and tls://", choices=("asyncio", "tornado"))
    uvloop: bool = _setting(True, "run our event loops on uvloop where it is installed")
    connect_timeout: float = _setting(30.0, "time within which a connection must stand", unit="s", low=0)
    handshake_timeout: float = _setting(
        5.0, "time within which a peer must prove itself, TLS included", unit="s", low=0.01
    )
    close_timeout: float = _setting(5.0, "time a closing connection has to deliver what is queued", unit="s", low=0)
    tcp_timeout: float = _setting(30.0, "time after which a peer that acknowledges nothing is lost", unit="s", low=1)
    max_frame: int = _setting(
        64 << 20, "bytes of one batch of messages, sent or accepted", unit="B", low=1024, high=(1 << 31) - 1
    )
    half_open: int = _setting(
        64, "peers per listener that may be in handshakes at one time; the oldest is dropped", low=1
    )
    listen_backlog: int = _setting(2048, "connections the operating system queues for a listener", low=1)
    allow_relay: bool = _setting(
        False, "connect without TLS through a tunnel or relay on this machine (which could read and alter everything)"
    )


@dataclass(frozen=True)
class SecuritySettings:
    """Files of certificates and secret, used where no ``Security`` is given. Paths; empty: none."""

    tls_ca_file: str = _setting("", "certificates (PEM) that a peer's must be signed by")
    tls_client_cert: str = _setting("", "certificate (PEM) of clients")
    tls_client_key: str = _setting("", "its private key (PEM)")
    tls_scheduler_cert: str = _setting("", "certificate (PEM) of schedulers")
    tls_scheduler_key: str = _setting("", "its private key (PEM)")
    tls_worker_cert: str = _setting("", "certificate (PEM) of workers")
    tls_worker_key: str = _setting("", "its private key (PEM)")
    require_encryption: bool = _setting(False, "refuse every address that is not tls:// (or within this process)")
    secret_file: str = _setting("", "file with the cluster's secret, owned by you with mode 0600")


@dataclass(frozen=True)
class InstrumentSettings:
    """What every scheduler, agent and executor measures of itself. Each part has its own switch."""

    enabled: bool = _setting(True, "carry instruments at all")
    sampler: bool = _setting(True, "sample the stacks of tasks and loops")
    sampling_interval: float = _setting(
        0.0101, "time between two samples, where the budget allows", unit="s", low=0.001
    )
    sampling_budget: float = _setting(
        0.006, "share of a process's processor time that sampling may cost", low=0.0001, high=1
    )
    loop: bool = _setting(True, "measure the lag of event loops, and record their stalls")
    stall_threshold: float = _setting(
        0.1, "time without a turn after which a loop counts as stalled", unit="s", low=0.01
    )
    stall_warning: float = _setting(1.0, "length from which a stall is told in the log", unit="s", low=0)
    gc: bool = _setting(True, "measure garbage collections")
    gil: bool = _setting(True, "measure the contention for the interpreter's lock")
    system: bool = _setting(True, "measure processor, memory, descriptors, network and disk")
    cpu: bool = _setting(True, "measure how much of a task's time was on the processor")
    series_length: int = _setting(50_000, "rows of measurements, and stalls, that the scheduler keeps", low=1)
    profiles: int = _setting(64 << 20, "bytes of deep profiles of tasks that the scheduler keeps", unit="B", low=0)


@dataclass(frozen=True)
class DashboardSettings:
    """The live dashboard that a cluster or scheduler offers."""

    address: str = _setting(
        ":8787", "where it listens, host:port; without a host: on this machine only; empty: there is no dashboard"
    )
    token: bool = _setting(True, "ask visitors for the token that is in the link")
    prefix: str = _setting("", "what its paths begin with, for a reverse proxy that hands on a part of a site")
    hosts: str = _setting("", "further names (host or host:port) that browsers may reach it by, separated by commas")
    link: str = _setting(
        "", "the link that is shown, where it isn't the address itself; {host}, {port} and {prefix} stand for these"
    )


@dataclass(frozen=True)
class Config:
    """All settings, one field per section. Immutable: changes make a new one."""

    scheduler: SchedulerSettings = SchedulerSettings()
    worker: WorkerSettings = WorkerSettings()
    executor: ExecutorSettings = ExecutorSettings()
    comm: CommSettings = CommSettings()
    security: SecuritySettings = SecuritySettings()
    instruments: InstrumentSettings = InstrumentSettings()
    dashboard: DashboardSettings = DashboardSettings()


# -- Reading and changing them -----------------------------------------------------------------------------------------

_FIELDS: dict[str, dict[str, dataclasses.Field[Any]]] = {
    section.name: {field.name: field for field in dataclasses.fields(section.default)}  # type: ignore[arg-type]
    for section in dataclasses.fields(Config)
}
_lock = threading.RLock()
_current: Config | None = None


def get() -> Config:
    """The settings in force. The first call reads the file and the environment.

    Raises ConfigError.
    """
    return _current if _current is not None else reload()


def reload() -> Config:
    """Read the file and the environment again; what ``set`` changed is forgotten.

    Raises ConfigError.
    """
    global _current
    with _lock:
        config = _changed(Config(), _from_file())
        config = _changed(config, _from_environment())
        _current = config
        return config


class set:  # noqa: A001, N801 - reads as config.set(...), a function that can be used in a with statement
    """Change settings at once; as a context manager, change them back at its end.

    Arguments are a mapping of ``"section.name"`` (or nested by section) to values, or keywords ``section__name=value``.

    Raises ConfigError, in which case nothing is changed.
    """

    def __init__(self, changes: Mapping[str, Any] | None = None, /, **keywords: Any) -> None:
        global _current
        rows = [*_flat(changes or {}, "config.set"), *_flat(keywords, "config.set", separator="__")]
        with _lock:
            before = get()
            _current = _changed(before, rows)
            # Only what this call changed is put back, so that overlapping scopes in other threads keep theirs.
            self._before = [
                (f"{section}.{name}", getattr(getattr(before, section), name)) for section, name, _, _ in rows
            ]

    def __enter__(self) -> Config:
        return get()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _current
        with _lock:
            _current = _changed(get(), _flat(dict(reversed(self._before)), "config.set"))


def environment() -> dict[str, str]:
    """Environment variables by which a child process starts with the settings in force here (those not at defaults)."""
    config = get()
    result = {}
    for section, fields in _FIELDS.items():
        for name, field in fields.items():
            value = getattr(getattr(config, section), name)
            if value != field.default:
                result[f"GNOMON_{section}__{name}".upper()] = "none" if value is None else str(value)
    return result


def describe() -> Iterator[tuple[str, Any, str, str]]:
    """Every setting as ``(name, default, unit, what it is)``, for documentation."""
    for section, fields in _FIELDS.items():
        for name, field in fields.items():
            yield f"{section}.{name}", field.default, field.metadata["unit"], field.metadata["doc"]


#: One change: section, name, value, and where it came from.
_Row = tuple[str, str, Any, str]


def _changed(config: Config, rows: list[_Row]) -> Config:
    """The configuration with these changes, checked."""
    changes: dict[str, dict[str, Any]] = {}
    for section, name, value, source in rows:
        changes.setdefault(section, {})[name] = _checked(_FIELDS[section][name], value, f"{section}.{name}", source)
    sections = {section: dataclasses.replace(getattr(config, section), **values) for section, values in changes.items()}
    return dataclasses.replace(config, **sections)


def _flat(changes: Mapping[str, Any], source: str, *, separator: str = ".") -> list[_Row]:
    """Changes given as nested or dotted names, as rows whose names exist."""
    rows: list[_Row] = []
    for key, value in changes.items():
        section, _, name = key.replace("-", "_").partition(separator)
        if name:
            rows.append(_row(section, name, value, source))
        elif isinstance(value, Mapping):
            if section not in _FIELDS:
                raise ConfigError(f"{source}: there is no section {section!r}{_instead(section, _FIELDS)}")
            rows.extend(_row(section, str(inner).replace("-", "_"), item, source) for inner, item in value.items())
        else:
            raise ConfigError(
                f"{source}: {key!r} names no setting; write section{separator}name, such as comm{separator}backend"
            )
    return rows


def _row(section: str, name: str, value: Any, source: str) -> _Row:
    if section not in _FIELDS:
        raise ConfigError(f"{source}: there is no section {section!r}{_instead(section, _FIELDS)}")
    if name not in _FIELDS[section]:
        raise ConfigError(f"{source}: there is no setting {section}.{name}{_instead(name, _FIELDS[section])}")
    return section, name, value, source


def _instead(name: str, known: Mapping[str, Any]) -> str:
    """What may have been meant, or all there is."""
    close = [other for other in known if other.startswith(name[:4]) or name in other or other in name]
    return f"; did you mean {' or '.join(close)}?" if close else f"; there are {', '.join(known)}"


def _from_file() -> list[_Row]:
    """The file's settings; none if there is no file, but an error if ``GNOMON_CONFIG`` names one that can't be read."""
    named = os.environ.get("GNOMON_CONFIG", "")
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    path = Path(named) if named else Path(home, "gnomon", "gnomon.toml")
    try:
        content = path.read_bytes()
    except OSError as exc:
        if named:
            raise ConfigError(f"GNOMON_CONFIG names {path}, which can't be read: {exc.strerror}") from exc
        return []
    try:
        tables = tomllib.loads(content.decode())
    except ValueError as exc:  # both what is no TOML and what is no UTF-8
        raise ConfigError(f"{path}: {exc}") from exc
    return _flat(tables, str(path))


def _from_environment() -> list[_Row]:
    """Variables with a double underscore are settings; others (``GNOMON_SECRET``...) are not."""
    rows = []
    for variable, value in os.environ.items():
        if variable.startswith("GNOMON_") and "__" in variable:
            section, _, name = variable[len("GNOMON_") :].lower().partition("__")
            rows.append(_row(section, name, value, f"{variable} in the environment"))
    return rows


# -- Values ------------------------------------------------------------------------------------------------------------

_WORDS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
#: Factors by a setting's unit and the unit as written, in lower case.
_UNITS: dict[str, dict[str, float]] = {
    "s": {
        "": 1, "us": 1e-6, "ms": 1e-3, "s": 1, "sec": 1, "seconds": 1, "min": 60, "minutes": 60,
        "h": 3600, "hours": 3600, "d": 86400, "days": 86400,
    },
    "B": {
        "": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
        "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
    },
    "": {"": 1},
}  # fmt: skip
_UNITS["B/s"] = {f"{name}/s" if name else "": factor for name, factor in _UNITS["B"].items()}
_NUMBER = re.compile(r"([-+]?(?:[\d_.]+(?:e[-+]?\d+)?|inf))\s*([a-z/]*)", re.IGNORECASE)


def _checked(field: dataclasses.Field[Any], value: Any, name: str, source: str) -> Any:
    """The value in the field's own type and within its bounds.

    Raises ConfigError that names the setting and its source.
    """
    kinds = str(field.type).split(" | ")
    limits = field.metadata
    try:
        result = _converted(kinds, value, limits["unit"])
    except (ValueError, OverflowError) as exc:
        raise ConfigError(f"{source}: {name} must be {_expected(kinds, limits)}, not {value!r}") from exc
    if result is None:
        return None
    wrong = limits["choices"] and result not in limits["choices"]
    if "int" in kinds or "float" in kinds:
        wrong = math.isnan(result) or (limits["low"] is not None and result < limits["low"])
        wrong = wrong or (limits["high"] is not None and result > limits["high"])
    if wrong:
        raise ConfigError(f"{source}: {name} must be {_expected(kinds, limits)}, not {value!r}")
    return result


def _converted(kinds: list[str], value: Any, unit: str) -> Any:
    """The value as one of the kinds, from itself or from text. Raises ValueError."""
    if value is None or (isinstance(value, str) and value.strip().lower() == "none"):
        if "None" in kinds:
            return None
        raise ValueError
    if "bool" in kinds:
        if isinstance(value, bool):
            return value
        return _WORDS[value.strip().lower()] if isinstance(value, str) and value.strip().lower() in _WORDS else _fail()
    if "str" in kinds:
        return os.fspath(value) if isinstance(value, (str, Path)) else _fail()
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value.strip())
        if match is None or match[2].lower() not in _UNITS[unit]:
            raise ValueError
        value = float(match[1]) * _UNITS[unit][match[2].lower()]
    elif isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError
    if "int" in kinds:
        return int(value) if value == int(value) else _fail()
    return float(value)


def _fail() -> Any:
    raise ValueError


def _expected(kinds: list[str], limits: Mapping[str, Any]) -> str:
    """What a value may be, in words."""
    if limits["choices"]:
        return " or ".join(map(repr, limits["choices"]))
    words = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "text"}[kinds[0]]
    if limits["unit"]:
        words += {"s": " of seconds", "B": " of bytes", "B/s": " of bytes per second"}[limits["unit"]]
    if limits["low"] is not None:
        words += f", at least {limits['low']}"
    if limits["high"] is not None:
        words += f", at most {limits['high']}"
    return words + (" or none" if "None" in kinds else "")
