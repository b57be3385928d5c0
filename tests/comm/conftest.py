"""What the comm tests share: a runner that fails on leaks, recording ends of connections, and the transports."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import warnings
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NamedTuple

import pytest

from gnomon.runtime import config
from gnomon.runtime.comm import Comm, Handlers, Listener, Security, connect, listen, new_event_loop
from gnomon.runtime.messages import Message, Request

DEADLINE = 20.0


@pytest.fixture(autouse=True)
def own_home(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No test reads or writes the settings and the secret of who runs it."""
    for name in [name for name in os.environ if name.startswith("GNOMON_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    config.reload()
    yield
    monkeypatch.undo()
    config.reload()


def _open_files() -> set[str]:
    if sys.platform != "linux":
        return set()
    gc.collect()
    found = set()
    for number in os.listdir("/proc/self/fd"):
        try:
            found.add(f"{number} {os.readlink(f'/proc/self/fd/{number}')}")
        except OSError:
            pass  # the one that listed
    return found


@pytest.fixture
def run() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on a loop of the configured kind; fail on leaked tasks or files, and on errors only the loop
    saw."""

    def runner(coroutine: Coroutine[Any, Any, Any], *, expect_loop_errors: bool = False) -> Any:
        problems: list[dict[str, Any]] = []

        async def main() -> Any:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
            async with asyncio.timeout(DEADLINE):
                result = await coroutine
            others = asyncio.all_tasks() - {asyncio.current_task()}
            if others:  # those that were just cancelled get their turns
                await asyncio.wait(others, timeout=5)
            leaked = [task for task in asyncio.all_tasks() - {asyncio.current_task()} if not task.done()]
            assert not leaked, f"tasks left: {leaked}"
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return result

        with asyncio.Runner(loop_factory=new_event_loop) as warming:  # libuv opens a pipe once per process
            warming.run(asyncio.sleep(0))
        before = _open_files()
        with asyncio.Runner(loop_factory=new_event_loop) as loop_runner:
            try:
                result = loop_runner.run(main())
            except BaseException:
                # A test that fails leaves connections open. uvloop warns of each while it closes, and where warnings
                # are errors it never gets to the end of that.
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ResourceWarning)
                    loop_runner.close()
                raise
        assert _open_files() - before == set(), "files left open"
        if not expect_loop_errors:
            assert not problems, problems
        return result

    return runner


class End:
    """Handlers that write down what they are told, and can be waited on."""

    def __init__(self) -> None:
        self.comm: Comm | None = None
        self.messages: list[Message] = []
        self.batches: list[int] = []
        self.closes: list[BaseException | None] = []
        self.on_batch: Callable[[Comm, list[Message]], None] | None = None
        self._changed = asyncio.Event()

    @property
    def handlers(self) -> Handlers:
        return Handlers(self.on_messages, self.on_close)

    def on_messages(self, comm: Comm, messages: list[Message]) -> None:
        assert not self.closes, "messages after on_close"
        self.messages += messages
        self.batches.append(len(messages))
        self._changed.set()
        if self.on_batch is not None:
            self.on_batch(comm, messages)

    def on_close(self, comm: Comm, exc: BaseException | None) -> None:
        self.closes.append(exc)
        self._changed.set()

    async def until(self, condition: Callable[[End], Any]) -> None:
        """Wait until the condition holds."""
        while not condition(self):
            self._changed.clear()
            await self._changed.wait()

    async def received(self, count: int) -> list[Message]:
        await self.until(lambda end: len(end.messages) >= count or end.closes)
        return self.messages

    async def closed(self) -> BaseException | None:
        await self.until(lambda end: end.closes)
        assert len(self.closes) == 1
        return self.closes[0]


class Server:
    """A listener and an ``End`` per comm that it accepted."""

    def __init__(self) -> None:
        self.ends: list[End] = []
        self.listener: Listener | None = None
        self.greeting: list[Message] = []
        self.on_accept: Callable[[Comm], None] | None = None
        self.on_batch: Callable[[Comm, list[Message]], None] | None = None
        self._changed = asyncio.Event()

    async def start(self, address: str, **options: Any) -> Server:
        options = {"role": "scheduler", "info": {"name": "the scheduler"}, **options}
        self.listener = await listen(address, self.on_comm, **options)
        return self

    @property
    def address(self) -> str:
        assert self.listener is not None
        return self.listener.contact_address

    def on_comm(self, comm: Comm) -> Handlers:
        if self.on_accept is not None:
            self.on_accept(comm)
        end = End()
        end.comm = comm
        end.on_batch = self.on_batch
        self.ends.append(end)
        comm.send(self.greeting)
        self._changed.set()
        return end.handlers

    async def end(self, index: int = 0) -> End:
        while len(self.ends) <= index:
            self._changed.clear()
            await self._changed.wait()
        return self.ends[index]

    async def close(self) -> None:
        """Close everything, and see it gone."""
        assert self.listener is not None
        self.listener.close()
        for end in self.ends:
            assert end.comm is not None
            end.comm.close()
            await end.comm.wait_closed()
            await end.closed()
        await self.listener.wait_closed()


async def connected(address: str, **options: Any) -> tuple[Comm, End]:
    """A comm to an address, and its end."""
    end = End()
    options = {"role": "client", "info": {"name": "the client"}, "timeout": 10, **options}
    comm = await connect(address, on_messages=end.on_messages, on_close=end.on_close, **options)
    end.comm = comm
    return comm, end


def message(number: int, size: int = 0) -> Message:
    """A message that can be told from others."""
    return Request(number, "test", {"data": bytes(size)} if size else {})


class Transport(NamedTuple):
    """A way to connect: an address to listen at, the backend and loop, and the certificates."""

    address: str
    backend: str
    uvloop: bool
    security: Security | None

    @property
    def by_socket(self) -> bool:
        return not self.address.startswith("inproc")


@pytest.fixture(scope="session")
def certificates() -> dict[str, Any]:
    """The plain form of one temporary Security; making keys takes a while."""
    return Security.temporary(require_encryption=False).to_dict()


_TRANSPORTS = {
    "inproc": ("inproc://", "asyncio", True),
    "inproc-std": ("inproc://", "asyncio", False),
    "tcp-uvloop": ("tcp://127.0.0.1", "asyncio", True),
    "tcp-std": ("tcp://127.0.0.1", "asyncio", False),
    "tcp-tornado": ("tcp://127.0.0.1", "tornado", True),
    "tcp-tornado-std": ("tcp://127.0.0.1", "tornado", False),
    "tls-uvloop": ("tls://127.0.0.1", "asyncio", True),
    "tls-std": ("tls://127.0.0.1", "asyncio", False),
    "tls-tornado": ("tls://127.0.0.1", "tornado", True),
    "tls-tornado-std": ("tls://127.0.0.1", "tornado", False),
}


def _transport(name: str, certificates: dict[str, Any]) -> Iterator[Transport]:
    address, backend, uvloop = _TRANSPORTS[name]
    if uvloop:
        pytest.importorskip("uvloop")
    security = Security.from_dict(certificates) if address.startswith("tls") else None
    with config.set({"comm.backend": backend, "comm.uvloop": uvloop}):
        yield Transport(address, backend, uvloop, security)


@pytest.fixture(params=list(_TRANSPORTS))
def transport(request: pytest.FixtureRequest, own_home: None, certificates: dict[str, Any]) -> Iterator[Transport]:
    """Every transport in turn, with its settings in force."""
    yield from _transport(request.param, certificates)


@pytest.fixture(params=[name for name in _TRANSPORTS if not name.startswith("inproc")])
def wire(request: pytest.FixtureRequest, own_home: None, certificates: dict[str, Any]) -> Iterator[Transport]:
    """Every transport that uses sockets in turn, with its settings in force."""
    yield from _transport(request.param, certificates)


@pytest.fixture(params=["tcp-uvloop", "tcp-std", "tcp-tornado"])
def tcp(request: pytest.FixtureRequest, own_home: None, certificates: dict[str, Any]) -> Iterator[Transport]:
    """Every plain TCP transport in turn, with its settings in force."""
    yield from _transport(request.param, certificates)
