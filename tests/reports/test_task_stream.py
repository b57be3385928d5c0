"""The task stream alone: as a figure, and as a page that needs no network."""

from __future__ import annotations

import asyncio
import re

import pytest

from gnomon.reports.task_stream import draw
from gnomon.runtime import Client, LocalCluster, get_task_stream
from gnomon.runtime.client.plots import check_plot


def row(key, worker, start, stop, *, thread=0, status="OK"):
    return {"key": key, "prefix": key.partition("-")[0], "worker": worker, "thread": thread, "status": status,
            "nbytes": 1, "cpu": None, "span": (),
            "startstops": [{"action": "compute", "start": start, "stop": stop}]}  # fmt: skip


def test_every_run_is_a_rectangle_of_its_thread():
    rows = [row("a-1", "tcp://x", 10.0, 11.0), row("b-1", "tcp://y", 10.5, 12.0), row("a-2", "tcp://x", 11.0, 12.5)]
    source = draw(rows).select_one({"name": "stream-source"})
    assert list(source.data["key"]) == ["a-1", "b-1", "a-2"]
    assert list(source.data["took"]) == ["1.00 s", "1.50 s", "1.50 s"]
    assert list(source.data["left"]) == pytest.approx([0.0, 0.5, 1.0])
    assert [int(bottom) for bottom in source.data["bottom"]] == [0, 1, 0]
    slots = list(source.data["slot"])
    assert slots[0] == slots[2] != slots[1]


def test_nothing_is_an_empty_figure():
    assert "0 runs" in draw([]).title.text


def test_the_saved_page_holds_its_scripts(tmp_path):
    draw([row("a-1", "tcp://x", 0.0, 1.0)], tmp_path / "stream.html")
    page = (tmp_path / "stream.html").read_text("utf-8")
    assert not re.search(r"<(script|link)[^>]*(src|href)=", page)
    assert "a-1" in page


def test_other_plots_are_refused():
    with pytest.raises(ValueError, match="'save'"):
        check_plot("yes")
    with pytest.raises(ValueError, match="'save'"):
        get_task_stream(object(), plot="yes")


@pytest.mark.timeout(60)
def test_the_client_and_the_block_draw(tmp_path):
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, processes=False) as cluster,
        Client(cluster) as client,
    ):
        with get_task_stream(client, plot="save", filename=tmp_path / "block.html") as stream:
            client.gather(client.map(str, range(5)))
        assert len(stream.data) == 5
        assert list(stream.figure.select_one({"name": "stream-source"}).data["key"]) == [r["key"] for r in stream.data]
        assert (tmp_path / "block.html").exists()
        rows, figure = client.get_task_stream(plot=True, count=3)
        assert len(rows) == len(figure.select_one({"name": "stream-source"}).data["key"]) == 3
        assert len(client.get_task_stream()) == 5

        async def ask():
            async with Client(cluster.scheduler_address, asynchronous=True) as other:
                return await other.get_task_stream(plot="save", filename=tmp_path / "client.html")

        rows, figure = asyncio.run(ask())
        assert len(rows) == 5
        assert (tmp_path / "client.html").exists()
