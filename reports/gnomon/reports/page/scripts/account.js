// The time account for any range, prefix and worker: the same rules as in Python, on the same whole ticks.
const PARTS = ["compute", "offcpu", "decode", "encode", "transfer", "handover", "scheduler", "between", "idle", "unaccounted"];
const BUSY = PARTS.slice(0, 4), GAPS = ["idle", "between", "scheduler", "handover", "transfer"];
const STEPS = ["handover", "transfer", "scheduler"];
const noParts = () => Object.fromEntries(PARTS.map((name) => [name, 0]));
const addParts = (to, from) => { for (const name of PARTS) to[name] += from[name]; };
const busyOf = (parts) => parts.compute + parts.offcpu + parts.decode + parts.encode;
const overlap = (begin, end, low, high) => Math.max(0, Math.min(end, high) - Math.max(begin, low));
const onProcessor = (runs, i) => runs.cpus[i] < 0 ? runs.computes[i] : Math.min(runs.cpus[i], runs.computes[i]);
const spread = (amount, length, until) => until >= length ? amount : Math.floor(until * (amount / length));

// What a worker's idle threads waited for: from an edge on, a step or nothing.
function stepsOf(changes) {
  const order = changes.map((_, i) => i).sort((a, b) => changes[a][0] - changes[b][0]);
  const counts = new Array(7).fill(0), edges = [], kinds = [], sums = [[], [], [], []];
  for (const i of order) {
    const [time, what, change] = changes[i], last = edges.length - 1;
    counts[what] += change;
    const kind = counts[4] > 0 ? 0 : counts[3] > 0 || counts[5] > 0 ? 1 : counts[1] > 0 || (counts[2] > 0 && counts[6] <= 0) ? 2 : 3;
    if (last >= 0 && edges[last] === time) { kinds[last] = kind; continue; }
    if (last >= 0 && kinds[last] === kind) continue;
    sums.forEach((each, number) => each.push((last >= 0 ? each[last] : 0) + (last >= 0 && kinds[last] === number ? time - edges[last] : 0)));
    edges.push(time);
    kinds.push(kind);
  }
  const until = (time) => {
    let low = 0, high = edges.length;
    while (low < high) { const mid = (low + high) >> 1; if (edges[mid] <= time) low = mid + 1; else high = mid; }
    if (!low) return [0, 0, 0];
    const result = [sums[0][low - 1], sums[1][low - 1], sums[2][low - 1], 0];
    result[kinds[low - 1]] += time - edges[low - 1];
    return result;
  };
  return (begin, end) => {
    if (!edges.length || end <= begin) return [0, 0, 0];
    const first = until(begin), last = until(end);
    return [last[0] - first[0], last[1] - first[1], last[2] - first[2]];
  };
}
function waitingOf(data) {
  const { transfers, runs, demand } = data, changes = data.workers.map(() => []);
  for (let i = 0; i < transfers.tos.length; i++) {
    const begin = transfers.begins[i], end = begin + transfers.lengths[i];
    if (transfers.tos[i] >= 0 && end > begin) changes[transfers.tos[i]].push([begin, 5, 1], [end, 5, -1]);
  }
  if (demand.known) {
    for (let i = 0; i < runs.count; i++) if (runs.workers[i] >= 0) changes[runs.workers[i]].push([runs.begins[i], 6, 1], [runs.ends[i], 6, -1]);
    const state = new Map(), order = [...demand.times.keys()].sort((a, b) => demand.times[a] - demand.times[b] || a - b);
    for (const i of order) {
      const worker = demand.workers[i], kind = demand.kinds[i], value = demand.values[i], name = worker * 8 + kind;
      if ((state.get(name) || 0) === value || kind < 1 || kind > 4) continue;
      state.set(name, value);
      for (const each of worker === -1 ? changes : worker >= 0 ? [changes[worker]] : []) each.push([demand.times[i], kind, value ? 1 : -1]);
    }
  }
  return changes.map(stepsOf);
}

// Lay the runs of every worker into as many slots as it has threads; done once. What lies between is gaps.
function layOut(data) {
  const { runs, workers } = data, rows = workers.map(() => []), known = data.demand.known;
  const laid = { begins: new Float64Array(runs.count), ends: new Float64Array(runs.count), beside: [], gaps: [], steps: waitingOf(data) };
  for (let i = 0; i < runs.count; i++) {
    laid.begins[i] = laid.ends[i] = NaN;
    if (runs.workers[i] >= 0) rows[runs.workers[i]].push(i);
    else laid.beside.push([-1, Math.max(0, runs.begins[i]), Math.min(runs.ends[i], data.duration)]);
  }
  workers.forEach((worker, w) => {
    const { low, high } = worker, slots = Array.from({ length: worker.nthreads }, () => ({ end: low, used: false })), mine = new Map();
    for (const i of rows[w].sort((a, b) => runs.begins[a] - runs.begins[b])) {
      const start = runs.begins[i], stop = runs.ends[i];
      let slot = mine.get(runs.threads[i]);
      if (!slot || slot.end > start) {
        if (!slots.length) { laid.beside.push([w, start, stop]); continue; }
        slot = slots.reduce((least, each) => each.end < least.end ? each : least);
        mine.set(runs.threads[i], slot);
      }
      const begin = Math.min(Math.max(start, slot.end), high), finish = Math.min(Math.max(stop, begin), high);
      laid.beside.push([w, Math.max(start, low), Math.min(begin, stop)]);
      if (begin > slot.end) laid.gaps.push([w, slot.end, begin, slot.used, false]);
      laid.begins[i] = begin;
      laid.ends[i] = finish;
      slot.end = Math.max(slot.end, finish);
      slot.used = true;
    }
    for (const slot of slots) if (high > slot.end) laid.gaps.push([w, slot.end, high, slot.used, true]);
  });
  laid.beside = laid.beside.filter(([, begin, end]) => end > begin);
  laid.known = known;
  return laid;
}

