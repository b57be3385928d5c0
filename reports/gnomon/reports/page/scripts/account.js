// The time account for any range, prefix and worker: the same rules as in Python, on the same whole ticks.
const PARTS = ["compute", "offcpu", "decode", "encode", "transfer", "handover", "scheduler", "between", "idle", "unaccounted"];
const BUSY = PARTS.slice(0, 4), GAPS = ["idle", "between", "scheduler", "handover", "transfer"];
const STEPS = ["handover", "transfer", "scheduler"];
const noParts = () => byName(PARTS, () => 0);
const addParts = (to, from) => { for (const name of PARTS) to[name] += from[name]; };
const isAll = ({ from, to }) => from <= 0 && to >= data.duration;
const busyOf = (parts) => parts.compute + parts.offcpu + parts.decode + parts.encode;
const overlap = (begin, end, low, high) => Math.max(0, Math.min(end, high) - Math.max(begin, low));
const onProcessor = (runs, i) => runs.cpus[i] < 0 ? runs.computes[i] : Math.min(runs.cpus[i], runs.computes[i]);
const spread = (amount, length, until) => until >= length ? amount : Math.floor(until * (amount / length));

const columnsOf = (length, names) => byName(names.split(" "), () => new Float64Array(length));
// Rows by a column of whole numbers, equal ones in their order. By digits: comparing a million rows takes seconds.
function sortedBy(values) {
  const count = values.length, low = new Uint32Array(count), high = new Uint32Array(count), starts = new Uint32Array(4097);
  const least = values.reduce((a, b) => Math.min(a, b), 0), range = values.reduce((a, b) => Math.max(a, b), 0) - least;
  let rows = low.map((_, i) => i), spare = new Uint32Array(count);
  for (let i = 0; i < count; i++) { high[i] = Math.floor((values[i] - least) / 2 ** 24); low[i] = values[i] - least - high[i] * 2 ** 24; }
  for (let bits = 0; 2 ** bits <= range; bits += 12) {
    const part = bits < 24 ? low : high, shift = bits % 24;
    starts.fill(0);
    for (let i = 0; i < count; i++) starts[(part[i] >>> shift & 4095) + 1]++;
    for (let digit = 1; digit <= 4096; digit++) starts[digit] += starts[digit - 1];
    for (let i = 0; i < count; i++) { const row = rows[i]; spare[starts[part[row] >>> shift & 4095]++] = row; }
    [rows, spare] = [spare, rows];
  }
  return rows;
}
// Values apart by owner, from 0 on, each list in their order; the one behind the last owner's holds those of nobody (-1).
function apart(values, owners, count) {
  const ends = new Uint32Array(count + 1), place = (at) => owners[at] < 0 ? count : owners[at], sorted = values.slice();
  for (let at = 0; at < values.length; at++) ends[place(at)]++;
  for (let owner = 1; owner <= count; owner++) ends[owner] += ends[owner - 1];
  for (let at = values.length - 1; at >= 0; at--) sorted[--ends[place(at)]] = values[at];
  return Array.from(ends, (begin, owner) => sorted.subarray(begin, ends[owner + 1]));
}

