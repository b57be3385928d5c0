"""What processes log reaches the cluster's records, and what users see of it stays as it was."""

from __future__ import annotations

import logging

import pytest

from gnomon.runtime.instruments.lines import LogLines, Tail
from gnomon.runtime.scheduler.telemetry import Telemetry

logger = logging.getLogger("gnomon.test_lines")


def test_lines_with_their_tracebacks():
    tail = Tail()
    lines = LogLines(tail)
    lines.start()
    try:
        logger.warning("%d are gone", 3)
        try:
            raise ValueError("why")
        except ValueError:
            logger.exception("failed")
        logging.getLogger("elsewhere").warning("not ours")
    finally:
        lines.stop()
    logger.warning("after the end")
    taken = tail.take()
    assert [(level, text.splitlines()[0]) for _, level, text in taken] == [
        ("WARNING", "3 are gone"),
        ("ERROR", "failed"),
    ]
    assert taken[1][2].endswith("ValueError: why")
    assert tail.take() == []


def test_one_of_a_process_tells():
    first, second = Tail(), Tail()
    listening, waiting = LogLines(first), LogLines(second)
    listening.start()
    waiting.start()
    try:
        logger.error("once")
        waiting.stop()
        logger.error("still")
    finally:
        listening.stop()
    assert len(first.take()) == 2
    assert second.take() == []


def test_what_is_lost_is_said():
    tail = Tail(most=2)
    for i in range(5):
        tail("INFO", f"line {i}", float(i))
    assert [text for _, _, text in tail.take()] == ["3 earlier lines are lost", "line 3", "line 4"]
    tail("INFO", "next", 9.0)
    assert len(tail.take()) == 1


def test_warnings_are_still_shown_where_logging_is_not_set_up(capsys, monkeypatch):
    for name in (None, "gnomon"):
        monkeypatch.setattr(logging.getLogger(name), "handlers", [])
    lines = LogLines(Tail())
    lines.start()
    try:
        logger.warning("seen")
        logging.getLogger().addHandler(logging.NullHandler())
        logger.warning("somebody else's business")
    finally:
        lines.stop()
    assert capsys.readouterr().err == "seen\n"


def test_a_workers_lines_are_kept_under_its_name_and_in_the_schedulers_time():
    telemetry = Telemetry()
    telemetry.worker_joined(4, name="alice", address="tcp://h:1", nthreads=1, host="h", now=0.0)
    telemetry.append_report(4, {"logs": {"agent": [(10.0, "WARNING", "executor process died")]}}, offset=2.0)
    telemetry.append_log("ERROR", "own", 13.0)
    mark = telemetry.mark(20.0)
    assert mark["logs_seen"] == 2
    assert [tuple(row) for row in mark["logs"]] == [
        (12.0, "WARNING", "alice: executor process died"),
        (13.0, "ERROR", "own"),
    ]


def test_what_is_no_line_is_refused():
    with pytest.raises((ValueError, TypeError)):
        Telemetry().append_report(4, {"logs": {"agent": [("soon", "WARNING", "x")]}})