// The account between two ticks. `prefix` and `worker` are rows, or -1 for all; runs count where they ended.
function accountOf(data, { from, to, prefix = -1, worker = -1 }) {
  const { runs, laid } = data, whole = from <= 0 && to >= data.duration;
  const per = (items) => items.map(() => ({ tasks: 0, erred: 0, nbytes: 0, parts: noParts() }));
  const byPrefix = per(runs.names), byWorker = per(data.workers);
  byWorker.forEach((each, w) => Object.assign(each, { alongside: 0, lead: 0, others: 0, capacity: data.workers[w].nthreads * overlap(data.workers[w].low, data.workers[w].high, from, to) }));
  const shares = [0, 0, 0, 0];
  for (let i = 0; i < runs.count; i++) {
    const w = runs.workers[i], p = runs.prefixes[i];
    if (worker >= 0 && w !== worker) continue;
    const mine = prefix < 0 || p === prefix;
    if (mine && (whole || (runs.ends[i] > from && runs.ends[i] <= to))) {
      for (const each of w >= 0 ? [byPrefix[p], byWorker[w]] : [byPrefix[p]]) {
        each.tasks++;
        each.nbytes += runs.nbytes[i];
        if (!runs.ok[i]) each.erred++;
      }
    }
    const begin = Math.max(laid.begins[i], from), finish = Math.min(laid.ends[i], to);
    if (!(finish > begin)) continue;
    if (!mine) { byWorker[w].others += finish - begin; continue; }
    const started = runs.begins[i] + runs.decodes[i], ended = started + runs.computes[i];
    shares[2] = overlap(runs.begins[i], started, begin, finish);
    shares[3] = overlap(ended, runs.ends[i], begin, finish);
    const first = Math.max(started, begin) - started, after = Math.min(ended, finish) - started;
    shares[0] = shares[1] = 0;
    if (after > first) {
      const cpu = onProcessor(runs, i);
      shares[0] = spread(cpu, runs.computes[i], after) - spread(cpu, runs.computes[i], first);
      shares[1] = after - first - shares[0];
    }
    for (let part = 0; part < 4; part++) {
      byPrefix[p].parts[BUSY[part]] += shares[part];
      byWorker[w].parts[BUSY[part]] += shares[part];
    }
  }
  for (const [w, gapBegin, gapEnd, used, last] of laid.gaps) {
    if (worker >= 0 && w !== worker) continue;
    const begin = Math.max(gapBegin, from), end = Math.min(gapEnd, to);
    if (end <= begin) continue;
    const parts = byWorker[w].parts;
    let rest = end - begin;
    if (laid.known || !last) laid.steps[w](begin, end).forEach((ticks, n) => { parts[STEPS[n]] += ticks; rest -= ticks; });
    if (used && !laid.known && !last) parts.between += rest;
    else {
      parts.idle += rest;
      if (!used) byWorker[w].lead += rest;
    }
  }
  const result = { from, to, whole, tasks: 0, erred: 0, nbytes: 0, capacity: 0, alongside: 0, others: 0, parts: noParts(), partial: !whole && data.missed > 0 };
  for (const [w, begin, end] of laid.beside) {
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
  const { runs } = data, whole = from <= 0 && to >= data.duration, counts = new Uint32Array(runs.names.length), rows = [];
  for (let i = 0; i < runs.count; i++) {
    if ((prefix >= 0 && runs.prefixes[i] !== prefix) || (worker >= 0 && runs.workers[i] !== worker)) continue;
    if (whole || (runs.ends[i] > from && runs.ends[i] <= to)) { rows.push(i); counts[runs.prefixes[i]]++; }
  }
  const lists = Array.from(counts, (count) => new Float64Array(count)), filled = new Uint32Array(counts.length);
  for (const i of rows) lists[runs.prefixes[i]][filled[runs.prefixes[i]]++] = runs.computes[i];
  const known = lists.map((list) => {
    if (!list.length) return null;
    list.sort();
    const last = list.length - 1;
    return { mean: Math.floor(list.reduce((a, b) => a + b, 0) / list.length), median: list[last >> 1], p99: list[Math.ceil(last * 99 / 100)], most: list[last], list };
  });
  return { known, rows };
}
function longest(data, rows, count) {
  const value = data.runs.computes;
  let least = -1;
  if (rows.length > 4 * count) {  // a threshold first: sorting all rows would be slow
    const sample = Float64Array.from(rows, (i) => value[i]).sort();
    least = sample[sample.length - count];
  }
  return rows.filter((i) => value[i] >= least).sort((a, b) => value[b] - value[a] || a - b).slice(0, count);
}
