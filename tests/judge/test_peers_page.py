"""The peers' section and plot, from made-up figures; and that their workloads know a wrong result."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from asv_benchmarks.peers.page import BEGIN, END, insert_section, section, svg
from asv_benchmarks.peers.systems import PoolFeed
from asv_benchmarks.peers.takes import Round, Takes, rounds_wanted
from asv_benchmarks.peers.workloads import WORKLOADS, Sizes

SIZES = Sizes(tasks=20, leaves=5, partitions=3, part_bytes=10, trips=2)


def figures():
    def runs(scale):
        return [
            {"tasks": 100, "seconds": scale * seconds, "cpu": {"client": scale * 0.001, "worker": scale * 0.003}}
            for seconds in (0.002, 0.004, 0.9)
        ]

    return {
        "about": {"when": "2026-01-01", "machine": "made up", "python": "3.11", "rounds": 3},
        "systems": [
            {"title": title, "version": "1", "runs": {workload.name: runs(scale) for workload in WORKLOADS}}
            for title, scale in (("gnomon", 1), ("other & more", 20))
        ],
        "missing": {"Ray": "No module named 'ray'"},
    }


def test_section_has_a_row_per_workload_and_names_what_is_missing():
    text = section(figures(), "images/peers.svg")
    for workload in WORKLOADS:
        assert f"| {workload.title} | 40 | 800 |" in text  # the median round
        assert f"| {workload.title} | 10 + 0 + 30 | 200 + 0 + 600 |" in text
    assert "(images/peers.svg)" in text
    assert "Not available here: Ray" in text


def test_plot_is_xml_with_a_bar_of_three_roles_each():
    root = ElementTree.fromstring(svg(figures()))
    bars = [one for one in root.iter("{http://www.w3.org/2000/svg}rect") if one.get("height") == "11"]
    assert len(bars) == 3 * 2 * len(WORKLOADS)
    assert min(float(bar.get("width")) for bar in bars) >= 0


def test_section_replaces_only_what_is_between_the_markers(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text(f"# Figures\n\nbefore\n\n{BEGIN}\nold\n{END}\n\nafter\n")
    insert_section(page, "new\n")
    assert page.read_text() == f"# Figures\n\nbefore\n\n{BEGIN}\nnew\n{END}\n\nafter\n"


def test_section_is_appended_with_markers_where_there_are_none(tmp_path):
    page = tmp_path / "performance.md"
    page.write_text("# Figures\n\nbefore\n")
    insert_section(page, "new")
    insert_section(page, "newer")
    assert page.read_text() == f"# Figures\n\nbefore\n\n{BEGIN}\nnewer\n{END}\n"


@pytest.mark.parametrize("text", [BEGIN, END, f"{END} {BEGIN}"])
def test_broken_markers_are_refused(tmp_path, text):
    page = tmp_path / "performance.md"
    page.write_text(text)
    with pytest.raises(ValueError, match="markers"):
        insert_section(page, "new")
    assert page.read_text() == text


def test_rounds_begin_with_another_system_each():
    order = [(one.number, one.system) for one in rounds_wanted(["a", "b", "c"], ["map"], 3)]
    assert order == [(0, "a"), (0, "b"), (0, "c"), (1, "b"), (1, "c"), (1, "a"), (2, "c"), (2, "a"), (2, "b")]


def test_measuring_goes_on_with_what_is_missing(tmp_path):
    path, sizes = tmp_path / "kept" / "takes.jsonl", {"tasks": 10}
    wanted = rounds_wanted(["a", "b"], ["map", "tree"], 1)
    takes = Takes(path, sizes, resume=True)
    assert takes.missing(wanted) == wanted
    took = {"tasks": 10, "seconds": 1.5, "cpu": {"client": 0.5}}
    takes.add(0, "a", [{"workload": "map", **took}, {"workload": "tree", **took}])
    takes.add(0, "b", [{"workload": "tree", **took}])
    again = Takes(path, sizes, resume=True)
    assert again.missing(wanted) == [Round(0, "b", ("map",))]
    assert again.runs("a", "map") == [took]
    assert again.runs("b", "map") == []
    with pytest.raises(ValueError, match="other sizes"):
        Takes(path, {"tasks": 11}, resume=True)
    assert Takes(path, sizes, resume=False).missing(wanted) == wanted


class AtOnce:
    """Runs everything in this thread, in the way of systems whose tasks take futures."""

    takes_futures = True

    def submit(self, function, *arguments):
        return lambda: function(*[argument() if callable(argument) else argument for argument in arguments])

    def map(self, function, items):
        return [self.submit(function, item) for item in items]

    def gather(self, futures):
        return [future() for future in futures]


class AtOnceByValue(AtOnce):
    takes_futures = False

    def submit(self, function, *arguments):
        value = function(*arguments)
        return lambda: value


@pytest.mark.parametrize("feed", [AtOnce(), AtOnceByValue()], ids=["futures", "values"])
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_workloads_count_the_same_tasks_everywhere(feed, workload):
    expected = {"map": 20, "burst": 20, "tree": 5 + 3 + 2 + 1, "shuffle": 3 + 9 + 3, "trip": 2}
    assert workload.run(feed, SIZES) == expected[workload.name]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_workloads_notice_wrong_results(workload):
    class Wrong(AtOnceByValue):
        def gather(self, futures):
            return [value[:-1] if isinstance(value, bytes) else value for value in super().gather(futures)]

        def submit(self, function, *arguments):
            value = super().submit(function, *arguments)()
            return lambda: value + 1 if isinstance(value, int) else value

    with pytest.raises(AssertionError):
        workload.run(Wrong(), SIZES)


def test_pools_gather_in_order():
    class Done:
        def __init__(self, value):
            self.value = value

        def result(self):
            return self.value

    class Pool:
        def submit(self, function, *arguments):
            return Done(function(*arguments))

    feed = PoolFeed(Pool())
    assert feed.gather(feed.map(abs, [-1, -2, 3])) == [1, 2, 3]
