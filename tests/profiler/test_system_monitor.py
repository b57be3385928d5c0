"""This process, its children and the machine, measured; switches; and what happens where nothing can be measured."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from math import isnan
from types import SimpleNamespace

import pytest

from gnomon.profiler.machine.descendants import descendants
from gnomon.profiler.machine.host import HostWatch
from gnomon.profiler.machine.process import PlainReader, PsutilReader
from gnomon.profiler.machine.system import COLUMNS, SystemMonitor

psutil = pytest.importorskip("psutil")

BUSY = """
import sys
ballast = bytearray(b"x") * 60_000_000
print("ready", flush=True)
while True:
    pass
"""

GRANDCHILD = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
input()
child.communicate(b"x")
"""


#: How far apart two readings of processor time at the same moment may be: the system counts in hundredths.
JIFFIES = 0.04


@pytest.fixture
def busy_child():
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "ready\n"
        yield child
        child.kill()


def compute(seconds):
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def used(monitor, column):
    """CPU seconds by the rows of a monitor's series: percent of the time between them."""
    rows = monitor.window()
    times = rows["time"]
    return sum(
        share / 100 * (stop - start) for start, stop, share in zip(times, times[1:], rows[column][1:], strict=False)
    )


def test_cpu_of_this_process():
    monitor = SystemMonitor(children=False)
    outside = time.process_time()
    monitor.sample()
    inside = time.process_time()
    compute(0.2)
    least = time.process_time() - inside
    monitor.sample()
    most = time.process_time() - outside
    assert least - JIFFIES <= used(monitor, "cpu") <= most + JIFFIES
    assert isnan(monitor.series.last()["cpu_children"])


def test_children_count(busy_child):
    child = psutil.Process(busy_child.pid)
    monitor = SystemMonitor(children_every=0.0)
    outside = sum(child.cpu_times()[:2])
    monitor.sample()
    inside = sum(child.cpu_times()[:2])
    deadline = time.monotonic() + 30
    while (least := sum(child.cpu_times()[:2]) - inside) < 0.3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        monitor.sample()
    row = monitor.sample()
    most = sum(child.cpu_times()[:2]) - outside
    assert row["children"] == 1
    assert row["memory_children"] >= 60_000_000
    assert row["memory"] >= row["memory_children"] + 1_000_000
    assert least - JIFFIES <= used(monitor, "cpu_children") <= most + JIFFIES
    assert used(monitor, "cpu") >= used(monitor, "cpu_children")
    busy_child.kill()
    busy_child.wait()
    row = monitor.sample()
    assert row["memory_children"] == 0
    assert monitor.sample()["children"] == 0


def test_a_child_that_is_found_late_makes_no_peak(busy_child):
    child = psutil.Process(busy_child.pid)
    monitor = SystemMonitor(children_every=1e9)
    monitor._children.clear()
    monitor._listed, monitor._children_every = 0.0, 0.0
    deadline = time.monotonic() + 30
    while sum(child.cpu_times()[:2]) < 0.3:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    monitor.sample()
    time.sleep(0.05)
    monitor.sample()
    assert monitor.series.last()["cpu_children"] < 400


def test_children_that_end_between_two_looks_are_counted_when_they_were_waited_for():
    monitor = SystemMonitor(children_every=1e9)
    monitor.sample()
    before = sum(os.times()[2:4])
    subprocess.run([sys.executable, "-c", "import time\nwhile time.process_time() < 0.3: pass"], check=True)
    spent = sum(os.times()[2:4]) - before
    monitor.sample()
    assert used(monitor, "cpu_children") == pytest.approx(spent, abs=0.05)
    assert spent >= 0.25


