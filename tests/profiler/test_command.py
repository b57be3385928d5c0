"""``python -m gnomon.profiler`` beside plain ``python``: the program must not notice, and its time must be shown."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import zipfile

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="compares signals and paths")

MIRROR = """
import json, sys, pickle
def here(): return 1
spec = __spec__
print(json.dumps({
    "argv": sys.argv, "path0": sys.path[0], "rest": sorted(sys.path[1:]), "name": __name__, "file": __file__,
    "package": __package__, "doc": __doc__, "cached": __cached__, "spec": spec and [spec.name, spec.origin],
    "loader": type(__loader__).__name__, "builtins": type(__builtins__).__name__,
    "main": sys.modules["__main__"].__dict__ is globals(), "code": here.__code__.co_filename,
    "pickled": pickle.loads(pickle.dumps(here)) is here, "names": sorted(globals()),
    "annotations": globals().get("__annotations__"),
}))
"""

WORK = """
import time
def work(seconds):
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        sum(i * i for i in range(500))
"""

Finished = subprocess.CompletedProcess


@pytest.fixture
def folder(tmp_path):
    files = {
        "mirror.py": '"""Words."""' + MIRROR,
        "package/__init__.py": "",
        "package/__main__.py": MIRROR,
        "package/inner.py": "import package\n" + MIRROR,
        "bare/__init__.py": "",
        "broken.py": "def f(:\n",
        "folder/__main__.py": MIRROR,
        "empty/nothing.txt": "",
        "failing/__init__.py": "import no_such_module_here",
        "importing.py": "import no_such_module_here",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as archive:
        archive.writestr("__main__.py", MIRROR)
    return tmp_path


@pytest.fixture
def python(folder):
    def run(*arguments: str, code: str = "") -> Finished[str]:
        """Plain python."""
        if code:
            (folder / "script.py").write_text(code)
        return finished(folder, *arguments)

    return run


@pytest.fixture
def profiled(folder):
    def run(*arguments: str, code: str = "") -> Finished[str]:
        """The same under the profiler."""
        if code:
            (folder / "script.py").write_text(code)
        return finished(folder, "-m", "gnomon.profiler", *arguments)

    return run


def finished(folder, *arguments: str) -> Finished[str]:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )


def report(result: Finished[str]) -> str:
    """The part of standard error that is ours."""
    found = re.search(r"\n[\d.,]+ \S+ of .*\n[\d,]+ samples of ", result.stderr)
    assert found, result.stderr
    return result.stderr[found.start() :]


@pytest.mark.parametrize(
    "arguments",
    [
        ["mirror.py"], ["./mirror.py", "-o", "x", "-m", "--", "--busy"], ["-m", "mirror", "-i", "5"], ["-mmirror"],
        ["-m", "package", "a"], ["-m", "package.inner"], ["-m", "package.__main__"], ["folder", "b"], ["app.zip", "c"],
    ],
)  # fmt: skip
def test_the_program_sees_what_it_would_see(python, profiled, arguments):
    plain, ours = python(*arguments), profiled(*arguments)
    assert json.loads(ours.stdout) == json.loads(plain.stdout)
    assert ours.returncode == plain.returncode == 0
    assert plain.stderr == ""
    report(ours)


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit(7)",
        "import sys; sys.exit('sorry')",
        "raise SystemExit",
        "def f():\n    raise ValueError('no')\nf()",
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise KeyError from error",
        "import signal; raise KeyboardInterrupt",
        "import sys; sys.excepthook = lambda kind, error, tb: print(kind, tb.tb_frame.f_code.co_name)\nraise OSError",
        "import atexit; atexit.register(print, 'last words')",
        "import threading; threading.Thread(target=print, args=['from a thread']).start()",
        "import importing",
    ],
)
def test_the_program_ends_as_it_would_end(python, profiled, code):
    plain, ours = python("script.py", code=code), profiled("script.py", code=code)
    assert ours.returncode == plain.returncode
    assert ours.stdout == plain.stdout
    assert ours.stderr.startswith(plain.stderr)
    report(ours)


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.py"], ["broken.py"], ["empty"], ["-m", "nowhere"], ["-m", "package.nowhere"], ["-m", "bare"],
        ["-m", "nowhere.inner"], ["-m", "package.inner.leaf"], ["-m", "mirror.py"],
    ],
)  # fmt: skip
def test_what_cannot_start_says_so_as_it_would(python, profiled, arguments):
    plain, ours = python(*arguments), profiled(*arguments)
    assert ours.returncode == plain.returncode != 0
    assert ours.stderr == plain.stderr


def test_a_failing_parent_package_tells_its_own_error(python, profiled):
    plain, ours = python("-m", "failing.inner"), profiled("-m", "failing.inner")
    assert ours.returncode == plain.returncode == 1
    assert ours.stderr.splitlines()[-3:] == plain.stderr.splitlines()[-3:]


def test_byte_code_runs(python, profiled, folder):
    import py_compile

    (folder / "script.py").write_text("print('compiled')")
    py_compile.compile(str(folder / "script.py"), cfile=str(folder / "script.pyc"))
    assert profiled("script.pyc").stdout == python("script.pyc").stdout == "compiled\n"


def test_the_safe_path_is_left_alone(folder):
    for arguments in (["mirror.py"], ["-m", "json.tool", "--help"]):
        plain = finished(folder, "-P", *arguments)
        ours = finished(folder, "-P", "-m", "gnomon.profiler", *arguments)
        assert ours.returncode == plain.returncode == 0
        assert ours.stdout == plain.stdout


def test_child_processes_start_and_print_no_report(profiled):
    code = """
