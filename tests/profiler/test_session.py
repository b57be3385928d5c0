"""The record of a profile: saved and read, merged, compared, and refused when it is damaged."""

from __future__ import annotations

import copy
import gzip
import json

import pytest

from gnomon.profiler.sessions.session import (
    REGION,
    Bucket,
    Function,
    Nodes,
    RegionTime,
    Samples,
    Session,
    Thread,
)


def make(
    *,
    process="one",
    start=100.0,
    functions=(("main", "app.py", 1, "app"), ("f", "app.py", 10, "app"), ("parse", REGION, 0, "")),
    nodes=((-1, 0, 1), (0, 1, 12), (1, 2, 0)),
    lines=None,
    counts=((0, 0, 0, 1, 30), (0, 0, 1, 2, 50), (1, 1, 1, 2, 20)),
):
    """Two buckets of a second with 80 and 50 ticks; those of the first count for 100 points, two threads, one label."""
    return Session(
        meta={
            "start": start,
            "stop": start + 2.0,
            "interval": 2 / 130,
            "samples": sum(row[4] for row in counts),
            "ticks": 130,
            "missed": 20,
            "cpu": 0.02,
            "pid": 7,
            "process": process,
            "python": "3.11.7",
        },
        functions=tuple(Function(*row) for row in functions),
        nodes=Nodes(*zip(*nodes, strict=True)),
        buckets=(
            Bucket(start, start + 1, 80, 20, 0.1, 0.02, 0.01, 100),
            Bucket(start + 1, start + 2, 50, 0, 0.05, 0.01, 0.01),
        ),
        threads=(Thread(1, "MainThread", process), Thread(2, "pool", process)),
        labels=("", "load"),
        samples=Samples(*zip(*counts, strict=True)),
        regions=(RegionTime(1, 1, "parse", 3, 0.4, 0.3),),
    )


def test_a_sample_weighs_what_its_bucket_says():
    session = make()
    assert session.own_seconds() == pytest.approx([0.0, 0.3, 0.5 + 0.4])
    assert session.total_seconds() == pytest.approx([1.2, 1.2, 0.9])
    assert session.duration == 2.0


def test_a_bucket_without_ticks_weighs_nothing():
    assert Bucket(0.0, 1.0, 0, 9, 0.0, 0.0, 0.0).tick_seconds == 0.0


def test_the_plain_form_is_json_and_comes_back_equal(tmp_path):
    session = make()
    assert Session.from_plain(json.loads(json.dumps(session.to_plain()))) == session
    path = tmp_path / "run.gnomon-profile"
    session.save(path)
    assert Session.load(path) == session


def test_the_plain_form_goes_through_msgpack():
    msgpack = pytest.importorskip("msgpack")
    session = make()
    assert Session.from_plain(msgpack.unpackb(msgpack.packb(session.to_plain()))) == session


def damaged():
    def change(*path, to):
        def apply(plain):
            for step in path[:-1]:
                plain = plain[step]
            plain[path[-1]] = to

        return apply

    def drop(name):
        return lambda plain: plain.pop(name)

    return {
        "no format": drop("format"),
        "other format": change("format", to="x"),
        "newer": change("version", to=99),
        "version zero": change("version", to=0),
        "version text": change("version", to="1"),
        "no nodes": drop("nodes"),
        "no meta": drop("meta"),
        "no start": change("meta", to={"stop": 1.0}),
        "start not finite": change("meta", "start", to=float("nan")),
        "parent after child": change("nodes", "parent", to=[-1, 0, 2]),
        "parent -2": change("nodes", "parent", to=[-2, 0, 1]),
        "function out of range": change("nodes", "function", to=[0, 1, 3]),
        "columns differ": change("nodes", "line", to=[1]),
        "node out of range": change("samples", "node", 0, to=3),
        "node negative": change("samples", "node", 0, to=-1),
        "node a float": change("samples", "node", 0, to=1.0),
        "node a bool": change("samples", "node", 0, to=True),
        "column no list": change("samples", "count", to="abc"),
        "thread out of range": change("samples", "thread", 0, to=2),
        "label out of range": change("samples", "label", 0, to=2),
        "bucket out of range": change("samples", "bucket", 0, to=2),
        "region's bucket": change("regions", 0, 0, to=2),
        "region's thread": change("regions", 0, 1, to=-1),
        "region too short": change("regions", 0, to=[1]),
        "first label": change("labels", 0, to="load"),
        "no labels": change("labels", to=[]),
        "function too short": change("functions", 0, to=["f"]),
        "bucket no number": change("buckets", 0, 2, to="many"),
    }