def test_grandchildren_are_descendants():
    with subprocess.Popen(
        [sys.executable, "-c", GRANDCHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        grandchild = int(child.stdout.readline())
        assert {child.pid, grandchild} <= set(descendants(os.getpid(), psutil))
        assert descendants(child.pid, psutil) == [grandchild]
        child.communicate("x\n")
    assert child.pid not in descendants(os.getpid(), psutil)
    assert descendants(child.pid, psutil) == []


def test_descriptors_threads_and_switches():
    monitor = SystemMonitor()
    first = monitor.sample()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    reader, writer = os.pipe()
    for _ in range(20):
        time.sleep(0.001)
    row = monitor.sample()
    end.set()
    thread.join()
    os.close(reader)
    os.close(writer)
    assert row["fds"] == first["fds"] + 2
    assert row["threads"] == first["threads"] + 1
    assert row["voluntary_switches"] > 0
    assert row["memory"] > 1_000_000
    assert monitor.measured["fds"]


def test_everything_has_a_switch():
    monitor = SystemMonitor(children=False, network=False, disk=False, host_cpu=False, host_every=0.0)
    monitor.sample()
    measured = monitor.measured
    assert not any(there for name, there in measured.items() if name.startswith("host") or "children" in name)
    assert measured["cpu"]
    assert measured["memory"]


def test_it_samples_on_a_thread_of_its_own():
    monitor = SystemMonitor(keep=5)
    monitor.start(0.005)
    monitor.start(0.005)
    deadline = time.monotonic() + 20
    while monitor.series.number < 12:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    monitor.stop()
    monitor.stop()
    assert not [thread for thread in threading.enumerate() if thread.name == "gnomon-system"]
    rows = monitor.since(0)
    assert rows.missed == rows.next - 5
    assert len(rows.columns["time"]) == 5
    assert set(rows.columns) == {"time", *COLUMNS}
    assert monitor.cost().calls == rows.next + 1  # the first reading is no row
    assert monitor.cost().cpu > 0
    seen = monitor.statistics()
    assert json.loads(json.dumps(seen)).keys() == seen.keys()
    assert seen["processors"] > 0


class Machine:
    """A psutil of our own making."""

    Error = OSError

    def __init__(self):
        self.network = {"eth0": [0, 0], "lo": [0, 0]}
        self.disk = SimpleNamespace(read_bytes=0, write_bytes=0)
        self.times = [10.0, 90.0]

    def net_io_counters(self, *, pernic, nowrap):
        return {name: SimpleNamespace(bytes_recv=got, bytes_sent=sent) for name, (got, sent) in self.network.items()}

    def disk_io_counters(self, *, nowrap):
        return self.disk

    def cpu_times(self):
        class Times(tuple):
            user = property(lambda self: self[0])
            idle = property(lambda self: self[1])

        return Times(self.times)


def test_rates_of_the_machine(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("gnomon.profiler.machine.host.monotonic", lambda: clock[0])
    machine = Machine()
    host = HostWatch(machine)
    machine.network = {"eth0": [3000, 1000], "lo": [500, 500]}
    machine.disk = SimpleNamespace(read_bytes=4096, write_bytes=8192)
    machine.times = [13.0, 91.0]
    clock[0] += 2.0
    rates = host.rates(1.0)
    assert rates == (1500.0, 500.0, 250.0, 2048.0, 4096.0, 75.0)
    clock[0] += 0.5
    assert host.rates(1.0) is rates
    machine.network = {"eth0": [0, 0], "lo": [0, 0]}  # a counter that began anew
    clock[0] += 1.0
    assert host.rates(1.0).received == 0.0


def test_a_machine_without_disks_or_psutil_has_no_rates():
    machine = Machine()
    machine.disk = None
    host = HostWatch(machine)
    time.sleep(0.002)
    assert isnan(host.rates().disk_read)
    assert host.rates().received == 0.0
    assert all(isnan(rate) for rate in HostWatch(None).rates())


def test_readers_agree():
    ours = PlainReader().read()
    theirs = PsutilReader(psutil, os.getpid(), full=True).read()
    assert ours.rss == pytest.approx(theirs.rss, rel=0.2)
    assert ours.cpu == pytest.approx(theirs.cpu, abs=0.1)
    assert ours.cpu_reaped == pytest.approx(theirs.cpu_reaped, abs=0.1)
    assert ours.threads == theirs.threads


def test_a_process_that_is_gone_reads_as_none():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        reader = PsutilReader(psutil, child.pid, full=False)
        assert reader.read() is not None
        child.communicate(b"x\n")
    assert reader.read() is None


WITHOUT = """
import sys
sys.modules["psutil"] = None
from gnomon.profiler.machine.system import SystemMonitor
import json
monitor = SystemMonitor()
row = monitor.sample()
assert row["memory"] > 0 or row["memory"] != row["memory"]
print(json.dumps([monitor.measured, monitor.statistics()["psutil"], monitor.processors]))
"""


def test_without_psutil_it_says_what_is_not_measured():
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True)
    measured, has_psutil, processors = json.loads(done.stdout)
    assert not has_psutil
    assert measured["cpu"]
    assert not measured["host_received"]
    assert not measured["children"]
    assert processors >= 0.01
    if sys.platform.startswith("linux"):
        assert measured["memory"]
        assert measured["fds"]
