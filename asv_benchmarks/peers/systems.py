"""The systems: how each is started with two single-threaded workers, fed, and told apart by the roles of its processes.

A system that isn't installed is reported as not available, with the reason. Roles: ``client`` is the process that
submits, ``scheduler`` what decides where tasks run, ``worker`` what runs them (agents included).
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from .workloads import Feed

__all__ = ["SYSTEMS", "System", "missing_reason"]

WORKERS = 2
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class System:
    """A system: ``start`` is a context that gives its feed; ``role`` names a descendant process's part."""

    name: str
    title: str
    package: str | None
    """The distribution whose version is told; None is Python's own."""
    start: Callable[[], Any]
    role: Callable[[psutil.Process], str]
    module: str = ""


def missing_reason(system: System) -> str | None:
    """Why a system can't be measured here; None where it can."""
    try:
        importlib.import_module(system.module)
        if system.package is not None:
            version(system.package)
    except (ImportError, PackageNotFoundError) as error:
        return str(error) or type(error).__name__
    return None


class ClientFeed:
    """gnomon and dask.distributed, which share the client's methods."""

    takes_futures = True

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start one task that is never taken for an earlier one."""
        return self._client.submit(function, *arguments, pure=False)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Start one task per item."""
        return list(self._client.map(function, items, pure=False))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The futures' values."""
        return list(self._client.gather(list(futures)))


class PoolFeed:
    """Executors in the manner of ``concurrent.futures``."""

    takes_futures = False

    def __init__(self, pool: Executor) -> None:
        self._pool = pool

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start one task."""
        return self._pool.submit(function, *arguments)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """One task per item; the chunks of ``Executor.map`` would each run as one task, which is not the same."""
        return [self._pool.submit(function, item) for item in items]

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The futures' values."""
        return [future.result() for future in futures]


class RayFeed:
    """Ray's tasks; remote functions are made once."""

    takes_futures = True

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._remote: dict[Callable[..., Any], Any] = {}

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Start one task."""
        remote = self._remote.get(function)
        if remote is None:
            remote = self._remote[function] = self._ray.remote(function)
        return remote.remote(*arguments)

    def map(self, function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """Ray has no call for many tasks."""
        return [self.submit(function, item) for item in items]

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The references' values."""
        return list(self._ray.get(list(futures)))


_gnomon_agents: set[int | None] = set()


@contextmanager
def start_gnomon() -> Iterator[Feed]:
    """Scheduler and workers in processes of their own."""
    runtime = importlib.import_module("gnomon.runtime")
    with runtime.LocalCluster(n_workers=WORKERS, threads_per_worker=1) as cluster, runtime.Client(cluster) as client:
        client.wait_for_workers(WORKERS)
        _gnomon_agents.update(unit.pid for unit in cluster.workers.values())
        yield ClientFeed(client)


def gnomon_role(process: psutil.Process) -> str:
    """Agents are known by their process ids, and executors by their parents'."""
    return "worker" if {process.pid, process.ppid()} & _gnomon_agents else "scheduler"


@contextmanager
def start_distributed() -> Iterator[Feed]:
    """Scheduler and workers by the command line, since a LocalCluster's scheduler shares the client's process."""
    distributed = importlib.import_module("distributed")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "scheduler.json"))
        common = ["--scheduler-file", file, "--no-dashboard"]
        commands = [["distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", *common]]
        worker = ["distributed.cli.dask_worker", "--nthreads", "1", "--host", "127.0.0.1", "--local-directory", folder]
        commands += [[*worker, *common]] * WORKERS
        quiet = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "error"}
        children = [
            subprocess.Popen([sys.executable, "-m", *command], env=quiet, stderr=subprocess.DEVNULL)
            for command in commands
        ]
        try:
            _wait_for_file(file)
            with distributed.Client(scheduler_file=file) as client:
                client.wait_for_workers(WORKERS, timeout=START_SECONDS)
                yield ClientFeed(client)
        finally:
            for child in children[::-1]:
                child.terminate()
            for child in children:
                child.wait(START_SECONDS)


def _wait_for_file(path: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not os.path.exists(path) or not os.path.getsize(path):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the scheduler did not write {path} within {START_SECONDS:.0f} s")
        time.sleep(0.05)


def distributed_role(process: psutil.Process) -> str:
    """All but the scheduler's command are workers and their nannies."""
    return "scheduler" if "distributed.cli.dask_scheduler" in process.cmdline() else "worker"


@contextmanager
def start_ray() -> Iterator[Feed]:
    """A local Ray without its dashboard."""
    ray = importlib.import_module("ray")
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        yield RayFeed(ray)
    finally:
        ray.shutdown()


def ray_role(process: psutil.Process) -> str:
    """Ray's workers rename themselves; everything else is its control plane."""
    return "worker" if process.cmdline()[:1] and process.cmdline()[0].startswith("ray::") else "scheduler"


@contextmanager
def start_pool() -> Iterator[Feed]:
    """The standard library's pool; spawned like the others' workers, not forked."""
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield PoolFeed(pool)


@contextmanager
def start_loky() -> Iterator[Feed]:
    """joblib's pool."""
    loky = importlib.import_module("loky")
    with loky.ProcessPoolExecutor(WORKERS) as pool:
        yield PoolFeed(pool)


def pool_role(process: psutil.Process) -> str:
    """A pool is scheduled in the client's process."""
    return "worker"


SYSTEMS = (
    System("gnomon", "gnomon", "gnomon", start_gnomon, gnomon_role, "gnomon.runtime"),
    System("distributed", "dask.distributed", "distributed", start_distributed, distributed_role, "distributed"),
    System("ray", "Ray", "ray", start_ray, ray_role, "ray"),
    System("pool", "ProcessPoolExecutor", None, start_pool, pool_role, "concurrent.futures"),
    System("loky", "loky (joblib)", "loky", start_loky, pool_role, "loky"),
)
