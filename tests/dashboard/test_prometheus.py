"""A real Prometheus scrapes a dashboard, set up as docs/dashboard.md says: all panels of the board show data."""

from __future__ import annotations

import json
import operator
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest

from gnomon.runtime import Client, LocalCluster

PROMETHEUS = shutil.which("prometheus")
DOCS = Path(__file__).resolve().parents[2] / "docs"

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="not installed (tests/install-debian.sh prometheus does)")


@pytest.fixture
def prometheus(tmp_path, wait_until):
    """Starts Prometheus for a dashboard's link; gives a function that evaluates an expression there."""
    started = []

    def start(link):
        parts = urlsplit(link)
        with socket.create_server(("127.0.0.1", 0)) as sock:
            port = sock.getsockname()[1]
        token = tmp_path / "token"
        token.write_text(parts.query.partition("=")[2])
        scraping = re.search(r"```yaml\n(scrape_configs:.*?)```", (DOCS / "dashboard.md").read_text(), re.DOTALL)[1]
        for documented, here in (("/etc/gnomon-dashboard-token", str(token)), ("127.0.0.1:8787", parts.netloc)):
            assert documented in scraping
            scraping = scraping.replace(documented, here)
        config = tmp_path / "prometheus.yml"
        config.write_text(f"global: {{scrape_interval: 1s}}\n{scraping}")
        command = [
            PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={tmp_path}/data",
            f"--web.listen-address=127.0.0.1:{port}",
        ]  # fmt: skip
        started.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

        def evaluate(expression):
            url = f"http://127.0.0.1:{port}/api/v1/query?query={quote(expression)}"
            try:
                with urllib.request.urlopen(url, timeout=30) as answer:
                    return json.load(answer)["data"]["result"]
            except (urllib.error.URLError, ConnectionError):  # not up yet
                return []

        wait_until(lambda: evaluate("up"), "Prometheus")
        return evaluate

    yield start
    for process in started:
        process.terminate()
        process.wait(30)


def test_every_panel_of_the_board_shows_data(prometheus, wait_until):
    board = json.loads((DOCS / "grafana" / "gnomon.json").read_text())
    asked = {
        target["expr"].replace("$__rate_interval", "10s") for panel in board["panels"] for target in panel["targets"]
    }
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        evaluate = prometheus(client.dashboard_link)

        def missing():
            """Work of all kinds, and the expressions that have no data: fetches between workers, tasks that fail."""
            parts = client.map(bytes, [500_000] * 4, pure=False, workers="0")
            client.gather(client.map(len, parts, pure=False, workers="1"))
            assert client.submit(operator.truediv, 1, 0, pure=False).exception()
            return {expression for expression in asked if not evaluate(expression)}

        wait_until(lambda: not missing(), "data for all panels")
        assert {row["metric"]["prefix"] for row in evaluate("gnomon_runs_total")} >= {"bytes", "len", "truediv"}
        (workers,) = evaluate("gnomon_scheduler_workers")
        assert workers["value"][1] == "2"
