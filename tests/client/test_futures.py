"""Submitting, waiting and fetching against a scripted scheduler over real comms."""

from __future__ import annotations

import asyncio
import gc
import json
import operator
import os
import pickle
import signal
import threading

import pytest

from gnomon.runtime.client import (
    Client,
    Future,
    as_completed,
    default_client,
    fire_and_forget,
    futures_of,
    get_client,
    wait,
)
from gnomon.runtime.errors import CommClosedError, FutureCancelledError, FutureLostError, SerializationError, TaskError
from gnomon.runtime.messages import (
    CancelFutures,
    ForgetCodes,
    FuturesCancelled,
    ReleaseFutures,
    TaskOptions,
    UpdateGraph,
)


def inc(x):
    return x + 1


def add(x, y=0):
    return x + y


def fail(text):
    raise KeyError(text)


def raise_it(exc):
    raise exc


def big(n):
    return list(range(n))


def test_submit_gives_the_result(client):
    assert client.submit(inc, 1).result() == 2
    assert client.submit(add, 1, y=2).result(timeout=10) == 3
    assert client.submit(operator.add, "a", "b").result("10 s") == "ab"


def test_futures_are_arguments_at_any_depth(client):
    one, two = client.submit(inc, 0), client.submit(inc, 1)
    total = client.submit(lambda x, d: sum(x) + d["y"][0] + len(d["z"]), [one, two], d={"y": (two,), "z": {one, 5}})
    assert total.result() == 7


def test_map_keeps_order_and_passes_keywords(client):
    assert client.gather(client.map(add, range(100), y=1)) == list(range(1, 101))
    assert client.gather(client.map(operator.add, range(5), range(5, 10))) == [5, 7, 9, 11, 13]
    one = client.submit(inc, 0)
    assert client.gather(client.map(add, [one, 2], y=one)) == [2, 3]
    assert client.map(inc, []) == []


def test_a_map_is_few_messages_and_its_function_travels_once(client, scheduler):
    client.gather(client.map(inc, range(12_000), pure=False))
    graphs = scheduler.of(UpdateGraph)
    assert [len(graph.keys) for graph in graphs] == [5000, 5000, 2000]
    assert [len(graph.codes) for graph in graphs] == [1, 0, 0]


def test_pure_calls_share_a_key_and_run_once(client, scheduler):
    a, b = client.submit(inc, 1), client.submit(inc, 1)
    assert a == b
    assert hash(a) == hash(b)
    assert a.key == b.key
    assert client.submit(inc, 1, pure=False).key != a.key
    assert client.map(inc, [1])[0].key != client.map(inc, [2])[0].key
    wait([a, b])
    assert sum(len(graph.keys) for graph in scheduler.of(UpdateGraph)) == 4
    assert client.submit(inc, 1.0).key != a.key
    assert client.submit(inc, True).key != a.key


def test_errors_come_with_their_traceback(client):
    future = client.submit(fail, "who")
    with pytest.raises(KeyError, match="who") as caught:
        future.result()
    assert any(entry.name == "fail" for entry in caught.traceback)
    assert isinstance(future.exception(), KeyError)
    assert future.traceback() is not None
    assert future.status == "error"
    assert client.submit(inc, 1).exception() is None
    with pytest.raises(KeyError):
        client.submit(inc, future).result()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, StopIteration])
def test_errors_that_mean_something_else_here_are_wrapped(client, scheduler, monkeypatch, kind):
    monkeypatch.setattr(scheduler, "caught", BaseException)
    future = client.submit(raise_it, kind("there"), pure=False)
    for call in (future.result, lambda: client.gather([future])):
        with pytest.raises(TaskError, match=kind.__name__) as caught:
            call()
        assert type(caught.value.__cause__) is kind
    assert type(future.exception()) is kind


def test_gather_takes_nests_and_skips_failures(client):
    a, bad, b = client.submit(inc, 1), client.submit(fail, "x"), client.submit(inc, 2)
    assert client.gather({"a": [a, {b}], "c": (a, 5)}) == {"a": [2, {3}], "c": (2, 5)}
    assert client.gather([a, bad, b], errors="skip") == [2, 3]
    assert client.gather(bad, errors="skip") is None
    assert client.gather(iter([a, a])) == [2, 2]
    assert client.gather([]) == []
    with pytest.raises(KeyError):
        client.gather([a, bad])
    with pytest.raises(ValueError, match="skip"):
        client.gather([a], errors="ignore")


