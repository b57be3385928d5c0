"""From figures to a cause: the parts add up, and each kind of evidence names its cause."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gnomon.profiler.loops.causes import Cause, Evidence, decide, describe_place

seconds = st.floats(0, 10)
counts = st.integers(0, 100_000)


@given(
    st.builds(
        Evidence,
        duration=seconds,
        cpu=seconds,
        system_share=st.floats(0, 1),
        queued=seconds,
        minor_faults=counts,
        major_faults=counts,
        voluntary=counts,
        collecting=seconds,
        collecting_here=seconds,
        stopped=seconds,
        paged=seconds,
        blocked=st.dictionaries(st.sampled_from(["hrtimer_nanosleep", "futex_do_wait", "folio_wait_bit"]), seconds),
        wanting=seconds,
        held_elsewhere=seconds,
        switch_interval=st.floats(1e-6, 0.1),
    )
)
def test_the_parts_are_never_negative_and_add_up(evidence):
    verdict = decide(evidence)
    assert all(part > 0 for part in verdict.parts.values())
    assert sum(verdict.parts.values()) == pytest.approx(evidence.duration, abs=1e-9)
    assert all(verdict.parts.get(verdict.cause, 0.0) >= part for part in verdict.parts.values())


@pytest.mark.parametrize(
    ("cause", "evidence"),
    [
        (Cause.PYTHON, Evidence(0.3, cpu=0.29)),
        (Cause.PYTHON, Evidence(0.3, cpu=0.3, system_share=0.2, minor_faults=10)),
        (Cause.NO_PROCESSOR, Evidence(0.3, cpu=0.1, queued=0.2)),
        (Cause.GC, Evidence(0.3, cpu=0.3, collecting=0.25, collecting_here=0.25)),
        (Cause.GC, Evidence(0.3, cpu=0.0, collecting=0.25, voluntary=60)),
        (Cause.GIL, Evidence(0.3, voluntary=60)),
        (Cause.GIL, Evidence(0.3, cpu=0.05, wanting=0.2)),
        (Cause.GIL, Evidence(0.3, queued=0.2, held_elsewhere=0.28, voluntary=20)),
        (Cause.BLOCKING, Evidence(0.3, voluntary=1)),
        (Cause.BLOCKING, Evidence(0.3, blocked={"hrtimer_nanosleep": 0.25}, voluntary=300)),
        (Cause.BLOCKING, Evidence(0.3, held_elsewhere=0.28, voluntary=1)),
        (Cause.BLOCKING, Evidence(0.3, cpu=0.3, system_share=0.9, minor_faults=3)),
        (Cause.PAGE_FAULTS, Evidence(0.3, cpu=0.29, system_share=0.9, minor_faults=100_000)),
        (Cause.PAGE_FAULTS, Evidence(0.3, cpu=0.01, major_faults=40, blocked={"folio_wait_bit_common": 0.2})),
        (Cause.STOPPED, Evidence(0.3, stopped=0.29)),
    ],
)
def test_evidence_names_its_cause(cause, evidence):
    assert decide(evidence).cause is cause


def test_collections_of_another_thread_are_not_taken_from_the_loops_own_time():
    parts = decide(Evidence(0.4, cpu=0.2, collecting=0.2, collecting_here=0.0)).parts
    assert parts[Cause.GC] == pytest.approx(0.2)
    assert parts[Cause.PYTHON] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("hrtimer_nanosleep", "sleeps"),
        ("futex_do_wait", "waits for a lock"),
        ("futex_wait_queue", "waits for a lock"),
        ("unix_stream_data_wait", "waits for a socket"),
        ("wait_woken", "waits for a socket"),
        ("do_wait", "waits for a process"),
        ("anon_pipe_read", "waits for a pipe"),
        ("folio_wait_bit_common", "waits for the disk"),
        ("ep_poll", "polls descriptors"),
        ("something_else", "in something_else"),
        ("?", ""),
        ("", ""),
    ],
)
def test_places_in_the_kernel_are_put_into_words(place, words):
    assert describe_place(place) == words
