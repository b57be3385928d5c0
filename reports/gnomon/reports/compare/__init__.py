"""Two sides, each of one or more recordings, laid beside each other: what differs, and how much of it is noise.

    comparison = compare([read("before.gnomon")], [read("after.gnomon")])
    print(text(comparison))

Contents:
    sides        a recording boiled down to what is compared
    noise        levels of durations, the common factor, intervals
    families     spans, regions and fetches
    stalls       stalls of event loops, counted
    profiles     profiles on one tree, and the differential flame graph
    comparison   ``compare``: changes, verdicts, and what to say about them
    lineup       the tables, for both outputs
    text, page   as plain text, and as one HTML file
"""

from __future__ import annotations

from gnomon.reports.compare.comparison import Comparison, PrefixChange, compare
from gnomon.reports.compare.page import build_comparison
from gnomon.reports.compare.sides import Sample, read, sample
from gnomon.reports.compare.text import text

__all__ = ["Comparison", "PrefixChange", "Sample", "build_comparison", "compare", "read", "sample", "text"]
