"""Comparisons: no alarm on the same code, the slowed prefix first, and what is said beside that."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest
from click.testing import CliRunner

from gnomon.reports.cli import report
from gnomon.reports.compare import build_comparison, compare, lineup, sample, text
from gnomon.reports.compare.noise import Level, judge, levels_of, ratio_of_means, student
from gnomon.reports.compare.words import conclusions, headline, notices

PREFIXES = {"parse": 0.0015, "clean": 0.0012, "join": 0.0021, "count": 0.0009, "merge": 0.0017}


@pytest.fixture
def workload(make_cluster):
    """A recording of five prefixes on two threads, on a machine with bursts of load and a speed of its own."""

    def record(seed, *, slow=None, factor=1.3, machine=None, prefixes=PREFIXES, tasks=120, threads=1, shuffled=True):
        rng = random.Random(seed)
        speed = rng.uniform(0.85, 1.2) if machine is None else machine
        cluster = make_cluster()
        workers = [cluster.worker(str(i), threads) for i in range(2)]
        mark = cluster.mark()
        work = [(name, i) for name in prefixes for i in range(tasks)]
        if shuffled:
            rng.shuffle(work)
        bursts = [(start, start + rng.uniform(0.02, 0.12)) for start in (rng.uniform(0, 1.5) for _ in range(4))]
        clocks = {(worker, thread): 0.1 for worker in workers for thread in range(threads)}
        rows = []
        for name, i in work:
            lane = min(clocks, key=clocks.__getitem__)
            start = clocks[lane] + 0.0002
            took = prefixes[name] * speed * rng.lognormvariate(0.03, 0.03) * (factor if name == slow else 1)
            if any(low <= start < high for low, high in bursts) and rng.random() < 0.6:
                took += rng.expovariate(1 / 0.004)  # another process had the core
            times = (start, start + 0.0001, start + 0.0001 + took, start + 0.00012 + took)
            clocks[lane] = times[3]
            rows.append((f"{name}-{i}", name, lane[0], lane[1], *times, 100, True))
        cluster.runs(sorted(rows, key=lambda row: row[7]))
        cluster.now = max(clocks.values()) + 0.05
        recording = cluster.record(mark)
        recording.info = {"versions": {"numpy": "1.0"}, "machine": {"host": "h"}, "build": "compiled", "settings": {}}
        return recording

    return record


@pytest.mark.parametrize("shuffled", [True, False], ids=["mixed", "one after the other"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_the_same_code_raises_no_alarm(workload, repeats, shuffled):
    for pair in range(10):
        a, b = ([sample(workload(1000 * pair + 100 * side + i, shuffled=shuffled), "x") for i in range(repeats)]
                for side in range(2))  # fmt: skip
        outcome = compare(a, b)
        assert not outcome.regressed, text(outcome)
        assert headline(outcome) == "Nothing got slower beyond noise."


@pytest.mark.parametrize("shuffled", [True, False], ids=["mixed", "one after the other"])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_prefix_slowed_by_30_percent_is_named_first(workload, repeats, shuffled):
    for pair, slow in enumerate(list(PREFIXES) * 2):
        a = [sample(workload(1000 * pair + i, shuffled=shuffled), "a") for i in range(repeats)]
        b = [sample(workload(1000 * pair + 500 + i, slow=slow, shuffled=shuffled), "b") for i in range(repeats)]
        outcome = compare(a, b)
        assert [change.name for change in outcome.slower] == [slow], text(outcome)
        assert outcome.slower[0].judged.ratio == pytest.approx(1.3, abs=0.12)
        assert f"'{slow}' got slower" in conclusions(outcome)[0]


def test_a_recording_against_itself_shows_no_difference(workload):
    one = sample(workload(1), "a")
    outcome = compare([one], [one])
    assert not outcome.regressed
    assert all(change.relative.ratio == 1 and change.absolute.ratio == 1 for change in outcome.prefixes)
    for table in (lineup.whole_table(outcome), lineup.part_table(outcome)):
        assert all(row[3].value == 0 for row in table.rows)
    assert lineup.setup_table(outcome).rows == []


def test_a_slower_machine_is_the_common_factor(workload):
    outcome = compare([sample(workload(1, machine=1.0), "a")], [sample(workload(2, machine=1.5), "b")])
    assert outcome.slower == []
    assert outcome.common.ratio == pytest.approx(1.5, abs=0.1)
    said = " ".join(conclusions(outcome))
    assert "All prefixes alike took longer" in said
    change = outcome.prefixes[0]
    assert change.relative.ratio == pytest.approx(1.0, abs=0.1)
    assert change.absolute.ratio == pytest.approx(1.5, abs=0.15)


def test_a_slowed_prefix_shows_on_a_faster_machine(workload):
    outcome = compare([sample(workload(1, machine=1.0), "a")], [sample(workload(2, machine=0.7, slow="clean"), "b")])
    assert [change.name for change in outcome.slower] == ["clean"]


def test_absolute_counts_the_common_factor(workload):
    a = [sample(workload(i, machine=1.0), "a") for i in range(5)]
    b = [sample(workload(50 + i, machine=1.5), "b") for i in range(5)]
    assert not compare(a, b).regressed
    outcome = compare(a, b, absolute=True)
    assert outcome.common_slower
    assert {change.name for change in outcome.slower} == set(PREFIXES)


def test_a_slow_minority_shows_in_the_mean_of_several_recordings(make_cluster):
    def record(seed, share):
        rng = random.Random(seed)
        cluster = make_cluster()
        worker = cluster.worker("w")
        mark = cluster.mark()
        now = 0.0
        for i in range(300):
            name = ("a", "b", "c")[i % 3]
            took = 0.001 * rng.lognormvariate(0, 0.05)
            if name == "b" and rng.random() < share:
                took *= 10
            cluster.run(f"{name}-{i}", worker, now, now + took)
            now += took + 0.0001
        cluster.now = now
        return sample(cluster.record(mark), "x")

    a, b = [record(i, 0.0) for i in range(4)], [record(10 + i, 0.3) for i in range(4)]
    outcome = compare(a, b)
    assert [(change.name, change.kind) for change in outcome.slower] == [("b", "mean")]
    assert "its quick tasks are as quick as before" in conclusions(outcome)[0]
    assert compare(a[:1], b[:1]).slower == []  # one recording can't tell that from neighbours on the machine


def test_prefixes_on_one_side_only(workload):
    a = sample(workload(1, prefixes={"x": 0.001, "y": 0.001, "z": 0.002}), "a")
    b = sample(workload(2, prefixes={"x": 0.001, "y": 0.001, "new": 0.002}), "b")
    outcome = compare([a], [b])
    assert {change.name: change.verdict for change in outcome.prefixes}["z"] == "only in A"
    assert {change.name: change.verdict for change in outcome.prefixes}["new"] == "only in B"
    assert "Only in A: 'z'." in conclusions(outcome)
    assert "Only in B: 'new'." in conclusions(outcome)


def test_different_capacity_is_warned_of(workload):
    outcome = compare([sample(workload(1), "a")], [sample(workload(2, threads=2), "b")])
    assert notices(outcome)[0].startswith("Capacity differs: A had 2 workers with 2 threads, B had 2 workers with 4")
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in lineup.setup_table(outcome).rows}
    assert rows == {"threads": ["2", "4"]}


def test_what_differs_in_the_run_comes_first(workload):
    a, b = workload(1), workload(2)
    b.info["versions"] = {"numpy": "2.0", "pandas": "3.0"}
    b.info["settings"] = {"comm.backend": "uvloop"}
    outcome = compare([sample(a, "a")], [sample(b, "b")])
    rows = [[cell.text for cell in row] for row in lineup.setup_table(outcome).rows]
    assert ["version numpy", "1.0", "2.0"] in rows
    assert ["version pandas", "-", "3.0"] in rows
    assert ["setting comm.backend", "-", "uvloop"] in rows
    assert not any("host" in row[0] for row in rows)
    shown = text(outcome)
    assert shown.index("version numpy") < shown.index("Which prefixes changed")


def test_one_recording_says_so(workload):
    outcome = compare([sample(workload(1), "a")], [sample(workload(2), "b")])
    assert any(notice.startswith("n=1 and n=1") for notice in notices(outcome))
    assert "n=1" in text(outcome)
    several = compare([sample(workload(i), "a") for i in range(2)], [sample(workload(9 + i), "b") for i in range(2)])
    assert not any("n=" in notice for notice in notices(several))


def test_one_prefix_can_not_be_told_from_the_machine(workload):
    one = {"only": 0.002}
    outcome = compare([sample(workload(1, prefixes=one, machine=1.0), "a")],
                      [sample(workload(2, prefixes=one, machine=1.3), "b")])  # fmt: skip
    assert outcome.common is None
    assert not outcome.regressed
    assert any("a slower machine and slower code look the same" in notice for notice in notices(outcome))
    a = [sample(workload(i, prefixes=one, machine=1.0), "a") for i in range(6)]
    b = [sample(workload(20 + i, prefixes=one, machine=1.3), "b") for i in range(6)]
    assert [change.name for change in compare(a, b).slower] == ["only"]


def test_few_runs_are_not_judged(make_cluster):
    def record(took):
        cluster = make_cluster()
        worker = cluster.worker("w")
        mark = cluster.mark()
        for i in range(3):
            cluster.run(f"a-{i}", worker, i, i + took)
        cluster.now = 4.0
        return sample(cluster.record(mark), "x")

    outcome = compare([record(0.1)], [record(0.9)])
    assert outcome.prefixes[0].verdict == "unjudged"
    assert "Too few runs to judge: 'a'." in conclusions(outcome)
    assert headline(outcome).startswith("Nothing could be judged")
    several = compare([record(0.1 + i / 100) for i in range(4)], [record(0.5 + i / 100) for i in range(4)])
    assert [change.name for change in several.slower] == ["a"]


def test_empty_recordings_compare(make_cluster):
    cluster = make_cluster()
    mark = cluster.mark()
    cluster.now = 1.0
    empty = sample(cluster.record(mark), "e")
    outcome = compare([empty], [empty])
    assert not outcome.regressed
    assert "nan" not in (text(outcome) + build_comparison(outcome)).lower().replace("nanny", "")


def test_failed_runs_say_nothing_about_speed(make_cluster):
    cluster = make_cluster()
    worker = cluster.worker("w")
    mark = cluster.mark()
    for i in range(40):
        cluster.run(f"a-{i}", worker, i, i + 0.5, ok=i % 2 == 0)
        cluster.run(f"b-{i}", worker, i + 0.5, i + (0.6 if i % 2 else 0.9), ok=i % 2 == 0)
    cluster.now = 41.0
    prefix = sample(cluster.record(mark), "x").prefixes["b"]
    assert prefix.erred == 20
    assert prefix.levels["quartile"].value == pytest.approx(math.log(0.32 * 1e7), abs=0.01)


def test_numbers_of_tasks_and_transfers_are_lined_up(make_cluster):
    def record(tasks, fetched):
        cluster = make_cluster()
        a, b = cluster.worker("one"), cluster.worker("two")
        mark = cluster.mark()
        for i in range(tasks):
            cluster.run(f"x-{i}", a, i / 100, i / 100 + 0.005)
        cluster.fetch(b, a, 0.0, 0.1, fetched)
        cluster.now = 2.0
        return sample(cluster.record(mark), "x")

    outcome = compare([record(20, 1000)], [record(40, 3000)])
    assert "Numbers of tasks differ: 'x' 20, then 40." in conclusions(outcome)
    rows = [[cell.text for cell in row] for row in lineup.transfer_table(outcome).rows]
    assert rows[0][:7] == ["all", "all", "tcp", "1", "1", "1000 B", "2.93 KiB"]
    assert rows[1][:3] == ["two", "one", "tcp"]


def test_bad_arguments():
    with pytest.raises(ValueError, match="at least one recording"):
        compare([], [])


def test_student_is_near_the_tables():
    for probability, freedom, value in ((0.975, 4, 2.776), (0.995, 8, 3.355), (0.9995, 12, 4.318), (0.975, 100, 1.984)):
        assert student(probability, freedom) == pytest.approx(value, rel=0.03)


def test_levels_do_not_follow_disturbances():
    rng = random.Random(3)
    calm = [int(20_000 * rng.lognormvariate(0, 0.02)) for _ in range(200)]
    disturbed = [ticks * 4 if rng.random() < 0.5 else ticks for ticks in calm]
    for kind in ("twentieth", "quartile"):
        change = levels_of(disturbed)[kind].value - levels_of(calm)[kind].value
        assert abs(change) < 0.03
    assert levels_of(disturbed)["mean"].value - levels_of(calm)["mean"].value > 0.5
    assert levels_of(calm[:5])["quartile"].error is None


def test_intervals_cover():
    """Of intervals that claim 99 % for all prefixes together, few leave out the truth."""
    rng = random.Random(5)
    missed = 0
    for _ in range(300):
        shift = rng.uniform(-0.3, 0.3)
        sides = [
            [{name: Level(rng.gauss(of_side, 0.04) , 0.01) for name in "abcdef"} for _ in range(4)]
            for of_side in (0.0, shift)
        ]  # fmt: skip
        judged = judge(sides[0], sides[1], confidence=0.99)
        missed += any(not each.low <= 1 <= each.high for each in judged.relative.values())
        assert judged.common.low < math.exp(shift) < judged.common.high
    assert missed <= 9


def test_more_recordings_narrow_the_interval():
    rng = random.Random(1)
    widths = []
    for count in (2, 4, 8, 16):
        a, b = ([1 + rng.random() / 10 for _ in range(count)] for _ in range(2))
        estimate = ratio_of_means(a, b)
        widths.append(estimate.high / estimate.low)
    assert all(wide > narrow for wide, narrow in pairwise(widths))
    assert ratio_of_means([1.0], [1.0, 2.0]) is None


def test_command(workload, tmp_path):
    paths = {}
    for name, seed, slow in (("a1", 1, None), ("a2", 2, None), ("b1", 3, "join"), ("b2", 4, "join")):
        paths[name] = str(workload(seed, slow=slow).save(tmp_path / f"{name}.gnomon"))

    def run(*arguments):
        return CliRunner().invoke(report, ["diff", *(paths.get(each, each) for each in arguments)])

    assert run("a1", "a2").exit_code == 0
    result = run("a1", "b1")
    assert result.exit_code == 1
    assert result.output.startswith("Slower beyond noise: 'join'.\n")
    page = tmp_path / "c.html"
    several = run("a1", "a2", "--html", str(page), "--", "b1", "b2", "--least", "0.1")
    assert several.exit_code == 1
    assert "n=2" in several.output
    assert "Slower beyond noise" in page.read_text("utf-8")
    assert run("a1", "b1", "--least", "0.9").exit_code == 0


@pytest.mark.parametrize(
    "arguments", [(), ("x",), ("x", "y", "z"), ("--", "x"), ("x", "--"), ("x", "--", "y", "--", "z"), ("x", "y")]
)
def test_unusable_input_exits_with_2(arguments):
    result = CliRunner().invoke(report, ["diff", *arguments])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_reads_recordings_out_of_pages(workload, tmp_path):
    from gnomon.reports.page import build_page

    recording = workload(1)
    (tmp_path / "a.html").write_text(build_page(recording), "utf-8")
    recording.save(tmp_path / "b.gnomon")
    result = CliRunner().invoke(report, ["diff", str(tmp_path / "a.html"), str(tmp_path / "b.gnomon")])
    assert result.exit_code == 0, result.output


def test_page_escapes_and_is_closed_to_the_network(make_cluster):
    def record():
        cluster = make_cluster()
        worker = cluster.worker("<b>w</b>")
        mark = cluster.mark()
        for i in range(20):
            cluster.run(f"x-{i}", worker, i, i + 0.5, prefix="</script><img src=x onerror=alert(1)>")
        cluster.now = 30.0
        return sample(cluster.record(mark), "<i>name</i>")

    page = build_comparison(compare([record()], [record()]))
    assert "<img" not in page
    assert "<i>name" not in page
    assert "default-src 'none'" in page
    assert "http://" not in page
    assert "https://" not in page
    assert len(page) < 100_000


def profile(seconds):
    """A session's plain form: ``main`` calls ``fast`` and ``slow``, with as many samples of each as asked for."""
    from gnomon.profiler.sessions.session import Bucket, Function, Nodes, Samples, Session, Thread

    names = ["main", *seconds]
    count = sum(seconds.values())
    meta = {"start": 0.0, "stop": 10.0, "interval": 0.01, "samples": count, "ticks": count, "missed": 0, "cpu": 0.0,
            "pid": 1, "process": "p", "python": "3"}  # fmt: skip
    return Session(
        meta=meta,
        functions=tuple(Function(name, "m.py", 1, "m") for name in names),
        nodes=Nodes((-1, *(0 for _ in seconds)), tuple(range(len(names))), tuple(1 for _ in names)),
        buckets=(Bucket(0.0, 10.0, count, 0, 0.0, 0.0, 0.0),),
        threads=(Thread(1, "t", "p"),),
        labels=("",),
        samples=Samples(
            *((0,) * len(seconds),) * 3, tuple(range(1, len(names))), tuple(seconds.values())
        ),
    ).to_plain()  # fmt: skip


