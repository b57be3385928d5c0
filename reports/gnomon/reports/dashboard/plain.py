"""The overview by plain HTTP: a page that polls JSON, for where there is no Bokeh, or no websocket gets through.

Contents: PLAIN, summary.
"""

from __future__ import annotations

from typing import Any

from gnomon.reports.dashboard.context import Context
from gnomon.reports.dashboard.tables import about
from gnomon.reports.dashboard.underway import LIVE_PARTS
from gnomon.reports.recording import TICKS

__all__ = ["PLAIN", "summary"]

_WINDOW = 60.0
_ERRORS = 10


def summary(context: Context, age: float) -> dict[str, Any]:
    """The state of the cluster in one object."""
    model = context.model
    result: dict[str, Any] = {
        **about(model, age),
        "name": context.name,
        "scheduler": {"id": model.scheduler_id, "address": model.address, "started": model.started or None},
        "retries": model.retries,
        "missed": model.missed,
        "dashboard": context.statistics,
    }
    counters = model.counters
    if counters is None:
        return result
    workers = counters.workers.values()
    account = model.account(max(model.begin, model.now - _WINDOW))
    memory = [worker.memory for worker in workers if worker.memory == worker.memory]
    cpu = [worker.cpu for worker in workers if worker.cpu == worker.cpu]
    result |= {
        "tasks": counters.states,
        "queued": counters.queued,
        "workers": len(workers),
        "threads": counters.total_threads,
        "clients": counters.clients,
        "processing": sum(worker.processing for worker in workers),
        "memory": sum(memory) if memory else None,
        "cpu": sum(cpu) if cpu else None,
        "rates": model.rates(),
        "window": {
            "seconds": min(_WINDOW, model.now - model.begin),
            "capacity": account.capacity / TICKS,
            "parts": {name: ticks / TICKS for name, ticks in zip(LIVE_PARTS, account.live_values(), strict=True)},
            "unmeasured": account.unmeasured,
        },
        "progress": [row._asdict() for row in model.progress()[:50]],
        "errors_seen": model.errors_seen,
        "errors": [
            {"prefix": e.prefix, "type": e.type_name, "summary": e.summary, "count": e.count, "last": e.last}
            for e in model.errors[:_ERRORS]
        ],
    }
    return result


