"""The driver on a project of a few lines in a repository of its own: real asv, real environments."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Sequence

import pytest

from asv_benchmarks.judge.__main__ import main
from asv_benchmarks.judge.driver import gate_patterns

pytest.importorskip("asv")
pytest.importorskip("virtualenv")

PROBE = "print('pure Python')"
STEPS = 60_000

#: Stands for a build whose compiler is missing: it would go on without, unless told that it must not.
NEEDS_A_COMPILER = """
import os
if os.environ.get("GNOMON_REQUIRE_COMPILED") == "1":
    raise SystemExit("there is no compiler")
"""

#: The times in many rounds, the counter in two.
GATE = """
import sys
if __name__ == "__main__":
    print({"times": "time_", "counters": "track_"}[sys.argv[1]])
"""

BENCHMARKS = """
import time

import tiny

class Work:
    warmup_time = 0.02
    sample_time = 0.02
    repeat = (3, 5, 1.0)
    timer = time.process_time

    def time_work(self):
        tiny.work()

    def time_other(self):
        tiny.other()

    def track_messages(self):
        return tiny.MESSAGES
"""


def source(steps: int, messages: int) -> str:
    return f"""
MESSAGES = {messages}

def work():
    total = 0
    for number in range({steps}):
        total += number
    return total

def other():
    return sorted(range(20000), key=lambda n: -n)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with a tag for each of its commits."""
    monkeypatch.setenv("HOME", str(tmp_path))  # asv keeps its machine file there
    repo = tmp_path / "tiny"
    (repo / "bench" / "benchmarks").mkdir(parents=True)
    (repo / "bench" / "benchmarks" / "__init__.py").touch()
    (repo / "bench" / "benchmarks" / "work.py").write_text(BENCHMARKS)
    (repo / "bench" / "benchmarks" / "gate.py").write_text(GATE)
    setup = "from setuptools import setup\nsetup(name='tiny', version='1', py_modules=['tiny'])\n"
    config = {
        "version": 1,
        "project": "tiny",
        "repo": "..",
        "branches": ["main"],
        "environment_type": "virtualenv",
        "benchmark_dir": "benchmarks",
        "build_command": ["python -m pip wheel -q --no-deps -w {build_cache_dir} {build_dir}"],
    }
    (repo / "bench" / "asv.conf.json").write_text(json.dumps(config))
    git = ["git", "-C", str(repo), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", "init", "-q", "-b", "main", str(repo)], check=True)
    for tag, module, build in (
        ("first", source(STEPS, 2) + "\n# the first\n", setup),
        ("base", source(STEPS, 2), setup),
        ("same", source(STEPS, 2) + "\n# a comment\n", setup),
        ("slow", source(STEPS * 2, 2), setup),
        ("chatty", source(STEPS, 3), setup),
        ("failing", source(STEPS, 2) + "\nraise ImportError('planted')\n", setup),
        ("raising", source(STEPS, 2).replace("total = 0", "raise RuntimeError('planted')"), setup),
        ("unbuildable", source(STEPS, 2), "raise SystemExit('planted')"),
        ("compiled", source(STEPS, 2), NEEDS_A_COMPILER + setup),
    ):
        (repo / "tiny.py").write_text(module)
        (repo / "setup.py").write_text(build)
        subprocess.run([*git, "add", "tiny.py", "setup.py", "bench"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", tag], check=True)
        subprocess.run([*git, "tag", tag], check=True)
    return repo / "bench"


def compare(
    project, head: str, *, base: str = "base", rounds: int = 5, confirm: int = 6, more: Sequence[str] = ()
) -> int:
    arguments = ["compare", base, head, "--config", str(project / "asv.conf.json"), "--probe", PROBE]
    arguments += ["--folder", str(project / "rounds"), "--rounds", str(rounds), "--confirm", str(confirm)]
    return main([*arguments, *more])


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_slowdown_is_confirmed_and_named(project, capfd):
    assert compare(project, "slow") == 1
    slower = capfd.readouterr().out.partition("### Slower")[2].partition("###")[0]
    assert "`work.Work.time_work`" in slower
    assert "`work.Work.time_other`" not in slower


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_one_more_message_is_seen_and_its_commit_found(project, capfd):
    assert compare(project, "chatty", rounds=4, confirm=0, more=["--bisect"]) == 1
    out = capfd.readouterr().out
    assert "`work.Work.track_messages` | 2 " in out
    assert re.search(r"`work\.Work\.track_messages` became slower with \w+ <chatty>", out)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_counters_have_settled_is_not_measured_in_time(project, capfd):
    assert compare(project, "chatty", rounds=4, confirm=0, more=["--settle", "--no-diff"]) == 1
    assert "`work.Work.track_messages` | 2 " in capfd.readouterr().out
    assert sorted(folder.name for folder in (project / "rounds").iterdir() if folder.is_dir()) == ["count"]
    assert compare(project, "slow", rounds=4, confirm=0, more=["--settle", "--no-diff"]) != 0
    assert (project / "rounds" / "screen").is_dir(), "counters alone are no verdict where they are the same"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_fails_is_a_broken_environment(project, capfd):
    for head in ("failing", "raising", "unbuildable", "compiled", "no-such-tag"):
        assert compare(project, head, rounds=4, confirm=0) == 3, head
        assert "Broken environment" in capfd.readouterr().out


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_base_that_fails_is_a_broken_environment(project, capfd):
    for base in ("unbuildable", "raising", "no-such-tag"):
        assert compare(project, "same", base=base, rounds=4, confirm=0) == 3, base
        assert "Broken environment" in capfd.readouterr().out
    assert compare(project, "compiled", rounds=4, confirm=0, more=["--pure"]) != 3  # no compiler is asked for


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_builds_of_different_kinds_are_a_broken_environment(project, capfd):
    """A head that was built another way than its base is no slower, and no faster: it is another thing."""
    probe = "import inspect, tiny; print('comment' if '# a comment' in inspect.getsource(tiny) else 'plain')"
    assert compare(project, "same", rounds=4, confirm=0, more=["--probe", probe]) == 3
    assert "different builds" in capfd.readouterr().out


def test_gate_is_what_its_module_says(tmp_path):
    assert gate_patterns(tmp_path, "times") == []
    (tmp_path / "gate.py").write_text("import sys; print('^core', *sys.argv[1:])")
    assert gate_patterns(tmp_path, "times") == ["^core times"]
    assert gate_patterns(tmp_path, "counters") == ["^core counters"]
