// Every panel but the timeline, for the range and filter in force. Only the tab that is looked at is drawn.
const slotOf = (name) => settings.slots[name] ?? 9;
const saved = byId("whole").innerHTML, savedStrip = byId("strip").innerHTML;

function showSummary(account) {
  const summary = byId("whole");
  if (!filtered()) {  // the very text that the page came with
    if (summary.innerHTML !== saved) summary.innerHTML = saved;
    if (byId("strip").innerHTML !== savedStrip) byId("strip").innerHTML = savedStrip;
    return;
  }
  if (!byId("table-account")) return;
  showHead(account);
  if (state.tab !== "summary") return;
  const bar = summary.querySelector(".bar"), table = accountTable(account, settings);
  bar.replaceChildren();
  for (const [first, , share] of table.rows) {
    if (!share.value) continue;
    const segment = bar.appendChild(element("i", "part-" + first.bars[0][0])), text = `${first.text} ${share.text}`;
    segment.style.width = share.value + "%";
    segment.title = text;
    segment.append(element("span", "", share.value >= 9 ? text : ""));
  }
  bar.setAttribute("aria-label", table.rows.filter((row) => row[2].value).map((row) => `${row[0].text} ${row[2].text}`).join(", "));
  fill(table);
  summary.querySelector(".closing").textContent = closingText(account);
  summary.querySelector(".closing").classList.toggle("amber", account.parts.unaccounted > 0.05 * account.capacity);
  fill(prefixShareTable(account, slotOf));
  fill(workerShareTable(account));
}
function showHead(account) {
  const least = account.partial ? "≥ " : "", length = account.to - account.from, busy = account.capacity ? 100 * busyOf(account.parts) / account.capacity : 0, moved = pairTable(data, query()).list.reduce((sum, each) => sum + each.nbytes, 0);
  const head = { wall: timeText(length), workers: countText(account.workers.length), threads: countText(account.threads), busy: plain(busy, 1) + " %", tasks: least + countText(account.tasks), erred: least + countText(account.erred), rate: least + rateText(account.tasks, length), moved: state.prefix ? "-" : bytesText(moved) };
  const loop = loopParts(), all = loop.work + loop.gc + loop.waiting;
  head.loop = all ? plain(100 * loop.work / all, 1) + " %" : "-";
  for (const dd of byId("strip").querySelectorAll("dd")) if (head[dd.dataset.head]) dd.textContent = head[dd.dataset.head];
}

// Counts by length, on a logarithmic axis, as bars in the page.
function showHistogram(durations) {
  const box = byId("histogram"), lists = durations.known.filter(Boolean).map((each) => each.list), all = lists.flatMap((list) => [list[0], list.at(-1)]);
  box.replaceChildren();
  if (!all.length) return;
  const low = Math.floor(3 * Math.log10(Math.max(1, Math.min(...all)))), high = Math.ceil(3 * Math.log10(Math.max(2, Math.max(...all)))), counts = new Array(Math.max(1, high - low)).fill(0);
  for (const list of lists) for (const ticks of list) counts[Math.max(0, Math.min(counts.length - 1, Math.floor(3 * Math.log10(Math.max(1, ticks)) - low)))]++;
  const most = Math.max(...counts);
  counts.forEach((count, i) => {
    const bar = box.appendChild(element("div", "bin")), from = timeText(10 ** ((low + i) / 3)), to = timeText(10 ** ((low + i + 1) / 3));
    bar.title = `${countText(count)} runs of ${from} to ${to}`;
    bar.append(element("b", "", count ? countText(count) : ""), element("i"), element("small", "", i % 3 === 0 || counts.length < 8 ? from : ""));
    bar.children[1].style.height = 100 * count / most + "%";
  });
  box.setAttribute("aria-label", "Runs by computing time: " + counts.map((count, i) => count ? `${count} from ${timeText(10 ** ((low + i) / 3))}` : "").filter(Boolean).join(", "));
}
function showTasks(account) {
  if (!byId("table-prefixes")) return;
  const durations = durationsOf(data, query()), match = searchMatch();
  fill(prefixTable(account, durations, slotOf), { match });
  showHistogram(durations);
  if (byId("table-slowest")) {
    const { flags } = matching(), rows = state.search ? durations.rows.filter((i) => flags[i]) : durations.rows;
    fill(slowestTable(data, rows, slotOf));
  }
}

