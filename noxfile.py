"""The project's chores, each in an environment of its own: ``nox`` runs lint, types and both test builds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.sessions = ["lint", "types", "tests"]
nox.options.reuse_existing_virtualenvs = True

PROJECT = nox.project.load_toml("pyproject.toml")
SOURCES = ("runtime", "profiler", "reports", "tests", "asv_benchmarks", "noxfile.py", "setup.py")


def group(name: str) -> list[str]:
    """The requirements of a dependency group."""
    return list(nox.project.dependency_groups(PROJECT, name))


def install_project(session: nox.Session, build: str) -> dict[str, str]:
    """Install the project compiled or pure; return the environment that insists on that build."""
    env = {"GNOMON_PURE": "1"} if build == "pure" else {"GNOMON_REQUIRE_COMPILED": "1"}
    session.install(".[dask,compression]", env=env)
    return env


#: Tests of code that has a compiled twin, and of whole clusters: what the pure build runs as well.
TWINS = ("core", "worker_state", "simulation", "profiler", "cluster", "architecture")


@nox.session
@nox.parametrize("build", ["compiled", "pure"])
def tests(session: nox.Session, build: str) -> None:
    """The test suite against the installed package: all of it compiled, what has a compiled twin interpreted too.

    Tests marked ``slow`` are left out; ``nox -s tests -- -m slow`` runs them.
    """
    env = install_project(session, build)
    session.install(*group("test"))
    session.run("tests/install-debian.sh", "chromium", "nginx", "prometheus", external=True)
    if session.posargs:
        session.run("pytest", *session.posargs, env=env)
        return
    # A process for each room, so that what one leaves behind (threads, loaded modules) is not the next one's business.
    for folder in sorted({path.parent.name for path in Path("tests").glob("*/test_*.py")}):
        if build == "compiled" or folder in TWINS:
            session.run("pytest", "-m", "not slow", f"tests/{folder}", env=env)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, names, imports, formatting, spelling."""
    session.install(*group("lint"))
    session.run("ruff", "check", *SOURCES)
    session.run("ruff", "format", "--check", *SOURCES)
    session.run("codespell", *SOURCES, "README.md", "CHANGELOG.md", "docs")


@nox.session
def types(session: nox.Session) -> None:
    """Strict types of all three packages and of the benchmarks' tools."""
    session.install(*group("types"), *PROJECT["project"]["dependencies"])
    session.run("mypy", "-p", "gnomon.runtime", "-p", "gnomon.profiler", "-p", "gnomon.reports")
    tools = ("-p", "judge", "-p", "peers", "-p", "pages")
    session.run("mypy", *tools, env={"MYPYPATH": ":".join(("asv_benchmarks", "runtime", "profiler", "reports"))})


@nox.session
def demo(session: nox.Session) -> None:
    """The demo on a local cluster; writes a report."""
    install_project(session, "compiled")
    session.run("gnomon", "demo", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Each benchmark once, quickly, in this environment."""
    install_project(session, "compiled")
    session.install("asv", "numpy")
    with session.chdir("asv_benchmarks"):
        session.run("asv", "machine", "--yes")
        options = ("--quick", "--show-stderr", "--python=same", "--launch-method", "forkserver")
        session.run("asv", "run", *options, *session.posargs)


def run_judge(session: nox.Session, *arguments: str) -> None:
    """Run the judge of benchmarks, and leave with its exit code: nox makes every failure a 1, the judge says more."""
    session.install("asv>=0.6.4", "virtualenv", "numpy")
    command = [str(Path(session.bin, "python")), "-m", "judge", *arguments]
    code = subprocess.run(command, cwd="asv_benchmarks", check=False).returncode
    if code:
        sys.exit(code)


@nox.session(name="bench-compare")
def bench_compare(session: nox.Session) -> None:
    """The gate's benchmarks of HEAD against a base: ``nox -s bench-compare -- BASE [HEAD] [options]``.

    Exit codes: 0 no regression, 1 regression, 2 no verdict (too noisy), 3 broken environment, 4 improvement.
    ``-- --help`` tells the options.
    """
    run_judge(session, "compare", *(session.posargs or ["main~1"]))


@nox.session(name="bench-campaign")
def bench_campaign(session: nox.Session) -> None:
    """How the judge was validated: commits that are the same, and planted slow-downs; see ``docs/benchmarks.md``."""
    run_judge(session, "campaign", *session.posargs)


@nox.session(name="bench-peers")
def bench_peers(session: nox.Session) -> None:
    """The same workloads on gnomon and its peers; regenerates a section and a plot of docs/performance.md."""
    env = install_project(session, "compiled")
    session.install("distributed", "loky")
    session.install("ray", success_codes=[0, 1])  # there is none for every Python and platform; the page says so then
    with session.chdir("asv_benchmarks"):
        session.run("python", "-m", "peers", *session.posargs, env=env)


@nox.session
def docs(session: nox.Session) -> None:
    """Check that every link between the documents leads somewhere and that generated diagrams are current."""
    env = install_project(session, "pure")
    session.install(*group("test"))
    session.run("pytest", "tests/architecture", env={**os.environ, **env})
