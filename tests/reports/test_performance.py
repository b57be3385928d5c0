"""``performance_report``: where it finds the code, both faces, and what it does when something goes wrong."""

from __future__ import annotations

import asyncio
import linecache
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gnomon.reports import Recording, load, performance_report


class AsynchronousClient:
    asynchronous = True

    def __init__(self, cluster):
        self._cluster = cluster

    async def request(self, method, **arguments):
        await asyncio.sleep(0)
        return self._cluster.request(method, **arguments)


def test_writes_a_page_with_the_calling_code(cluster, tmp_path):
    w = cluster.worker("w")
    with performance_report(tmp_path / "r.html", client=cluster) as report:
        cluster.run("inside-1", w, 0.1, 0.2)  # a mark in the code
        cluster.now = 1.0
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "a mark in the code" in page
    assert report.recording is not None
    assert report.recording.runs.keys == ["inside-1"]
    code = report.recording.info["calling_code"]
    assert code["text"].splitlines()[code["line"] - code["first"]].strip().startswith("with performance_report")


def test_asynchronous(cluster, tmp_path):
    w = cluster.worker("w")

    async def main():
        async with performance_report(tmp_path / "r.html", client=AsynchronousClient(cluster)) as report:
            cluster.run("inside-1", w, 0.1, 0.2)
            cluster.now = 1.0
        return report

    report = asyncio.run(main())
    assert report.recording.runs.keys == ["inside-1"]
    assert "async with performance_report" in report.recording.info["calling_code"]["text"]
    assert load(tmp_path / "r.html") == report.recording


def test_with_on_an_asynchronous_client_says_what_to_do(cluster):
    with pytest.raises(TypeError, match="async with"):
        performance_report(client=AsynchronousClient(cluster)).__enter__()


def test_stacklevel(cluster, tmp_path):
    def helper():
        with performance_report(tmp_path / "r.html", stacklevel=2, client=cluster) as report:
            pass
        return report

    report = helper()  # the caller's caller
    code = report.recording.info["calling_code"]
    assert code["text"].splitlines()[code["line"] - code["first"]].strip() == "report = helper()  # the caller's caller"


def test_a_block_that_raises_is_reported_and_raises(cluster, tmp_path):
    with pytest.raises(ZeroDivisionError), performance_report(tmp_path / "r.html", client=cluster):
        _ = 1 / 0
    assert "The block raised: ZeroDivisionError: division by zero" in (tmp_path / "r.html").read_text("utf-8")


def test_a_report_that_fails_does_not_mask_the_block(cluster, tmp_path):
    with (
        pytest.warns(RuntimeWarning, match="was not written"),
        pytest.raises(ZeroDivisionError),
        performance_report(tmp_path / "no" / "such" / "folder.html", client=cluster),
    ):
        _ = 1 / 0


def test_a_report_that_fails_says_so(cluster, tmp_path):
    with pytest.raises(OSError, match="folder"), performance_report(tmp_path / "no" / "folder.html", client=cluster):
        pass


def test_a_recording_alone(cluster, tmp_path):
    with performance_report(tmp_path / "r.gnomon", client=cluster) as report:
        pass
    assert Recording.loads((tmp_path / "r.gnomon").read_bytes()) == report.recording


def test_a_recording_beside_the_page(cluster, tmp_path):
    with performance_report(tmp_path / "r.html", client=cluster, save_recording=True) as report:
        pass
    assert load(tmp_path / "r.html") == load(tmp_path / "r.gnomon") == report.recording


def test_other_modes_are_refused():
    with pytest.raises(ValueError, match="offline"):
        performance_report(mode="cdn")
    performance_report(mode="inline")


def run_python(*arguments, stdin="", path=""):
    root = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [path, root]))}
    result = subprocess.run(
        [sys.executable, *arguments], input=stdin, capture_output=True, text=True, timeout=60, check=False,
        env=environment,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return result.stdout


PROGRAM = textwrap.dedent("""
    import sys
    from gnomon.reports.collect.calling_code import calling_code
    def work():
        return calling_code(sys._getframe())  # in a function
    inside, outside = work(), calling_code(sys._getframe())
    for code in (inside, outside):
        lines = code.text.splitlines()
        print(repr(lines[code.line - code.first].strip() if lines else code.note))
""")


def test_calling_code_of_a_script(tmp_path):
    (tmp_path / "script.py").write_text(PROGRAM)
    assert run_python(str(tmp_path / "script.py")).splitlines() == [
        "'return calling_code(sys._getframe())  # in a function'",
        "'inside, outside = work(), calling_code(sys._getframe())'",
    ]


def test_calling_code_of_a_command():
    assert run_python("-c", PROGRAM).splitlines() == [
        "'return calling_code(sys._getframe())  # in a function'",
        "'inside, outside = work(), calling_code(sys._getframe())'",
    ]


def test_calling_code_of_exec_and_stdin():
    outer = f"exec({PROGRAM!r}, {{'__name__': 'elsewhere'}})"
    for output in (run_python("-c", outer), run_python("-", stdin=outer)):
        assert output.count("The calling code is not known") == 2


REPORTED = textwrap.dedent("""
    from tests.reports.conftest import FakeCluster
    from gnomon.reports import performance_report

    cluster = FakeCluster()
    w = cluster.worker("w")
    with performance_report(FILE, client=cluster) as report:
        cluster.run("inside-1", w, 0.1, 0.2)

""")


@pytest.mark.parametrize("way", ["script", "command", "exec", "stdin", "interactive", "module"])
def test_reports_are_written_wherever_code_runs(tmp_path, way):
    program = f"FILE = {str(tmp_path / 'r.html')!r}\n{REPORTED}"
    (tmp_path / "program.py").write_text(program)
    if way == "script":
        run_python(str(tmp_path / "program.py"), path=str(tmp_path))
    elif way == "module":
        run_python("-m", "program", path=str(tmp_path))
    elif way == "interactive":
        run_python("-i", "-q", stdin=program)
    elif way == "stdin":
        run_python("-", stdin=program)
    else:
        run_python("-c", program if way == "command" else f"exec({program!r})")
    recording = load(tmp_path / "r.html")
    assert recording.runs.keys == ["inside-1"]
    code = recording.info["calling_code"]
    if way in ("script", "command", "module"):
        assert code["text"].splitlines()[code["line"] - code["first"]].startswith("with performance_report(")
    else:
        assert code["text"] or code["note"]


def test_a_cell_of_a_notebook_is_found(cluster, tmp_path):
    """Notebooks keep the source of a cell where tracebacks look for it."""
    cell = "with performance_report(FILE, client=cluster) as report:  # in a cell\n    pass\n"
    name = "/tmp/ipykernel_7/1234567.py"
    linecache.cache[name] = (len(cell), None, cell.splitlines(keepends=True), name)
    names = {"performance_report": performance_report, "FILE": tmp_path / "r.html", "cluster": cluster}
    try:
        exec(compile(cell, name, "exec"), {"__name__": "__main__", **names})
    finally:
        del linecache.cache[name]
    assert "# in a cell" in load(tmp_path / "r.html").info["calling_code"]["text"]
