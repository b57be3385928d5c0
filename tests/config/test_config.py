"""Settings: their sources, their types, and errors that say where a value came from."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gnomon.runtime import clock, config, errors
from gnomon.runtime.errors import ConfigError


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No file and no variable of who runs the tests."""
    for name in [name for name in os.environ if name.startswith("GNOMON_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    config.reload()
    yield
    monkeypatch.undo()
    config.reload()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_defaults() -> None:
    settings = config.get()
    assert settings.scheduler.worker_saturation == 1.1
    assert settings.scheduler.allowed_failures == 3
    assert settings.scheduler.worker_ttl == 300
    assert settings.scheduler.idle_timeout is None
    assert settings.executor.inline_bytes == 512
    assert settings.comm.backend == "asyncio"
    assert settings.comm.max_frame == 64 << 20
    assert config.get() is settings
    with pytest.raises(AttributeError):
        settings.comm.backend = "tornado"  # type: ignore[misc]


def test_every_setting_is_documented_and_its_default_is_valid() -> None:
    rows = list(config.describe())
    assert len(rows) > 30
    for name, default, unit, doc in rows:
        assert doc, name
        assert unit in ("", "s", "B", "B/s"), name
        config.set({name: default})
        config.set({name: "none" if default is None else str(default)})
    assert config.get() == config.Config()


def test_later_sources_win(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "[scheduler]\nallowed_failures = 5\nwork-stealing = false\nbandwidth = '1 GB/s'\n[comm]\nbackend = 'tornado'\n"
    )
    write(tmp_path / "home" / "gnomon" / "gnomon.toml", text)
    monkeypatch.setenv("GNOMON_SCHEDULER__BANDWIDTH", "2e9")
    monkeypatch.setenv("GNOMON_COMM__BACKEND", "asyncio")
    monkeypatch.setenv("GNOMON_SECRET", "not a setting")
    settings = config.reload()
    assert settings.scheduler.allowed_failures == 5
    assert settings.scheduler.work_stealing is False
    assert settings.scheduler.bandwidth == 2e9
    assert settings.comm.backend == "asyncio"
    with config.set({"comm.backend": "tornado"}):
        assert config.get().comm.backend == "tornado"
    assert config.get().comm.backend == "asyncio"


def test_a_file_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "home" / "gnomon" / "gnomon.toml", "[scheduler]\nallowed_failures = 5\n")
    path = write(tmp_path / "other.toml", "[scheduler]\nallowed_failures = 6\n")
    monkeypatch.setenv("GNOMON_CONFIG", str(path))
    assert config.reload().scheduler.allowed_failures == 6
    monkeypatch.setenv("GNOMON_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(ConfigError, match=r"GNOMON_CONFIG names .*none\.toml, which can't be read"):
        config.reload()


def test_set_takes_several_forms() -> None:
    with config.set(
        {"scheduler.allowed-failures": 1, "comm": {"max-frame": "1 MiB", "tcp_timeout": "2 min"}}
    ) as settings:
        assert settings.scheduler.allowed_failures == 1
        assert settings.comm.max_frame == 1 << 20
        assert settings.comm.tcp_timeout == 120
    with config.set(scheduler__allowed_failures=2):
        assert config.get().scheduler.allowed_failures == 2
    config.set(scheduler__allowed_failures=7)
    assert config.get().scheduler.allowed_failures == 7, "without a with statement it stays"


def test_scopes_nest_and_overlap() -> None:
    outer = config.set({"comm.backend": "tornado"})
    inner = config.set({"scheduler.allowed_failures": 9})
    with outer:
        pass
    assert config.get().comm.backend == "asyncio"
    assert config.get().scheduler.allowed_failures == 9, "what another scope set stays"
    with inner:
        pass
    assert config.get() == config.Config()
    with pytest.raises(RuntimeError), config.set({"comm.backend": "tornado"}):
        raise RuntimeError
    assert config.get() == config.Config()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("scheduler.worker_saturation", "inf", float("inf")),
        ("scheduler.worker_saturation", 2, 2.0),
        ("scheduler.worker_ttl", "none", None),
        ("scheduler.worker_ttl", None, None),
        ("scheduler.worker_ttl", "500 ms", 0.5),
        ("scheduler.worker_ttl", "1.5h", 5400.0),
        ("scheduler.validate", "yes", True),
        ("scheduler.validate", "0", False),
        ("scheduler.bandwidth", "100 MiB/s", 100 * (1 << 20)),
        ("scheduler.telemetry_length", "1_000", 1000),
        ("scheduler.telemetry_length", 2.0, 2),
        ("worker.transfer_bytes", "10 MB", 10_000_000),
        ("comm.max_frame", "64 mib", 64 << 20),
        ("security.tls_ca_file", Path("/x/y"), "/x/y"),
    ],
)
def test_values(name: str, value: Any, expected: Any) -> None:
    section, _, field = name.partition(".")
    with config.set({name: value}) as settings:
        result = getattr(getattr(settings, section), field)
    assert result == expected
    assert type(result) is type(expected) or type(result) is float


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("scheduler.allowed_failures", "three", "a whole number, at least 0, not 'three'"),
        ("scheduler.allowed_failures", -1, "at least 0, not -1"),
        ("scheduler.allowed_failures", 1.5, "a whole number"),
        ("scheduler.allowed_failures", True, "a whole number"),
        ("scheduler.allowed_failures", None, "a whole number"),
        ("scheduler.allowed_failures", "inf", "a whole number"),
        ("scheduler.worker_saturation", "nan", "a number"),
        ("scheduler.worker_ttl", "5 lightyears", "a number of seconds, at least 0.1 or none"),
        ("scheduler.worker_ttl", "5 MB", "a number of seconds"),
        ("scheduler.worker_ttl", [], "a number of seconds"),
        ("scheduler.validate", "maybe", "true or false"),
        ("scheduler.validate", 1, "true or false"),
        ("comm.backend", "twisted", "'asyncio' or 'tornado', not 'twisted'"),
        ("comm.backend", 3, "'asyncio' or 'tornado'"),
        ("comm.max_frame", 1 << 40, "at most 2147483647"),
        ("security.tls_ca_file", 3, "text"),
    ],
)
def test_bad_values(name: str, value: Any, text: str) -> None:
    before = config.get()
    with pytest.raises(ConfigError) as error:
        config.set({"comm.uvloop": False, name: value})
    assert str(error.value).startswith(f"config.set: {name} must be ")
    assert text in str(error.value)
    assert config.get() is before, "nothing is changed"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"scheduler.alowed_failures": 1}, "no setting scheduler.alowed_failures"),
        ({"scheduler.work": 1}, "did you mean worker_saturation or work_stealing or"),
        ({"schedular.validate": 1}, "no section 'schedular'; did you mean scheduler?"),
        ({"schedular": {"validate": 1}}, "no section 'schedular'"),
        ({"validate": True}, "'validate' names no setting"),
    ],
)
def test_unknown_names(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as error:
        config.set(changes)
    assert text in str(error.value)


def test_errors_name_their_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_COMM__BACKEND", "twisted")
    with pytest.raises(ConfigError, match=r"^GNOMON_COMM__BACKEND in the environment: comm\.backend must be"):
        config.reload()
    monkeypatch.setenv("GNOMON_COMM__BACKEND", "asyncio")
    monkeypatch.setenv("GNOMON_COMM__BACKENT", "asyncio")
    with pytest.raises(
        ConfigError, match=r"GNOMON_COMM__BACKENT in the environment: there is no setting comm\.backent"
    ):
        config.reload()
    monkeypatch.delenv("GNOMON_COMM__BACKENT")
    path = write(tmp_path / "my.toml", "[comm]\nbackend = 'twisted'\n")
    monkeypatch.setenv("GNOMON_CONFIG", str(path))
    for text in (
        "[comm]\nbackend = 'twisted'\n",
        "[com]\nbackend = 'x'\n",
        "backend = 1\n",
        "[comm\n",
        "[comm]\nx = 1\n",
    ):
        path.write_text(text)
        with pytest.raises(ConfigError) as error:
            config.reload()
        assert str(error.value).startswith(f"{path}: ")
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"my\.toml"):
        config.reload()