#: The page. It asks for the summary at an address relative to its own, so that it works behind any proxy.
PLAIN = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>gnomon</title>
<style>
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 60rem; padding: 0 1rem }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(9rem, 1fr)); gap: .5rem 1rem }
dl > div { border-top: 2px solid; padding-top: .25rem }
dt { font-size: .85rem } dd { margin: 0; font-size: 1.5rem; font-variant-numeric: tabular-nums }
table { border-collapse: collapse; width: 100%; margin: 1rem 0 } caption { text-align: left; font-weight: 600 }
th, td { text-align: left; padding: .15rem .75rem .15rem 0; border-bottom: 1px solid #8886; overflow-wrap: anywhere }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
#state { border: 1px solid; padding: .25rem .75rem }
</style>
</head>
<body>
<header><h1>gnomon</h1><p id="state" role="status">Waiting for the first data.</p></header>
<main>
<dl id="numbers"></dl>
<table id="parts" hidden><caption>Where the threads' time went, last 60 s</caption>
<thead><tr><th scope="col">Part</th><th scope="col" class="n">Seconds</th><th scope="col" class="n">Share</th></tr>
</thead>
<tbody></tbody></table>
<table id="progress" hidden><caption>Progress by prefix</caption>
<thead><tr><th scope="col">Prefix</th><th scope="col" class="n">Done</th><th scope="col" class="n">Of</th>
<th scope="col" class="n">Processing</th><th scope="col" class="n">Failed</th><th scope="col" class="n">Runs/s</th></tr>
</thead><tbody></tbody></table>
<table id="errors" hidden><caption>Latest errors</caption>
<thead><tr><th scope="col">Prefix</th><th scope="col">Error</th><th scope="col" class="n">Times</th></tr></thead>
<tbody></tbody></table>
</main>
<noscript><p>This page needs scripts to refresh itself; the numbers are in
<a href="PREFIX/api/v1/summary.json">summary.json</a>.</p></noscript>
<script>
"use strict";
const where = "PREFIX/api/v1/summary.json";
let failures = 0;
const byId = (id) => document.getElementById(id);
const count = (n) => n === null || n === undefined ? "-" : Math.round(n).toLocaleString("en");
const short = (n) => n === null || n === undefined ? "-" : Number(n).toPrecision(3);
function bytes(n) {
  if (n === null || n === undefined) return "-";
  let at = 0;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  while (n >= 1024 && at < units.length - 1) { n /= 1024; at += 1; }
  return (at ? n.toFixed(1) : n) + " " + units[at];
}
function numbers(pairs) {
  byId("numbers").replaceChildren(...pairs.map(([name, value]) => {
    const box = document.createElement("div"), dt = document.createElement("dt"), dd = document.createElement("dd");
    dt.textContent = name; dd.textContent = value; box.append(dt, dd);
    return box;
  }));
}
function rows(id, data) {
  byId(id).hidden = data.length === 0;
  byId(id).tBodies[0].replaceChildren(...data.map((cells) => {
    const row = document.createElement("tr");
    for (const cell of cells) {
      const td = document.createElement("td");
      td.textContent = typeof cell === "object" ? cell.n : cell;
      if (typeof cell === "object") td.className = "n";
      row.append(td);
    }
    return row;
  }));
}
const n = (text) => ({ n: text });
function show(data) {
  const old = data.age === null ? "no data yet" : "data of " + data.age.toFixed(1) + " s ago";
  byId("state").textContent = data.connected
    ? (data.name || data.scheduler.address) + ", " + old
    : "The scheduler does not answer (" + data.retries + " tries), " + old;
  if (!data.tasks) return;
  numbers([
    ["Processing", count(data.tasks.processing)], ["Queued", count(data.tasks.queued)],
    ["Waiting", count(data.tasks.waiting)], ["In memory", count(data.tasks.memory)],
    ["Failed", count(data.tasks.erred)], ["No worker", count(data.tasks["no-worker"])],
    ["Runs per second", short(data.rates.tasks)], ["Workers", count(data.workers)], ["Threads", count(data.threads)],
    ["Clients", count(data.clients)], ["Memory", bytes(data.memory)],
    ["CPU, of one processor", data.cpu === null ? "-" : Math.round(data.cpu) + " %"],
  ]);
  const all = data.window.capacity;
  rows("parts", all ? Object.entries(data.window.parts).map(([name, seconds]) =>
    [name, n(seconds.toFixed(2)), n((100 * seconds / all).toFixed(1) + " %")]).concat(
    [["capacity", n(all.toFixed(2)), n("100.0 %")]]) : []);
  rows("progress", data.progress.map((p) =>
    [p.prefix, ...[p.done, p.total_known, p.processing, p.erred].map((each) => n(count(each))), n(short(p.rate))]));
  rows("errors", data.errors.map((e) => [e.prefix, e.type + ": " + e.summary, n(count(e.count))]));
}
async function ask() {
  if (!document.hidden) {
    try {
      const answer = await fetch(where, { credentials: "same-origin", cache: "no-store" });
      if (!answer.ok) throw new Error("HTTP " + answer.status);
      show(await answer.json());
      failures = 0;
    } catch (error) {
      failures += 1;
      byId("state").textContent = "The dashboard does not answer (" + failures + " tries): " + error.message;
    }
  }
  setTimeout(ask, failures ? Math.min(10000, 1000 * 2 ** Math.min(failures, 4)) : 1000);
}
ask();
</script>
</body>
</html>
"""
