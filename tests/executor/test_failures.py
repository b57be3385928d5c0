"""Whatever user code does wrong ends in an error of its own run; the next one works, and nothing is kept alive."""

import asyncio
import functools
import signal

import executor_user_code as user
import pytest

from gnomon.runtime.messages import RunTasks
from gnomon.runtime.protocol import Ref, RemoteError, decode_error


def run(coroutine):
    return asyncio.run(coroutine)


KINDS = [ValueError, MemoryError, BaseException, SystemExit, KeyboardInterrupt, GeneratorExit]


@pytest.mark.parametrize("exception", KINDS)
def test_raised_by_the_run(driver, kind, exception):
    async def main():
        async with driver(kind) as d:
            task_id = d.submit(user.raise_kind, exception, "mine")
            await d.until(lambda: task_id in d.errors)
            error = decode_error(d.errors[task_id])
            assert type(error) is exception
            assert error.args == ("mine",)
            assert "in raise_kind" in d.errors[task_id].text
            assert "running.py" not in d.errors[task_id].text
            times = d.timings[task_id]
            assert times == sorted(times)
            assert await d.call(user.add, 1) == 1

    run(main())


@pytest.mark.parametrize("exception", KINDS)
@pytest.mark.parametrize("where", ["argument", "dependency", "segment", "code"])
def test_raised_by_decoding(driver, kind, exception, where):
    async def main():
        async with driver(kind) as d:
            bad = user.NoUnpickle(exception)
            if where == "argument":
                task_id = d.submit(user.same, bad)
            elif where == "code":
                task_id = d.submit(functools.partial(user.same, bad))
            else:
                value = d.put(bad, "value" if where == "dependency" else "segment")
                task_id = d.submit(user.use, deps=(value,))
            await d.until(lambda: task_id in d.errors)
            record = d.errors[task_id]
            assert "no way in" in record.text
            assert "unpickled" in record.text
            assert type(decode_error(record)) is exception
            times = d.timings[task_id]
            assert times == sorted(times)
            assert await d.call(user.add, 1) == 1

    run(main())


def test_function_that_is_not_importable_here(driver):
    async def main():
        async with driver("process") as d:
            task_id = d.submit(b"cno_such_module\nfunction\n.")
            await d.until(lambda: task_id in d.errors)
            assert d.errors[task_id].type_name == "ModuleNotFoundError"
            assert "no_such_module" in d.errors[task_id].text

    run(main())


def test_raised_by_encoding(driver, kind):
    async def main():
        async with driver(kind) as d:
            task_id = d.submit(user.make_no_pickle)
            assert await d.outcome(task_id) is None  # fine, as long as nobody wants it
            assert await d.call(user.spy_result, Ref(0), deps=(task_id,)) == "NoPickle"
            request_id = d.ask(task_id)
            assert await d.answer(request_id) is None
            record = d.lost_values[request_id]
            assert "no way out" in record.text
            assert "pickled" in record.text
            assert await d.call(user.add, 1) == 1

    run(main())


def test_exception_that_cannot_be_read(driver, kind):
    async def main():
        async with driver(kind) as d:
            task_id = d.submit(user.raise_kind, user.Evil)
            await d.until(lambda: task_id in d.errors)
            assert d.errors[task_id].type_name == "executor_user_code.Evil"
            assert isinstance(decode_error(d.errors[task_id]), RemoteError)
            assert await d.call(user.add, 1) == 1

    run(main())


def test_errors_of_the_agent_are_errors_of_the_run(driver, kind):
    async def main():
        async with driver(kind) as d:
            code = d.code(user.add)
            d.executor.send(
                [RunTasks((1001, 1002), (1, 1), ("a", "b"), (code, 5555), (b"", b""), (0.0, 0.0), ((7777,), ()))]
            )
            with pytest.raises(LookupError, match=r"values .7777. are not in this executor"):
                await d.outcome(1001)
            with pytest.raises(LookupError, match="code 5555 is not in this executor"):
                await d.outcome(1002)

    run(main())


@pytest.mark.parametrize("fail", [user.fail_plain, user.fail_chained, user.fail_in_cycle, user.fail_group])
def test_locals_of_failed_runs_die(driver, kind, fail):
    async def main():
        async with driver(kind) as d:
            await d.call(user.no_gc)
            try:
                task_id = d.submit(fail, "tag")
                await d.until(lambda: task_id in d.errors)
                assert await d.call(user.alive, "tag") is False
            finally:
                await d.call(user.with_gc)

    run(main())


