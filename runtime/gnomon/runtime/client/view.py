"""Questions about the cluster, and functions run in its workers: the part of ``Client`` that submits no tasks.

Contents: ClusterView.
"""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Callable, Coroutine
from typing import Any

from gnomon.runtime.client.connection import Connection, Reply
from gnomon.runtime.client.effects import Effect
from gnomon.runtime.client.future import futures_of
from gnomon.runtime.client.gather import answer, decode_small
from gnomon.runtime.client.graph import wire_key
from gnomon.runtime.client.notebook import shown_as_table
from gnomon.runtime.client.observing import ClusterInstruments
from gnomon.runtime.client.packing import seconds, worker_names
from gnomon.runtime.errors import CommError, SerializationError
from gnomon.runtime.messages import ByReference, ErrorRecord, Payload
from gnomon.runtime.protocol import decode_error, dumps_code

__all__ = ["ClusterView"]

#: Seconds to wait for the scheduler to tell what else there is to the cluster.
_PATIENCE = 5.0


class ClusterView(ClusterInstruments):
    """What a client may ask. With an asynchronous client every answer is awaited."""

    name: str
    status: str
    asynchronous: bool
    cluster: Any
    _connection: Connection
    _services: Any

    def call(self, coroutine: Coroutine[Effect, Any, Any]) -> Any:
        """Run one of this room's coroutines to its end; asynchronous clients give an awaitable."""
        raise NotImplementedError

    async def _ask(self, method: str, arguments: dict[str, Any], timeout: float | None = None) -> Any:
        return await answer(self._connection.ask(method, arguments), timeout)

    def request(self, method: str, **arguments: Any) -> Any:
        """Ask the scheduler by a request's name, for instruments built on this client (records, figures).

        Raises what the scheduler answers: ValueError for a request it doesn't know, or bad arguments.
        """
        return self.call(self._ask(method, arguments))

    @property
    def dashboard_link(self) -> str:
        """Where to look at the cluster in a browser, with the token that lets one in; empty if there is no dashboard.

        An asynchronous client of an address asks in the background: empty until the answer has come.
        """
        if self.cluster is None and self._services is None and self.status == "running":
            if self.asynchronous:
                self._services = self._connection.ask("services", {})
            else:
                self._services = self.call(self._ask("services", {}, _PATIENCE))
        return self._known_link()

    def _known_link(self) -> str:
        """The link as far as it is known without asking."""
        if self.cluster is not None:
            return str(getattr(self.cluster, "dashboard_link", ""))
        services = self._services
        if isinstance(services, Reply):
            services = services.result
        return str(services.get("dashboard", "")) if isinstance(services, dict) else ""

    def __repr__(self) -> str:
        link = self._known_link()
        shown = f" dashboard={link!r}" if link else ""
        return f"<Client: {self._connection.address or 'no address'!r} {self.status}{shown}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = {"Scheduler": self._connection.address or "no address", "Status": self.status}
        try:
            link = self.dashboard_link
        except (CommError, TimeoutError):
            link = ""
        return shown_as_table(f"Client {self.name}", rows, link)

    def scheduler_info(self, n_workers: int = -1) -> Any:
        """What the cluster is made of; ``["workers"]`` maps addresses (``n_workers`` of them) to what is known."""
        return self.call(self._scheduler_info(n_workers))

    async def _scheduler_info(self, n_workers: int) -> dict[str, Any]:
        info: dict[str, Any] = await self._ask("scheduler_info", {})
        if n_workers >= 0:
            info["workers"] = dict(list(info["workers"].items())[:n_workers])
        return info

    def who_has(self, futures: Any = None) -> Any:
        """Addresses of the workers that hold each key: of the futures or collections given, or of all in memory."""
        return self.call(self._who_has(futures))

    async def _who_has(self, futures: Any) -> dict[Any, tuple[str, ...]]:
        arguments = {} if futures is None else {"keys": tuple([future.key for future in futures_of(futures)])}
        return {key: tuple(addresses) for key, addresses in await self._ask("who_has", arguments)}

    def has_what(self, workers: Any = None) -> Any:
        """Keys in the memory of each worker."""
        return self.call(self._ask("has_what", _some(workers)))

    def processing(self, workers: Any = None) -> Any:
        """Keys that each worker has been given to compute."""
        return self.call(self._ask("processing", _some(workers)))

    def nthreads(self, workers: Any = None) -> Any:
        """Threads of each worker."""
        return self.call(self._ask("nthreads", _some(workers)))

    ncores = nthreads

    def story(self, key: Any) -> Any:
        """What happened to a key at the scheduler, oldest first."""
        return self.call(self._ask("story", {"key": wire_key(getattr(key, "key", key))}))

    def wait_for_workers(self, n_workers: int, timeout: float | str | None = None) -> Any:
        """Wait until the cluster has so many workers.

        Raises TimeoutError.
        """
        if not isinstance(n_workers, int) or isinstance(n_workers, bool) or n_workers < 1:
            raise ValueError(f"n_workers must be a positive number, not {n_workers!r}")
        return self.call(self._wait_for_workers(n_workers, seconds(timeout)))

    async def _wait_for_workers(self, n: int, timeout: float | None) -> None:
        try:
            await self._ask("wait_for_workers", {"n": n}, timeout)
        except TimeoutError:
            now = len((await self._ask("scheduler_info", {}, 5.0))["workers"])
            raise TimeoutError(f"only {now} of {n} workers came within {timeout:g} s") from None

    def retire_workers(self, workers: Any = None) -> Any:
        """Send workers home in good order; returns the addresses of those that left.

        They get nothing new; tasks that they have not begun go to others at once, those that run may end. What only
        they hold is copied to others first, so nothing is computed again. After 30 s in which no task ended and no
        value moved a worker leaves as it is.
        """
        return self.call(self._ask("retire_workers", _some(workers)))

    def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        workers: Any = None,
        wait: bool = True,
        nanny: bool = False,
        on_error: str = "raise",
        **kwargs: Any,
    ) -> Any:
        """Call a function once in the executor of each worker, beside the task system; gives results by address.

        Args:
            function: called with ``args`` and ``kwargs``; may be a coroutine function.
            workers: addresses, names or hosts; default all.
            wait: whether to wait for the results (else None is given).
            nanny: not possible: no code of yours runs in the process that supervises a worker.
            on_error: ``raise`` the first error, ``return`` errors in the place of results, ``ignore`` those workers.
        """
        if nanny:
            raise ValueError("no user code runs in a worker's supervising process; call run without nanny=True")
        if on_error not in ("raise", "return", "ignore"):
            raise ValueError(f"on_error must be 'raise', 'return' or 'ignore', not {on_error!r}")
        if not callable(function):
            raise TypeError(f"run needs a callable, not {function!r}")
        return self.call(self._run(function, args, kwargs, workers, wait, on_error))

    async def _run(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], workers: Any, wait: bool, on_error: str
    ) -> dict[str, Any] | None:
        code: Payload
        if self._connection.by_reference:
            code = ByReference((function, args, kwargs))
        else:
            try:
                code = dumps_code((function, args, kwargs))
            except Exception as exc:
                raise SerializationError(f"{function!r} or its arguments can't be pickled: {exc}") from exc
        answers = await self._ask("run", {"code": code, "wait": wait, **_some(workers)})
        results: dict[str, Any] = {}
        for address, (outcome, value) in answers.items():
            if outcome == "ok":
                results[address] = decode_small(value) if wait else None
                continue
            error = decode_error(ErrorRecord(*value))
            if on_error == "raise":
                raise error
            if on_error == "return":
                results[address] = error
        return results if wait else None

    def run_on_scheduler(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Not possible: the scheduler never unpickles what users send."""
        raise NotImplementedError(
            "the scheduler runs no user code and never unpickles user data; use client.run for workers, "
            "or scheduler_info, who_has, story... for questions about its state"
        )

    def get_versions(self, check: bool = False, packages: Any = ()) -> Any:
        """Versions of Python and of packages at client, scheduler and workers.

        Args:
            check: raise ValueError if Python or a package that both have differs between client and a worker.
            packages: names of packages to look at besides gnomon's own.
        """
        return self.call(self._get_versions(check, tuple(packages)))

    async def _get_versions(self, check: bool, packages: tuple[str, ...]) -> dict[str, Any]:
        here = versions(packages)
        found: dict[str, Any] = {
            "client": here,
            "scheduler": await self._ask("versions", {}),
            "workers": await self._run(versions, (packages,), {}, None, True, "return"),
        }
        if check:
            for address, there in found["workers"].items():
                for name, version in here.items():
                    if version and isinstance(there, dict) and there.get(name) not in (None, version):
                        raise ValueError(f"{name} is {version} here, but {there[name]} at {address}")
        return found


def versions(packages: tuple[str, ...] = ()) -> dict[str, str | None]:
    """Versions in this process; None for what is not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in ("gnomon", "cloudpickle", "msgpack", "dask", "numpy", "pandas", *packages):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def _some(workers: Any) -> dict[str, Any]:
    return {} if workers is None else {"workers": worker_names(workers)}
