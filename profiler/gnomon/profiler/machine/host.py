"""What the whole machine does on its network, its disks and its processors, as rates since the last look."""

from __future__ import annotations

from math import nan
from time import monotonic
from typing import Any, NamedTuple

__all__ = ["HostRates", "HostWatch"]


class HostRates(NamedTuple):
    """Bytes per second, and percent of all processors; NaN where it isn't measured."""

    received: float = nan  # on real interfaces
    sent: float = nan
    loopback: float = nan  # sent from this machine to itself
    disk_read: float = nan
    disk_written: float = nan
    cpu: float = nan


class HostWatch:
    """Reads the machine's counters through psutil (the module; None: nothing is measured). Each part has a switch."""

    def __init__(self, psutil: Any, *, network: bool = True, disk: bool = True, cpu: bool = True) -> None:
        self._psutil = psutil
        self.network = network and psutil is not None and hasattr(psutil, "net_io_counters")
        self.disk = disk and psutil is not None and hasattr(psutil, "disk_io_counters")
        self.cpu = cpu and psutil is not None
        self._time = monotonic()
        self._network = self._read_network()
        self._disk = self._read_disk()
        self._cpu = self._read_cpu()
        self._last = HostRates()

    def rates(self, shortest: float = 0.0) -> HostRates:
        """Rates since the last call; the same as then if that was less than ``shortest`` seconds ago."""
        time = monotonic()
        seconds = time - self._time
        if seconds <= max(shortest, 0.001):
            return self._last
        before = (self._network, self._disk, self._cpu)
        self._network, self._disk, self._cpu = self._read_network(), self._read_disk(), self._read_cpu()
        self._time = time
        received, sent, loopback = _rates(before[0], self._network, 3, seconds)
        disk_read, disk_written = _rates(before[1], self._disk, 2, seconds)
        cpu = _share(before[2], self._cpu)
        self._last = HostRates(received, sent, loopback, disk_read, disk_written, cpu)
        return self._last

    def _read_network(self) -> tuple[float, ...] | None:
        if not self.network:
            return None
        try:
            by_name = self._psutil.net_io_counters(pernic=True, nowrap=False)
        except (OSError, self._psutil.Error):
            self.network = False
            return None
        real = [each for name, each in by_name.items() if not _is_loopback(name)]
        own = [each for name, each in by_name.items() if _is_loopback(name)]
        return (
            sum(each.bytes_recv for each in real),
            sum(each.bytes_sent for each in real),
            sum(each.bytes_sent for each in own),
        )

    def _read_disk(self) -> tuple[float, ...] | None:
        if not self.disk:
            return None
        try:
            total = self._psutil.disk_io_counters(nowrap=False)
        except (OSError, RuntimeError, self._psutil.Error):
            total = None
        if total is None:  # a machine without disks, or one that doesn't tell
            self.disk = False
            return None
        return total.read_bytes, total.write_bytes

    def _read_cpu(self) -> tuple[float, ...] | None:
        if not self.cpu:
            return None
        times = self._psutil.cpu_times()
        # Guests are part of user already; waiting for the disk is idle time.
        idle = times.idle + getattr(times, "iowait", 0.0)
        total = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
        return total - idle, total


def _is_loopback(name: str) -> bool:
    return name.startswith("lo") and (name[2:].isdigit() or name == "lo" or "oopback" in name)


def _rates(
    before: tuple[float, ...] | None, after: tuple[float, ...] | None, number: int, seconds: float
) -> tuple[float, ...]:
    if before is None or after is None:
        return (nan,) * number
    return tuple(max(new - old, 0.0) / seconds for old, new in zip(before, after, strict=True))


def _share(before: tuple[float, ...] | None, after: tuple[float, ...] | None) -> float:
    if before is None or after is None or after[1] <= before[1]:
        return nan
    return min(max(100.0 * (after[0] - before[0]) / (after[1] - before[1]), 0.0), 100.0)