// What a worker's idle threads waited for: from an edge on, a step or nothing. Events are its own, and those of all workers.
function stepsOf(own, all) {
  const most = own.length + all.length, edges = new Float64Array(most), kinds = new Uint8Array(most), sums = STEPS.map(() => new Float64Array(most)), counts = new Int32Array(7);
  let size = 0;
  for (let a = 0, b = 0; a < own.length || b < all.length;) {
    const event = b >= all.length || (a < own.length && own[a] <= all[b]) ? own[a++] : all[b++], time = Math.floor(event / 16), what = event - 16 * time, last = size - 1;
    counts[what >> 1] += what & 1 ? 1 : -1;
    const kind = counts[4] > 0 ? 0 : counts[3] > 0 || counts[5] > 0 ? 1 : counts[1] > 0 || (counts[2] > 0 && counts[6] <= 0) ? 2 : 3;
    if (size && edges[last] === time) { kinds[last] = kind; continue; }
    if (size && kinds[last] === kind) continue;
    for (let step = 0; size && step < 3; step++) sums[step][size] = sums[step][last] + (kinds[last] === step ? time - edges[last] : 0);
    edges[size] = time;
    kinds[size++] = kind;
  }
  return { size, edges, kinds, sums };
}
// Add to `out`, from a place on, what lies between two times, by step.
function addSteps({ size, edges, kinds, sums }, begin, end, out, place) {
  const add = (time, sign) => {
    let low = -1, high = size;
    while (high - low > 1) { const middle = (low + high) >> 1; if (edges[middle] <= time) low = middle; else high = middle; }
    for (let step = 0; low >= 0 && step < 3; step++) out[place + step] += sign * (sums[step][low] + (kinds[low] === step ? time - edges[low] : 0));
  };
  add(begin, -1);
  add(end, 1);
}
// An event is one number, so that sorting compares nothing else: when, of what, and whether there is one more or one less.
async function waitingOf({ transfers, runs, demand, workers }) {
  const most = 2 * transfers.tos.length + (demand.known ? 2 * runs.count + demand.times.length : 0), { owners, events } = columnsOf(most, "owners events");
  let size = 0;
  const add = (owner, time, what, more) => { owners[size] = owner; events[size++] = 16 * time + 2 * what + more; };
  const during = (owner, begin, end, what) => { add(owner, begin, what, 1); add(owner, end, what, 0); };
  for (let i = 0; i < transfers.tos.length; i++) if (transfers.tos[i] >= 0 && transfers.lengths[i] > 0) during(transfers.tos[i], transfers.begins[i], transfers.begins[i] + transfers.lengths[i], 5);
  if (demand.known) {
    for (let i = 0; i < runs.count; i++) if (runs.workers[i] >= 0) during(runs.workers[i], runs.begins[i], runs.ends[i], 6);
    const state = new Uint8Array(8 * (workers.length + 1));
    for (const i of sortedBy(demand.times)) {
      const worker = demand.workers[i], kind = demand.kinds[i], value = demand.values[i], name = 8 * (worker + 1) + kind;
      if (worker < -1 || kind < 1 || kind > 4 || state[name] === value) continue;
      state[name] = value;
      add(worker, demand.times[i], kind, value ? 1 : 0);
    }
  }
  const lists = apart(events.subarray(0, size), owners, workers.length), all = lists.pop().sort(), steps = [];
  for (const own of lists) {
    await breathe();
    steps.push(stepsOf(own.sort(), all));
  }
  return steps;
}

// Lay the runs of every worker into as many slots as it has threads; done once. What lies between is gaps. `steps` are those of `waitingOf`.
async function layOut(data, steps) {
  const { runs, workers } = data, { begins, ends, threads } = runs, most = runs.count + workers.reduce((sum, worker) => sum + worker.nthreads, 0), known = data.demand.known;
  const laid = { known, ...columnsOf(runs.count, "begins ends"), beside: [], steps };  // a run without a slot begins and ends at 0
  const gaps = laid.gaps = { count: 0, steps: new Float64Array(3 * most), ...columnsOf(most, "workers begins ends used last") };
  const beside = (worker, begin, end) => { if (end > begin) laid.beside.push([worker, begin, end]); };
  const gap = (worker, begin, end, used, last) => {
    if (!(end > begin)) return;
    const at = gaps.count++;
    gaps.workers[at] = worker; gaps.begins[at] = begin; gaps.ends[at] = end; gaps.used[at] = used; gaps.last[at] = last;
    if (known || !last) addSteps(steps[worker], begin, end, gaps.steps, 3 * at);
  };
  const lists = apart(new Uint32Array(runs.count).map((_, i) => i), runs.workers, workers.length);
  for (const i of lists.pop()) beside(-1, Math.max(0, begins[i]), Math.min(ends[i], data.duration));
  const layWorker = (rows, w) => {
    const { low, high, nthreads } = workers[w], until = new Float64Array(nthreads).fill(low), used = new Uint8Array(nthreads), mine = new Map();
    const starts = new Float64Array(rows.length).map((_, at) => begins[rows[at]]);
    for (const at of sortedBy(starts)) {
      const i = rows[at], start = starts[at], stop = ends[i], thread = threads[i];
      let slot = mine.get(thread);
      if (slot === undefined || until[slot] > start) {
        if (!nthreads) { beside(w, start, stop); continue; }
        slot = 0;
        for (let each = 1; each < nthreads; each++) if (until[each] < until[slot]) slot = each;
        mine.set(thread, slot);
      }
      const free = until[slot], begin = Math.min(Math.max(start, free), high), finish = Math.min(Math.max(stop, begin), high);
      beside(w, Math.max(start, low), Math.min(begin, stop));
      gap(w, free, begin, used[slot], 0);
      laid.begins[i] = begin;
      laid.ends[i] = finish;
      until[slot] = Math.max(free, finish);
      used[slot] = 1;
    }
    for (let slot = 0; slot < nthreads; slot++) gap(w, until[slot], high, used[slot], 1);
  };
  for (const [w, rows] of lists.entries()) {
    await breathe();
    layWorker(rows, w);
  }
  return laid;
}

