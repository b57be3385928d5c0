// What the page holds, as files: made here, nothing is fetched.
function save(name, content, type) {
  const link = document.createElement("a"), url = URL.createObjectURL(new Blob([content], { type }));
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
const csvText = (value) => { const text = String(value ?? ""); return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
const csv = (rows) => rows.map((row) => row.map(csvText).join(",")).join("\r\n") + "\r\n";
// A table with exact values: ticks become seconds, where a column holds times.
function tableCsv(table) {
  return csv([table.columns.map(([label]) => label), ...table.rows.map((row) => row.map((each, i) => table.columns[i][1] && each.value !== null && !each.bars ? (/^-?[\d.,]+ (s|ms|µs|ns|min|h)$/.test(each.text) ? each.value / TICKS : each.value) : each.title || each.text))]);
}
// Rows of the runs that pass the filter and touch the range.
function chosenRuns() {
  const { runs } = data, { from, to } = query(), { flags } = matching(), rows = [];
  for (let i = 0; i < runs.count; i++) if (flags[i] && runs.ends[i] >= from && runs.begins[i] <= to) rows.push(i);
  return rows;
}
function runRows() {
  const { runs } = data, rows = [["key", "prefix", "worker", "thread", "began_s", "decoding_s", "computing_s", "encoding_s", "on_processor_s", "bytes", "ok"]];
  for (const i of chosenRuns()) {
    const worker = data.workers[runs.workers[i]];
    rows.push([runs.keys[i], runs.names[runs.prefixes[i]], worker ? worker.label : "", runs.threads[i], runs.begins[i] / TICKS, runs.decodes[i] / TICKS, runs.computes[i] / TICKS, runs.encodes[i] / TICKS, runs.cpus[i] < 0 ? "" : runs.cpus[i] / TICKS, runs.nbytes[i], runs.ok[i]]);
  }
  return rows;
}
function reportJson() {
  const account = currentAccount(), s = (ticks) => ticks / TICKS, parts = (each) => byName(PARTS, (name) => s(each[name]));
  const durations = durationsOf(data, query());
  return {
    range: [s(account.from), s(account.to)], whole: account.whole, prefix: state.prefix, worker: state.worker, capacity: s(account.capacity), alongside: s(account.alongside), other_tasks: s(account.others),
    parts: parts(account.parts), unmeasured: settings.unmeasured, tasks: account.tasks, erred: account.erred, bytes: account.nbytes, complete: !account.partial,
    prefixes: account.prefixes.map((each) => ({ name: each.name, tasks: each.tasks, erred: each.erred, bytes: each.nbytes, parts: parts(each.parts), mean: durations.known[each.row] ? s(durations.known[each.row].mean) : null, median: durations.known[each.row] ? s(durations.known[each.row].median) : null })),
    workers: account.workers.map((each) => ({ name: each.worker.label, threads: each.worker.nthreads, tasks: each.tasks, erred: each.erred, capacity: s(each.capacity), parts: parts(each.parts) })),
    pairs: pairTable(data, query()).list.map((each) => ({ from: each.source, to: each.target, transport: each.transport, fetches: each.fetches, bytes: each.nbytes, seconds: s(each.ticks), ...(each.measured ? { waited: s(each.wait), holder_busy: s(each.hold), serialising: s(each.serialise), wire: s(each.wire) } : {}) })),
    ledgers: Object.fromEntries(Object.entries(data.ledgers).map(([name, [seen, kept]]) => [name, { seen, kept, missed: seen - kept }])), info: data.info,
  };
}
// Chrome's trace events, in microseconds: a process per worker, a thread per thread.
function traceJson() {
  const { runs } = data, us = (ticks) => ticks / 10;
  const events = data.workers.map((worker, pid) => ({ ph: "M", name: "process_name", pid: pid + 1, tid: 0, args: { name: worker.label } }));
  for (const i of chosenRuns()) {
    events.push({ ph: "X", cat: "task", name: runs.names[runs.prefixes[i]], pid: runs.workers[i] + 1, tid: runs.threads[i] + 1, ts: us(runs.begins[i]), dur: us(runs.ends[i] - runs.begins[i]), args: { key: runs.keys[i], ok: Boolean(runs.ok[i]) } });
  }
  return { displayTimeUnit: "ms", traceEvents: events };
}
// speedscope's evented profiles: one per thread, its tasks as frames; tasks that overlap on a thread begin when it is free.
function speedscopeJson() {
  const { runs } = data, lanes = new Map();
  for (const i of chosenRuns()) {
    const name = runs.workers[i] + " " + runs.threads[i];
    if (!lanes.has(name)) lanes.set(name, []);
    lanes.get(name).push(i);
  }
  const profiles = [...lanes.values()].map((rows) => {
    const events = [];
    let at = 0;
    for (const i of rows.sort((a, b) => runs.begins[a] - runs.begins[b])) {
      const begin = Math.max(at, runs.begins[i] / TICKS, 0), end = Math.max(begin, runs.ends[i] / TICKS);
      events.push({ type: "O", frame: runs.prefixes[i], at: begin }, { type: "C", frame: runs.prefixes[i], at: end });
      at = end;
    }
    const worker = data.workers[runs.workers[rows[0]]];
    return { type: "evented", name: `${worker ? worker.label : "unknown"}, thread ${runs.threads[rows[0]]}`, unit: "seconds", startValue: 0, endValue: Math.max(at, data.duration / TICKS), events };
  });
  return { $schema: "https://www.speedscope.app/file-format-schema.json", shared: { frames: runs.names.map((name) => ({ name })) }, profiles, name: document.title, exporter: "gnomon", activeProfileIndex: 0 };
}
const saves = {
  recording: () => save("recording.gnomon", packed(), "application/octet-stream"),
  json: () => save("report.json", JSON.stringify(reportJson()), "application/json"),
  trace: () => save("trace.json", JSON.stringify(traceJson()), "application/json"),
  speedscope: () => save("tasks.speedscope.json", JSON.stringify(speedscopeJson()), "application/json"),
  runs: () => save("tasks.csv", csv(runRows()), "text/csv"),
};
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-save], button[data-csv]");
  if (!button || !data) return;
  if (button.dataset.save) return saves[button.dataset.save]();
  const name = button.dataset.csv;
  if (!tablesShown.has(name)) draw();
  const known = tablesShown.get(name);
  save(name + ".csv", known ? tableCsv(known) : csv([...byId("table-" + name).rows].map((row) => [...row.cells].map((each) => each.textContent))), "text/csv");
});
