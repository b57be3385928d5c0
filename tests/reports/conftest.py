"""A cluster that only tells telemetry what its workers did, and answers a client's requests from it."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest

from gnomon.reports.collect import collect
from gnomon.reports.page import build_page
from gnomon.reports.recording import Recording
from gnomon.runtime.core import RunColumns
from gnomon.runtime.messages import DemandChanged, TransfersDone
from gnomon.runtime.scheduler.deep_profiles import DeepProfiles
from gnomon.runtime.scheduler.telemetry import Telemetry

T0 = 1_790_000_000.0


class FakeCluster:
    """Times are seconds since the start of the fake; ``request`` is what a waiting client offers."""

    asynchronous = False

    def __init__(self, **settings: Any) -> None:
        self.telemetry = Telemetry(**settings)
        self.now = 0.0
        self.asked: list[str] = []
        self.profiles: dict[str, dict[str, bytes]] = {}
        self.deep_profiles = DeepProfiles(64 << 20)
        self._ids: dict[str, int] = {}

    def worker(self, name: str, nthreads: int = 1, at: float = 0.0) -> int:
        worker_id = len(self._ids) + 1
        address = f"tcp://10.0.0.{worker_id}:4000"
        self._ids[address] = worker_id
        self.telemetry.worker_joined(worker_id, name=name, address=address, nthreads=nthreads, host="h", now=T0 + at)
        return worker_id

    def leave(self, worker_id: int, at: float, reason: str = "closed") -> None:
        self.telemetry.worker_left(worker_id, reason=reason, now=T0 + at)

    def runs(
        self, rows: list[tuple[Any, str, int, int, float, float, float, float, int, bool]], cpus: Any = ()
    ) -> None:
        """Rows: key, prefix, worker, thread, four times, bytes, ok; ``cpus``: seconds on the processor, if known."""
        timings = array("d", [T0 + t for row in rows for t in row[4:8]])
        self.telemetry.append_runs(
            RunColumns(
                [row[0] for row in rows],
                [row[1] for row in rows],
                array("q", [row[2] for row in rows]),
                array("i", [row[3] for row in rows]),
                timings,
                array("q", [row[8] for row in rows]),
                array("b", [row[9] for row in rows]),
                *([array("d", cpus)] if cpus else []),
            )
        )

    def run(
        self, key: Any, worker: int, start: float, stop: float, *, thread: int = 0, prefix: str = "", ok: bool = True
    ) -> None:
        """One run with a tenth of its time for decoding and a tenth for encoding."""
        tenth = (stop - start) / 10
        times = (start, start + tenth, stop - tenth, stop)
        self.runs([(key, prefix or str(key).partition("-")[0], worker, thread, *times, 100, ok)])

    def fetch(
        self, source: int, to: int, start: float, stop: float, nbytes: int = 1000, *, parts: Any = (), types: Any = (),
        by: str = "tcp",
    ) -> None:  # fmt: skip
        """One fetch; ``parts``: seconds of wait, hold and serialise, ``types``: type, values and bytes, if known."""
        address = {worker_id: address for address, worker_id in self._ids.items()}[source]
        more = ((tuple(parts),) if parts else (), (tuple(types),) if types else ())
        message = TransfersDone((address,), (nbytes,), (T0 + start,), (T0 + stop,), (by,), *more)
        self.telemetry.append_transfers(to, message, self._ids)

    def demand(self, worker: int, changes: list[tuple[int, bool, float]]) -> None:
        """Changes of demand: kind, value, time; worker 0 is the whole cluster."""
        kinds, values, times = zip(*changes, strict=True)
        self.telemetry.append_demand(worker, DemandChanged(kinds, values, tuple(T0 + t for t in times)))

    def request(self, method: str, **arguments: Any) -> Any:
        self.asked.append(method)
        if method == "telemetry_mark":
            return {**self.telemetry.mark(T0 + self.now), "task_profiles": self.deep_profiles.made}
        if method == "task_profiles":
            return self.deep_profiles.since(arguments["since"], 1 << 20)
        if method == "profile":
            return self.profiles.get(arguments["process"], {})
        return self.telemetry.since(arguments["since"], arguments["limit"])

    def record(self, mark: dict[str, Any]) -> Recording:
        """The recording since a mark."""
        conversation, answer = collect(mark), None
        while True:
            try:
                ask = conversation.send(answer)
            except StopIteration as stop:
                return stop.value
            answer = self.request(ask.method, **ask.arguments)

    def mark(self) -> dict[str, Any]:
        return self.request("telemetry_mark")


def busy_cluster(
    tasks: int, *, workers: int = 4, threads: int = 2, seed: int = 0, length: int = 100_000, mean: float = 0.02
) -> Recording:
    """A run that looks like a real one: several prefixes, gaps, transfers, a worker that left, errors."""
    rng = random.Random(seed)
    cluster = FakeCluster(length=length)
    ids = [cluster.worker(f"worker-{i}", threads) for i in range(workers)]
    mark = cluster.mark()
    prefixes = ["parse", "count", "merge", "read-csv", "shuffle-transfer", "shuffle-barrier", "sum", "getitem", "len",
                "from-delayed", "repartition", "tiny"]  # fmt: skip
    scales = [mean * factor for factor in (3, 1, 0.7, 2, 1.5, 0.2, 0.4, 0.1, 0.05, 0.3, 0.8, 0.01)]
    clocks = {(w, t): 0.15 + rng.random() * 0.05 for w in ids for t in range(threads)}
    rows = []
    for i in range(tasks):
        lane = min(clocks, key=clocks.__getitem__)
        phase = i * 4 // max(1, tasks)
        kind = rng.choice([phase, phase, phase + 4, phase + 8, 11])
        start = clocks[lane] + rng.expovariate(1) * 0.0008
        compute = rng.lognormvariate(0, 0.6) * scales[kind]
        times = (start, start + 0.0004, start + 0.0004 + compute, start + 0.0006 + compute)
        clocks[lane] = times[3]
        ok = rng.random() > 0.004
        rows.append(
            (f"{prefixes[kind]}-{rng.getrandbits(64):016x}", prefixes[kind], *lane, *times, rng.randrange(10**6), ok)
        )
        if kind in (4, 6) and workers > 1:
            source = rng.choice([w for w in ids if w != lane[0]])
            cluster.fetch(source, lane[0], start - 0.002, start, rng.randrange(10**6))
    rows.sort(key=lambda row: row[7])
    for begin in range(0, len(rows), 200):
        cluster.runs(rows[begin : begin + 200])
    end = max(clocks.values())
    if workers > 2:
        cluster.leave(ids[-1], end + 0.01, "its process was killed by signal 9")
    cluster.telemetry.append_log("WARNING", "Worker <worker-3> was lost", T0 + end)
    cluster.now = end + 0.2
    return cluster.record(mark)


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster()


@pytest.fixture
def make_cluster() -> type[FakeCluster]:
    return FakeCluster


@pytest.fixture
def busy() -> Any:
    return busy_cluster


READY = "() => document.documentElement.dataset.ready === 'yes'"
DRAWN = "() => gnomon.shown > 0"
MODELS = """() => {
    window.model = (name) => Bokeh.documents.at(-1).get_model_by_name(name);
    window.source = () => model("stream-source");
    window.plot = () => model("stream");
    window.keys = () => Array.from(source().data.left, (_, at) => gnomon.textsOf(at).key);
}"""


@pytest.fixture
def visit(chromium, tmp_path):
    """Opens a recording's page; afterwards, no network was asked and nothing complained of (but ``wanted``)."""
    troubles, contexts = [], []

    def opened(recording, state="tab=summary", wanted=None, **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(build_page(recording) if not isinstance(recording, str) else recording, "utf-8")
        context = chromium.new_context(**options)
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("request", lambda r: r.url.startswith(("file:", "data:", "blob:")) or troubles.append(r.url))

        def complained(text):
            if wanted is None or wanted not in text:
                troubles.append(text)

        page.on("console", lambda m: m.type in ("error", "warning") and complained(m.text))
        page.on("pageerror", lambda e: complained(str(e)))
        page.goto(f"file://{path}#{state}")
        if options.get("java_script_enabled", True):
            page.wait_for_function(READY)
            page.evaluate(MODELS)
            if "tab=timeline" in state and page.locator("#timeline-item").count():
                page.wait_for_function(DRAWN)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
