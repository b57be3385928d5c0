"""With one thread, every object of the user's is unpickled, used, pickled and freed on it, on every path."""

import ast
import asyncio

import executor_user_code as user
import pytest

from gnomon.runtime.protocol import Ref, dumps_code

SIZES = [1, 20_000_000]


async def log_of(d):
    return ast.literal_eval(await d.call(user.take_log))


async def check(d, wanted):
    """All that was logged happened on the executor's one thread, and ``wanted`` steps are among it."""
    log = await log_of(d)
    ident = await d.call(user.ident)
    assert {step for step, _, _ in log} >= set(wanted), log
    assert {thread for _, _, thread in log} == {ident}, log


def run(driver, kind, body, **settings):
    async def main():
        async with driver(kind, inline_bytes=512, **settings) as d:
            await d.call(user.take_log)
            await body(d)

    asyncio.run(main())


def prepared(d, make):
    """A row made here, without what pickling it logs in this process (which threads share)."""
    row = make()
    user.LOG.clear()
    return row


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("path", ["argument", "keyword", "nested", "closure"])
def test_sent_with_the_task(driver, kind, path, size):
    async def body(d):
        def make():
            spy = user.Spy("a", size)
            if path == "argument":
                return d.row(user.use, spy)
            if path == "keyword":
                return d.row(user.use, word=spy)
            if path == "nested":
                return d.row(user.use, [{"deep": (spy,)}])
            return d.row(user.make_closure(spy))

        (task_id,) = d.run([prepared(d, make)])
        await d.outcome(task_id)
        await check(d, ["rebuild", "setstate", "use"] if path == "closure" else ["rebuild", "setstate", "use", "del"])

    run(driver, kind, body)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("how", ["value", "segment"])
def test_scattered_or_fetched(driver, kind, how, size):
    async def body(d):
        spy = user.Spy("a", size)
        value = d.put(spy, how)
        del spy
        user.LOG.clear()
        task_id = d.submit(user.use, [Ref(0)], deps=(value,))
        await d.outcome(task_id)
        await check(d, ["rebuild", "setstate", "use"])
        # Now decoded: its way to a peer is pickled on the thread as well, and so is its end.
        answer = await d.answer(d.ask(value))
        assert answer is not None
        await check(d, ["reduce"])
        d.drop(value)
        await check(d, ["del"])

    run(driver, kind, body)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("busy", [False, True])
def test_result_for_a_peer(driver, kind, size, busy, signals):
    began, go = signals(), signals()

    async def body(d):
        task_id = d.submit(user.make_spy, "a", size)
        await d.outcome(task_id)
        if busy:
            held = d.submit(user.touch_and_wait, began, go)
            await d.until(lambda: user.os.path.exists(began))
        request_id = d.ask(task_id)
        if busy:
            user.touch(go)
            await d.outcome(held)
        answer = await d.answer(request_id)
        assert answer is not None
        await check(d, ["use", "reduce"])
        d.drop(task_id)
        await check(d, ["del"])

    run(driver, kind, body)


def test_request(driver, kind):
    async def body(d):
        spy = user.Spy("a")
        blob = dumps_code((user.use, (spy,), {}))
        del spy
        user.LOG.clear()
        d.executor.send([user.run_request(99, blob)])
        await d.until(lambda: 99 in d.replies)
        await check(d, ["rebuild", "setstate", "use", "del"])

    run(driver, kind, body)


def test_values_of_a_named_executor_stay_on_its_thread(driver, kind):
    async def body(d):
        task_id = d.submit(user.make_spy, "a", 1, executor="gpu")
        await d.outcome(task_id)
        await d.answer(d.ask(task_id))
        d.drop(task_id)
        ident = await d.call(user.ident, executor="gpu")
        log = ast.literal_eval(await d.call(user.take_log))
        assert {step for step, _, _ in log} >= {"use", "reduce", "del"}
        assert {thread for _, _, thread in log} == {ident}

    run(driver, kind, body, executors={"gpu": 1})


def test_what_is_left_at_the_end_dies_on_the_thread(driver):
    async def main():
        async with driver("thread") as d:
            ident = await d.call(user.ident)
            await d.outcome(d.submit(user.make_spy, "last", 1))
            await d.call(user.take_log)
        assert [entry for entry in user.LOG if entry[0] == "del"] == [("del", "last", ident)]
        user.LOG.clear()

    asyncio.run(main())