@pytest.mark.parametrize("damage", damaged())
def test_what_is_damaged_is_refused(damage):
    plain = copy.deepcopy(make().to_plain())
    damaged()[damage](plain)
    with pytest.raises(ValueError, match="profile"):
        Session.from_plain(plain)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        gzip.compress(b"nonsense"),
        gzip.compress(b"[1]"),
        gzip.compress(b"\xff"),
        b"\x1f\x8b\x08broken",
    ],
)
def test_files_that_are_something_else_are_refused(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"."):
        Session.load(path)


def test_a_file_cut_short_is_refused(tmp_path):
    path = tmp_path / "file"
    make().save(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="not a saved profile"):
        Session.load(path)


def test_a_missing_file_is_an_oserror(tmp_path):
    with pytest.raises(FileNotFoundError):
        Session.load(tmp_path / "no")


def test_merging_joins_what_is_the_same_and_keeps_all_seconds():
    one = make()
    two = make(
        process="two",
        start=500.0,
        functions=(("g", "app.py", 20, "app"), ("main", "app.py", 1, "app"), ("f", "app.py", 10, "app")),
        nodes=((-1, 1, 1), (0, 2, 12), (0, 0, 3)),
        counts=((0, 0, 1, 1, 10), (1, 1, 0, 2, 5)),
    )
    merged = Session.merge([one, two])
    assert len(merged.nodes.parent) == 4
    assert {function.name for function in merged.functions} == {"main", "f", "parse", "g"}
    assert sum(merged.own_seconds()) == pytest.approx(sum(one.own_seconds()) + sum(two.own_seconds()))
    by_name = dict.fromkeys(("f", "g", "parse"), 0.0)
    for function, seconds in zip(merged.nodes.function, merged.own_seconds(), strict=True):
        if seconds:
            by_name[merged.functions[function].name] += seconds
    assert by_name == pytest.approx({"f": 0.3 + 0.1, "g": 0.1, "parse": 0.9})
    assert [thread.process for thread in merged.threads] == ["one", "one", "two", "two"]
    assert merged.labels == ("", "load")
    assert len(merged.buckets) == 4
    assert [(row.bucket, row.thread) for row in merged.regions] == [(1, 1), (3, 3)]
    meta = merged.meta
    assert (meta["start"], meta["stop"], meta["process"]) == (100.0, 502.0, "2 processes")
    assert (meta["ticks"], meta["samples"], meta["missed"], meta["pid"]) == (260, 115, 40, 7)
    assert meta["interval"] == pytest.approx(4 / 260)
    assert Session.from_plain(merged.to_plain()) == merged


def test_merging_one_session_changes_nothing_that_is_seen():
    session = make()
    merged = Session.merge([session])
    assert merged == session


def test_windows_of_one_process_share_their_threads():
    merged = Session.merge([make(), make(start=102.0)])
    assert len(merged.threads) == 2
    assert sum(merged.own_seconds()) == pytest.approx(2.4)


def test_there_must_be_something_to_merge():
    with pytest.raises(ValueError, match="no session"):
        Session.merge([])


def test_a_difference_lines_up_functions_whatever_their_lines():
    before = make()
    after = make(
        functions=(("main", "app.py", 3, "app"), ("f", "app.py", 15, "app"), ("new", "app.py", 50, "app")),
        nodes=((-1, 0, 4), (0, 1, 17), (0, 1, 18), (1, 2, 51)),
        counts=((0, 0, 0, 1, 20), (0, 0, 0, 2, 20), (0, 0, 0, 3, 10)),
    )
    difference = before.diff(after)
    rows = {}
    for node, function in enumerate(difference.nodes.function):
        rows[difference.functions[function].name] = (difference.before[node], difference.after[node])
    assert len(difference.nodes.parent) == 4
    assert rows["main"] == (0.0, 0.0)
    assert rows["f"] == pytest.approx((0.3, 0.4))
    assert rows["parse"] == pytest.approx((0.9, 0.0))
    assert rows["new"] == pytest.approx((0.0, 0.1))
    shares = difference.shares()
    assert sum(shares[0]) == pytest.approx(1.0)
    assert shares[1][difference.nodes.parent.index(0)] == pytest.approx(0.8)


def test_the_difference_to_itself_is_none():
    difference = make().diff(make())
    assert difference.before == difference.after


def test_shares_of_nothing_are_nothing():
    empty = make(counts=((0, 0, 0, 1, 0),))
    assert empty.diff(empty).shares()[0] == (0.0, 0.0, 0.0)