def test_large_results_are_fetched_from_their_holder(client, scheduler):
    futures = [client.submit(big, n, pure=False) for n in (10, 1000, 100_000)]
    assert [len(value) for value in client.gather(futures)] == [10, 1000, 100_000]
    assert scheduler.asked.count("locate") == 1
    numpy = pytest.importorskip("numpy")
    array = client.submit(numpy.arange, 1_000_000).result()
    assert array.sum() == 499999500000
    array[0] = 5  # it is the caller's own


def test_a_value_that_its_holder_lost_is_waited_for(client, scheduler):
    future = client.submit(big, 10)
    wait(future)
    scheduler.lost_values.add(future.key)
    assert future.result(timeout=20) == list(range(10))
    assert [row["lost"] for row in scheduler.missing] == [True]


class Poison:
    """Pickles, and does not unpickle."""

    def __reduce__(self):
        return operator.truediv, (1, 0)


def test_an_undecodable_result_fails_that_future_alone(client):
    bad, good = client.submit(Poison), client.submit(big, 10)
    assert client.gather([bad, good], errors="skip") == [list(range(10))]
    with pytest.raises(ZeroDivisionError) as caught:
        bad.result()
    assert "can't be decoded here" in caught.value.__notes__[0]


def test_unpicklable_things_are_named_at_submit(client):
    with pytest.raises(TypeError, match=r"argument 1 of add, a lock"):
        client.submit(add, 1, threading.Lock())
    with pytest.raises(TypeError, match=r"argument 'y' of add"):
        client.submit(add, 1, y=threading.Lock())
    lock = threading.Lock()
    with pytest.raises(SerializationError, match="function"):
        client.submit(lambda: lock)
    with pytest.raises(TypeError, match="callable"):
        client.submit(5)
    assert client.submit(inc, 1).result() == 2


def test_a_function_that_refers_to_changed_globals_is_sent_anew(client):
    namespace = {"__name__": "__main__", "n": 1}
    exec("def f(x): return x + n", namespace)
    f = namespace["f"]
    assert client.submit(f, 1, pure=False).result() == 2
    assert client.submit(f, 1, pure=False).result() == 2
    namespace["n"] = 10
    assert client.submit(f, 1, pure=False).result() == 11
    assert client.submit(f, 1).key != client.submit(lambda x: x, 1).key


def test_results_wait_at_most_their_timeout(client, scheduler):
    scheduler.hold = True
    future = client.submit(inc, 1)
    assert future.status == "pending"
    assert not future.done()
    with pytest.raises(TimeoutError):
        future.result(timeout=0.01)
    with pytest.raises(TimeoutError):
        wait([future], timeout="10 ms")
    with pytest.raises(TimeoutError):
        next(as_completed([future], timeout=0.01))
    scheduler.let_go()
    assert future.result() == 2
    assert repr(future).startswith("<Future: finished, key: inc-")


def test_a_dropped_future_is_released_and_its_key_may_be_defined_anew(client, scheduler, until):
    future = client.submit(inc, 1, key="k")
    assert future.result() == 2
    del future
    again = client.submit(inc, 10, key="k")
    assert again.result() == 11
    until(lambda: scheduler.of(ReleaseFutures))
    kinds = [type(m) for m in scheduler.messages if type(m) in (UpdateGraph, ReleaseFutures)]
    assert kinds == [UpdateGraph, ReleaseFutures, UpdateGraph]


def test_releases_may_come_from_any_thread_and_from_the_collector(client, scheduler, until):
    futures = client.map(inc, range(1000), pure=False)
    wait(futures)
    loops = [[f] for f in futures]
    for loop in loops:
        loop.append(loop)
    del futures, loops

    def collect():
        gc.collect()

    thread = threading.Thread(target=collect)
    thread.start()
    thread.join()
    client.submit(inc, 1, key="last").result()
    until(lambda: sum(len(m.future_ids) for m in scheduler.of(ReleaseFutures)) >= 1000)
    assert len(scheduler.of(ReleaseFutures)) < 500


def test_cancel_is_final_and_told(client, scheduler):
    scheduler.hold = True
    future = client.submit(inc, 1, key="k")
    other = client.submit(inc, future)
    future.cancel(reason="changed-mind", msg="of the user")
    assert future.cancelled()
    assert future.status == "cancelled"
    with pytest.raises(FutureCancelledError, match=r"changed-mind \(of the user\)"):
        future.result()
    with pytest.raises(FutureCancelledError):
        client.submit(inc, future)
    new = client.submit(add, 1, 1, key="k")
    scheduler.let_go()
    assert new.result() == 2
    assert future.cancelled()
    assert other.key
    assert scheduler.of(CancelFutures)[0].reason == "changed-mind"
    with pytest.raises(FutureCancelledError):
        wait([future, new])