import multiprocessing, os
def square(n): return n * n
if __name__ == "__main__":
    for way in ("spawn", "fork"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            print(pool.map(square, [2, 3]))
    if os.fork() == 0:
        raise SystemExit
    os.wait()
"""
    result = profiled("script.py", code=code)
    assert result.stdout == "[4, 9]\n[4, 9]\n"
    assert result.stderr.count("samples of ") == 1


# --------------------------------------------------------------------------------------------------------------- result


def test_the_tree_starts_at_the_program(profiled):
    result = profiled("script.py", code=WORK + "def main():\n    work(0.6)\nmain()")
    lines = report(result).splitlines()
    assert " of script.py" in lines[1]
    start = next(number for number, line in enumerate(lines) if "MainThread" in line)
    names = [re.sub(r"^[ \d.%a-zµ]*[└├│─ ]+", "", line).split("  ")[0] for line in lines[start + 1 : start + 4]]
    assert names == ["<module>", "main", "work"]
    assert "gnomon" not in result.stderr
    assert "runpy" not in result.stderr


def test_threads_are_shown_until_they_end(profiled):
    code = WORK + "import threading\nthreading.Thread(target=work, args=[0.6], name='late').start()\n"
    assert "thread late of script.py" in report(profiled("script.py", code=code))
    only = report(profiled("--main-thread", "script.py", code=code))
    assert "late" not in only


def test_libraries_are_hidden_in_text_unless_asked_for(profiled):
    code = (
        "import json, time\nstop = time.monotonic() + 0.6\n"
        "while time.monotonic() < stop:\n    json.dumps(list(range(99)), indent=1)\n"
    )
    assert "JSONEncoder.encode" not in profiled("script.py", code=code).stderr
    assert "JSONEncoder.encode" in profiled("--all", "script.py", code=code).stderr


def test_waiting_can_be_left_out(profiled):
    code = "import threading\nthreading.Event().wait(0.5)\n"
    assert "wait" in report(profiled("script.py", code=code))
    assert "wait" not in report(profiled("--busy", "script.py", code=code))


def test_interrupted_it_shows_what_it_has(folder):
    (folder / "script.py").write_text(WORK + "print('ready', flush=True)\nwork(60)\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "gnomon.profiler", "script.py"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.count("KeyboardInterrupt") == 1
    assert "__main__.py" not in errors
    assert "samples of " in errors


@pytest.mark.parametrize(
    ("name", "start"),
    [("a.html", "<!DOCTYPE html>"), ("a.speedscope.json", '{"$schema"'), ("a.folded", "MainThread;"), ("a.txt", "")],
)
def test_the_file_name_chooses_the_format(profiled, folder, name, start):
    result = profiled("-o", name, "-i", "0.002", "script.py", code=WORK + "work(0.3)")
    assert result.stderr == f"profile written to {name}\n"
    assert (folder / name).read_text().startswith(start)


def test_the_format_can_be_given_and_go_to_standard_output(profiled, folder):
    result = profiled("--format=collapsed", "-o-", "script.py", code="print('own')\n" + WORK + "work(0.5)")
    own, *stacks = result.stdout.splitlines()
    assert own == "own"
    assert any(";work (script.py:" in line or "script.py" in line for line in stacks)
    assert result.stderr == ""


def test_a_saved_session_is_shown_and_converted(profiled):
    profiled("-o", "a.profile", "script.py", code=WORK + "work(0.3)")
    assert "work" in report(profiled("--load", "a.profile"))
    assert profiled("--load", "a.profile", "-o", "b.html").stderr == "profile written to b.html\n"
    refused = profiled("--load", "script.py")
    assert refused.returncode == 2
    assert "script.py: " in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say which script"),
        (["-o", "x.unknown", "script.py"], "no format is known for 'x.unknown'"),
        (["-o", "no/such/folder/x.html", "script.py"], "there is no folder"),
        (["-f", "session", "script.py"], "needs a file"),
        (["-f", "gif", "script.py"], "invalid choice"),
        (["-i", "0", "script.py"], "an interval of 0.0 s is not between"),
        (["--budget=2", "script.py"], "a budget of 2.0 of the CPU is not between"),
        (["--share", "2", "script.py"], "between 0 and 1"),
        (["--load", "a.profile", "script.py"], "runs no program"),
        (["-i"], "expected one argument"),
    ],
)
def test_wrong_options_are_refused_before_the_program_runs(profiled, arguments, complaint):
    result = profiled(*arguments, code="print('ran')")
    assert result.returncode == 2
    assert complaint in result.stderr
    assert "ran" not in result.stdout


def test_help_names_all_formats(profiled):
    text = profiled("--help").stdout
    assert "pyinstrument-html" in text
    assert ".speedscope.json" in text


def test_closed_and_replaced_streams_are_no_harm(profiled):
    code = "import sys, io\nsys.stdout = sys.stderr = io.StringIO()\nsys.__stdout__.close()\n" + WORK + "work(0.3)"
    result = profiled("script.py", code=code)
    assert result.returncode == 0
    report(result)
    closed = profiled("script.py", code="import sys\nsys.__stderr__.close()\nsys.stderr = None\n")
    assert closed.returncode == 0
    assert closed.stderr == ""
