"""A dashboard on a loop of its own, in a thread, beside a scheduler that is driven by hand."""

from __future__ import annotations

import asyncio
import threading

from gnomon.reports.dashboard import server
from gnomon.reports.dashboard.feed import Feed
from gnomon.runtime import CommError
from gnomon.runtime.messages import ErrorRecord

HOSTILE = ("<img src=x onerror=document.title='owned'>", "$$x$$", "\U0001f600", "x" * 10_000, "a,b&c=d#e+f g%20/..")

#: The pages' paths, by what answers their numbers.
PATHS = {
    "summary": "/", "timeline": "/timeline", "tasks": "/tasks", "scheduler": "/scheduler", "workers": "/workers",
    "communication": "/comm", "memory": "/memory", "errors": "/errors", "logs": "/logs", "events": "/events",
    "profile": "/profile", "graph": "/graph", "report": "/report",
}  # fmt: skip


class Line:
    """A connection to the scheduler; ``down``: nobody answers. Each question lets a second pass over there."""

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.down = False
        self.answered = 0
        self.calls = []
        self.on_live = None

    async def connect(self):
        if self.down:
            raise CommError("nobody there")
        return self

    async def request(self, method, **arguments):
        if self.down:
            raise CommError("gone")
        self.calls.append((method, arguments))
        if method == "live":
            if self.on_live is not None:
                self.on_live()
            answer = self.scheduler.live(**arguments)
            self.scheduler.now += 1.0
            self.answered += 1
            return answer
        return {
            "tasks_page": {"total": 0, "scanned": 0, "tasks": 0, "rows": []},
            "group_graph": {"total": 0, "scanned": 0, "nodes": [], "edges": []},
            "task_graph": {"total": 0, "scanned": 0, "nodes": [], "edges": []},
        }.get(method, {})

    async def close(self):
        pass


class Served:
    """The dashboard of a line."""

    def __init__(self, scheduler, monkeypatch, **options):
        self.scheduler = scheduler
        self.line = Line(scheduler)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        monkeypatch.setattr(
            server,
            "Feed",
            lambda address, security, *, interval: Feed(address, interval=interval, connect=self.line.connect),
        )
        self.dashboard = self.run(self._make(options))

    async def _make(self, options):
        dashboard = server.Dashboard("tcp://by-hand", token="", **{"interval": 0.1, **options})
        await dashboard.start()
        return dashboard

    def run(self, coroutine):
        """Run a coroutine where the dashboard runs."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def call(self, act):
        """Call a function there."""

        async def called():
            return act()

        return self.run(called())

    @property
    def url(self):
        return self.dashboard.address

    @property
    def context(self):
        return self.dashboard.context

    @property
    def sessions(self):
        """Bokeh's sessions."""
        return self.call(lambda: self.dashboard.views)

    async def _closed(self):
        """The browser's websockets have closed, and the dashboard has."""
        application = self.dashboard._mounted.application
        async with asyncio.timeout(30):
            while getattr(application, "_clients", ()):
                await asyncio.sleep(0.02)
        await self.dashboard.close()
        await asyncio.sleep(0)

    def close(self):
        self.run(self._closed())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()


def fill(scheduler, state):
    """Bring a scheduler that is driven by hand into a state: nobody, idle, busy, erred, hostile."""
    if state == "nobody":
        scheduler.now += 5.0
        return
    scheduler.join(1)
    scheduler.join(2)
    scheduler.now += 10.0
    if state == "idle":
        return
    rows = [(name, 1 + i % 2, 1001.0 + 0.1 * i, 0.08) for i, name in enumerate(["inc", "add", "inc", "sum"] * 10)]
    if state == "hostile":
        rows = [(name, 1, 1001.0 + i, 0.5) for i, name in enumerate(HOSTILE)]
    scheduler.run(*rows)
    if state in ("erred", "hostile"):
        for prefix in {row[0] for row in rows}:
            text = f"Traceback\n  in f\nValueError: {HOSTILE[0]} {HOSTILE[1]}"
            error = ErrorRecord("ValueError", text)
            scheduler.telemetry.append_errors([f"{prefix}-1"], [prefix], 1, [error], scheduler.now)
        scheduler.telemetry.append_log("WARNING", f"a line with {HOSTILE[0]}", scheduler.now)
