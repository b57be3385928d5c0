"""A cluster from the top level of a script, ``python -c`` and a REPL, and what is left however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import psutil
import pytest

SCRIPT = """
import os, sys
from gnomon.runtime import Client, LocalCluster

print("once", flush=True)

def triple(x):
    return 3 * x

cluster = LocalCluster(n_workers=2, threads_per_worker=1)
client = Client(cluster)
print(client.gather(client.map(triple, range(4))), flush=True)
"""

CLOSE = "client.close(); cluster.close()\n"
WAIT = "import time\nprint('waiting', flush=True)\ntime.sleep(600)\n"


def start(arguments, **options):
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


def run(arguments, **options):
    with start(arguments, **options) as process:
        out, err = process.communicate(options.pop("input", None), timeout=60)
    return process.returncode, out, err


def script(tmp_path, text):
    path = tmp_path / "script.py"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("end", [CLOSE, ""], ids=["closed", "left open"])
def test_top_level_of_a_script_without_a_guard(tmp_path, end):
    code, out, err = run([script(tmp_path, SCRIPT + end)])
    assert (code, out, err) == (0, "once\n[0, 3, 6, 9]\n", "")


def test_python_c():
    code, out, err = run(["-c", SCRIPT + CLOSE])
    assert (code, out, err) == (0, "once\n[0, 3, 6, 9]\n", "")


def test_repl():
    lines = SCRIPT.replace("\n    return", " return") + CLOSE
    with start(["-i", "-q"], stdin=subprocess.PIPE) as process:
        out, err = process.communicate(lines, timeout=60)
    assert process.returncode == 0
    assert out == "once\n[0, 3, 6, 9]\n"
    assert "Traceback" not in err


def test_module_beside_the_script(tmp_path):
    (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    text = """
    from beside import double
    from gnomon.runtime import Client, LocalCluster
    with LocalCluster(1) as cluster, Client(cluster) as client:
        print(client.submit(double, 21).result())
    """
    code, out, err = run([script(tmp_path, textwrap.dedent(text))], cwd="/")
    assert (code, out, err) == (0, "42\n", "")


def test_in_process_cluster_left_open(tmp_path):
    text = SCRIPT.replace("n_workers=2", "processes=False, n_workers=2")
    code, out, err = run([script(tmp_path, text)])
    assert (code, out, err) == (0, "once\n[0, 3, 6, 9]\n", "")


@pytest.fixture
def running(tmp_path):
    """A script that computed something and now waits, the processes below it, and the folder of its temporary files."""
    # Not below tmp_path, which is too long for the sockets of a worker's folder.
    with (
        tempfile.TemporaryDirectory(prefix="g", dir="/tmp") as folder,
        start(
            [script(tmp_path, SCRIPT + WAIT)],
            env={**os.environ, "TMPDIR": folder},
            start_new_session=True,
        ) as process,
    ):
        temporary = Path(folder)
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[-1] == "waiting\n", process.stderr.read()
        yield process, [child.pid for child in psutil.Process(process.pid).children(recursive=True)], temporary
        process.kill()


def test_ctrl_c_closes_all(running, gone):
    process, pids, temporary = running
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")
    gone(pids, timeout=1)
    assert not list(temporary.iterdir())


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_killed_script_leaves_nothing(running, gone, wait_until, number):
    process, pids, temporary = running
    assert len(pids) == 5
    process.send_signal(number)
    process.wait(30)
    gone(pids, timeout=10)
    wait_until(lambda: not list(temporary.iterdir()), f"an empty folder: {list(temporary.iterdir())}")


@pytest.mark.parametrize("victim", range(5))
def test_any_killed_process_leaves_nothing(running, gone, victim):
    process, pids, temporary = running
    os.kill(pids[victim], signal.SIGKILL)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    gone(pids, timeout=10)
    assert not list(temporary.iterdir())
