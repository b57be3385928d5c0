"""What the scheduler remembers: totals that are complete, answers that msgpack carries."""

from __future__ import annotations

import random
from array import array

import msgpack
import pytest

from gnomon.runtime.core import RunColumns
from gnomon.runtime.messages import ErrorRecord, TransfersDone
from gnomon.runtime.scheduler.telemetry import Telemetry


def runs(rows):
    """Rows: key, prefix, worker, start, seconds, ok."""
    return RunColumns(
        [row[0] for row in rows],
        [row[1] for row in rows],
        array("q", [row[2] for row in rows]),
        array("i", [0] * len(rows)),
        array("d", [t for row in rows for t in (row[3], row[3] + 1, row[3] + 1 + row[4], row[3] + 3 + row[4])]),
        array("q", [10] * len(rows)),
        array("b", [row[5] for row in rows]),
    )


def totals(mark, which):
    return {row[0]: tuple(row[1:]) for row in mark[which]}


@pytest.mark.parametrize("chunks", [1, 4])
def test_totals_by_prefix_and_worker(chunks):
    telemetry = Telemetry()
    rows = [("a-1", "a", 1, 100.0, 5.0, True), ("b-1", "b", 1, 100.0, 7.0, True),
            ("a-2", "a", 2, 200.0, 5.0, False), ("a-3", "a", 1, 300.0, 0.0, True)]  # fmt: skip
    size = len(rows) // chunks
    for i in range(0, len(rows), size):
        telemetry.append_runs(runs(rows[i : i + size]))
    mark = telemetry.mark(400.0)
    assert totals(mark, "prefixes") == {"a": (3, 1, 30, 3.0, 10.0, 6.0), "b": (1, 0, 10, 1.0, 7.0, 2.0)}
    assert totals(mark, "worker_totals") == {1: (3, 0, 30, 3.0, 12.0, 6.0), 2: (1, 1, 10, 1.0, 5.0, 2.0)}


def test_totals_are_complete_when_the_ring_is_not():
    telemetry = Telemetry(length=10)
    for i in range(50):
        telemetry.append_runs(runs([(f"a-{i}", "a", 1, float(i), 2.0, True)]))
    assert totals(telemetry.mark(0.0), "prefixes")["a"][0] == 50
    page = telemetry.since((0, 0))
    assert (page["missed"][0], len(page["runs"]["keys"]), page["next"][0], page["done"]) == (40, 10, 50, True)


def test_an_empty_chunk_is_nothing():
    telemetry = Telemetry()
    telemetry.append_runs(runs([]))
    assert set(telemetry.mark(0.0)["number"]) == {0}


def test_offsets_correct_the_clock_of_their_worker_alone():
    telemetry = Telemetry()
    telemetry.append_runs(runs([("a", "a", 1, 10.0, 1.0, True), ("b", "a", 2, 10.0, 1.0, True)]), {2: -5.0})
    times = array("d", telemetry.since((0, 0))["runs"]["timings"])
    assert times.tolist() == [10, 11, 12, 14, 5, 6, 7, 9]


def test_many_prefixes_end_in_other():
    telemetry = Telemetry(groups=3)
    telemetry.append_runs(runs([(f"p{i}", f"p{i}", 1, 0.0, 1.0, True) for i in range(10)]))
    counted = totals(telemetry.mark(0.0), "prefixes")
    assert sum(row[0] for row in counted.values()) == 10
    assert counted["(other prefixes)"][0] == 7


def test_transfers_by_pair_and_offset():
    telemetry = Telemetry()
    message = TransfersDone(("tcp://a", "tcp://gone"), (100, 200), (1.0, 2.0), (1.5, 2.25), ("tcp", "tls"))
    telemetry.append_transfers(7, message, {"tcp://a": 3}, offset=10.0)
    mark = telemetry.mark(0.0)
    assert mark["pairs"] == [(3, 7, "tcp", 1, 100, 0.5), (-1, 7, "tls", 1, 200, 0.25)]
    page = telemetry.since((0, 0))["transfers"]
    assert array("d", page["starts"]).tolist() == [11.0, 12.0]
    assert page["transport_names"] == ["tcp", "tls"]


def test_errors_are_grouped_and_bounded():
    telemetry = Telemetry(errors=2)
    for i in range(5):
        for kind in ("ValueError", "KeyError", "OSError"):
            record = ErrorRecord(f"builtins.{kind}", f"Traceback\n  line\n{kind}: bad", b"", b"")
            telemetry.append_errors([f"a-{i}"], ["a"], 1, [record], float(i))
    mark = telemetry.mark(9.0)
    assert [row[:5] for row in mark["errors"]] == [
        ("a", "builtins.ValueError", "ValueError: bad", 5, "a-0"),
        ("a", "builtins.KeyError", "KeyError: bad", 5, "a-0"),
    ]
    assert (mark["errors_seen"], mark["errors_ungrouped"]) == (15, 5)


