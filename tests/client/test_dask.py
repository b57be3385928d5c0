"""dask's collections on a client: computed, persisted, annotated; gnomon as dask's scheduler, and not any longer."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from gnomon.runtime.client import Client, Future, futures_of, wait
from gnomon.runtime.messages import UpdateGraph

dask = pytest.importorskip("dask")


@dask.delayed(pure=True)
def inc(x):
    return x + 1


def options_by_key(scheduler):
    found = {}
    for graph in scheduler.of(UpdateGraph):
        for row, key in enumerate(graph.keys):
            found[key] = graph.options[graph.option_rows[row] if graph.option_rows else 0]
    return found


def test_delayed(client, scheduler):
    total = dask.delayed(sum)([inc(1), inc(2), inc(inc(3))])
    assert total.compute() == 10
    assert dask.compute({"a": inc(1), "b": [inc(2), 5]}) == ({"a": 2, "b": [3, 5]},)
    assert scheduler.of(UpdateGraph)
    future = client.compute(total)
    assert isinstance(future, Future)
    assert future.result() == 10
    assert [f.result() if isinstance(f, Future) else f for f in client.compute([inc(1), 7, [inc(2)]])] == [2, 7, [3]]
    assert client.compute(inc(5), sync=True) == 6


def test_a_delayed_on_a_future(client):
    future = client.submit(abs, -5)
    assert inc(future).compute() == 6
    assert dask.delayed(sum)([future, inc(future)]).compute() == 11
    assert dask.delayed(dict)(a=[future], b=future).compute() == {"a": [5], "b": 5}


def test_bags_and_arrays_mixed(client):
    bag = pytest.importorskip("dask.bag")
    array = pytest.importorskip("dask.array")
    b = bag.from_sequence(range(10), npartitions=3).map(lambda x: x * 2)
    assert b.sum().compute() == 90
    assert sorted(b.compute()) == list(range(0, 20, 2))
    x = array.ones((20, 20), chunks=(5, 5))
    y = (x + x.T).sum(axis=0)
    assert y.compute().tolist() == [40.0] * 20
    assert (x @ x).sum().compute() == 20**3
    futures = client.compute([inc(1), b.sum(), inc(2), y.sum(), b.max()])
    assert client.gather(futures) == [2, 90, 3, 800, 18]
    kept = client.persist([inc(1), b, inc(2)])
    assert dask.compute(kept[0], kept[2]) == (2, 3)
    assert kept[1].sum().compute() == 90


def test_dataframes(client):
    pandas = pytest.importorskip("pandas")
    frame = pytest.importorskip("dask.dataframe")
    source = pandas.DataFrame({"x": range(100), "y": [i % 7 for i in range(100)]})
    df = frame.from_pandas(source, npartitions=5)
    assert df.x.sum().compute() == 4950
    got = df.groupby("y").x.mean().compute().sort_index()
    pandas.testing.assert_series_equal(got, source.groupby("y").x.mean())
    assert df[df.x > 50].compute().shape == (49, 2)
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        shuffled = df.shuffle("y").map_partitions(len).compute()
        assert sum(shuffled) == 100


@pytest.mark.parametrize("kind", ["delayed", "bag", "array", "dataframe"])
def test_persist_gives_the_same_collection_on_futures(client, scheduler, kind):
    if kind == "delayed":
        collection, finish, expected = inc(1), lambda c: inc(c).compute(), 3
    elif kind == "bag":
        bag = pytest.importorskip("dask.bag")
        collection, finish, expected = bag.range(10, 2).map(abs), lambda c: c.sum().compute(), 45
    elif kind == "array":
        array = pytest.importorskip("dask.array")
        collection, finish, expected = array.arange(10, chunks=5) + 1, lambda c: (c * 2).sum().compute(), 110
    else:
        pandas = pytest.importorskip("pandas")
        frame = pytest.importorskip("dask.dataframe")
        df = frame.from_pandas(pandas.DataFrame({"x": range(10)}), npartitions=2)
        collection, finish, expected = df.x + 1, lambda c: c.sum().compute(), 55
    persisted = client.persist(collection)
    assert type(persisted) is type(collection)
    futures = futures_of(persisted)
    assert futures
    wait(futures)
    before = sum(len(graph.keys) for graph in scheduler.of(UpdateGraph))
    assert finish(persisted) == expected
    ran = sum(len(graph.keys) for graph in scheduler.of(UpdateGraph)) - before
    assert 0 < ran < 8
    again = collection.persist()
    assert finish(again) == expected
    [one] = dask.persist(collection)
    assert finish(one) == expected
    assert len(client.persist([collection, collection])) == 2


def test_raw_graphs(client):
    dsk = {("in", i): (abs, i) for i in range(3)} | {"out": (sum, [("in", i) for i in range(3)])}
    assert client.get(dsk, "out") == 3
    assert client.get(dsk, [["out"], [("in", 1), ("in", 1)]]) == [[3], [1, 1]]
    futures = client.get(dsk, ["out"], sync=False)
    assert futures[0].result() == 3
    with pytest.raises(ZeroDivisionError):
        client.get({"x": (divmod, 1, 0)}, "x")
    with pytest.raises(KeyError):
        client.get({"x": 1}, "y")


def test_annotations_travel_with_their_tasks(client, scheduler):
    with dask.annotate(priority=5, retries=2):
        a = inc(1)
    with dask.annotate(workers="w", allow_other_workers=True, resources={"GPU": 2}):
        b = dask.delayed(abs)(a)
    assert client.compute(b, optimize_graph=False).result() == 2
    options = options_by_key(scheduler)
    assert options[a.key][:2] == (5, 2)
    assert options[b.key][2:5] == (("w",), True, (("GPU", 2.0),))


def test_annotations_around_a_call_hold_for_its_tasks(client, scheduler):
    with dask.annotate(priority=3, retries=lambda key: 4):
        future = client.compute(inc(1))
        assert client.submit(abs, -1).result() == 1
        assert client.submit(abs, -2, priority=9).result() == 2
        future.result()
    options = options_by_key(scheduler)
    assert options[future.key][:2] == (3, 4)
    assert sorted(o.priority for key, o in options.items() if str(key).startswith("abs")) == [3, 9]


def test_dask_uses_the_default_client_while_it_is_open(scheduler):
    assert dask.config.get("scheduler", None) is None
    with Client(scheduler.scheduler_address, security=scheduler.security, set_as_default=False):
        assert dask.config.get("scheduler", None) is None
    with dask.config.set(scheduler="threads"):
        with Client(scheduler.scheduler_address, security=scheduler.security) as one:
            assert dask.config.get("scheduler") == one.get
            with Client(scheduler.scheduler_address, security=scheduler.security) as two:
                assert dask.config.get("scheduler") == two.get
            assert dask.config.get("scheduler") == one.get
        assert dask.config.get("scheduler") == "threads"
    assert dask.config.get("scheduler", None) is None


def test_dask_imported_later_uses_the_client_and_is_not_imported_before():
    script = """
        import sys
        from gnomon.runtime.client import dask_adapter
        def get(dsk, keys, **kwargs): return "ours"
        dask_adapter.use_as_scheduler(get)
        assert "dask" not in sys.modules
        import dask
        assert not [f for f in sys.meta_path if isinstance(f, dask_adapter._OnImport)]
        assert dask.config.get("scheduler") is get
        assert type(dask.__spec__.loader).__name__ == "SourceFileLoader"
        dask_adapter.stop_as_scheduler(get)
        assert dask.config.get("scheduler", None) is None
        print("fine")
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "fine\n", done.stderr


def test_a_client_brings_nothing_heavy_along():
    heavy = ["numpy", "pandas", "dask", "bokeh", "tornado", "cloudpickle"]
    code = f"import sys, gnomon.runtime.client.client; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