// A grid of shares: rows of a name and numbers from 0 to 1 (NaN: nothing there), drawn as one picture.
function heat(canvas, rows) {
  const width = rows[0].length, image = new ImageData(width, rows.length), ground = colorOf("--panel"), ink = colorOf("--compute");
  const rgb = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)), [low, high] = [rgb(ground), rgb(ink)];
  rows.forEach((row, y) => row.forEach((share, x) => {
    const at = 4 * (y * width + x);
    for (let c = 0; c < 3; c++) image.data[at + c] = low[c] + (high[c] - low[c]) * Math.min(1, share || 0);
    image.data[at + 3] = Number.isNaN(share) ? 0 : 255;
  }));
  canvas.width = width;
  canvas.height = rows.length;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
function showHeat() {
  const box = byId("heat"), { from, to, worker, prefix } = query(), bins = 200, width = Math.max(1, to - from) / bins;
  if (!box) return;
  const shown = data.workers.map((_, i) => i).filter((i) => worker < 0 || i === worker).slice(0, 100), at = new Map(shown.map((w, i) => [w, i]));
  const rows = shown.map((w) => Array.from({ length: bins }, (_, i) => data.workers[w].low < from + (i + 1) * width && data.workers[w].high > from + i * width ? 0 : NaN));
  for (let i = 0; i < data.runs.count; i++) {
    const row = rows[at.get(data.runs.workers[i])], begin = Math.max(from, data.laid.begins[i]), end = Math.min(to, data.laid.ends[i]);
    if (!row || !(end > begin) || (prefix >= 0 && data.runs.prefixes[i] !== prefix)) continue;
    for (let bin = Math.floor((begin - from) / width); bin < bins && from + bin * width < end; bin++) row[bin] += overlap(begin, end, from + bin * width, from + (bin + 1) * width) / width / data.workers[data.runs.workers[i]].nthreads;
  }
  if (!rows.length) return;
  box.querySelector("ol").replaceChildren(...shown.map((w) => element("li", "", cut(data.workers[w].label, 24))));
  const canvas = box.querySelector("canvas");
  canvas.style.height = 18 * rows.length + "px";
  heat(canvas, rows);
  box.querySelector(".reading").textContent = `Each row a worker, left to right ${fixed(from / TICKS, 2)} to ${fixed(to / TICKS, 2)} s; the darker, the more of its threads were in tasks.` + (data.workers.length > 100 && worker < 0 ? ` 100 of ${countText(data.workers.length)} workers are drawn; all are in the table.` : "");
}
function showWorkers(account) {
  fill(workerTable(account), { match: searchMatch() });
  showHeat();
}

