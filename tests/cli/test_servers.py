"""``gnomon scheduler`` and ``gnomon worker`` as real processes that do real work."""

from __future__ import annotations

import os
import signal
import socket

import psutil
import pytest
import trustme

from gnomon.runtime.client import Client
from gnomon.runtime.comm import Security


def inc(x):
    return x + 1


@pytest.fixture
def scheduler(gnomon):
    """A running scheduler on a free port, and its address."""
    command = gnomon("scheduler", "--port", 0, "--no-dashboard")
    return command, command.wait_for(r"Scheduler at (\S+)")[1]


@pytest.fixture
def certificates(tmp_path):
    """Options that name the files of a certificate, and the security of a client."""
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1", "localhost")
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    issued.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    issued.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    names = {"ca": str(tmp_path / "ca.pem"), "cert": str(tmp_path / "both.pem"), "key": str(tmp_path / "key.pem")}
    options = ["--tls-ca-file", names["ca"], "--tls-cert", names["cert"], "--tls-key", names["key"]]
    security = Security(
        require_encryption=True,
        tls_ca_file=names["ca"],
        tls_client_cert=names["cert"],
        tls_client_key=names["key"],
    )
    return options, security


def test_scheduler_and_worker(gnomon, scheduler, gone):
    command, address = scheduler
    worker = gnomon("worker", address, "--nthreads", 2, "--name", "sundial", "--resources", "GPU=2", "--no-dashboard")
    worker.wait_for("joined")
    with Client(address) as client:
        assert client.submit(inc, 1, resources={"GPU": 1}).result(timeout=30) == 2
        (row,) = client.scheduler_info()["workers"].values()
        assert (row["name"], row["nthreads"], dict(row["resources"])) == ("sundial", 2, {"GPU": 2})
    below = worker.descendants()
    assert len(below) == 1
    worker.interrupt()
    assert worker.finish()[0] == 0
    gone(below)
    command.interrupt()
    code, out, err = command.finish()
    assert (code, out) == (0, "")
    assert "Traceback" not in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_close_in_order(gnomon, scheduler, number):
    command, address = scheduler
    worker = gnomon("worker", address)
    worker.wait_for("joined")
    for each in (worker, command):
        each.process.send_signal(number)
        code, _, err = each.finish()
        assert code == 0, err
        assert f"Got {number.name}" in err
        assert "Traceback" not in err


def test_tasks_of_a_closed_worker_go_elsewhere(gnomon, scheduler):
    _, address = scheduler
    first = gnomon("worker", address, "--nthreads", 1)
    first.wait_for("joined")
    with Client(address) as client:
        futures = client.map(inc, range(100))
        client.gather(futures[:1])
        second = gnomon("worker", address, "--nthreads", 1)
        second.wait_for("joined")
        first.interrupt()
        assert first.finish()[0] == 0
        assert client.gather(futures) == list(range(1, 101))


def test_several_workers(gnomon, scheduler, gone):
    _, address = scheduler
    workers = gnomon("worker", address, "--nworkers", 3, "--nthreads", 1, "--name", "team")
    for _ in range(3):
        workers.wait_for("joined")
    with Client(address) as client:
        client.wait_for_workers(3, timeout=30)
        names = sorted(row["name"] for row in client.scheduler_info()["workers"].values())
        assert names == ["team-0", "team-1", "team-2"]
        assert client.gather(client.map(inc, range(50))) == list(range(1, 51))
        below = workers.descendants()
        assert len(below) == 6
        workers.interrupt()
        code, _, err = workers.finish()
        assert code == 0, err
    gone(below)


def test_nworkers_auto(gnomon, scheduler):
    _, address = scheduler
    workers = gnomon("worker", address, "--nworkers", "auto")
    workers.wait_for("joined")
    with Client(address) as client:
        client.wait_for_workers(1, timeout=30)


@pytest.mark.parametrize("count", [1, 2])
def test_killed_command_leaves_nothing(gnomon, scheduler, gone, count):
    _, address = scheduler
    workers = gnomon("worker", address, "--nworkers", count)
    for _ in range(count):
        workers.wait_for("joined")
    below = workers.descendants()
    assert below
    workers.process.kill()
    gone(below)


@pytest.mark.parametrize("count", [1, 2])
def test_workers_leave_when_the_scheduler_is_killed(gnomon, scheduler, gone, count):
    command, address = scheduler
    workers = gnomon("worker", address, "--nworkers", count)
    for _ in range(count):
        workers.wait_for("joined")
    below = workers.descendants()
    command.process.kill()
    workers.finish()
    gone(below)


def test_no_nanny(gnomon, scheduler):
    _, address = scheduler
    worker = gnomon("worker", address, "--no-nanny")
    worker.wait_for("joined")
    with Client(address) as client:
        assert client.submit(os.getpid).result(timeout=30) == worker.process.pid
    assert not worker.descendants()
    worker.interrupt()
    assert worker.finish()[0] == 0


