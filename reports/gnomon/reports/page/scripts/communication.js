// What moving data cost: the fetches of workers from each other, by transport, type and pair, and what their time was.
const FETCH_PARTS = {
  wait: ["Waiting to begin", "asked for, and every connection busy"], hold: ["Holder busy", "the holder had the request; its threads were in tasks"],
  serialise: ["Serialising", "the holder pickled the values"], wire: ["On the wire", "moving bytes, with connecting"],
};
const noFetches = () => ({ fetches: 0, nbytes: 0, ticks: 0, wait: 0, hold: 0, serialise: 0, wire: 0, measured: 0 });
function addFetches(sum, fetches, nbytes, ticks, wait, hold, serialise) {
  sum.fetches += fetches; sum.nbytes += nbytes; sum.ticks += ticks;
  if (!(hold >= 0)) return sum;
  sum.measured += fetches; sum.wait += Math.max(0, wait); sum.hold += hold; sum.serialise += Math.max(0, serialise); sum.wire += Math.max(0, ticks - hold - Math.max(0, serialise));
  return sum;
}
// Fetches with details that ended in the range, of a worker if one is asked for: calls `act` with the row.
function fetchesIn({ from, to, worker = -1 }, act) {
  const { transfers } = data, whole = isAll({ from, to });
  for (let i = 0; i < transfers.tos.length; i++) {
    const end = transfers.begins[i] + transfers.lengths[i];
    if ((whole || (end > from && end <= to)) && (worker < 0 || transfers.froms[i] === worker || transfers.tos[i] === worker)) act(i);
  }
}
function movedIn(wanted) {
  const { worker } = wanted, me = data.workers[worker]?.id;
  let sum = 0;
  if (isAll(wanted)) { for (const [source, target, , , nbytes] of data.pairs) if (worker < 0 || source === me || target === me) sum += nbytes; }
  else fetchesIn(wanted, (i) => { sum += data.transfers.nbytes[i]; });
  return sum;
}
const fetchAt = (i) => { const { transfers: t } = data, known = t.holds.length > i; return [1, t.nbytes[i], t.lengths[i], known ? t.waits[i] : -1, known ? t.holds[i] : -1, known ? t.serialises[i] : -1]; };
const rateCell = (nbytes, ticks) => cell(ticks ? bytesText(nbytes * TICKS / ticks) + "/s" : "-", ticks ? nbytes * TICKS / ticks : 0);
const sumCells = (sum) => [countCell(sum.fetches), bytesCell(sum.nbytes), timeCell(sum.ticks), rateCell(sum.nbytes, sum.ticks)];
const partCells = (sum) => Object.keys(FETCH_PARTS).map((name) => sum.measured ? timeCell(sum[name]) : cell("-", -1, { title: "not measured in this recording" }));
const splitCell = (sum) => { const all = sum.wait + sum.ticks; return cell("", sum.ticks, { bars: sum.measured && all ? Object.keys(FETCH_PARTS).map((name) => ["fetch-" + name, 100 * sum[name] / all]) : [] }); };