def test_the_scheduler_may_cancel_or_lose_futures(client, scheduler):
    scheduler.hold = True
    a, b = client.submit(inc, 1), client.submit(inc, 2)
    state_a, state_b = a.state, b.state
    scheduler.send(FuturesCancelled((state_a.id,), "unknown", "gone"), FuturesCancelled((state_b.id,), "lost", "data"))
    with pytest.raises(FutureCancelledError, match="gone"):
        a.result()
    with pytest.raises(FutureLostError, match="data"):
        b.result()
    assert b.status == "lost"


def test_retry_runs_failed_tasks_again(client, scheduler):
    future = client.submit(fail, "x")
    assert isinstance(future.exception(), KeyError)
    scheduler.hold = True
    future.retry()
    assert future.status == "pending"
    scheduler.let_go()
    assert isinstance(future.exception(), KeyError)


def test_as_completed_gives_what_is_done_and_takes_more(client, scheduler):
    scheduler.hold = True
    futures = client.map(inc, range(3))
    completed = as_completed(futures, with_results=True)
    assert completed.count() == 3
    assert not completed.has_ready()
    scheduler.let_go()
    found = [next(completed)]
    completed.add(client.submit(inc, 10))
    found += list(completed)
    assert sorted(result for _, result in found) == [1, 2, 3, 11]
    assert completed.is_empty()
    assert list(as_completed([])) == []
    same = client.submit(inc, 1)
    assert len(list(as_completed([same, same]))) == 2
    batches = list(as_completed(client.map(inc, range(10))).batches())
    assert sum(map(len, batches)) == 10


def test_as_completed_with_results_raises_or_gives_errors(client):
    bad = client.submit(fail, "x")
    with pytest.raises(KeyError):
        list(as_completed([bad], with_results=True))
    [(future, exc)] = as_completed([bad], with_results=True, raise_errors=False)
    assert future is bad
    assert isinstance(exc, KeyError)
    assert list(as_completed([bad])) == [bad]
    with pytest.raises(TypeError):
        as_completed([1])


def test_wait_for_the_first(client, scheduler):
    done = client.submit(inc, 1)
    wait(done)
    scheduler.hold = True
    slow = client.submit(inc, 2)
    finished, pending = wait([done, slow], return_when="FIRST_COMPLETED")
    assert (finished, pending) == ({done}, {slow})
    with pytest.raises(TimeoutError):
        wait([slow], timeout=0.01, return_when="FIRST_COMPLETED")
    with pytest.raises(TypeError, match="in a list"):
        wait(done, slow)
    scheduler.let_go()
    assert wait([slow], return_when="FIRST_COMPLETED").done == {slow}


def test_callbacks_are_called_once_done(client, scheduler, until):
    scheduler.hold = True
    future = client.submit(inc, 1)
    called = []
    future.add_done_callback(called.append)
    scheduler.let_go()
    until(lambda: called == [future])
    future.add_done_callback(called.append)
    until(lambda: called == [future, future])


def test_fire_and_forget_keeps_a_task_until_it_is_done(client, scheduler, until):
    scheduler.hold = True
    future = client.submit(inc, 1, key="fire")
    fire_and_forget(future)
    del future
    assert client.scheduler_info()
    assert "fire" in scheduler.by_key
    scheduler.let_go()
    until(lambda: "fire" not in scheduler.by_key)


def test_scatter_sends_small_values_inside_and_large_ones_to_workers(client, scheduler):
    small, large = client.scatter([5, list(range(10_000))])
    assert client.submit(inc, small).result() == 6
    assert client.submit(len, large).result() == 10_000
    assert large.result() == list(range(10_000))
    named = client.scatter({"x": 1, "y": [0] * 1000})
    assert sorted(named) == ["x", "y"]
    assert named["y"].key == "y"
    assert client.scatter("text").result() == "text"
    assert client.gather(client.scatter((1, 1, 2))) == (1, 1, 2)
    with pytest.raises(TypeError, match="pickled"):
        client.scatter([threading.Lock()])
    scheduler.workers = 0
    with pytest.raises(TimeoutError):
        client.scatter([list(range(5000))], timeout=0.02)


