"""Birth, rebirth and end of executors; processes that die with those they belong to."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap

import executor_light_code as light
import executor_user_code as user
import psutil
import pytest

from gnomon.runtime.protocol import Ref
from gnomon.runtime.worker.executor import process
from gnomon.runtime.worker.executor.death import describe_exit


def run(coroutine):
    return asyncio.run(coroutine)


def threads_of(pid):
    return len(os.listdir(f"/proc/{pid}/task"))


def test_child_starts_light(driver):
    async def main():
        async with driver("process") as d:
            task_id = d.submit(light.modules)
            await d.outcome(task_id)
            heavy = {
                "asyncio",
                "ssl",
                "tornado",
                "numpy",
                "cloudpickle",
                "msgpack.fallback",
                "psutil",
                "uvloop",
            }
            assert heavy & set(await d.value(task_id)) == set()

    run(main())


def test_configuration_goes_through_the_link(driver, tmp_path):
    async def main():
        secret = "very-secret"
        async with driver(
            "process",
            environment={"SOME_VARIABLE": secret, "MKL_NUM_THREADS": "3"},
            directory=str(tmp_path),
            scheduler="tls://somewhere:1",
            security={"key": secret},
        ) as d:
            assert await d.call(user.variable, "SOME_VARIABLE") == secret
            assert await d.call(user.variable, "MKL_NUM_THREADS") == "3"
            assert await d.call(user.variable, "OMP_NUM_THREADS") == os.environ.get("OMP_NUM_THREADS", "1")
            assert await d.call(user.variable, "PYTHONHASHSEED") == os.environ.get("PYTHONHASHSEED", "6640")
            assert await d.call(user.where) == str(tmp_path)
            assert secret in await d.call(user.which_cluster)
            child = psutil.Process(d.executor.pid)
            assert secret not in " ".join(child.cmdline())

    run(main())


def test_ctrl_c_is_the_agents_business(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver("process") as d:
            task_id = d.submit(user.touch_and_wait, began, go)
            await d.until(lambda: os.path.exists(began))
            os.kill(d.executor.pid, signal.SIGINT)
            user.touch(go)
            await d.outcome(task_id)
            assert await d.call(user.sigint_of_a_child) == "True"
            assert not d.losses

    run(main())


def test_close_lets_running_tasks_end_and_forgets_queued_ones(driver, kind, signals):
    began, go = signals(), signals()

    async def main():
        async with driver(kind) as d:
            held, queued = d.run([d.row(user.touch_and_wait, began, go), d.row(user.add, 1)])
            await d.until(lambda: os.path.exists(began))
            before = threads_of(d.executor.pid)
            closing = asyncio.create_task(d.executor.close(20.0))
            await asyncio.sleep(0)
            if kind == "process":  # a child that was told to leave has a thread more, which watches the link
                await d.until(lambda: threads_of(d.executor.pid) > before)
            user.touch(go)
            await closing
            await d.executor.close(1.0)
            assert held in d.finished
            assert queued not in d.finished
            d.submit(user.add, 2)  # dropped
            assert not d.losses

    run(main())


@pytest.mark.parametrize("how", ["python", "gil"])
def test_close_ends_a_child_that_goes_on(driver, signals, how):
    began = signals()

    async def main():
        async with driver("process") as d:
            if how == "python":
                d.submit(user.touch_and_wait, began, "never")
            else:
                d.submit(user.hold_gil, began, 60)
            await d.until(lambda: os.path.exists(began))
            pid = d.executor.pid
            await d.executor.close(0.05)
            assert d.executor.pid == 0
            assert not psutil.pid_exists(pid)
            assert not d.losses

    run(main())


def test_close_of_threads_leaves_those_that_go_on(driver, signals, caplog):
    began, go = signals(), signals()

    async def main():
        async with driver("thread") as d:
            d.submit(user.touch_and_wait, began, go)
            await d.until(lambda: os.path.exists(began))
            await d.executor.close(0.01)
            user.touch(go)

    run(main())
    assert "tasks still run" in caplog.text


def test_close_before_ready(driver):
    async def main():
        d = driver("process")
        await d.executor.start()
        await d.executor.close(1.0)
        assert d.executor.pid == 0
        assert not d.losses

    run(main())


def test_children_that_never_get_ready(driver, monkeypatch, caplog, tmp_path):
    monkeypatch.setattr(process, "_BACKOFF", (0.0, 0.01))

    async def main():
        d = driver("process", directory=str(tmp_path / "missing"))
        await d.executor.start()
        await d.until(lambda: d.failed)
        assert len(d.failed) == 1
        assert "exited with code 70" in d.failed[0].text
        assert d.executor.incarnation == process.MAX_FAILED_STARTS
        assert not d.losses
        await d.executor.close(1.0)

    run(main())
    assert "giving up" in caplog.text


def test_process_that_cannot_be_started(driver, monkeypatch, caplog):
    monkeypatch.setattr(process, "_BACKOFF", (0.0, 0.01))
    monkeypatch.setattr(process.sys, "executable", "/no/such/python")

    async def main():
        d = driver("process")
        await d.executor.start()
        await d.until(lambda: d.failed)
        assert "/no/such/python" in d.failed[0].text
        await d.executor.close(1.0)

    run(main())


def test_many_deaths_in_a_row(driver, caplog):
    async def main():
        async with driver("process") as d:
            for round_ in range(1, 11):
                task_id = d.submit(user.exit_with, 1)
                await d.until(lambda n=round_: len(d.losses) == n and d.ready == n + 1)
                assert d.losses[-1][0] == [(task_id, 1)]
            assert await d.call(user.add, 1) == 1

    run(main())


def test_death_without_a_run_is_followed_by_another_child(driver, caplog):
    async def main():
        async with driver("process") as d:
            os.kill(d.executor.pid, signal.SIGKILL)
            await d.until(lambda: d.losses and d.ready == 2)
            assert d.losses[0][0] == []

    run(main())


@pytest.fixture(scope="session")
def uvloop():
    """The module, after it has made the pipe for signals that it keeps for good."""
    module = pytest.importorskip("uvloop")
    module.new_event_loop().close()
    return module


def test_uvloop(driver, uvloop):
    async def main():
        async with driver("process") as d:
            assert await d.call(user.add, 1) == 1
            d.submit(user.exit_with, 1)
            await d.until(lambda: d.losses and d.ready == 2)
            assert await d.call(user.add, 2) == 2

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


AGENT = """
import asyncio, sys
sys.path.insert(0, {here!r})
import executor_light_code as light
import executor_user_code as user
from conftest import Driver