// What moved: complete sums for the whole run; for a part of it, the fetches with details that ended in it.
function pairTable(data, { from, to, worker = -1 }) {
  const { transfers } = data, byId = new Map(data.workers.map((each) => [each.id, each])), sums = new Map();
  const add = (source, target, transport, amounts) => {
    const name = source + " " + target + " " + transport;
    if (!sums.has(name)) sums.set(name, { source, target, transport, ...noFetches() });
    addFetches(sums.get(name), ...amounts);
  };
  const id = (row) => data.workers[row] ? data.workers[row].id : -1, me = worker >= 0 ? id(worker) : null;
  if (isAll({ from, to })) { for (const [source, target, transport, ...amounts] of data.pairs) if (me === null || source === me || target === me) add(source, target, transport, amounts); }
  else fetchesIn({ from, to, worker }, (i) => add(id(transfers.froms[i]), id(transfers.tos[i]), transfers.names[transfers.transports[i]], fetchAt(i)));
  const list = [...sums.values()].map((each, i) => [each, i]).sort(([a, i], [b, j]) => b.nbytes - a.nbytes || i - j).map(([each]) => each);
  const rows = list.map((each) => {
    const name = (id) => byId.has(id) ? workerCell(byId.get(id)) : cell(each.source === -2 ? "all further pairs" : "unknown");
    return [name(each.source), name(each.target), cell(each.transport), ...sumCells(each), ...partCells(each)];
  });
  return { name: "pairs", list, rows, columns: [["from", false], ["to", false], ["by", false], ["fetches", true], ["moved", true], ["time", true], ["rate", true], ["waited", true], ["holder busy", true], ["serialising", true], ["wire", true]], note: leftOut(rows.length, "pairs") };
}
// By type: complete sums of values for the whole run, else fetches with details.
function typeTable({ from, to, worker = -1 }) {
  const complete = isAll({ from, to }) && worker < 0, sums = new Map(), { transfers } = data;
  const add = (name, amounts) => { if (!sums.has(name)) sums.set(name, noFetches()); addFetches(sums.get(name), ...amounts); };
  if (complete) for (const [name, ...amounts] of data.types) add(name, amounts);
  else if (transfers.types.length) fetchesIn({ from, to, worker }, (i) => add(transfers.typeNames[transfers.types[i]], fetchAt(i)));
  const rows = [...sums].sort(([, a], [, b]) => b.nbytes - a.nbytes).map(([name, sum]) => [textCell(name || "(not known)", 40), ...sumCells(sum), splitCell(sum)]);
  const note = !data.types.length && !transfers.types.length ? "Types were not recorded." : "Small values of plain types, and scattered or copied data, have no type here." + (complete ? "" : " Of fetches with details.");
  return { name: "types", rows, columns: [["type", false], [complete ? "values" : "fetches", true], ["moved", true], ["time", true], ["rate", true], ["where it went", false]], note: note + leftOut(rows.length, "types") };
}
function showFetching(list) {
  const sum = list.reduce((sum, each) => { for (const name in sum) sum[name] += each[name]; return sum; }, noFetches()), names = Object.keys(FETCH_PARTS), shares = percentages(names.map((name) => sum[name]));
  showBar(byId("fetching"), names.map((name, i) => ["part-fetch-" + name, shares[i], `${FETCH_PARTS[name][0]} ${plain(shares[i], 1)} %`]), 10).hidden = !sum.measured;
  const all = sum.wait + sum.hold + sum.serialise + sum.wire, unknown = sum.fetches - sum.measured;
  fill({
    name: "fetching", columns: [["fetches' time", false], ["time", true], ["share", true], ["what it is", false]],
    rows: sum.measured ? names.map((name, i) => [cell(FETCH_PARTS[name][0], null, { bars: [["fetch-" + name, 100]] }), timeCell(sum[name]), shareCell(shares[i]), cell(FETCH_PARTS[name][1])]) : [],
    last: sum.measured ? [cell("From asked to arrived"), cell(timeText(all)), cell("100.0 %"), cell("fetches side by side count each")] : null,
    note: (unknown ? `Not told of ${countText(unknown)} of ${countText(sum.fetches)} fetches.` : "") + (state.prefix ? " Fetches are not told by prefix: these are of all tasks." : ""),
  });
}
// From whom to whom, by worker or, above a hundred, by host.
function showMatrix(list) {
  const byHost = data.workers.length > 100, group = new Map(data.workers.map((each) => [each.id, byHost ? each.host : each.label])), names = [...new Set(data.workers.map((each) => group.get(each.id)))], sums = new Map();
  for (const each of list) { const name = group.get(each.source) + "\n" + group.get(each.target); sums.set(name, (sums.get(name) || 0) + each.nbytes); }
  const most = Math.max(1, ...sums.values()), table = element("table", "matrix"), ink = "var(--transfer)", head = table.createTHead().insertRow(), body = table.createTBody(), title = (text, length, scope) => { const th = element("th", "", cut(text, length)); th.scope = scope; return th; };
  table.append(element("caption", "sr", "Bytes moved, from rows to columns"));
  head.append(element("td", "", "from / to"), ...names.map((name) => title(name, 14, "col")));
  for (const source of names) {
    const row = body.insertRow();
    row.append(title(source, 20, "row"));
    for (const target of names) {
      const nbytes = sums.get(source + "\n" + target) || 0, td = row.appendChild(element("td", "n", names.length <= 12 && nbytes ? bytesText(nbytes) : ""));
      td.title = `${source} to ${target}: ${nbytes ? bytesText(nbytes) : "nothing"}`;
      if (nbytes) td.style.background = `color-mix(in srgb, ${ink} ${Math.round(8 + 44 * nbytes / most)}%, var(--ground))`;
    }
  }
  byId("matrix").replaceChildren(table);
}
function showCommunication() {
  if (!byId("table-pairs")) return;
  const pairs = pairTable(data, query()), byTransport = new Map();
  fill(pairs, { match: searchMatch() });
  for (const each of pairs.list) {
    if (!byTransport.has(each.transport)) byTransport.set(each.transport, noFetches());
    const sum = byTransport.get(each.transport);
    for (const name in sum) sum[name] += each[name];
  }
  const rows = [...byTransport].map(([name, sum]) => [cell(name || "further pairs"), ...sumCells(sum), splitCell(sum)]);
  fill({ name: "transports", columns: [["by", false], ["fetches", true], ["moved", true], ["time", true], ["rate", true], ["where it went", false]], rows });
  fill(typeTable(query()), { match: searchMatch() });
  showFetching(pairs.list);
  showMatrix(pairs.list);
}
