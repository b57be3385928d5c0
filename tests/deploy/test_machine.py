"""Splitting processors into workers, and sizes as people write them."""

from __future__ import annotations

import pytest

from gnomon.runtime.deploy.machine import cpu_count, parse_bytes, split_processors


def test_cpu_count_is_at_least_one():
    assert cpu_count() >= 1


@pytest.mark.parametrize(
    ("cpus", "workers", "threads", "processes", "expected"),
    [
        (1, None, None, True, (1, 1)),
        (4, None, None, True, (4, 1)),
        (8, None, None, True, (4, 2)),
        (12, None, None, True, (4, 3)),
        (7, None, None, True, (7, 1)),
        (8, 2, None, True, (2, 4)),
        (2, 5, None, True, (5, 1)),
        (8, None, 2, True, (4, 2)),
        (8, None, 16, True, (1, 16)),
        (8, None, None, False, (1, 8)),
        (8, 3, 5, False, (3, 5)),
        (8, 0, None, True, (0, 1)),
    ],
)
def test_split(cpus, workers, threads, processes, expected):
    assert split_processors(workers, threads, processes=processes, cpus=cpus) == expected


def test_split_refuses_nonsense():
    with pytest.raises(ValueError, match="n_workers"):
        split_processors(-1, None, processes=True)
    with pytest.raises(ValueError, match="threads_per_worker"):
        split_processors(1, 0, processes=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(5, 5), ("5", 5), ("4GB", 4 * 10**9), ("4 GiB", 4 * 2**30), ("0.5kB", 500), ("1e3 B", 1000), ("2M", 2 * 10**6)],
)
def test_bytes(text, expected):
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "many", "4 XB", "-1", "GB"])
def test_no_bytes(text):
    with pytest.raises(ValueError, match="number of bytes"):
        parse_bytes(text)