// The account between two ticks. `prefix` and `worker` are rows, or -1 for all; runs count where they ended.
function accountOf(data, { from, to, prefix = -1, worker = -1 }) {
  const whole = isAll({ from, to }), size = PARTS.length, { runs, workers } = data;
  const sums = ({ length }) => ({ ...columnsOf(length, "tasks erred nbytes others lead"), parts: new Float64Array(size * length) });
  const ofPrefix = sums(runs.names), ofWorker = sums(workers), wanted = { from, to, prefix, worker, whole };
  addRuns(data, wanted, ofPrefix, ofWorker);
  addGaps(data, wanted, ofWorker);
  const per = (items, of) => items.map((_, row) => ({ tasks: of.tasks[row], erred: of.erred[row], nbytes: of.nbytes[row], parts: byName(PARTS, (_, part) => of.parts[size * row + part]) }));
  const byPrefix = per(runs.names, ofPrefix), byWorker = per(workers, ofWorker);
  byWorker.forEach((each, w) => Object.assign(each, { alongside: 0, lead: ofWorker.lead[w], others: ofWorker.others[w], capacity: workers[w].nthreads * overlap(workers[w].low, workers[w].high, from, to) }));
  const result = { from, to, whole, tasks: 0, erred: 0, nbytes: 0, capacity: 0, alongside: 0, others: 0, parts: noParts(), partial: !whole && data.missed > 0 };
  for (const [w, begin, end] of data.laid.beside) {
    const ticks = overlap(begin, end, from, to);
    if (w < 0) { if (worker < 0) result.alongside += ticks; } else byWorker[w].alongside += ticks;
  }
  if (data.missed > 0 && prefix < 0) addLost(data, byWorker, byPrefix, whole && worker < 0);
  byWorker.forEach((each, w) => {
    if (worker >= 0 && w !== worker) { each.capacity = 0; each.alongside = 0; }
    result.capacity += each.capacity;
    result.alongside += each.alongside;
    result.others += each.others;
    addParts(result.parts, each.parts);
  });
  for (const each of byPrefix) for (const name of ["tasks", "erred", "nbytes"]) result[name] += each[name];
  result.prefixes = byPrefix.map((each, row) => ({ ...each, row, name: runs.names[row] }))
    .filter((each) => each.tasks || busyOf(each.parts)).sort((a, b) => busyOf(b.parts) - busyOf(a.parts) || b.tasks - a.tasks || (a.name < b.name ? -1 : 1));
  result.workers = byWorker.map((each, row) => ({ ...each, row, worker: data.workers[row] })).filter((each) => each.capacity || (whole && worker < 0) || each.row === worker);
  result.threads = result.workers.reduce((sum, each) => sum + each.worker.nthreads, 0);
  return result;
}

