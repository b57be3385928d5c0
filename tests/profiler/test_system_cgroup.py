"""Limits of control groups, versions 1 and 2, nested, as a host and as a container sees them."""

from __future__ import annotations

import pytest

from gnomon.profiler.machine.cgroup import Limits, limits
from gnomon.profiler.machine.system import memory_limit

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = (
    "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 23 0:28 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
)


def system(root, *, groups, mounts, files):
    for name, text in {"proc/self/cgroup": groups, "proc/self/mountinfo": mounts, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return limits(str(root))


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, Limits(None, None)),
        ({"a/b/memory.max": "1000000\n"}, Limits(1000000, None)),
        ({"a/b/memory.max": "max\n", "a/memory.max": "2000000\n"}, Limits(2000000, None)),
        ({"a/b/memory.max": "3000000\n", "a/memory.max": "2000000\n"}, Limits(2000000, None)),
        ({"a/b/memory.max": "3000000\n", "a/b/memory.high": "2500000\n"}, Limits(2500000, None)),
        ({"a/b/cpu.max": "150000 100000\n", "a/b/memory.max": "max"}, Limits(None, 1.5)),
        ({"a/b/cpu.max": "max 100000\n", "cpu.max": "50000 100000\n"}, Limits(None, 0.5)),
        ({"a/b/cpu.max": "nonsense"}, Limits(None, None)),
    ],
)
def test_version_2(tmp_path, files, expected):
    (tmp_path / "sys/fs/cgroup/a/b").mkdir(parents=True)
    placed = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    assert system(tmp_path, groups="0::/a/b\n", mounts=V2, files=placed) == expected


def test_version_1(tmp_path):
    found = system(
        tmp_path,
        groups="9:name=systemd:/x\n4:memory:/docker/77\n2:cpu,cpuacct:/docker/77\n0::/\n",
        mounts=V1,
        files={
            "sys/fs/cgroup/memory/docker/77/memory.limit_in_bytes": "536870912\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/77/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/77/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_quota_us": "200000\n",
            "sys/fs/cgroup/cpu,cpuacct/docker/cpu.cfs_period_us": "100000\n",
        },
    )
    assert found == Limits(536870912, 2.0)


def test_a_container_sees_its_own_group_where_the_root_would_be(tmp_path):
    found = system(
        tmp_path,
        groups="4:memory:/docker/77\n",
        mounts="31 23 0:27 /docker/77 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        files={"sys/fs/cgroup/memory/memory.limit_in_bytes": "1048576\n"},
    )
    assert found.memory == 1048576


def test_a_path_that_is_not_there_means_the_mounted_group(tmp_path):
    found = system(tmp_path, groups="0::/../outside\n", mounts=V2, files={"sys/fs/cgroup/memory.max": "4096\n"})
    assert found.memory == 4096


def test_a_system_without_any(tmp_path):
    assert limits(str(tmp_path)) == Limits(None, None)


def test_this_machine_has_memory():
    assert memory_limit() > 1 << 20
    assert limits().memory is None or limits().memory > 0