def test_workers_that_left_are_told_of_and_bounded():
    telemetry = Telemetry(departed=2)
    for i in range(5):
        telemetry.worker_joined(i, name=f"w{i}", address=f"tcp://h:{i}", nthreads=2, host="h", now=float(i))
    for i in range(4):
        telemetry.worker_left(i, reason="killed", now=10.0 + i)
    telemetry.worker_left(3, reason="again", now=99.0)
    mark = telemetry.mark(20.0)
    assert [(row[0], row[6], row[7]) for row in mark["workers"]] == [
        (2, 12.0, "killed"),
        (3, 13.0, "killed"),
        (4, None, ""),
    ]
    assert mark["workers_forgotten"] == 2


def test_answers_are_plain_values():
    telemetry = Telemetry(logs=2)
    for key in ("x", ("t", 1), b"raw", 3, 1.5, "😀" * 5_000, "\udcff broken"):
        telemetry.append_runs(runs([(key, "p", 1, 0.0, 1.0, True)]))
    for i in range(3):
        telemetry.append_log("INFO", f"line {i}", float(i))
    for answer in (telemetry.mark(1.0), telemetry.since((0, 0))):
        msgpack.unpackb(msgpack.packb(answer))
    keys = telemetry.since((0, 0))["runs"]["keys"]
    assert keys[:5] == ["x", "('t', 1)", "b'raw'", "3", "1.5"]
    assert len(keys[5]) < 600
    mark = telemetry.mark(1.0)
    assert (mark["logs_seen"], [row[2] for row in mark["logs"]]) == (3, ["line 1", "line 2"])


def test_spans_have_decode_and_encode_and_processor_time():
    telemetry = Telemetry()
    columns = runs([("a", "a", 1, 10.0, 4.0, True), ("b", "b", 2, 10.0, 6.0, False), ("c", "c", 2, 10.0, 8.0, True)])
    telemetry.append_runs(columns._replace(cpus=array("d", [1.0, float("nan"), 2.0]), spans=[("s",), ("s",), ()]))
    mark = telemetry.mark(0.0)
    assert totals(mark, "spans") == {("s",): (2, 1, 20, 2.0, 10.0, 4.0)}
    assert totals(mark, "span_cpu") == {("s",): (1.0, 4.0)}


def test_what_is_known_of_clocks_stays_with_the_worker():
    telemetry = Telemetry()
    for i in (1, 2):
        telemetry.worker_joined(i, name=f"w{i}", address=f"tcp://h:{i}", nthreads=1, host="h", now=0.0)
    assert telemetry.mark(0.0)["clocks"] == []
    telemetry.clock_estimated(2, time=5.0, offset=-0.25, uncertainty=0.5, samples=3)
    telemetry.clock_estimated(9, time=5.0, offset=1.0, uncertainty=0.5, samples=3)  # nobody knows it
    telemetry.worker_left(2, reason="gone", now=6.0)
    assert telemetry.mark(0.0)["clocks"] == [(2, 5.0, -0.25, 0.5, 3)]


def told(news):
    """The totals of workers in columns, as rows of a mark."""
    codes = {"names": "q", "count": "q", "erred": "q", "nbytes": "q"}
    columns = {name: array(codes.get(name, "d"), data) for name, data in news["worker_totals"].items()}
    named = ("names", "count", "erred", "nbytes", "decode", "compute", "encode")
    return [tuple(row) for row in zip(*(columns[name] for name in named), strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_news_bring_who_was_told_before_to_where_the_mark_stands(seed):
    dice, telemetry = random.Random(seed), Telemetry(departed=50)
    known, left, errors, logs = 0, 0.0, 0, 0
    workers, lines, groups = {}, [], []
    here: list[int] = []
    for now in range(1, 40):
        for _ in range(dice.randrange(3)):
            here.append(len(workers) + len(here) * 1_000 + now * 100_000)
            telemetry.worker_joined(here[-1], name="w", address="a", nthreads=1, host="h", now=float(now))
        if here and dice.random() < 0.5:
            telemetry.worker_left(here.pop(dice.randrange(len(here))), reason="gone", now=float(now))
        if here:
            telemetry.append_runs(runs([(f"a-{now}", "a", dice.choice(here), float(now), 2.0, True)]))
        if dice.random() < 0.3:
            telemetry.append_log("INFO", f"line {now}", float(now))
            record = ErrorRecord("builtins.OSError", f"OSError: {now % 3}", b"", b"")
            telemetry.append_errors(["a-1"], ["a"], 1, [record], float(now))
        if dice.random() < 0.6:  # else whoever asks misses a turn
            news = telemetry.news(known, left, errors, logs)
            workers |= {row[0]: row for row in news["workers"]}
            lines += news["logs"]
            groups = news["errors"] or groups
            known = max([known, *workers])
            left = max([left, *(row[6] for row in workers.values() if row[6])])
            errors, logs = news["errors_seen"], news["logs_seen"]
    news, mark = telemetry.news(known, left, errors, logs), telemetry.mark(40.0)
    workers |= {row[0]: row for row in news["workers"]}
    assert list(workers.values()) == sorted(mark["workers"]) == mark["workers"]
    assert lines + news["logs"] == mark["logs"]
    assert (news["errors"] or groups) == mark["errors"]
    assert told(news) == mark["worker_totals"]
    assert all(news[name] == mark[name] for name in ("rings", "prefixes", "prefix_cpu", "errors_seen", "logs_seen"))
    assert telemetry.numbers() == mark["number"]
    msgpack.unpackb(msgpack.packb(news))