// From whom to whom, by worker or, above a hundred, by host.
function showCommunication() {
  if (!byId("table-pairs")) return;
  const pairs = pairTable(data, query());
  fill(pairs, { match: searchMatch() });
  const byTransport = new Map(), grid = byId("matrix"), byHost = data.workers.length > 100, group = new Map(data.workers.map((each) => [each.id, byHost ? each.host : each.label]));
  for (const each of pairs.list) {
    const sum = byTransport.get(each.transport) || [0, 0, 0];
    byTransport.set(each.transport, [sum[0] + each.fetches, sum[1] + each.nbytes, sum[2] + each.ticks]);
  }
  const rows = [...byTransport].map(([name, [fetches, nbytes, ticks]]) => [cell(name || "further pairs"), countCell(fetches), bytesCell(nbytes), timeCell(ticks), cell(ticks ? bytesText(nbytes * TICKS / ticks) + "/s" : "-", ticks ? nbytes / ticks : 0)]);
  fill({ name: "transports", columns: [["by", false], ["fetches", true], ["moved", true], ["time", true], ["rate", true]], rows });
  const names = [...new Set(data.workers.map((each) => group.get(each.id)))], sums = new Map();
  for (const each of pairs.list) { const name = group.get(each.source) + "\n" + group.get(each.target); sums.set(name, (sums.get(name) || 0) + each.nbytes); }
  const most = Math.max(1, ...sums.values()), table = element("table", "matrix"), ink = "var(--transfer)";
  const head = table.createTHead().insertRow();
  head.append(element("th", "", "from / to"), ...names.map((name) => element("th", "", cut(name, 14))));
  const body = table.createTBody();
  for (const source of names) {
    const row = body.insertRow();
    row.append(element("th", "", cut(source, 20)));
    for (const target of names) {
      const nbytes = sums.get(source + "\n" + target) || 0, td = row.appendChild(element("td", "n", names.length <= 12 && nbytes ? bytesText(nbytes) : ""));
      td.title = `${source} to ${target}: ${nbytes ? bytesText(nbytes) : "nothing"}`;
      if (nbytes) td.style.background = `color-mix(in srgb, ${ink} ${Math.round(8 + 52 * nbytes / most)}%, var(--ground))`;
    }
  }
  grid.replaceChildren(table);
}

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
  const parts = loopParts();
  const all = parts.waiting + parts.work + parts.gc, ticks = [parts.work, parts.gc, parts.waiting].map((value) => Math.round(value * TICKS)), shares = percentages(ticks);
  const words = [["work", "Working: messages, transitions, placement"], ["gc", "Collecting garbage"], ["waiting", "Waiting for messages"]];
  fill({ name: "loop", columns: [["The scheduler's loop", false], ["time", true], ["share", true], ["source", false]], rows: all ? words.map(([name, word], i) => [cell(word, null, { bars: [["loop-" + name, 100]] }), timeCell(ticks[i]), shareCell(shares[i]), cell("timed")]) : [], last: all ? [cell("Loop time measured"), cell(timeText(ticks.reduce((a, b) => a + b, 0))), cell("100.0 %"), cell("")] : null });
  const bar = box.querySelector(".bar");
  bar.replaceChildren(...words.map(([name, word], i) => { const segment = element("i", "part-loop-" + name); segment.style.width = shares[i] + "%"; segment.title = `${word} ${plain(shares[i], 1)} %`; segment.append(element("span", "", shares[i] >= 12 ? `${word.split(":")[0]} ${plain(shares[i], 1)} %` : "")); return segment; }));
  bar.setAttribute("aria-label", words.map(([, word], i) => `${word} ${plain(shares[i], 1)} %`).join(", "));
}
function showScheduler() {
  showLoop();
  showProcesses("scheduler-processes", [-1]);
  showStalls();
  showFlames();
}
function showMemory(account) {
  showProcesses("processes", data.workers.map((_, i) => i).filter((i) => !state.worker || i === rowOfWorker()));
  const rows = account.prefixes.filter((each) => each.nbytes).sort((a, b) => b.nbytes - a.nbytes).map((each) => [prefixCell(each.name, 60, slotOf(each.name)), countCell(each.tasks), bytesCell(each.nbytes), bytesCell(each.tasks ? Math.round(each.nbytes / each.tasks) : 0)]);
  fill({ name: "results", rows, columns: [["prefix", false], ["tasks", true], ["results", true], ["mean", true]], note: "Sizes as the workers estimated them, of all results together: how much was held at one time is not recorded." + leftOut(rows.length, "prefixes") }, { match: searchMatch() });
}
function showErrors() {
  const { from, to } = query(), wanted = state.search.toLowerCase();
  let lines = 0;
  for (const line of document.querySelectorAll("#errors .log span")) {
    line.hidden = !(+line.dataset.t >= from && +line.dataset.t <= to) && !isWhole() || Boolean(wanted && !line.textContent.toLowerCase().includes(wanted));
    lines += line.hidden ? 0 : 1;
  }
  let groups = 0;
  for (const group of document.querySelectorAll("#errors .error")) {
    group.hidden = Boolean((state.prefix && group.dataset.prefix !== state.prefix) || (wanted && !group.textContent.toLowerCase().includes(wanted)));
    groups += group.hidden ? 0 : 1;
  }
  const note = byId("errors-note"), all = document.querySelectorAll("#errors .log span").length;
  note.textContent = (isWhole() ? "" : `${countText(lines)} of ${countText(all)} log lines lie in ${rangeText()}. Groups of errors are counted over the whole run, not filtered by time.`) + (state.search ? ` The search finds ${groups} groups and ${lines} log lines.` : "");
}

const shows = { tasks: showTasks, workers: showWorkers, communication: showCommunication, scheduler: showScheduler, memory: showMemory, errors: showErrors };
function draw() {
  if (!data) return;
  const account = accountOf(data, query());
  data.account = account;
  showSummary(account);
  if (state.tab === "timeline") drawTimeline().catch((error) => fail("timeline", error));
  else if (shows[state.tab]) try { shows[state.tab](account); } catch (error) { fail(state.tab, error); }
}
// All tables of the tabs, whichever is looked at: what the page came with must come out again.
function drawAll() {
  const account = accountOf(data, query());
  fill(accountTable(account, settings));
  fill(prefixShareTable(account, slotOf));
  fill(workerShareTable(account));
  for (const show of Object.values(shows)) show(account);
}
function fail(name, error) {
  const section = byId(name), box = section.querySelector(".failed") || section.insertBefore(element("p", "failed notice"), section.children[1]);
  box.setAttribute("role", "alert");
  box.textContent = `This part could not be drawn: ${error.message}. The others go on. `;
  const copy = box.appendChild(element("button", "", "Copy details"));
  copy.type = "button";
  copy.addEventListener("click", () => quietly(() => navigator.clipboard.writeText(String(error.stack))));
}
