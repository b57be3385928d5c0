"""``gnomon demo`` as a newcomer runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", "from gnomon.runtime.cli import main; main()", "demo", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=110,
    )


@pytest.mark.slow
def test_stdlib(tmp_path):
    done = run(cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "syntax nodes" in done.stdout
    assert "Name" in done.stdout
    assert "tasks/s" in done.stdout
    assert "Traceback" not in done.stderr
    report = tmp_path / "gnomon-report.html"
    assert report.exists()
    assert str(report) in done.stdout


@pytest.mark.slow
def test_shuffle(tmp_path):
    pytest.importorskip("dask.dataframe")
    report = tmp_path / "deep.html"
    done = run("--workload", "shuffle", "--partitions", "12", "--workers", "2", "--report", str(report), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "43,200 rows shuffled into 12 partitions" in done.stdout
    assert report.exists()


def test_shuffle_without_dask(tmp_path):
    code = (
        "import sys; sys.modules['dask'] = None\n"
        "from gnomon.runtime.cli import main\n"
        "main(['demo', '--workload', 'shuffle'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, timeout=60
    )
    assert done.returncode == 1
    assert done.stderr.strip() == "Error: the workload shuffle needs dask's data frames: pip install 'gnomon[dask]'"


def test_interrupt(gnomon, gone, tmp_path):
    demo = gnomon("demo", cwd=tmp_path, env={"COLUMNS": "100"})
    line = demo.process.stdout.readline()
    assert "workers at" in line
    below = demo.descendants()
    assert len(below) >= 3
    demo.interrupt()
    code, _, err = demo.finish()
    assert code == 130
    assert err.rstrip().endswith("Interrupted; the cluster is closed.")
    assert "Traceback" not in err
    gone(below)