def test_nothing_keeps_values_alive(driver, kind):
    async def main():
        async with driver(kind) as d:
            await d.call(user.no_gc)
            try:
                kept = d.submit(user.return_big, "value")
                await d.outcome(kept)
                failed = d.submit(user.fail_plain, "argument", Ref(0), deps=(kept,))
                await d.until(lambda: failed in d.errors)
                assert await d.call(user.alive, "value") is True
                d.drop(kept)
                assert await d.call(user.alive, "value") is False
                stubborn = d.submit(user.make_fails_to_pickle, "stubborn")
                await d.outcome(stubborn)
                assert await d.answer(d.ask(stubborn)) is None
                assert await d.call(user.alive, "stubborn local") is False
                d.drop(stubborn)
                assert await d.call(user.alive, "stubborn") is False
            finally:
                await d.call(user.with_gc)

    run(main())


def test_exception_of_del_is_nobodys_death(driver):
    async def main():
        async with driver("process") as d:
            task_id = d.submit(user.make_bad_del)
            await d.outcome(task_id)
            d.drop(task_id)
            assert await d.call(user.take_kept) == "['from __del__']"

    run(main())


DEATHS = [
    (user.exit_with, (3,), "exited with code 3"),
    (user.exit_with, (0,), "exited with code 0"),
    (user.kill_self, (signal.SIGKILL,), r"SIGKILL \(likely by the system, for it was out of memory\)"),
    (user.kill_self, (signal.SIGTERM,), "SIGTERM"),
]


@pytest.mark.parametrize(("function", "args", "words"), DEATHS)
def test_death_of_the_child(driver, function, args, words, caplog):
    async def main():
        async with driver("process") as d:
            first = d.executor.pid
            done = d.submit(user.add, 1, expected=1e-5)
            fatal = d.submit(function, *args, attempt=7)
            behind = d.submit(user.add, 2)
            await d.until(lambda: d.losses and d.ready == 2)
            ((running, cause),) = d.losses
            assert running == [(fatal, 7)]
            assert d.finished[done] == 1
            assert behind not in d.finished
            assert cause.type_name == "gnomon.runtime.errors.WorkerLostError"
            with pytest.raises(Exception, match=f"executor process {first} .*{words}"):
                raise decode_error(cause)
            assert d.executor.pid != first
            assert d.executor.incarnation == 2
            assert await d.call(user.add, 3) == 3
        assert "while it ran 1 tasks" in caplog.text

    run(main())


def test_descriptors_that_were_not_the_users_to_close(driver, caplog):
    async def main():
        async with driver("process") as d:
            fatal = d.submit(user.close_all_descriptors)
            await d.until(lambda: d.losses and d.ready == 2)
            ((running, cause),) = d.losses
            assert (fatal, 1) in running
            assert "exited with code 70" in cause.text
            assert await d.call(user.add, 1) == 1

    run(main())


def test_segfault(driver, capfd, caplog):
    async def main():
        async with driver("process") as d:
            fatal = d.submit(user.segfault)
            await d.until(lambda: d.losses and d.ready == 2)
            ((running, cause),) = d.losses
            assert running == [(fatal, 1)]
            assert "SIGSEGV (a crash in compiled code)" in cause.text

    run(main())
    assert "in segfault" in capfd.readouterr().err


def test_deadly_argument_and_deadly_result_are_blamed_on_their_runs(driver, caplog):
    async def main():
        async with driver("process") as d:
            fatal = d.submit(user.same, user.Deadly())
            await d.until(lambda: d.losses and d.ready == 2)
            made = d.submit(user.make_deadly_to_pickle, attempt=5)
            await d.outcome(made)
            d.ask(made)
            await d.until(lambda: len(d.losses) == 2 and d.ready == 3)
            assert [running for running, _ in d.losses] == [[(fatal, 1)], [(made, 5)]]

    run(main())


def test_all_running_threads_are_named(driver, signals, caplog):
    paths = [signals() for _ in range(3)]

    async def main():
        async with driver("process", nthreads=3, executors={"more": 1}) as d:
            ids = d.run(
                [
                    d.row(user.touch_and_wait, paths[0], "never"),
                    d.row(user.secede_and_wait, paths[1], "never", attempt=2),
                    d.row(user.touch_and_wait, paths[2], "never", attempt=3, executor="more"),
                    d.row(user.add, 1),
                ]
            )
            await d.until(lambda: all(user.os.path.exists(p) for p in paths) and ids[3] in d.finished)
            d.executor.kill("a test wants it")
            await d.until(lambda: d.losses and d.ready == 2)
            ((running, cause),) = d.losses
            assert sorted(running) == [(ids[0], 1), (ids[1], 2), (ids[2], 3)]
            assert "was ended by its agent: a test wants it" in cause.text

    run(main())
