"""Runs that end well, in both kinds of executors."""

import asyncio

import executor_user_code as user
import pytest

from gnomon.runtime.clock import now
from gnomon.runtime.messages import ByReference, Codes, Failure, PutValues, RunTasks
from gnomon.runtime.protocol import Bundle, Ref, decode_error, dumps_code, dumps_index, loads_code
from gnomon.runtime.worker.executor.serving import type_name

SHORT, LONG, UNKNOWN = 1e-5, 10.0, -1.0


def run(coroutine):
    return asyncio.run(coroutine)


def test_small_values_come_with_the_outcome_and_others_stay(driver, kind):
    async def main():
        async with driver(kind) as d:
            for value in (1, 1.5, True, None, "text", b"bytes", 2j, -(1 << 80)):
                task_id = d.submit(user.same, value)
                assert await d.outcome(task_id) == value
            for value in ([1], "x" * 600, b"x" * 600, 1 << 9000):
                task_id = d.submit(user.same, value)
                assert await d.outcome(task_id) is None
                assert await d.value(task_id) == value

    run(main())


def test_timings_are_ordered_and_on_our_clock(driver, kind):
    async def main():
        async with driver(kind) as d:
            before = now()
            task_id = d.submit(user.add, 1, b=2)
            assert await d.outcome(task_id) == 3
            times = d.timings[task_id]
            assert times == sorted(times)
            assert before - 1 < times[0]
            assert times[3] < now() + 1

    run(main())


def test_dependencies_in_nested_containers(driver, kind):
    async def main():
        async with driver(kind) as d:
            one = d.submit(user.add, 1)
            two = d.put(2, "value")
            task_id = d.submit(user.total, [Ref(0), Ref(1), Ref(1)], deps=(one, two))
            assert await d.outcome(task_id) == 5

    run(main())


def test_bundle(driver, kind):
    async def main():
        async with driver(kind) as d:
            code = dumps_code(Bundle([user.Entry(user.add, 1), user.Entry(user.add)]))
            first = d.submit(code, payload=dumps_index(0))
            last = d.submit(code, payload=dumps_index(1), deps=(first, first))
            assert await d.outcome(last) == 2

    run(main())


def test_batch_runs_in_order_and_is_answered_in_few_messages(driver, kind):
    async def main():
        async with driver(kind) as d:
            ids = d.run([d.row(user.add, i, expected=SHORT) for i in range(1000)])
            await d.until(lambda: len(d.finished) == 1000)
            assert [i for i in d.order if i in set(ids)] == ids
            assert [d.finished[i] for i in ids] == list(range(1000))
            assert len(d.batches) < 500

    run(main())


