"""Values of options: what is understood, and what is refused in one line with exit code 2."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from gnomon.runtime import config
from gnomon.runtime.cli import main
from gnomon.runtime.cli.options import RESOURCES, SECONDS, make_security


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("1.5", 1.5), ("500ms", 0.5), ("2m", 120), ("2 min", 120), ("1h", 3600), (3, 3)]
)
def test_seconds(text, seconds):
    assert SECONDS.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1", "5 parsecs"])
def test_no_seconds(text):
    with pytest.raises(click.BadParameter, match="duration"):
        SECONDS.convert(text, None, None)


def test_resources():
    assert RESOURCES.convert("GPU=2 MEM=1e9", None, None) == {"GPU": 2, "MEM": 1e9}
    assert RESOURCES.convert("a=0,b=.5", None, None) == {"a": 0, "b": 0.5}
    assert RESOURCES.convert("", None, None) == {}


@pytest.mark.parametrize("text", ["GPU", "GPU=", "=2", "GPU=two", "GPU=-1", "GPU=inf", "GPU=nan", "GPU = 2"])
def test_no_resources(text):
    with pytest.raises(click.BadParameter, match="resource"):
        RESOURCES.convert(text, None, None)


WORKER = ("worker", "tcp://127.0.0.1:1")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("scheduler", "--port", "99999"), "99999"),
        (("scheduler", "--port", "http"), "http"),
        (("scheduler", "--protocol", "pigeon"), "pigeon"),
        (("scheduler", "--interface", "nonsense0"), "lo"),
        (("scheduler", "--interface", "lo", "--host", "127.0.0.1"), "not both"),
        (("scheduler", "--idle-timeout", "never"), "never"),
        (("scheduler", "--tls-ca-file", __file__), "--tls-cert"),
        (("scheduler", "--protocol", "tls"), "--tls-ca-file"),
        (("scheduler", "--tls-key", "/no/such/file"), "/no/such/file"),
        (("scheduler", "surplus"), "surplus"),
        (("worker",), "scheduler"),
        ((*WORKER, "--scheduler-file", "x"), "scheduler"),
        ((*WORKER, "--nworkers", "0"), "auto"),
        ((*WORKER, "--nworkers", "some"), "auto"),
        ((*WORKER, "--nworkers", "2", "--port", "5000"), "share"),
        ((*WORKER, "--nthreads", "0"), "0"),
        ((*WORKER, "--resources", "GPU"), "GPU=2"),
        ((*WORKER, "--dashboard"), "--no-dashboard"),
        (("demo", "--workload", "sleep"), "stdlib"),
        (("demo", "--workers", "0"), "0"),
    ],
)
def test_bad_input_is_exit_code_2(arguments, word):
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert word in result.output.splitlines()[-1]


def test_environment_gives_defaults():
    result = CliRunner().invoke(main, ["scheduler"], env={"GNOMON_SCHEDULER_PORT": "http"})
    assert result.exit_code == 2
    assert "http" in result.output


def test_secret_file(tmp_path):
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef0123\n")
    path.chmod(0o600)
    with config.set({"security.secret_file": ""}):
        security = make_security("scheduler", None, None, None, None, str(path))
        assert security.secret.value == b"0123456789abcdef0123"
        assert security.has_explicit_secret


def test_open_secret_file_is_refused(tmp_path):
    path = tmp_path / "secret"
    path.write_text("0123456789abcdef0123\n")
    path.chmod(0o644)
    with config.set({"security.secret_file": ""}), pytest.raises(click.ClickException, match="chmod 600"):
        make_security("scheduler", None, None, None, None, str(path))
