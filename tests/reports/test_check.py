"""Limits: what a file may say, what is a breach, and what the command prints."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gnomon.reports.account import PARTS
from gnomon.reports.check import LimitsError, check, read_limits
from gnomon.reports.check.limits import parse_limits
from gnomon.reports.check.measures import PREFIX, WHOLE
from gnomon.reports.cli import report


@pytest.fixture
def recording(cluster):
    """Ten seconds of one thread: two runs of a (1 s), one of b (2 s, erred), one fetch of 1000 bytes."""
    w, other = cluster.worker("w"), cluster.worker("other")
    mark = cluster.mark()
    cluster.run("a-1", w, 1.0, 2.0)
    cluster.run("a-2", w, 3.0, 4.0)
    cluster.run("b-1", w, 5.0, 7.0, ok=False)
    cluster.fetch(other, w, 4.0, 4.5)
    cluster.leave(other, 10.0)
    cluster.now = 10.0
    return cluster.record(mark)


def said(recording, table):
    return [str(breach) for breach in check(recording, parse_limits(table))]


def test_limits_that_hold_say_nothing(recording):
    table = {
        "max_duration": "10 s", "min_utilisation": 0.2, "max_unaccounted_share": "0 %", "max_errors": 1,
        "max_moved": "1 KiB", "min_tasks": 3, "max_idle_share": 0.9, "min_rate": 0.3, "max_workers_left": 1,
        "prefixes": {"a": {"max_mean": "800.1 ms", "max_p99": 0.9, "min_count": 2, "max_total": 2.01, "max_errors": 0}},
    }  # fmt: skip
    assert said(recording, table) == []


def test_each_breach_is_a_line_with_value_and_limit(recording):
    table = {
        "max_duration": "2 s",
        "min_utilisation": 0.5,
        "max_errors": 0,
        "max_moved": 999,
        "prefixes": {"b": {"max_mean": "1 s", "max_errors": 0, "max_count": 0}},
    }
    assert said(recording, table) == [
        "duration 10.0 s, limit at most 2.00 s",
        "utilisation 20.0 %, limit at least 50.0 %",
        "errors 1, limit at most 0",
        "moved 1000 B, limit at most 999 B",
        "prefix 'b': mean 1.60 s, limit at most 1.00 s",
        "prefix 'b': errors 1, limit at most 0",
        "prefix 'b': count 1, limit at most 0",
    ]


def test_values_that_look_like_their_limit_are_told_apart(recording):
    (line,) = said(recording, {"max_duration": 9.9999})
    assert line == "duration 10.0 s (10.0 against 9.9999), limit at most 10.0 s"


def test_patterns_of_prefixes(recording):
    assert len(said(recording, {"prefixes": {"*": {"max_count": 0}}})) == 2
    assert said(recording, {"prefixes": {"c*": {"max_count": 9}}}) == [
        "prefix 'c*': has limits, but nothing of this name ran"
    ]


def test_what_was_not_measured_is_a_breach(make_cluster):
    cluster = make_cluster()
    mark = cluster.mark()
    cluster.now = 1.0
    assert said(cluster.record(mark), {"min_utilisation": 0.1}) == [
        "utilisation was not measured, limit at least 10.0 %"
    ]


def test_every_measure_can_be_limited(recording):
    whole = {f"{bound}_{name}": 0 for name in WHOLE for bound in ("min", "max")}
    prefix = {f"{bound}_{name}": 0 for name in PREFIX for bound in ("min", "max")}
    limits = parse_limits({**whole, "prefixes": {"a": prefix}})
    assert len(limits) == 2 * len(WHOLE) + 2 * len(PREFIX)
    check(recording, limits)
    assert {f"{part}_share" for part in PARTS} <= set(WHOLE)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"max_durration": 1}, "unknown limit 'max_durration'. Known are max_ and min_ of: duration, utilisation"),
        ({"duration": 1}, "unknown limit 'duration'"),
        ({"prefixes": {"a": {"max_idle_share": 1}}}, r"prefixes.a: unknown limit.*count, errors, total"),
        ({"prefixes": 3}, "are tables"),
        ({"prefixes": {"a": 3}}, "are tables"),
        ({}, "no limit in the file"),
        ({"max_duration": True}, "a time is a number"),
        ({"max_duration": "3 parsecs"}, "ns, us"),
        ({"max_duration": -1}, "a time is a number from 0"),
        ({"max_duration": float("nan")}, "a time is a number"),
        ({"max_errors": "3 s"}, "a count is a number from 0$"),
        ({"max_moved": "1 Gib"}, "GiB"),
    ],
)
def test_a_wrong_file_is_refused_in_words(table, message):
    with pytest.raises(LimitsError, match=message):
        parse_limits(table)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("duration", "1_000 ms", 1.0), ("duration", "2min", 120.0), ("duration", 3, 3.0),
        ("moved", "1.5 GiB", 1.5 * 2**30), ("moved", "2 kB", 2000.0), ("utilisation", "80 %", 0.8),
        ("rate", "5 /s", 5.0), ("errors", "0", 0.0),
    ],
)  # fmt: skip
def test_units(name, text, value):
    assert parse_limits({f"max_{name}": text}).whole[0].value == pytest.approx(value)


def test_command(recording, tmp_path):
    path = recording.save(tmp_path / "r.gnomon")
    limits = tmp_path / "limits.toml"

    def run(content, file=path):
        limits.write_text(content, "utf-8")
        return CliRunner().invoke(report, ["check", str(file), "--limits", str(limits)])

    good = run('max_duration = "1 min"\n[prefixes.a]\nmin_count = 2\n')
    assert (good.exit_code, good.output) == (0, "2 limits hold\n")
    bad = run("max_errors = 0\nmax_tasks = 2\n")
    assert bad.exit_code == 1
    assert bad.output.splitlines() == ["errors 1, limit at most 0", "tasks 3, limit at most 2"]
    for unusable in (run("max_errors = "), run("max_nonsense = 1"), run("max_errors = 1", tmp_path / "none.gnomon")):
        assert unusable.exit_code == 2
        assert "Traceback" not in unusable.output
    limits.unlink()
    assert CliRunner().invoke(report, ["check", str(path), "--limits", str(limits)]).exit_code == 2


def test_the_documented_example_is_valid(tmp_path):
    from pathlib import Path

    document = (Path(__file__).parents[2] / "docs" / "reports.md").read_text("utf-8")
    example = document.partition("```toml\n")[2].partition("```")[0]
    path = tmp_path / "limits.toml"
    path.write_text(example, "utf-8")
    assert len(read_limits(path)) >= 5
    for name in (*WHOLE, *PREFIX):
        assert f"`{name}`" in document or name.endswith("_share"), name