def test_profiles_are_laid_on_one_tree(workload):
    a, b = workload(1), workload(2)
    a.profiles = [{"name": "w", "kind": "tasks", "session": profile({"fast": 600, "slow": 400})},
                  {"name": "s", "kind": "scheduler", "session": profile({"x": 10})},
                  {"name": "?", "kind": "tasks", "session": {"format": "nonsense"}}]  # fmt: skip
    b.profiles = [{"name": "w", "kind": "tasks", "session": profile({"fast": 300, "slow": 600, "extra": 100})}]
    outcome = compare([sample(a, "a")], [sample(b, "b")])
    (compared,) = outcome.profiles
    assert compared.kind == "tasks"
    assert "1 profiles of A can't be read and are left out." in notices(outcome)
    assert compared.samples == (1000, 1000)
    assert [(each.name, round(each.b - each.a, 3), each.sure) for each in compared.functions] == [
        ("m.fast", -0.3, True), ("m.slow", 0.2, True), ("m.extra", 0.1, True)
    ]  # fmt: skip
    roots = [frame for frame in compared.frames if frame.depth == 0]
    assert [(frame.name, frame.width) for frame in roots] == [("m.main", pytest.approx(1.0))]
    inner = [frame for frame in compared.frames if frame.depth == 1]
    assert [frame.name for frame in inner] == ["m.extra", "m.fast", "m.slow"]
    assert sum(frame.width for frame in inner) == pytest.approx(1.0)
    assert all(low.left + low.width == pytest.approx(high.left) for low, high in pairwise(inner))
    assert "m.slow: A 40.0 %, B 60.0 % (+20.0 points)" in build_comparison(outcome)
    assert "m.slow" in text(outcome)