def test_a_child_gets_the_settings_in_force() -> None:
    assert config.environment() == {}
    with config.set({"scheduler.worker_ttl": None, "comm.backend": "tornado", "scheduler.validate": True}):
        environment = config.environment()
    assert environment == {
        "GNOMON_SCHEDULER__WORKER_TTL": "none",
        "GNOMON_COMM__BACKEND": "tornado",
        "GNOMON_SCHEDULER__VALIDATE": "True",
    }
    code = (
        "from gnomon.runtime import config; c = config.get(); "
        "print(c.scheduler.worker_ttl, c.comm.backend, c.scheduler.validate)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    ).stdout
    assert output.split() == ["None", "tornado", "True"]


def test_bad_settings_are_no_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import gnomon.runtime.config, gnomon.runtime.comm"
    environment = {**os.environ, "GNOMON_NO__SUCH": "1"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


def test_imports_are_light() -> None:
    code = (
        "import sys, gnomon.runtime.comm; "
        "heavy = ('tornado', 'cryptography', 'psutil', 'numpy', 'uvloop', 'bokeh'); "
        "print([name for name in heavy if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


# -- The other two at the bottom: clock and errors ---------------------------------------------------------------------


def test_the_clock_never_goes_back() -> None:
    readings = [clock.now() for _ in range(10_000)]
    assert readings == sorted(readings)


def test_the_clock_does_not_follow_the_system_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    before = clock.now()
    monkeypatch.setattr("time.time", lambda: before + 86_400)
    assert clock.now() - before < 3600


def test_errors_are_one_tree_and_survive_pickling() -> None:
    import concurrent.futures
    import pickle

    for name in errors.__all__:
        assert issubclass(getattr(errors, name), errors.GnomonError)
        assert name in (errors.__doc__ or "")
    assert issubclass(errors.CommError, OSError)
    assert issubclass(errors.ConnectTimeoutError, TimeoutError)
    assert issubclass(errors.FutureCancelledError, concurrent.futures.CancelledError)
    killed = pickle.loads(pickle.dumps(errors.KilledWorker("it ran on 4 workers when they died", "x")))
    assert killed.task == "x"
    assert "4 workers" in str(killed)
    cancelled = pickle.loads(pickle.dumps(errors.FutureCancelledError("k", "lost-dependencies", "because")))
    assert str(cancelled) == "'k' was cancelled: lost-dependencies (because)"