// Count the runs, and add what of them lies in the range.
function addRuns({ runs, laid }, { from, to, prefix, worker, whole }, ofPrefix, ofWorker) {
  const { workers, prefixes, begins, ends, decodes, computes, ok, nbytes } = runs, size = PARTS.length;
  let w = 0, p = 0;
  const count = (of, row, i) => { of.tasks[row]++; of.nbytes[row] += nbytes[i]; if (!ok[i]) of.erred[row]++; };
  const put = (part, ticks) => { ofPrefix.parts[size * p + part] += ticks; ofWorker.parts[size * w + part] += ticks; };
  for (let i = 0; i < runs.count; i++) {
    w = workers[i]; p = prefixes[i];
    const mine = prefix < 0 || p === prefix, stop = ends[i];
    if (worker >= 0 && w !== worker) continue;
    if (mine && (whole || (stop > from && stop <= to))) {
      count(ofPrefix, p, i);
      if (w >= 0) count(ofWorker, w, i);
    }
    const begin = Math.max(laid.begins[i], from), finish = Math.min(laid.ends[i], to);
    if (!(finish > begin)) continue;
    if (!mine) { ofWorker.others[w] += finish - begin; continue; }
    const started = begins[i] + decodes[i], ended = started + computes[i], on = onProcessor(runs, i);
    const first = Math.max(begin, started) - started, after = Math.min(finish, ended) - started;
    if (after > first) {
      const compute = spread(on, computes[i], after) - spread(on, computes[i], first);
      put(0, compute);
      put(1, after - first - compute);
    }
    put(2, overlap(begins[i], started, begin, finish));
    put(3, overlap(ended, stop, begin, finish));
  }
}
// Add what of the gaps lies in the range.
function addGaps({ laid }, { from, to, worker }, ofWorker) {
  const { gaps, known } = laid, out = new Float64Array(3);
  const put = (w, name, ticks) => { ofWorker.parts[PARTS.length * w + PARTS.indexOf(name)] += ticks; };
  for (let i = 0; i < gaps.count; i++) {
    const w = gaps.workers[i], begin = Math.max(gaps.begins[i], from), end = Math.min(gaps.ends[i], to);
    if (!(end > begin) || (worker >= 0 && w !== worker)) continue;
    const all = begin === gaps.begins[i] && end === gaps.ends[i];
    out.fill(0);
    if (!all && (known || !gaps.last[i])) addSteps(laid.steps[w], begin, end, out, 0);
    let rest = end - begin;
    for (let step = 0; step < 3; step++) {
      const ticks = all ? gaps.steps[3 * i + step] : out[step];
      put(w, STEPS[step], ticks);
      rest -= ticks;
    }
    put(w, gaps.used[i] && !known && !gaps.last[i] ? "between" : "idle", rest);
    if (!gaps.used[i]) ofWorker.lead[w] += rest;
  }
}

