"""Comparisons of what isn't prefixes: spans, regions, fetches, stalls."""

from __future__ import annotations

import random
from array import array

import pytest

from gnomon.reports.compare import build_comparison, compare, sample, text
from gnomon.reports.compare.words import conclusions, headline
from gnomon.reports.recording import TICKS, Ledger, Pair, RegionTotals, SpanTotals, Stall, TypeTotals

MIB = 2**20


@pytest.fixture
def recorded(busy):
    """A run with spans, regions, fetches and stalls; ``slow`` names one of them and by how much it is slower."""

    def record(seed, *, slow="", factor=1.5, stalls=4):
        rng = random.Random(seed)
        recording = busy(600, seed=seed % 2)
        runs = recording.runs
        of = {name: factor if slow == name else 1.0 for name in ("load", "train", "parse", "tokens", "tcp", "frame")}

        def noisy(ticks, name):
            return round(ticks * of[name] * rng.lognormvariate(0, 0.02))

        runs.span_names = [("load", "2026"), ("train",)]
        runs.spans = array("q", [row % 2 for row in range(len(runs))])
        runs.computes = array("q", [noisy(50_000, ("load", "train")[row % 2]) for row in range(len(runs))])
        recording.spans = [SpanTotals(name, 300, 0, 1000, 300 * 50_000) for name in runs.span_names]
        recording.regions = [
            RegionTotals("p", "parse", 100, 2 * noisy(TICKS, "parse"), noisy(TICKS, "parse")),
            RegionTotals("p", "tokens", 400, noisy(TICKS, "tokens"), noisy(TICKS, "tokens")),
        ]
        fetch = noisy(TICKS, "tcp")
        recording.pairs = [
            Pair(1, 2, "tcp", 50, 80 * MIB, fetch, 1000, fetch // 4, fetch // 4),
            Pair(2, 1, "memfd", 50, 80 * MIB, TICKS // 10, 0, 0, TICKS // 20),
        ]
        recording.types = [
            TypeTotals("DataFrame", 70, 100 * MIB, noisy(TICKS, "frame"), 0, 0, 0),
            TypeTotals("list", 30, 60 * MIB, TICKS // 10, 0, 0, 0),
        ]
        recording.stalls = [
            Stall(i * TICKS, TICKS // 2, 0, 2, "gil", "", "spin", "a.py", 3, [["spin", "a.py", "3"]], "t")
            for i in range(stalls)
        ]
        recording.ledgers["stalls"] = Ledger(stalls, stalls)
        return sample(recording, f"{seed}.gnomon")

    return record


def sides(recorded, repeats=5, **slower):
    return [recorded(i) for i in range(repeats)], [recorded(100 + i, **slower) for i in range(repeats)]


@pytest.mark.parametrize("repeats", [1, 5])
def test_the_same_raises_no_alarm(recorded, repeats):
    outcome = compare(*sides(recorded, repeats))
    assert [family.kind for family in outcome.families] == ["spans", "regions", "transports", "types"]
    assert [change.verdict for family in outcome.families for change in family.slower] == []
    assert [each.verdict for each in outcome.stalls] == ["same"]
    assert not outcome.regressed


@pytest.mark.parametrize(
    ("slow", "kind", "name", "per"),
    [
        ("load", "span", "load / 2026", "per task"),
        ("parse", "region", "parse in p", "per entry"),
        ("tcp", "transport", "tcp", "per MiB"),
        ("frame", "type", "DataFrame", "per MiB"),
    ],
)
def test_what_got_slower_is_named_with_its_interval(recorded, slow, kind, name, per):
    outcome = compare(*sides(recorded, slow=slow, factor=2.0))
    found = [change for family in outcome.families for change in family.slower]
    assert [change.name for change in found] == [name]
    ratio = found[0].judged
    assert 1 < ratio.low < 2 < ratio.high
    assert outcome.regressed
    said = [sentence for sentence in conclusions(outcome) if sentence.startswith(f"The {kind} {name!r} got slower")]
    assert len(said) == 1
    assert f"({ratio.low:.2f} to {ratio.high:.2f}) {per}" in said[0]
    assert said[0] in text(outcome)
    assert said[0].replace("'", "&#39;") in build_comparison(outcome)
    if not outcome.slower:
        assert f"{kind} {name!r}" in headline(outcome)


def test_one_recording_of_each_judges_no_sums(recorded):
    outcome = compare([recorded(1)], [recorded(2, slow="parse", factor=3.0)])
    regions = next(family for family in outcome.families if family.kind == "regions")
    assert {change.verdict for change in regions.changes} == {"unjudged"}
    assert "n=1: sums alone have no interval." in text(outcome)


def test_more_stalls_are_said(recorded):
    outcome = compare([recorded(1, stalls=5)], [recorded(2, stalls=60)])
    assert outcome.stalls[0].verdict == "more"
    assert outcome.stalls[0].ratio.low > 1
    assert any("executor's event loop stalled more often (gil in 'spin')" in each for each in conclusions(outcome))
    none = compare([recorded(1, stalls=0)], [recorded(2, stalls=60)])
    assert (none.stalls[0].verdict, none.stalls[0].ratio) == ("more", None)
    few = compare([recorded(1, stalls=0)], [recorded(2, stalls=2)])
    assert few.stalls[0].verdict == "only in B"


def test_nobody_watched_for_stalls_is_said(recorded):
    a, b = recorded(1), recorded(2)
    a.stalls = None
    assert compare([a], [b]).stalls is None
    assert "did not watch for them" in build_comparison(compare([a], [b]))


def test_the_parts_of_fetches_stand_beside_each_other(recorded):
    page = text(compare([recorded(1)], [recorded(2)]))
    for part in ("waiting to begin", "holder busy", "serialising", "on the wire"):
        assert part in page