def test_outcome_does_not_wait_behind_a_run_that_was_thought_short(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver(kind) as d:
            first, second = d.run(
                [d.row(user.add, 1, expected=SHORT), d.row(user.touch_and_wait, began, go, expected=SHORT)]
            )
            assert await d.outcome(first) == 1
            assert second not in d.finished
            user.touch(go)
            await d.outcome(second)

    run(main())


def test_outcome_leaves_before_a_run_of_unknown_length(driver, signals):
    began, go = signals(), signals()

    async def main():
        async with driver("process") as d:
            first, second = d.run(
                [d.row(user.add, 1, expected=SHORT), d.row(user.hold_gil, began, 1, expected=UNKNOWN)]
            )
            assert await d.outcome(first) == 1
            assert second not in d.finished
            user.touch(go)
            await d.outcome(second)

    run(main())


def test_several_threads_run_at_once(driver, kind, signals):
    a, b = signals(), signals()

    async def main():
        async with driver(kind, nthreads=2) as d:
            ids = d.run([d.row(user.touch_and_wait, a, b), d.row(user.touch_and_wait, b, a)])
            idents = {await d.outcome(i) for i in ids}
            assert len(idents) == 2
            assert {d.threads[i] for i in ids} == {0, 1}

    run(main())


def test_named_executors(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver(kind, executors={"gpu": 1}) as d:
            held = d.submit(user.touch_and_wait, began, go, executor="gpu")
            await d.until(lambda: user.os.path.exists(began))
            assert await d.call(user.add, 1) == 1
            assert await d.call(user.add, 2, executor="default") == 2
            unknown, gpu = d.run([d.row(user.add, 1, executor="tpu"), d.row(user.who_am_i, executor="gpu")])
            with pytest.raises(ValueError, match=r"wants executor 'tpu'.*it has 'gpu', 'default'"):
                await d.outcome(unknown)
            user.touch(go)
            await d.outcome(held)
            assert "executor='gpu'" in await d.outcome(gpu)

    run(main())


def test_cancel_takes_back_what_is_not_begun(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver(kind) as d:
            held, one, two, three = d.run(
                [d.row(user.touch_and_wait, began, go), *(d.row(user.add, i, attempt=2) for i in range(3))]
            )
            await d.until(lambda: user.os.path.exists(began))
            d.cancel((held, 1), (one, 2), (two, 1), (three, 2), (12345, 1))
            await d.until(lambda: d.returned)
            assert d.returned == [{(one, 2), (three, 2)}]
            user.touch(go)
            assert await d.outcome(two) == 1
            assert await d.call(user.add, 4) == 4
            assert one not in d.finished

    run(main())


def test_encoding_goes_before_queued_runs(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver(kind) as d:
            # A large value that is no buffer is not prepared, so it waits for the run under way.
            value = d.submit(user.same, list(range(200_000)))
            held = d.submit(user.touch_and_wait, began, go)
            queued = d.run([d.row(user.add, i, expected=SHORT) for i in range(50)])
            await d.until(lambda: user.os.path.exists(began))
            request_id = d.ask(value)
            d.cancel((0, 0))
            await d.until(lambda: d.returned and value in d.finished)  # so the request has been read
            assert request_id not in d.encoded
            user.touch(go)
            (await d.answer(request_id)).close()
            await d.outcome(queued[-1])
            assert d.order.index(request_id) < d.order.index(queued[0])
            assert await d.outcome(held)

    run(main())


@pytest.mark.parametrize("what", ["small", "array", "bytes", "scattered", "segment", "unpicklable"])
def test_values_leave_while_the_only_thread_is_busy(driver, kind, signals, what):
    numpy = pytest.importorskip("numpy")
    began, go = signals(), signals()

    async def main():
        async with driver(kind) as d:
            if what in ("scattered", "segment"):
                task_id = d.put(b"x" * 5_000_000, "value" if what == "scattered" else "segment")
            elif what == "array":
                task_id = d.submit(numpy.zeros, 1_000_000)
            elif what == "unpicklable":
                task_id = d.submit(user.make_no_pickle)
            else:
                task_id = d.submit(user.same, [1, 2, 3] if what == "small" else b"x" * 5_000_000)
            held = d.submit(user.touch_and_wait, began, go, expected=UNKNOWN)
            await d.until(lambda: user.os.path.exists(began))
            if what == "unpicklable":
                request_id = d.ask(task_id)
                assert await d.answer(request_id) is None
                assert "no way out" in d.lost_values[request_id].text
            else:
                assert len(await d.value(task_id)) in (3, 1_000_000, 5_000_000)
            assert held not in d.finished
            user.touch(go)
            await d.outcome(held)

    run(main())


def test_value_that_is_not_here(driver, kind):
    async def main():
        async with driver(kind) as d:
            request_id = d.ask(777)
            assert await d.answer(request_id) is None
            assert d.lost_values[request_id] is None
            task_id = d.submit(user.same, [1])
            await d.outcome(task_id)
            d.drop(task_id)
            request_id = d.ask(task_id)
            assert await d.answer(request_id) is None
            assert d.lost_values[request_id] is None

    run(main())


def test_many_segments_at_once(driver, kind):
    async def main():
        async with driver(kind) as d:
            ids = [d.put(b"%d" % i * 5000) for i in range(300)]
            rows = [d.row(len, Ref(0), deps=(i,)) for i in ids]
            results = [await d.outcome(i) for i in d.run(rows)]
            assert results == [len(b"%d" % i) * 5000 for i in range(300)]

    run(main())


def test_arrays_cross_by_segments(driver, kind):
    numpy = pytest.importorskip("numpy")

    async def main():
        async with driver(kind) as d:
            array = numpy.arange(2_500_000)
            task_id = d.submit(user.same, Ref(0), deps=(d.put(array),))
            assert await d.outcome(task_id) is None
            result = await d.value(task_id)
            assert (result == array).all()
            result[0] = 5  # private and writable

    run(main())


def test_run_requests(driver, kind):
    async def main():
        async with driver(kind) as d:
            ident = await d.call(user.ident)
            assert loads_code((await d.request(user.ident)).result) == ident
            failure = await d.request(user.raise_kind, KeyError, "asked")
            assert isinstance(failure, Failure)
            assert repr(decode_error(failure.error)) == "KeyError('asked')"
            assert loads_code((await d.request(user.ident, wait=False)).result) is None
            assert loads_code((await d.request(user.coroutine_value_free)).result) == "awaited"

    run(main())


def test_coroutine_functions_run_on_the_executor_thread(driver, kind):
    async def main():
        async with driver(kind) as d:
            ident = await d.call(user.ident)
            task_id = d.submit(user.coroutine_identity, 5)
            key = f"key-{task_id}"
            assert await d.outcome(task_id) == f"{key} {key} {ident} 5"
            with pytest.raises(ValueError, match="awaited"):
                await d.call(user.coroutine_fails)

    run(main())


def test_current_task_and_cluster(driver, kind):
    async def main():
        async with driver(kind, scheduler="tcp://here:1", security={"a": 1}) as d:
            task_id = d.submit(user.who_am_i, attempt=3)
            expected = f"CurrentTask(key='key-{task_id}', task_id={task_id}, attempt=3, thread=0, executor='')"
            assert await d.outcome(task_id) == expected
            text = await d.call(user.which_cluster)
            assert text == "Cluster(address='tcp://here:1', security={'a': 1})"
        with pytest.raises(RuntimeError, match="no task"):
            user.who_am_i()
        with pytest.raises(RuntimeError, match="no task"):
            user.secede()

    run(main())


def test_secede(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver(kind) as d:
            first = await d.call(user.ident)
            gone = d.submit(user.secede_and_wait, began, go, attempt=4)
            queued = d.submit(user.ident)
            other = await d.outcome(queued)
            assert other != first
            assert d.threads[queued] == 1
            assert d.seceded == [(gone, 4)]
            user.touch(go)
            assert await d.outcome(gone) == first
            assert d.threads[gone] == 0
            assert await d.call(user.ident) == other

    run(main())


def test_a_value_that_leaves_says_its_type_and_what_making_it_ready_took(driver, kind):
    async def main():
        async with driver(kind) as d:
            for value, name in ([1], "list"), (bytearray(5_000_000), "bytearray"), (user.Big(), "Big"):
                task_id = d.submit(user.same, value)
                await d.outcome(task_id)
                request_id = d.ask(task_id)
                await d.answer(request_id)
                assert d.type_names[request_id] == name
                assert d.encoding_seconds[request_id] >= 0.0
            assert d.encoding_seconds[request_id] < 60.0

    run(main())


def test_a_value_that_is_handed_on_as_it_came_has_the_type_it_came_with(driver, kind):
    async def main():
        async with driver(kind) as d:
            for type_names in ((), ("Frame",)):
                request_id = d.ask(d.put(b"x" * 5000, type_names=type_names))
                await d.answer(request_id)
                assert d.type_names[request_id] == "".join(type_names)
                assert d.encoding_seconds[request_id] == 0.0

    run(main())


def test_types_are_called_what_the_interpreter_calls_them():
    class Loud(type):
        @property
        def __name__(cls):
            raise AssertionError("code of the user's ran")

    assert type_name(Loud("Quiet", (), {})()) == "Quiet"
    assert len(type_name(type("L" * 500, (), {})())) == 100


def test_by_reference(driver):
    async def main():
        async with driver("thread", by_reference=True) as d:
            marker = user.Big()
            d.executor.send([Codes((500,), (ByReference(user.same),)), PutValues((501,), (ByReference(marker),))])
            call = ByReference(((Ref(0),), {}))
            d.executor.send([RunTasks((502,), (1,), ("k",), (500,), (call,), (UNKNOWN,), ((501,),))])
            assert await d.outcome(502) is None
            answer = await d.answer(d.ask(502))
            assert isinstance(answer, ByReference)
            assert answer.value is marker
            assert set(d.type_names.values()) == {"Big"}

    run(main())


def test_idle_child_does_nothing(driver):
    def switches(pid):
        total = 0
        for task in user.os.listdir(f"/proc/{pid}/task"):
            lines = user.Path(f"/proc/{pid}/task/{task}/status").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)
        return total

    async def main():
        async with driver("process", nthreads=2) as d:
            d.run([d.row(user.add, i, expected=SHORT) for i in range(100)])
            await d.until(lambda: len(d.finished) == 100)
            async with asyncio.timeout(20):
                before = -1
                while (after := switches(d.executor.pid)) != before:
                    before = after
                    await asyncio.sleep(0.2)

    run(main())