// Runs without details: the whole run has complete totals; in a part of it, nobody knows what a thread did before its first known run.
function addLost(data, byWorker, byPrefix, whole) {
  byWorker.forEach((each, w) => {
    const totals = whole && data.worker_totals.find((row) => row[0] === data.workers[w].id);
    if (whole && (!totals || totals[1] <= each.tasks)) return;
    if (!whole) {
      each.parts.unaccounted += each.lead;
      each.parts.idle -= each.lead;
      return;
    }
    const missing = lostParts(totals, knownOf(data).workers[w]), wanted = missing.reduce((a, b) => a + b, 0);
    const granted = Math.min(wanted, GAPS.reduce((sum, name) => sum + each.parts[name], 0)), unknown = Math.max(0, each.lead - granted);
    each.alongside += wanted - granted;
    let left = granted;
    for (const name of GAPS) { const taken = Math.min(left, each.parts[name]); each.parts[name] -= taken; left -= taken; }
    each.parts.unaccounted += unknown;
    each.parts.idle -= unknown;
    each.lost = apportion(granted, missing);
    each.lost.forEach((ticks, n) => { each.parts[BUSY[n]] += ticks; });
    [each.tasks, each.erred, each.nbytes] = totals.slice(1, 4);
  });
  if (!whole) return;
  const missing = data.prefixes.map((totals) => lostParts(totals, knownOf(data).prefixes[data.runs.names.indexOf(totals[0])] || [0, 0, 0, 0]));
  const rowOf = (name) => { const row = data.runs.names.indexOf(name); return row >= 0 ? row : byPrefix.push({ tasks: 0, erred: 0, nbytes: 0, parts: noParts() }) && data.runs.names.push(name) - 1; };
  BUSY.forEach((part, n) => {
    const lost = byWorker.reduce((sum, each) => sum + (each.lost ? each.lost[n] : 0), 0);
    apportion(lost, missing.map((each) => each[n])).forEach((ticks, at) => { byPrefix[rowOf(data.prefixes[at][0])].parts[part] += ticks; });
  });
  for (const [name, ...amounts] of data.prefixes) Object.assign(byPrefix[rowOf(name)], { tasks: amounts[0], erred: amounts[1], nbytes: amounts[2] });
}
// Sums over all runs with details, by worker and prefix: computing, waiting, decoding, encoding.
function knownOf(data) {
  if (data.sums) return data.sums;
  const { runs } = data, none = () => [0, 0, 0, 0];
  data.sums = { workers: data.workers.map(none), prefixes: runs.names.map(none) };
  for (let i = 0; i < runs.count; i++) {
    const on = onProcessor(runs, i), amounts = [on, runs.computes[i] - on, runs.decodes[i], runs.encodes[i]];
    for (const sums of [data.sums.workers[runs.workers[i]], data.sums.prefixes[runs.prefixes[i]]]) if (sums) amounts.forEach((ticks, n) => { sums[n] += ticks; });
  }
  return data.sums;
}
function lostParts([, , , , decode, compute, encode, cpu, measured], known) {
  const off = Math.min(compute, Math.max(0, measured - cpu));
  return [compute - off, off, decode, encode].map((total, n) => Math.max(0, total - known[n]));
}

// Computing times by prefix of the runs that ended in a range, and the rows of those that computed longest.
function durationsOf(data, { from, to, prefix = -1, worker = -1 }) {
  const { runs } = data, whole = isAll({ from, to }), counts = new Uint32Array(runs.names.length), found = new Uint32Array(runs.count);
  let size = 0;
  for (let i = 0; i < runs.count; i++) {
    if ((prefix >= 0 && runs.prefixes[i] !== prefix) || (worker >= 0 && runs.workers[i] !== worker)) continue;
    if (whole || (runs.ends[i] > from && runs.ends[i] <= to)) { found[size++] = i; counts[runs.prefixes[i]]++; }
  }
  const rows = found.slice(0, size), lists = Array.from(counts, (count) => new Float64Array(count)), filled = new Uint32Array(counts.length);
  for (const i of rows) lists[runs.prefixes[i]][filled[runs.prefixes[i]]++] = runs.computes[i];
  const known = lists.map((list) => {
    if (!list.length) return null;
    list.sort();
    const last = list.length - 1;
    return { mean: Math.floor(list.reduce((a, b) => a + b, 0) / list.length), median: list[last >> 1], p99: list[Math.ceil(last * 99 / 100)], most: list[last], list };
  });
  return { known, rows };
}
function longest({ runs: { computes } }, rows, count) {
  return Array.from(largest(rows, (i) => computes[i], count)).sort((a, b) => computes[b] - computes[a] || a - b);
}
// The `most` rows of the greatest values, in their order; of equal ones the first.
function largest(rows, value, most) {
  if (rows.length <= most) return rows;
  const greatest = new Float64Array(4 * most);  // of the rows so far, and those that may still be among them
  let size = 0, bound = -Infinity, equal = most;
  const keep = () => { greatest.subarray(0, size).sort(); greatest.copyWithin(0, size - most, size); bound = greatest[0]; size = most; };
  for (const i of rows) {
    if (value(i) > bound) greatest[size++] = value(i);
    if (size === greatest.length) keep();
  }
  keep();
  for (const i of rows) if (value(i) > bound) equal--;
  return rows.filter((i) => value(i) > bound || (value(i) === bound && equal-- > 0));
}
