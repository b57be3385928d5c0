// The scheduler's tab, and what processes measured of themselves.
// Rows of measurements in the range: those of a worker's processes, or the scheduler's (-1).
function rowsOfSeries(worker, process = -1) {
  const { series } = data, { from, to } = query(), rows = [];
  for (let i = 0; i < series.times.length; i++) if (series.workers[i] === worker && (process < 0 || series.processes[i] === process) && series.times[i] >= from && series.times[i] <= to) rows.push(i);
  return rows;
}
const known = (name, rows) => rows.map((i) => (data.series.values[name] || [])[i]).filter((value) => value === value && value !== undefined);
const total = (values) => values.reduce((sum, value) => sum + value, 0);
const mean = (values) => values.length ? total(values) / values.length : NaN;
const measured = (value, text) => Number.isNaN(value) || value === undefined || value === -Infinity ? cell("-", -1, { title: "not measured" }) : cell(text(value), value);
const PROCESSES = ["scheduler", "agent", "executor"];
function showProcesses(id, workers) {
  const target = byId("table-" + id);
  if (!target) return;
  const rows = [];
  for (const worker of workers) {
    for (let process = 0; process < 3; process++) {
      const mine = rowsOfSeries(worker, process);
      if (!mine.length) continue;
      const values = (name) => known(name, mine), most = (name) => values(name).length ? Math.max(...values(name)) : NaN, percent = (value) => plain(value, 1) + " %", time = (value) => timeText(value * TICKS);
      rows.push([worker < 0 ? cell("scheduler") : workerCell(data.workers[worker]), cell(PROCESSES[process]), measured(mean(values("cpu")), percent), measured(most("cpu"), percent), measured(most("memory"), bytesText), measured(values("memory").at(-1) ?? NaN, bytesText),
        measured(mean(values("busy")), percent), measured(mean(values("lag_p50")), time), measured(most("lag_p99"), time), measured(most("lag_max"), time), measured(values("gc_seconds").length ? total(values("gc_seconds")) : NaN, time), measured(mean(values("gil_contended")), percent), measured(values("own_cpu").length ? total(values("own_cpu")) : NaN, time), cell(countText(mine.length), mine.length)]);
    }
  }
  fill({ name: id, rows, columns: [["of", false], ["process", false], ["CPU, of one core", true], ["most", true], ["memory, most", true], ["at the end", true], ["loop busy", true], ["lag, median", true], ["lag, 99 %", true], ["lag, most", true], ["collecting", true], ["GIL contended", true], ["instruments", true], ["rows", true]], note: `Means and maxima of the measurements in the range (${isWhole() ? "whole run" : rangeText()}).` }, { match: searchMatch() });
}
function showStalls() {
  if (!byId("table-stalls")) return;
  const { from, to } = query(), names = (each) => each[2] < 0 ? cell("scheduler") : workerCell(data.workers[each[2]]);
  const rows = data.stalls.filter(([begin, length]) => begin + length > from && begin < to).map((each) => [cell(fixed(each[0] / TICKS, 3), each[0]), timeCell(each[1]), names(each), cell(PROCESSES[each[3]] || ""), cell(each[4]), textCell(each[6] || each[5] || "-", 60), textCell(each[7] ? `${each[7]}:${each[8]}` : "", 50), textCell(each[10] || "", 30)]);
  fill({ name: "stalls", rows, columns: [["began at, s", true], ["lasted", true], ["of", false], ["process", false], ["cause", false], ["function", false], ["at", false], ["lock held by", false]] }, { match: searchMatch() });
}
// The budget of the loop: by parts for the whole run, else as far as the rows of measurements tell.
const LOOP_CLASSES = { idle: "part-idle", resting: "part-idle", waiting: "part-idle", gc: "part-loop-gc", work: "part-loop-work", other: "slot-9" };
function loopParts() {
  const { values } = data.series, parts = { waiting: 0, work: 0, gc: 0 };
  for (const i of rowsOfSeries(-1)) {
    const length = values.seconds[i], busy = values.busy[i] * length / 100, gc = values.gc_seconds[i] || 0;
    if (!(busy >= 0)) continue;
    parts.gc += Math.min(gc, busy); parts.work += Math.max(0, busy - gc); parts.waiting += Math.max(0, length - busy);
  }
  return parts;
}
function showLoop() {
  const box = byId("loop");
  if (!box) return;
  const fine = isWhole() && data.loop.some((part) => part[2]), coarse = loopParts(), parts = fine ? data.loop.filter(([, , ticks]) => ticks) : ["work", "gc", "waiting"].map((name) => [name, "timed", Math.round(coarse[name] * TICKS), 0]);
  const all = parts.reduce((sum, part) => sum + part[2], 0), shares = percentages(parts.map((part) => part[2]));
  let slot = 0;
  const classes = parts.map(([name]) => LOOP_CLASSES[name] || `slot-${slot < 9 ? slot++ : 3 + slot++}`), source = ([, how, , times]) => how === "sampled" ? `sampled, ${countText(times)} looks` : how === "rest" ? "the rest" : times ? `timed, ${countText(times)} times` : "timed";
  const swatch = (name) => name.startsWith("slot-") ? { slot: +name.slice(5) } : { bars: [[name.slice(5), 100]] };
  fill({
    name: "loop", columns: [["The scheduler's loop", false], ["time", true], ["share", true], ["source", false]],
    rows: all ? parts.map((part, i) => [cell(settings.loop_words[part[0]] || part[0], null, swatch(classes[i])), timeCell(part[2]), shareCell(shares[i]), cell(source(part))]) : [],
    last: all ? [cell("Loop time measured"), cell(timeText(all)), cell("100.0 %"), cell("")] : null,
    note: !isWhole() && data.loop.length ? "Finer parts are known of the whole run only." : "",
  });
  showBar(box, parts.map(([name], i) => [classes[i], shares[i], `${(settings.loop_words[name] || name).split(":")[0]} ${plain(shares[i], 1)} %`]), 12);
}
function showScheduler() {
  showLoop();
  showProcesses("scheduler-processes", [-1]);
  showStalls();
  showFlames(sampledView);
}