def test_tls(gnomon, certificates):
    options, security = certificates
    scheduler = gnomon("scheduler", "--port", 0, *options)
    address = scheduler.wait_for(r"Scheduler at (tls://\S+)")[1]
    worker = gnomon("worker", address, *options)
    worker.wait_for("joined")
    with Client(address, security=security) as client:
        assert client.submit(inc, 1).result(timeout=30) == 2


def test_files(gnomon, tmp_path):
    files = {name: tmp_path / name for name in ("scheduler.json", "scheduler.pid", "worker.pid")}
    worker = gnomon("worker", "--scheduler-file", files["scheduler.json"], "--pid-file", files["worker.pid"])
    worker.wait_for("Waiting for the scheduler file")
    scheduler = gnomon(
        "scheduler", "--port", 0, "--scheduler-file", files["scheduler.json"], "--pid-file", files["scheduler.pid"]
    )
    worker.wait_for("joined")
    assert int(files["worker.pid"].read_text()) == worker.process.pid
    assert int(files["scheduler.pid"].read_text()) == scheduler.process.pid
    for each in (worker, scheduler):
        each.interrupt()
        assert each.finish()[0] == 0
    assert not list(tmp_path.iterdir())


def test_secret_file(gnomon, tmp_path):
    secret = "0123456789abcdef0123"
    path = tmp_path / "secret"
    path.write_text(secret)
    path.chmod(0o600)
    scheduler = gnomon("scheduler", "--port", 0, "--secret-file", path)
    address = scheduler.wait_for(r"Scheduler at (\S+)")[1]
    workers = gnomon("worker", address, "--secret-file", path, "--nworkers", 2)
    workers.wait_for("joined")
    stranger = gnomon("worker", address, "--death-timeout", "3s")
    assert stranger.finish()[0] == 1
    with Client(address, security=Security(secret=secret)) as client:
        assert client.submit(inc, 1).result(timeout=30) == 2
    for pid in (scheduler.process.pid, workers.process.pid, *workers.descendants()):
        process = psutil.Process(pid)
        assert not [text for text in (*process.cmdline(), *process.environ().values()) if secret in text]


def one_line_error(command, code=1):
    """The last line, of a command that ends with the code and without a traceback."""
    status, _, err = command.finish()
    assert status == code, err
    assert "Traceback" not in err
    last = err.splitlines()[-1]
    assert last.startswith("Error: ")
    return last


@pytest.mark.parametrize("count", [1, 2])
def test_no_scheduler_there(gnomon, count):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{holder.getsockname()[1]}"
        worker = gnomon("worker", address, "--death-timeout", "500ms", "--nworkers", count)
        assert address in one_line_error(worker)


def test_no_scheduler_file(gnomon, tmp_path):
    worker = gnomon("worker", "--scheduler-file", tmp_path / "none.json", "--death-timeout", "200ms")
    assert "none.json" in one_line_error(worker)


def test_nonsense_address(gnomon):
    assert "pigeon" in one_line_error(gnomon("worker", "pigeon://nowhere", "--death-timeout", "1s"))


def test_listening_to_everybody_is_refused(gnomon):
    line = one_line_error(gnomon("scheduler", "--host", "0.0.0.0", "--port", 0, env={"GNOMON_SECRET": ""}))
    assert "GNOMON_SECRET" in line or "secret" in line


def test_port_taken(gnomon):
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        assert str(port) in one_line_error(gnomon("scheduler", "--port", port))


def test_bad_setting_in_the_environment(gnomon):
    line = one_line_error(gnomon("scheduler", "--port", 0, env={"GNOMON_COMM__BACKEND": "pigeon"}))
    assert "GNOMON_COMM__BACKEND" in line


def test_name_taken(gnomon, scheduler):
    _, address = scheduler
    gnomon("worker", address, "--name", "same").wait_for("joined")
    assert "same" in one_line_error(gnomon("worker", address, "--name", "same", "--death-timeout", "5s"))


def test_idle_timeout(gnomon):
    scheduler = gnomon("scheduler", "--port", 0, "--idle-timeout", "100ms")
    assert scheduler.finish()[0] == 0


def test_second_signal_leaves_at_once(gnomon, scheduler, gone):
    _, address = scheduler
    worker = gnomon("worker", address)
    worker.wait_for("joined")
    below = worker.descendants()
    with Client(address) as client:
        running = client.submit(__import__("time").sleep, 600)
        worker.process.send_signal(signal.SIGINT)
        worker.wait_for("Got SIGINT")
        worker.process.send_signal(signal.SIGINT)
        assert worker.finish()[0] in (0, 128 + signal.SIGINT)
        del running
    gone(below)


def test_shutdown_by_a_client(gnomon, scheduler):
    command, address = scheduler
    worker = gnomon("worker", address)
    worker.wait_for("joined")
    Client(address).shutdown()
    for each in (worker, command):
        code, _, err = each.finish()
        assert code == 0, err
        assert "Traceback" not in err
