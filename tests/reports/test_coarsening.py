"""A recording too large for a page is made coarser, in steps that the page states; its totals stay."""

from __future__ import annotations

from gnomon.reports.account import account
from gnomon.reports.page.coarsening import coarsened
from gnomon.reports.page.sentences import badges


def test_a_small_one_stays_as_it_is(busy):
    recording = busy(50)
    same, packed = coarsened(recording, 1_000_000)
    assert same is recording
    assert packed == recording.dumps()


def test_keys_go_first_then_the_shortest_runs(busy):
    recording = busy(40_000, mean=0.001)
    size = len(recording.dumps())
    without, packed = coarsened(recording, int(size * 0.8))
    assert len(packed) <= size * 0.8
    assert len(without.runs) == 40_000
    assert without.ledgers["keys"].missed == 20_000
    assert account(without).parts == account(recording).parts
    erred = [row for row, ok in enumerate(recording.runs.ok) if not ok]
    assert all(without.runs.keys[row] == recording.runs.keys[row] for row in erred)

    fewer, packed = coarsened(recording, int(size * 0.55))
    assert len(packed) <= size * 0.55
    assert 20_000 <= len(fewer.runs) < 40_000
    result = account(fewer)
    assert result.tasks == 40_000
    assert sum(result.parts.values()) == result.capacity == account(recording).capacity
    said = " ".join(badges(fewer, result))
    assert f"Details of {len(fewer.runs):,} of 40,000 tasks" in said
    assert "The names of 20,000 of 40,000 runs are left out" in said