def test_questions(client, scheduler):
    future = client.submit(inc, 1)
    wait(future)
    address = scheduler.data.contact_address
    assert client.who_has([future]) == {future.key: (address,)}
    assert client.nthreads() == client.ncores() == {address: 1}
    assert client.has_what() == {address: (future.key,)}
    assert client.scheduler_info()["workers"][address]["name"] == "one"
    assert client.scheduler_info(n_workers=0)["workers"] == {}
    client.wait_for_workers(1, timeout=10)
    with pytest.raises(TimeoutError, match="1 of 2"):
        client.wait_for_workers(2, timeout=0.02)
    with pytest.raises(NotImplementedError, match="never unpickles"):
        client.run_on_scheduler(inc)
    assert "python" in client.get_versions()["client"]


def test_run_calls_a_function_in_every_worker(client, scheduler):
    address = scheduler.data.contact_address
    assert client.run(inc, 1) == {address: 2}
    with pytest.raises(KeyError):
        client.run(fail, "x")
    assert isinstance(client.run(fail, "x", on_error="return")[address], KeyError)
    assert client.run(fail, "x", on_error="ignore") == {}
    with pytest.raises(ValueError, match="supervis"):
        client.run(inc, 1, nanny=True)


def test_options_travel_with_their_rows(client, scheduler):
    client.submit(inc, 1, workers="a", allow_other_workers=True, priority=5, retries=2, resources={"GPU": 1}).result()
    options = scheduler.of(UpdateGraph)[-1].options[0]
    assert options == TaskOptions(5, 2, ("a",), True, (("GPU", 1.0),))
    with pytest.raises(ValueError, match="workers="):
        client.submit(inc, 1, allow_other_workers=True)
    with pytest.raises(ValueError, match="whole"):
        client.submit(inc, 1, priority=1.5)
    with pytest.raises(NotImplementedError):
        client.submit(inc, 1, actor=True)


def test_when_the_scheduler_goes_everyone_is_told(client, scheduler):
    done = client.submit(big, 10)
    wait(done)
    scheduler.hold = True
    pending = client.submit(inc, 2)
    outcome = []

    def block():
        try:
            pending.result()
        except Exception as exc:
            outcome.append(exc)

    thread = threading.Thread(target=block)
    thread.start()
    client.scheduler_info()
    scheduler.vanish()
    thread.join(20)
    assert isinstance(outcome[0], FutureLostError)
    assert scheduler.scheduler_address in str(outcome[0])
    with pytest.raises(CommClosedError, match="was lost"):
        client.submit(inc, 3)
    with pytest.raises(CommClosedError):
        done.result()
    with pytest.raises(CommClosedError):
        client.scheduler_info()


def test_a_closed_client_says_so(scheduler):
    client = Client(scheduler.scheduler_address, security=scheduler.security)
    scheduler.hold = True
    future = client.submit(inc, 1)
    client.close()
    client.close()
    with pytest.raises(FutureLostError, match="client is closed"):
        future.result()
    with pytest.raises(CommClosedError, match="client is closed"):
        client.submit(inc, 1)
    assert "closed" in repr(client)
    with pytest.raises(CommClosedError):
        client.cancel(future)


def test_an_address_that_nobody_answers_fails_in_time():
    with pytest.raises(OSError, match=r"127\.0\.0\.1"):
        Client("tcp://127.0.0.1:1", timeout=0.3)


def test_futures_pickle_to_futures_of_the_client_there(client):
    future = client.submit(inc, 1)
    with client.as_current():
        copy = pickle.loads(pickle.dumps(future))
    assert copy == future
    assert copy.result() == 2
    assert Future(future.key, client).result() == 2
    assert futures_of([{"a": future}, (copy,)]) == [future]
    unknown = Future("nobody-knows", client)
    with pytest.raises(FutureCancelledError, match="unknown"):
        unknown.result()
    future.release()
    with pytest.raises(FutureCancelledError, match="released"):
        future.result()


def test_ctrl_c_ends_a_wait(client, scheduler):
    scheduler.hold = True
    future = client.submit(inc, 1)

    def interrupt():
        client_waits.wait(20)
        os.kill(os.getpid(), signal.SIGINT)

    client_waits = threading.Event()
    thread = threading.Thread(target=interrupt)
    thread.start()
    client_waits.set()
    with pytest.raises(KeyboardInterrupt):
        future.result()
    thread.join()
    scheduler.let_go()
    assert future.result() == 2


