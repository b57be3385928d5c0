"""A server in a child process: how it starts, fails, is told to leave, and leaves by itself when the parent is gone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from gnomon.runtime import config
from gnomon.runtime.comm import Security
from gnomon.runtime.deploy.process import ChildProcess
from gnomon.runtime.errors import ClusterError

pytestmark = pytest.mark.usefixtures("stand_ins")


def ask_child(expression, **options):
    """What an expression evaluates to in a fresh child."""

    async def main():
        child = ChildProcess("stand_in_servers:Telltale", "the child")
        address = await child.start((), {"expression": expression, **options})
        await child.close("asked")
        assert child.returncode == 0
        return address

    return asyncio.run(main())


def test_starts_and_leaves():
    async def main():
        child = ChildProcess("stand_in_servers:Quiet", "the child")
        assert child.pid is None
        address = await child.start(("one",), {"two": 2})
        assert address == child.address == f"stand-in://{child.pid}"
        assert psutil.pid_exists(child.pid)
        await child.close("done")
        assert child.returncode == 0
        assert await child.wait_ended() == ""
        await child.close("again")

    asyncio.run(main())


def test_arguments_arrive():
    assert ask_child("options['n']", n=[1, (2, 3)]) == "[1, (2, 3)]"


def test_what_the_parent_can_import_the_child_can():
    assert ask_child("sys.path") == str(sys.path)
    assert ask_child("os.getcwd()") == os.getcwd()


def test_python_path_is_the_parents_own(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    assert ask_child("os.environ.get('PYTHONPATH')") == "/somewhere"
    monkeypatch.delenv("PYTHONPATH")
    assert ask_child("os.environ.get('PYTHONPATH')") == "None"


def test_main_is_not_imported_again():
    assert ask_child("sys.modules['__main__'].__spec__.name") == "gnomon.runtime.deploy.child"


def test_settings_arrive():
    with config.set({"comm.backend": "tornado"}):
        text = ask_child("__import__('gnomon.runtime.config', fromlist=['get']).get().comm.backend")
    assert text == "tornado"


def test_secret_travels_by_the_pipe_alone(monkeypatch):
    secret = "a secret of the tests 0123456789"
    monkeypatch.setenv("GNOMON_SECRET", secret)

    async def main():
        child = ChildProcess("stand_in_servers:Telltale", "the child")
        arrived = await child.start(
            (), {"expression": "options['security'].secret.value.decode()", "security": Security()}
        )
        process = psutil.Process(child.pid)
        seen = [*process.cmdline(), *process.environ().values()]
        await child.close("asked")
        return arrived, seen

    arrived, seen = asyncio.run(main())
    assert arrived == secret
    assert not [text for text in seen if secret in text]


def test_standard_input_is_not_the_control_socket():
    assert ask_child("os.readlink('/proc/self/fd/0')") == os.devnull


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("stand_in_servers:Refuses", ["not in the mood", "some last words"]),
        ("stand_in_servers:Dies", ["SIGKILL", "some last words"]),
        ("stand_in_servers:NoSuch", ["NoSuch"]),
        ("no_such_module_anywhere:X", ["no_such_module_anywhere"]),
    ],
)
def test_failure_to_start_says_why(target, words):
    async def main():
        child = ChildProcess(target, "the child")
        with pytest.raises(ClusterError) as caught:
            await child.start((), {})
        await child.close("failed")
        return str(caught.value)

    message = asyncio.run(main())
    assert message.startswith("the child could not start")
    for word in words:
        assert word in message


def test_option_that_cannot_be_pickled():
    async def main():
        child = ChildProcess("stand_in_servers:Quiet", "the child")
        try:
            with pytest.raises((TypeError, AttributeError), match="pickle"):
                await child.start((), {"lock": __import__("threading").Lock()})
        finally:
            await child.close("failed")

    asyncio.run(main())


def test_close_while_it_starts(gone):
    async def main():
        child = ChildProcess("stand_in_servers:SlowStart", "the child")
        starting = asyncio.ensure_future(child.start((), {}))
        while child.pid is None:
            await asyncio.sleep(0)
        await child.close("changed my mind")
        with pytest.raises(ClusterError):
            await starting
        return child.pid

    gone([asyncio.run(main())])


def test_close_before_start():
    async def main():
        await ChildProcess("stand_in_servers:Quiet", "the child").close("never mind")
        child = ChildProcess("stand_in_servers:Quiet", "the child")
        await child.prepare()
        await child.close("never mind")
        assert child.returncode is not None

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["asyncio", "uvloop"])
def test_close_of_a_child_that_has_hung_up(kind, tmp_path):
    """Its pipe is closed and it is not yet reaped: there is nothing to tell it, and no reason to fail."""
    factory = pytest.importorskip("uvloop").new_event_loop if kind == "uvloop" else asyncio.new_event_loop

    async def main():
        child = ChildProcess("stand_in_servers:HangsUp", "the child")
        await child.start((), {"until": str(tmp_path / "go")})
        while not child._running.writer.is_closing():
            await asyncio.sleep(0.01)
        closed = asyncio.ensure_future(child.close("done"))
        await asyncio.sleep(0)
        assert not closed.done()
        (tmp_path / "go").touch()
        await closed
        return child.returncode

    with asyncio.Runner(loop_factory=factory) as runner:
        assert runner.run(main()) == 0


def test_stubborn_child_is_killed_with_its_children_and_its_folder(gone, tmp_path):
    async def main():
        child = ChildProcess("stand_in_servers:Stubborn", "the child", grace=0.2)
        address = await child.start((), {"folder": str(tmp_path)})
        await child.close("now")
        return [int(part) for part in address.removeprefix("stand-in://").split("/")]

    gone(asyncio.run(main()))
    assert not list(tmp_path.iterdir())


def test_folder_of_a_killed_child_is_removed(tmp_path):
    async def main():
        child = ChildProcess("stand_in_servers:Stubborn", "the child")
        address = await child.start((), {"folder": str(tmp_path)})
        os.kill(child.pid, signal.SIGKILL)
        await child.wait_ended()
        os.kill(int(address.rpartition("/")[2]), signal.SIGKILL)

    asyncio.run(main())
    assert not list(tmp_path.iterdir())


def test_ctrl_c_is_the_parents_business():
    async def main():
        child = ChildProcess("stand_in_servers:Quiet", "the child")
        await child.start((), {})
        os.kill(child.pid, signal.SIGINT)
        assert os.getpgid(child.pid) != os.getpgid(0)
        await child.close("done")
        return child.returncode

    assert asyncio.run(main()) == 0


def test_terminate_closes_in_order():
    async def main():
        child = ChildProcess("stand_in_servers:Quiet", "the child")
        await child.start((), {})
        os.kill(child.pid, signal.SIGTERM)
        return await child.wait_ended(), child.returncode

    assert asyncio.run(main()) == ("", 0)


def test_death_is_told():
    async def main():
        child = ChildProcess("stand_in_servers:Quiet", "the child")
        await child.start((), {})
        os.kill(child.pid, signal.SIGKILL)
        return await child.wait_ended()

    assert "was killed by SIGKILL" in asyncio.run(main())


PARENT = """
    import asyncio, os, sys
    sys.path.insert(0, {folder!r})
    from gnomon.runtime.deploy.process import ChildProcess

    async def main():
        children = [ChildProcess("stand_in_servers:Quiet", str(i)) for i in range(2)]
        for child in children:
            await child.start((), {{}})
        {extra}
        print(*(child.pid for child in children), flush=True)
        await asyncio.sleep(600)

    asyncio.run(main())
