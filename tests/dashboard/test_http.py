"""The dashboard's HTTP over real sockets: who gets in, what machines read, with and without Bokeh."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest

from gnomon.reports.dashboard.old_routes import OLD
from gnomon.reports.dashboard.server import Dashboard
from gnomon.reports.dashboard.tables import TABLES
from gnomon.runtime import Client, LocalCluster


class Running:
    """A dashboard on a loop of its own, in a thread."""

    def __init__(self, address, **options):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.dashboard = self.run(self._make(address, options))

    async def _make(self, address, options):
        dashboard = Dashboard(address, interval=0.05, **options)
        await dashboard.start()
        return dashboard

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    @property
    def link(self):
        return self.dashboard.link

    def close(self):
        self.run(self.dashboard.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


def double(x):
    return 2 * x


def fail(x):
    raise ValueError(f"<img src=x onerror=alert(1)> {x}")


@pytest.fixture(scope="module")
def cluster():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        done = client.map(double, range(100))
        client.gather(done)
        failed = client.submit(fail, 1, key="$$x$$<b>-1")
        assert failed.exception() is not None
        cluster.kept = done, failed
        yield cluster


@pytest.fixture
def running(cluster):
    """Starts dashboards."""
    started = []

    def start(address=None, **options):
        started.append(Running(address or cluster.scheduler_address, **options))
        return started[-1]

    yield start
    for each in started:
        each.close()


def test_the_link_opens_once_and_then_the_cookie_does(running, ask):
    link = running(bokeh=False).link
    query = "?" + urlsplit(link).query
    first = ask(link, "/plain" + query + "&prefix=a%26b", token=False)
    assert (first.status, first.headers["location"]) == (303, "/plain?prefix=a%26b")
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/" in cookie
    assert urlsplit(link).query.partition("=")[2] not in cookie
    headers = {"Cookie": cookie.partition(";")[0]}
    page = ask(link, "/plain", token=False, headers=headers)
    assert page.status == 200
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "frame-ancestors 'self'" in page.headers["content-security-policy"]
    assert ask(link, "/plain", token=False).status == 401
    assert ask(link, "/plain?token=wrong", token=False).status == 401


def test_the_token_never_redirects_to_another_site(running, ask):
    link = running(bokeh=False).link
    answer = ask(link, "//evil.example/?" + urlsplit(link).query, token=False)
    assert not answer.headers.get("location", "/x").startswith("//")


@pytest.mark.parametrize(
    "path", ["/plain", "/api/v1/summary.json", "/metrics", "/static/js/bokeh.min.js", "/no/such", "/"]
)
def test_strangers_are_refused_everywhere(running, ask, path):
    link = running().link
    assert ask(link, path, token=False).status == 401
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert ask(link, path, headers=headers).status == 403
    assert ask(link, path, method="POST").status == 405
    if path.endswith(".json"):
        assert "error" in json.loads(ask(link, path, token=False).body)


def test_health_tells_strangers_nothing_of_the_cluster(running, ask):
    answer = ask(running(bokeh=False).link, "/health", token=False)
    assert set(json.loads(answer.body)) == {"status", "connected"}


def websocket(link, path, **headers):
    """The status of an answer to the opening of a websocket."""
    parts = urlsplit(link)
    lines = [
        f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Upgrade: websocket", "Connection: Upgrade",
        "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]  # fmt: skip
    with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock:
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        return int(sock.makefile("rb").readline().split()[1])


def test_websockets_of_other_sites_are_refused(running):
    link = running(bokeh=False).link
    bearer = f"Bearer {urlsplit(link).query.partition('=')[2]}"
    ours = f"http://{urlsplit(link).netloc}"
    assert websocket(link, "/charts/x/ws", Origin=ours) == 401
    assert websocket(link, "/charts/x/ws", Authorization=bearer) == 403
    assert websocket(link, "/charts/x/ws", Authorization=bearer, Origin="http://evil.example") == 403
    assert websocket(link, "/charts/x/ws", Authorization=bearer, Origin=ours) == 404  # in, and nothing there


@pytest.mark.parametrize("name", sorted(TABLES))
def test_tables_are_sorted_and_cut_by_the_server(running, ask, name):
    link = running(bokeh=False).link
    table = json.loads(ask(link, f"/api/v1/{name}.json?size=200").body)
    assert table["age"] is not None
    assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for at, column in enumerate(table["columns"]):
        down = json.loads(ask(link, f"/api/v1/{name}.json?sort={column['name']}&desc=1&size=200").body)
        known = [row[at] for row in down["rows"] if row[at] is not None]
        assert known == sorted(known, key=lambda v: v.lower() if isinstance(v, str) else v, reverse=True)
    if table["total"] > 1:
        two = json.loads(ask(link, f"/api/v1/{name}.json?size=1&page=2&sort={table['columns'][0]['name']}").body)
        assert (two["page"], two["size"], len(two["rows"])) == (2, 1, 1)


def test_what_the_tables_say(running, ask):
    link = running(bokeh=False).link

    def rows(path):
        table = json.loads(ask(link, path).body)
        return [dict(zip([c["name"] for c in table["columns"]], row, strict=True)) for row in table["rows"]]

    prefixes = {row["prefix"]: row for row in rows("/api/v1/prefixes.json")}
    assert (prefixes["double"]["runs"], prefixes["double"]["memory"]) == (100, 100)
    assert [row["threads"] for row in rows("/api/v1/workers.json")] == [1, 1]
    assert len(rows("/api/v1/runs.json?start=-3600&prefix=double&size=200")) == 100
    error = rows("/api/v1/errors.json?q=onerror")[0]
    assert (error["type"], error["count"]) == ("ValueError", 1)
    account = {row["part"]: row["seconds"] for row in rows("/api/v1/account.json?start=-3600")}
    capacity = account.pop("capacity")
    assert sum(account.values()) == pytest.approx(capacity)
    assert len(rows("/api/v1/tasks.json?state=erred")) == 1
    assert rows("/api/v1/tasks.json?state=memory&prefix=double&size=3")[0]["state"] == "memory"
    assert [event["kind"] for event in rows("/api/v1/events.json")].count("join") == 2
    graph = json.loads(ask(link, "/api/v1/graph.json?of=tasks").body)
    assert len(graph["nodes"]) == graph["total"] == 101


@pytest.mark.parametrize(
    "query",
    ["sort=nothing", "size=201", "size=0", "page=-1", "page=x", "start=now", "stop=inf", "bogus=1", "size=99999999999"],
)
def test_bad_queries_are_refused_in_words(running, ask, query):
    answer = ask(running(bokeh=False).link, f"/api/v1/workers.json?{query}")
    assert answer.status == 400
    assert query.partition("=")[0] in json.loads(answer.body)["error"]


def test_a_state_that_there_is_not(running, ask):
    answer = ask(running(bokeh=False).link, "/api/v1/tasks.json?state=asleep")
    assert answer.status == 400
    assert "asleep" in json.loads(answer.body)["error"]


def test_the_summary_counts_what_there_is(running, ask):
    summary = json.loads(ask(running(bokeh=False).link, "/api/v1/summary.json").body)
    assert (summary["tasks"]["memory"], summary["tasks"]["erred"]) == (100, 1)
    assert (summary["workers"], summary["threads"], summary["clients"], summary["errors_seen"]) == (2, 2, 1, 1)
    assert sum(summary["window"]["parts"].values()) == pytest.approx(summary["window"]["capacity"])


def test_old_addresses_lead_to_their_successors(running, ask):
    link = running(bokeh=False, prefix="/a/b/").link
    for path, to in (("/status", "/"), ("/info/main/workers.html", "/workers"), ("/individual-plots.json", "")):
        answer = ask(link, "/a/b" + path)
        assert answer.status == (301 if to else 200)
        assert answer.headers.get("location", "") == ("/a/b" + to if to else "")
    assert len(OLD) > 10


def test_everything_lies_under_the_prefix(running, ask):
    link = running(bokeh=False, prefix="a/b").link
    assert urlsplit(link).path == "/a/b/"
    assert ask(link, "/a/b/plain").body.count("/a/b/api/v1/summary.json") == 2
    assert ask(link, "/plain").status == 404
    first = ask(link, "/a/b/plain?" + urlsplit(link).query, token=False)
    assert first.headers["location"] == "/a/b/plain"
    assert "Path=/a/b" in first.headers["set-cookie"]


def test_head_has_no_body(running, ask):
    answer = ask(running(bokeh=False).link, "/api/v1/workers.json", method="HEAD")
    assert (answer.status, answer.body) == (200, "")


def test_no_token_where_none_is_wanted(running, ask):
    link = running(bokeh=False, token="").link
    assert "token" not in link
    assert ask(link, "/plain").status == 200
    assert ask(link, "/plain", headers={"Host": "evil.example"}).status == 403


def test_a_scheduler_that_is_not_there(running, ask):
    link = running("tcp://127.0.0.1:1", bokeh=False).link
    summary = json.loads(ask(link, "/api/v1/summary.json").body)
    assert (summary["connected"], summary["age"]) == (False, None)
    assert ask(link, "/api/v1/tasks.json").status == 503
    assert ask(link, "/api/v1/account.json").status == 200
    assert "gnomon_up 0.0" in ask(link, "/metrics").body


def test_a_view_too_many_is_told_so(running, ask, monkeypatch):
    server = running(bokeh=False)
    mounted = server.dashboard._mounted
    mounted.charts = frozenset(["/charts/a"])
    monkeypatch.setattr(mounted, "sessions", lambda: 20)
    for path in ("/charts/a", "/charts/a/", "/charts/a/autoload.js"):
        answer = ask(server.link, path)
        assert (answer.status, "20 views" in answer.body) == (503, True)
        assert "retry-after" in answer.headers
    assert ask(server.link, "/plain").status == 200
    assert ask(server.link, "/charts/a", token=False).status == 401
    monkeypatch.setattr(mounted, "sessions", lambda: 19)
    assert ask(server.link, "/charts/a").status == 404  # let through, and nothing is there


def test_it_is_not_reachable_from_outside(running):
    port = urlsplit(running(bokeh=False).link).port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing; tells which of our addresses would be used
        outside = probe.getsockname()[0]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((outside, port), timeout=5).close()


def test_it_works_where_bokeh_is_not_installed(cluster):
    """In a fresh interpreter that can't import it: all of it but the charts."""
    program = f"""
import asyncio, sys, urllib.request
class No:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("bokeh", "pandas"):
            raise ImportError(name)
sys.meta_path.insert(0, No())
import importlib.util
from gnomon.reports.dashboard import server, mounts
mounts.has_bokeh = server.has_bokeh = lambda: False
async def main():
    dashboard = server.Dashboard({cluster.scheduler_address!r})
    await dashboard.start()
    def read(path):
        headers = {{"Authorization": "Bearer " + dashboard.token}}
        asked = urllib.request.Request(dashboard.address + path, headers=headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return answer.status, answer.read()
    for path in ("/", "/plain", "/metrics", "/api/v1/summary.json", "/individual-plots.json"):
        status, body = await asyncio.to_thread(read, path)
        assert status == 200 and body, path
    assert b"gnomon_up 1.0" in (await asyncio.to_thread(read, "/metrics"))[1]
    await dashboard.close()
asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("bokeh")]
print("fine")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout.strip() == "fine", done.stderr
