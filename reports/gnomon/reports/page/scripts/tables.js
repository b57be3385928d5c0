// The tables for a range and a filter, cell by cell as Python makes them for the whole run.
const TOP = 10, ROWS = 200;
const cell = (text, value = null, more = {}) => ({ text, value, ...more });
const shareCell = (percent) => cell(plain(percent, 1) + " %", percent);
const textCell = (text, length = 60, more = {}) => { const short = cut(text, length); return cell(short, null, { title: short === text ? "" : text.slice(0, 2000), ...more }); };
const countCell = (count, least = "") => cell(least + countText(count), count);
const bytesCell = (count) => cell(bytesText(count), count);
const timeCell = (ticks) => cell(timeText(ticks), ticks);
const partBars = (parts, capacity) => capacity ? PARTS.filter((name) => parts[name]).map((name) => [name, 100 * parts[name] / capacity]) : [];
const prefixCell = (name, length, slot) => textCell(name, length, { slot, go: { prefix: name } });
const workerCell = (worker, length = 32) => worker ? textCell(worker.label, length, { go: { worker: worker.name || worker.address } }) : cell("unknown");
const leftOut = (count, what) => count > ROWS ? ` The first ${countText(ROWS)} of ${countText(count)} ${what} are listed.` : "";

function accountTable(account, settings) {
  const names = [...PARTS], amounts = PARTS.map((name) => account.parts[name]);
  if (account.others) { names.splice(4, 0, "others"); amounts.splice(4, 0, account.others); }
  const scale = scaleFor(account.capacity), shares = percentages(amounts), quanta = scale.quanta(amounts), rows = [];
  names.forEach((name, i) => {
    const unknown = settings.unmeasured.includes(name), [word, meaning] = settings.words[name];
    if (unknown && name === "between") return;
    const none = cell("-", 0, { title: "not measured in this recording" });
    rows.push([cell(word, null, { bars: [[name, 100]] }), unknown ? none : cell(scale.text(quanta[i]), amounts[i]), unknown ? none : shareCell(shares[i]), cell(unknown ? "not measured; would be: " + meaning : meaning)]);
  });
  const last = [cell("Capacity"), cell(scale.text(quanta.reduce((a, b) => a + b, 0))), cell(account.capacity ? "100.0 %" : "0.0 %"), cell("all threads, for as long as they were there")];
  return { name: "account", columns: [["Thread time", false], [scale.unit, true], ["share", true], ["what it is", false]], rows, last };
}
function closingText(account) {
  const scale = scaleFor(account.capacity), rest = account.parts.unaccounted;
  const [known, unknown] = scale.quanta([account.capacity - rest, rest]);
  const beside = account.alongside ? ` Not in it: ${timeText(account.alongside)} of work alongside, for which no thread was free.` : "";
  return `Parts ${scale.text(known)} ${scale.unit} + unaccounted ${scale.text(unknown)} ${scale.unit} = capacity ${scale.text(known + unknown)} ${scale.unit}.${beside}`;
}
function prefixShareTable(account, slotOf) {
  const shown = account.prefixes.slice(0, TOP), hidden = account.prefixes.slice(TOP), other = noParts(), least = account.partial ? "≥ " : "";
  hidden.forEach((each) => addParts(other, each.parts));
  const rest = account.capacity - busyOf(account.parts) - account.others;
  const amounts = [...shown.map((each) => busyOf(each.parts)), busyOf(other) + account.others, rest];
  const scale = scaleFor(account.capacity), shares = percentages(amounts), quanta = scale.quanta(amounts), end = amounts.length - 1;
  const rows = shown.map((each, i) => [
    prefixCell(each.name, 48, slotOf(each.name)), countCell(each.tasks, least), cell(scale.text(quanta[i]), amounts[i]), shareCell(shares[i]),
    cell("", shares[i], { slot: slotOf(each.name), bars: [["slot", shares[i]]] })]);
  if (hidden.length || account.others) {
    rows.push([cell(account.others ? "other tasks" : `other (${hidden.length})`), account.others ? cell("-", 0) : countCell(hidden.reduce((sum, each) => sum + each.tasks, 0), least), cell(scale.text(quanta[end - 1]), amounts[end - 1]), shareCell(shares[end - 1]), cell("")]);
  }
  rows.push([cell("no task"), cell("-", 0), cell(scale.text(quanta[end]), rest), shareCell(shares[end]), cell("")]);
  const last = [cell("Capacity"), countCell(account.tasks, least), cell(scale.text(quanta.reduce((a, b) => a + b, 0))), cell("100.0 %"), cell("")];
  return { name: "prefix-share", columns: [["prefix", false], ["tasks", true], [scale.unit, true], ["share", true], ["", false]], rows, last: account.capacity ? last : null };
}
function workerShareTable(account) {
  const shown = account.workers.slice(0, TOP), others = account.workers.slice(TOP), least = account.partial ? "≥ " : "";
  const amounts = shown.map((each) => each.capacity), sum = (list, of) => list.reduce((total, each) => total + of(each), 0);
  if (others.length) amounts.push(sum(others, (each) => each.capacity));
  const scale = scaleFor(account.capacity), quanta = scale.quanta(amounts), total = quanta.reduce((a, b) => a + b, 0);
  const row = (name, threads, tasks, capacity, amount, parts) => {
    const busy = capacity ? 100 * busyOf(parts) / capacity : 0;
    return [name, countCell(threads), countCell(tasks, least), cell(scale.text(amount), capacity), shareCell(busy), cell("", busy, { bars: partBars(parts, capacity) })];
  };
  const rows = shown.map((each, i) => row(workerCell(each.worker), each.worker.nthreads, each.tasks, each.capacity, quanta[i], each.parts));
  if (others.length) {
    const parts = noParts();
    others.forEach((each) => addParts(parts, each.parts));
    rows.push(row(cell(`other (${others.length})`), sum(others, (each) => each.worker.nthreads), sum(others, (each) => each.tasks), amounts.at(-1), quanta.at(-1), parts));
  }
  const busy = account.capacity ? 100 * busyOf(account.parts) / account.capacity : 0;
  const last = [cell("Capacity"), countCell(account.threads), countCell(account.tasks, least), cell(scale.text(total)), shareCell(busy), cell("")];
  return { name: "worker-share", columns: [["worker", false], ["threads", true], ["tasks", true], [scale.unit, true], ["in tasks", true], ["", false]], rows, last: account.capacity ? last : null };
}
function prefixTable(account, durations, slotOf) {
  const least = account.partial ? "≥ " : "", none = cell("-", -1, { title: "no run of this prefix has details in the recording" });
  const rows = account.prefixes.map((each) => {
    const known = durations.known[each.row], share = account.capacity ? 100 * busyOf(each.parts) / account.capacity : 0;
    const times = known ? [known.mean, known.median, known.p99, known.most].map(timeCell) : [none, none, none, none];
    return [prefixCell(each.name, 60, slotOf(each.name)), countCell(each.tasks, least), timeCell(busyOf(each.parts)), shareCell(share), ...times, timeCell(each.parts.decode + each.parts.encode), bytesCell(each.nbytes), countCell(each.erred, least)];
  });
  return {
    name: "prefixes", rows,
    columns: [["prefix", false], ["tasks", true], ["total", true], ["share", true], ["mean", true], ["median", true], ["99 %", true], ["longest", true], ["coding", true], ["results", true], ["erred", true]],
    note: "Mean to longest are of computing alone. Coding is decoding and encoding. Share is of the capacity." + leftOut(rows.length, "prefixes"),
  };
}
function slowestTable(data, rows, slotOf) {
  const { runs } = data, list = longest(data, rows, ROWS);
  return {
    name: "slowest",
    columns: [["key", false], ["prefix", false], ["computing", true], ["began at, s", true], ["result", true], ["worker", false], ["outcome", false]],
    rows: list.map((i) => [
      textCell(runs.keys[i], 70), prefixCell(runs.names[runs.prefixes[i]], 40, slotOf(runs.names[runs.prefixes[i]])), timeCell(runs.computes[i]),
      cell(fixed(runs.begins[i] / TICKS, 3), runs.begins[i]), bytesCell(runs.nbytes[i]), workerCell(data.workers[runs.workers[i]]), cell(runs.ok[i] ? "" : "erred")]),
    note: rows.length > list.length ? `The ${list.length} longest of ${countText(rows.length)} runs with details.` : "",
  };
}
function workerTable(account) {
  const least = account.partial ? "≥ " : "";
  const rows = account.workers.map((each) => {
    const { worker, parts } = each, joined = worker.joined > 0 ? `joined at ${fixed(worker.joined / TICKS, 3)} s, ` : "";
    const fate = worker.left === null ? "there at the end" : `left at ${fixed(Math.max(0, worker.left) / TICKS, 3)} s: ${worker.reason}`;
    return [workerCell(worker), textCell(worker.address, 40), countCell(worker.nthreads), countCell(each.tasks, least), countCell(each.erred, least), timeCell(busyOf(parts)), timeCell(parts.transfer), timeCell(parts.handover + parts.scheduler + parts.between), timeCell(parts.idle), bytesCell(each.nbytes), cell("", busyOf(parts), { bars: partBars(parts, each.capacity) }), textCell(joined + fate, 60)];
  });
  return {
    name: "workers", rows, note: leftOut(rows.length, "workers"),
    columns: [["worker", false], ["address", false], ["threads", true], ["tasks", true], ["erred", true], ["in tasks", true], ["waiting for data", true], ["other waiting", true], ["idle", true], ["results", true], ["time", false], ["presence", false]],
  };
}
// Cells to elements. Text is text: nothing that a user named is ever parsed.
function element(tag, className, text) {
  const result = document.createElement(tag);
  if (className) result.className = className;
  if (text !== undefined) result.textContent = text;
  return result;
}
function cellElement(each, number) {
  const td = element("td", number ? "n" : "");
  if (each.value !== null) td.dataset.v = each.value;
  if (each.title) td.title = each.title;
  const bars = each.bars || [];
  if (each.text && (each.slot >= 0 || bars.length)) td.append(element("i", "swatch " + (each.slot >= 0 ? "slot-" + each.slot : "part-" + bars[0][0])));
  else if (bars.length) {
    const box = td.appendChild(element("span", "bars"));
    for (const [name, percent] of bars) {
      const bar = box.appendChild(element("i", name === "slot" ? "slot-" + each.slot : "part-" + name));
      bar.style.width = percent.toFixed(2) + "%";
      if (name !== "slot") bar.title = `${name} ${percent.toFixed(1)} %`;
    }
  }
  if (each.go) {
    const link = td.appendChild(element("a", "go", each.text));
    link.href = hashOf({ ...state, ...each.go });
  } else td.append(each.text);
  return td;
}
// Fill a table that stands in the page. Sorting stays as it was; rows beyond the first are left to the note and the download.
function fill(table, { match = null } = {}) {
  const target = byId("table-" + table.name);
  if (!target) return;
  const head = target.tHead.rows[0];
  if (!head.cells.length) {
    head.append(...table.columns.map(([label, number]) => {
      const header = element("th", number ? "n" : ""), button = header.appendChild(element("button", "", label));
      header.scope = "col";
      button.type = "button";
      return header;
    }));
  } else table.columns.forEach(([label], i) => { const button = head.cells[i].querySelector("button"); if (button) button.textContent = label; });
  const rows = match ? table.rows.filter(match) : table.rows, sorted = sortedRows(target, rows);
  target.tBodies[0].replaceChildren(...sorted.slice(0, ROWS).map((row) => {
    const tr = element("tr");
    row.forEach((each, i) => tr.append(cellElement(each, table.columns[i][1])));
    return tr;
  }));
  if (target.tFoot || table.last) {
    const foot = target.tFoot || target.createTFoot();
    foot.replaceChildren();
    if (table.last) foot.append(element("tr")), table.last.forEach((each, i) => foot.rows[0].append(element("td", table.columns[i][1] ? "n" : "", each.text)));
  }
  const note = byId("note-" + table.name);
  if (note) note.textContent = match && rows.length < table.rows.length ? `${countText(rows.length)} of ${countText(table.rows.length)} rows match the search.` : table.note || "";
  tablesShown.set(table.name, table);
}
const tablesShown = new Map();
const sortKey = (each) => each.value !== null ? each.value : each.text;
const compareKeys = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
function sortedRows(target, rows) {
  const at = [...target.tHead.rows[0].cells].findIndex((header) => header.hasAttribute("aria-sort"));
  if (at < 0) return rows;
  const way = target.tHead.rows[0].cells[at].getAttribute("aria-sort") === "ascending" ? 1 : -1;
  return rows.map((row, i) => [row, i]).sort(([a, i], [b, j]) => way * compareKeys(sortKey(a[at]), sortKey(b[at])) || i - j).map(([row]) => row);
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("th button");
  if (!button) return;
  const header = button.parentElement, table = header.closest("table"), before = header.getAttribute("aria-sort");
  const ascending = before ? before !== "ascending" : !header.classList.contains("n");
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const known = tablesShown.get(table.id.slice(6));
  if (known) return fill(known, { match: searchMatch() });
  const value = (row) => { const td = row.cells[header.cellIndex]; return "v" in td.dataset ? Number(td.dataset.v) : td.textContent; };
  table.tBodies[0].append(...[...table.tBodies[0].rows].map((row) => [value(row), row]).sort(([a], [b]) => (ascending ? 1 : -1) * compareKeys(a, b)).map(([, row]) => row));
});