"""


def run_parent(extra=""):
    """A process with two children, and their process ids."""
    code = textwrap.dedent(PARENT.format(folder=str(Path(__file__).parent / "stand_ins"), extra=extra))
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    return parent, [int(pid) for pid in parent.stdout.readline().split()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_children_leave_when_the_parent_dies(number, gone):
    parent, pids = run_parent()
    assert len(pids) == 2
    parent.send_signal(number)
    with parent:
        parent.wait(10)
    gone(pids, timeout=5)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs descriptors of processes")
def test_children_leave_although_a_fork_holds_their_pipes(gone):
    parent, pids = run_parent("os.fork() or __import__('time').sleep(60)")
    forked = [child.pid for child in psutil.Process(parent.pid).children() if child.pid not in pids]
    parent.kill()
    with parent:
        parent.wait(10)
        gone(pids, timeout=5)
        for pid in forked:
            os.kill(pid, signal.SIGKILL)


def test_one_that_is_given_up_while_it_is_spawned_leaves_nothing(wait_until):
    async def main():
        for turns in range(4):
            child = ChildProcess("stand_in_servers:Quiet", "the child")
            task = asyncio.create_task(child.prepare())
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
                await child.close("it was up by then")

    asyncio.run(main())
    wait_until(lambda: not psutil.Process().children(), "the end of the children")