def test_a_forked_child_gets_an_error_not_a_hang(client):
    future = client.submit(inc, 1)
    future.result()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            client.submit(inc, 2)
            text = "no error"
        except CommClosedError as exc:
            text = str(exc)
        except BaseException as exc:
            text = repr(exc)
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.waitpid(pid, 0)
    assert "forked" in said
    assert client.submit(inc, 2).result() == 3


def test_codes_that_are_not_kept_are_forgotten(client, scheduler, monkeypatch, until):
    from gnomon.runtime.client import codes

    monkeypatch.setattr(codes, "MAX_CODES", 3)
    for n in range(10):
        client.submit(lambda x, n=n: x + n, 1).result()
    until(lambda: scheduler.of(ForgetCodes))
    assert client.submit(inc, 1).result() == 2


def test_asynchronous_clients(scheduler):
    async def main():
        async with Client(
            scheduler.scheduler_address, security=scheduler.security, asynchronous=True, set_as_default=False
        ) as client:
            future = client.submit(inc, 1)
            assert await future == 2
            assert await future.result() == 2
            assert await client.gather(client.map(inc, range(10))) == list(range(1, 11))
            assert len(await client.submit(big, 1000)) == 1000
            assert (await client.scheduler_info())["type"] == "Scheduler"
            with pytest.raises(KeyError):
                await client.submit(fail, "x")
            seen = [f async for f in as_completed(client.map(inc, range(5)))]
            assert len(seen) == 5
            assert len((await wait(seen)).done) == 5
            [data] = await client.scatter([list(range(5000))])
            assert await client.submit(len, data) == 5000
            called = asyncio.Event()
            future.add_done_callback(lambda f: called.set())
            await asyncio.wait_for(called.wait(), 20)
            scheduler.hold = True
            pending = client.submit(inc, 99)
            task = asyncio.create_task(client.gather(pending))
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(task, 0.01)
            await client.cancel(pending)
            client.cancel(pending)
        assert client.status == "closed"

    asyncio.run(main())


def test_a_sync_clients_future_may_be_awaited_on_any_loop(client):
    async def main():
        return await client.submit(inc, 1)

    assert asyncio.run(main()) == 2


def test_threads_submit_side_by_side(client):
    results = {}

    def work(n):
        results[n] = client.gather([client.submit(inc, n * 1000 + i, pure=False) for i in range(200)])

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all(results[n] == [n * 1000 + i + 1 for i in range(200)] for n in range(4))


def test_within_one_process_objects_pass_by_reference(inproc_scheduler):
    with Client(inproc_scheduler, timeout=20) as client:
        lock = threading.Lock()
        assert client.submit(lambda x: x, lock).result() is lock
        [future] = client.scatter([lock])
        assert client.submit(lambda x: x, future).result() is lock
        assert client.gather(client.map(inc, range(100))) == list(range(1, 101))
        a, b = object(), object()
        assert client.submit(id, a).result() == id(a)
        assert client.submit(id, b).result() == id(b)


def test_a_scheduler_file_is_waited_for(scheduler, tmp_path):
    path = tmp_path / "scheduler.json"
    with pytest.raises(TimeoutError, match=r"scheduler\.json"):
        Client(scheduler_file=path, timeout=0.05)
    path.write_text(json.dumps({"address": scheduler.scheduler_address}))
    with Client(scheduler_file=path, security=scheduler.security, timeout=20) as client:
        assert client.submit(inc, 1).result() == 2


def test_wrong_uses_say_what_is_right(client, scheduler):
    with pytest.raises(TypeError, match="get_client"):
        pickle.dumps(client)
    with pytest.raises(TypeError, match="n_workers"):
        Client(scheduler.scheduler_address, n_workers=3)
    with pytest.raises(TypeError, match="cluster object"):
        Client(5)
    with pytest.raises(TypeError, match="asynchronous=True"):
        client.__await__()
    future = client.submit(inc, 1)
    future.release()
    with pytest.raises(ValueError, match="released"):
        client.submit(inc, future)


def test_which_client_is_meant(scheduler, client):
    assert default_client() is get_client() is client
    with Client(scheduler.scheduler_address, security=scheduler.security) as newer:
        assert default_client() is newer
        with client.as_current():
            assert default_client() is client
        assert default_client(client) is client
    assert default_client() is client
    client.close()
    with pytest.raises(ValueError, match="no client"):
        default_client()