async def main():
    d = Driver("process")
    await d.executor.start()
    await d.until(lambda: d.ready)
    {task}
    print(d.executor.pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("what", ["idle", "python", "gil"])
def test_child_dies_with_its_agent(what, signals):
    began = signals()
    task = {
        "idle": "",
        "python": f"d.submit(user.touch_and_wait, {began!r}, 'never')",
        "gil": f"d.submit(user.hold_gil, {began!r}, 60)",
    }[what]
    code = textwrap.dedent(AGENT).format(here=os.path.dirname(__file__), task=task)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as agent:
        try:
            pid = int(agent.stdout.readline())
            if what != "idle":
                user.wait_for(began)
            child = psutil.Process(pid)
            assert child.is_running()
        finally:
            agent.kill()
        agent.wait()
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_descriptors_do_not_add_up(driver):
    async def main():
        async with driver("process") as d:
            before = await d.call(user.descriptors)
            for _ in range(3):
                ids = [d.put(b"x" * 2_000_000) for _ in range(10)]
                await d.call(user.use, *(Ref(i) for i in range(10)), deps=tuple(ids))
                for task_id in ids:
                    assert len(await d.value(task_id)) == 2_000_000
                d.drop(*ids)
            assert await d.call(user.descriptors) == before

    run(main())


def test_words_for_exits():
    assert describe_exit(1) == "exited with code 1"
    assert describe_exit(-signal.SIGKILL).startswith("was killed by SIGKILL (likely by the system")
    assert describe_exit(-signal.SIGKILL, "restart") == "was ended by its agent: restart"
    assert describe_exit(-63) == "was killed by signal 63"
