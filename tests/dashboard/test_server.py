"""The dashboard's process: it comes when somebody looks, goes with its cluster, and its death harms nobody."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from urllib.parse import urlsplit

import psutil
import pytest

from gnomon.runtime import Client, LocalCluster, Security, config
from gnomon.runtime.errors import AuthenticationError


def slow_double(x):
    time.sleep(0.01)
    return 2 * x


def summary(ask, link):
    return json.loads(ask(link, "/api/v1/summary.json").body)


def test_the_link_works_at_once_and_costs_nothing_before(ask):
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        assert cluster.dashboard_link == client.dashboard_link
        assert cluster.dashboard_link in repr(cluster)
        assert cluster.dashboard_link in repr(client)
        shown = cluster._repr_html_()
        assert f'href="{cluster.dashboard_link}"' in shown
        assert cluster._dashboard.pid is None  # nobody looked
        with Client(cluster.scheduler_address) as other:
            assert other.dashboard_link == cluster.dashboard_link
            assert other.dashboard_link in repr(other)
        client.gather(client.map(slow_double, range(10)))
        found = summary(ask, cluster.dashboard_link)
        assert found["workers"] == 1
        assert sum(row["done"] for row in found["progress"]) == 10 or found["tasks"]["memory"] == 0
        pid = cluster._dashboard.pid
        assert psutil.pid_exists(pid)
        command = " ".join(psutil.Process(pid).cmdline()) + " ".join(psutil.Process(pid).environ().values())
        assert urlsplit(cluster.dashboard_link).query.partition("=")[2] not in command
    assert not psutil.pid_exists(pid)


def test_killed_in_mid_run_it_comes_back_and_the_work_goes_on(ask, wait_until, caplog):
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        futures = client.map(slow_double, range(300))
        assert summary(ask, cluster.dashboard_link)["connected"]
        first = cluster._dashboard.pid
        os.kill(first, signal.SIGKILL)
        link = cluster.dashboard_link
        wait_until(lambda: not psutil.pid_exists(first), "the end of the process")
        assert client.gather(futures) == [2 * x for x in range(300)]
        after = summary(ask, link)
        assert cluster._dashboard.pid != first
        assert after["connected"]
        assert cluster.dashboard_link == link
        runs = json.loads(ask(link, "/api/v1/prefixes.json").body)["rows"]
        assert next(row for row in runs if row[0] == "slow_double")[8] == 300  # what it had not seen is there too


def test_nobody_is_told_of_a_port_that_is_taken_but_in_the_log(caplog):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with LocalCluster(n_workers=0, dashboard_address=f":{port}") as cluster:
            other = urlsplit(cluster.dashboard_link).port
            assert other not in (port, None)
    assert len([record for record in caplog.records if str(port) in record.getMessage()]) == 1


@pytest.mark.parametrize("address", [None, False, ""])
def test_no_dashboard_where_none_is_wanted(address):
    with LocalCluster(n_workers=0, dashboard_address=address) as cluster, Client(cluster) as client:
        assert cluster.dashboard_link == client.dashboard_link == ""
        assert "dashboard" not in repr(cluster)


def test_none_by_the_setting():
    with config.set({"dashboard.address": ""}), LocalCluster(n_workers=0) as cluster:
        assert cluster.dashboard_link == ""


def listening():
    """Where this process listens."""
    return {
        (each.laddr.ip, each.laddr.port)
        for each in psutil.Process().net_connections("tcp")
        if each.status == psutil.CONN_LISTEN
    }


@pytest.mark.parametrize("security", [None, Security(secret="a secret of this test")])
def test_a_cluster_within_one_process_has_one_too(ask, wait_until, security):
    before = listening()
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, security=security, dashboard_address=":0"
    ) as cluster, Client(cluster) as client:  # fmt: skip
        assert cluster.scheduler_address.startswith("inproc://")
        futures = client.map(slow_double, range(30))
        assert client.gather(futures) == [2 * x for x in range(30)]
        link = urlsplit(cluster.dashboard_link)
        assert listening() - before == {(link.hostname, link.port)}  # nothing else before somebody looks
        assert ask(cluster.dashboard_link).status == 200
        found = summary(ask, cluster.dashboard_link)
        assert found["connected"]
        assert found["tasks"]["memory"] == 30
        assert (found["workers"], found["threads"], found["clients"]) == (1, 2, 1)
        page = json.loads(ask(cluster.dashboard_link, "/api/v1/pages/summary.json").body)
        counters = next(panel for panel in page["panels"] if panel["name"] == "counters")
        assert {name: value for name, value, *_ in counters["items"]}["tasks"] == "30"
        opened = listening() - before - {(link.hostname, link.port)}
        assert [host for host, _ in opened] == ["127.0.0.1"]
        address = f"tcp://127.0.0.1:{opened.pop()[1]}"
        with pytest.raises(AuthenticationError):
            Client(address, security=Security(secret="another one than that"), timeout=20)
        pid = cluster._dashboard.pid
    assert not psutil.pid_exists(pid)
    wait_until(lambda: listening() == before, "the ports to be free")


def test_within_one_process_a_dead_one_comes_back(ask, wait_until):
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster:
        assert summary(ask, cluster.dashboard_link)["connected"]
        first = cluster._dashboard.pid
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(first), "the end of the process")
        assert summary(ask, cluster.dashboard_link)["clients"] == 0


@pytest.mark.parametrize("address", [":x", "8787:", ":70000", "http://:8787/status"])
def test_an_address_that_is_none_is_refused(address):
    with pytest.raises(ValueError, match="host:port"):
        LocalCluster(n_workers=0, dashboard_address=address)


def test_behind_tls(ask):
    with LocalCluster(n_workers=1, threads_per_worker=1, security=True, dashboard_address=":0") as cluster:
        assert cluster.scheduler_address.startswith("tls://")
        assert summary(ask, cluster.dashboard_link)["workers"] == 1


def test_the_prefix_and_the_link_of_a_proxy(ask):
    proxy = {
        "dashboard.prefix": "/g",
        "dashboard.link": "https://tools.example.org/{prefix}/",
        "dashboard.token": False,
    }
    with config.set(proxy), LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        assert cluster.dashboard_link == "https://tools.example.org/g/"


def test_an_asynchronous_client_knows_the_link(wait_until):
    import asyncio

    async def body(cluster):
        async with Client(cluster.scheduler_address, asynchronous=True) as client:
            for _ in range(1000):
                if client.dashboard_link:
                    return client.dashboard_link
                await asyncio.sleep(0.01)
            return None

    with LocalCluster(n_workers=0, dashboard_address=":0") as cluster:
        assert asyncio.run(body(cluster)) == cluster.dashboard_link


def test_the_token_can_be_chosen(ask, monkeypatch):
    monkeypatch.setenv("GNOMON_DASHBOARD_TOKEN", "0123456789abcdef-chosen")
    with LocalCluster(n_workers=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        assert cluster.dashboard_link.endswith("?token=0123456789abcdef-chosen")
        seen = client.run(lambda: __import__("os").environ.get("GNOMON_DASHBOARD_TOKEN"))
        assert set(seen.values()) == {None}  # tasks don't get it
    monkeypatch.setenv("GNOMON_DASHBOARD_TOKEN", "short")
    with pytest.raises(ValueError, match="GNOMON_DASHBOARD_TOKEN"):
        LocalCluster(n_workers=0, dashboard_address=":0")
