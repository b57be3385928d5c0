"""Where nothing can be compiled the project installs, and runs as plain Python; unless compiled code is required."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "setup.py"


@pytest.fixture
def project(tmp_path):
    """The project's build with one small module to be compiled."""
    pytest.importorskip("Cython")
    for root in ("runtime", "profiler", "reports"):
        (tmp_path / root / "gnomon" / "tiny").mkdir(parents=True)
    shutil.copy(SETUP, tmp_path)
    module = tmp_path / "runtime" / "gnomon" / "tiny" / "module.py"
    module.write_text("def twice(x):\n    return 2 * x\n")
    module.with_suffix(".pxd").write_text("cpdef twice(x)\n")
    return tmp_path


def build(project, **environment):
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("GNOMON_")}
    done = subprocess.run(command, cwd=project, env=plain | environment, capture_output=True, text=True, check=False)
    compiled = [*project.rglob("module*.so"), *project.rglob("module*.pyd")]
    return done.returncode, compiled, done.stderr


@pytest.mark.parametrize("compiler", ["false", "/nonexistent/cc"])
def test_without_a_compiler_modules_stay_plain_python(project, compiler):
    code, compiled, said = build(project, CC=compiler)
    assert (code, compiled) == (0, []), said
    assert 'building extension "gnomon.tiny.module" failed' in said


@pytest.mark.parametrize("compiler", ["false", "/nonexistent/cc"])
def test_required_modules_that_cannot_be_compiled_are_an_error(project, compiler):
    code, compiled, _ = build(project, CC=compiler, GNOMON_REQUIRE_COMPILED="1")
    assert code != 0
    assert compiled == []


def test_interpreted_on_demand(project):
    code, compiled, said = build(project, GNOMON_PURE="1")
    assert (code, compiled) == (0, []), said
