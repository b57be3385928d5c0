"""The dashboard behind nginx, under a prefix of a public host: as docs/dashboard.md says to set it up."""

from __future__ import annotations

import http.client
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from gnomon.runtime import LocalCluster

NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "dashboard.md"

pytestmark = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (tests/install-debian.sh does)")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return sock.getsockname()[1]


@pytest.fixture
def proxy(tmp_path, wait_until):
    """Starts nginx with the location of the documentation; gives its port."""
    started = []

    def start(dashboard_port):
        port = free_port()
        location = re.search(r"```nginx\n(.*?)```", DOCS.read_text(), re.DOTALL)[1]
        assert "127.0.0.1:8787" in location
        location = location.replace("127.0.0.1:8787", f"127.0.0.1:{dashboard_port}")
        config = tmp_path / "nginx.conf"
        config.write_text(
            f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; worker_processes 1;\n"
            "events {}\n"
            "http {\n"
            f"access_log off; client_body_temp_path {tmp_path}/a; proxy_temp_path {tmp_path}/b;\n"
            f"fastcgi_temp_path {tmp_path}/c; uwsgi_temp_path {tmp_path}/d; scgi_temp_path {tmp_path}/e;\n"
            f"server {{ listen 127.0.0.1:{port}; server_name tools.example.org;\n{location}\n}}\n}}\n"
        )
        process = subprocess.Popen([NGINX, "-c", str(config), "-p", str(tmp_path)], stderr=subprocess.DEVNULL)
        started.append(process)

        def answers():
            with socket.socket() as sock:
                return sock.connect_ex(("127.0.0.1", port)) == 0

        wait_until(answers, "nginx")
        return port

    yield start
    for process in started:
        children = psutil.Process(process.pid).children()
        process.terminate()
        process.wait(30)
        psutil.wait_procs(children, timeout=30)


@pytest.fixture
def dashboard(tmp_path, wait_until):
    """Starts ``gnomon dashboard`` as the documentation says; gives its port and the token."""
    started = []

    def start(address):
        command = [
            sys.executable, "-c", "from gnomon.runtime.cli import main; main()", "dashboard", address,
            "--address", ":0", "--prefix", "/gnomon", "--public-host", "tools.example.org",
        ]  # fmt: skip
        log = tmp_path / "log"
        with log.open("w") as file:
            started.append(subprocess.Popen(command, stderr=file))
        link = wait_until(lambda: re.search(r"Dashboard at (http://\S+token=\S+)", log.read_text()), "the dashboard")[1]
        parts = urlsplit(link)
        return parts.port, parts.query.partition("=")[2]

    yield start
    for process in started:
        process.terminate()
        assert process.wait(30) == 0


def ask(port, path, host="tools.example.org", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path, headers={"Host": host, **headers})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def test_behind_nginx_under_a_prefix(proxy, dashboard):
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None) as cluster:
        inner, token = dashboard(cluster.scheduler_address)
        port = proxy(inner)
        status, headers, _ = ask(port, f"/gnomon/plain?token={token}")
        assert (status, headers["Location"]) == (303, "/gnomon/plain")
        assert "Path=/gnomon" in headers["Set-Cookie"]
        cookie = headers["Set-Cookie"].partition(";")[0]
        status, _, body = ask(port, "/gnomon/plain", Cookie=cookie)
        assert status == 200
        assert '"/gnomon/api/v1/summary.json"' in body
        status, _, body = ask(port, "/gnomon/api/v1/summary.json", Cookie=cookie)
        assert status == 200
        assert '"workers":1' in body
        assert ask(port, "/gnomon/api/v1/summary.json")[0] == 401
        assert ask(port, "/gnomon/plain", host="evil.example", Cookie=cookie)[0] == 403
        assert ask(port, "/gnomon/static/js/bokeh.min.js", Cookie=cookie)[0] in (200, 307)  # Bokeh is there now
        opening = {
            "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Cookie": cookie,
            "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
        }  # fmt: skip
        assert ask(port, "/gnomon/no/such/ws", Origin="http://evil.example", **opening)[0] == 403
        assert ask(port, "/gnomon/no/such/ws", Origin="https://tools.example.org", **opening)[0] == 404
