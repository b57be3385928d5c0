// The timeline: single tasks while they can be told apart, else one bar per lane and column; what a filter leaves out is grey.
const GREYED = 21, ERRED = 11, CODING = 10, MAX_LANES = 200, SLOTS = 22;

// Which lane each run is in: its thread's, or its worker's or host's where there are too many. As Python labels them.
function lanesOf() {
  const { runs, workers } = data, threads = workers.map(() => new Set()), unknown = new Set();
  for (let i = 0; i < runs.count; i++) (runs.workers[i] >= 0 ? threads[runs.workers[i]] : unknown).add(runs.threads[i]);
  threads.forEach((set, worker) => { for (let i = 0; set.size < workers[worker].nthreads; i++) set.add(i); });
  const total = threads.reduce((sum, set) => sum + set.size, unknown.size);
  const place = new Map(), widths = [], lane = (name, width) => {
    if (!place.has(name)) { place.set(name, place.size); widths.push(0); }
    widths[place.get(name)] += width;
  };
  const level = total <= MAX_LANES ? "thread" : workers.length <= MAX_LANES ? "worker" : "host";
  const name = (worker, thread) => level === "thread" ? worker + ":" + thread : worker < 0 ? "?" : level === "worker" ? String(worker) : "h" + workers[worker].host;
  threads.forEach((set, worker) => [...set].sort((a, b) => a - b).forEach((thread) => lane(name(worker, thread), 1)));
  [...unknown].sort((a, b) => a - b).forEach((thread) => lane(name(-1, thread), 1));
  const of = new Uint32Array(runs.count);
  for (let i = 0; i < runs.count; i++) of[i] = place.get(name(runs.workers[i], runs.threads[i]));
  return { of, count: Math.max(1, place.size), widths, level };
}

// For each run whether it passes prefix, worker and search.
function matching() {
  const name = JSON.stringify([state.prefix, state.worker, state.search]);
  if (data.matches && data.matches.name === name) return data.matches;
  const { runs } = data, { prefix, worker } = query(), wanted = state.search.toLowerCase(), flags = new Uint8Array(runs.count);
  const named = runs.names.map((each) => each.toLowerCase().includes(wanted));
  let count = 0;
  for (let i = 0; i < runs.count; i++) {
    flags[i] = (prefix < 0 || runs.prefixes[i] === prefix) && (worker < 0 || runs.workers[i] === worker)
      && (!wanted || named[runs.prefixes[i]] || runs.keys[i].toLowerCase().includes(wanted)) ? 1 : 0;
    count += flags[i];
  }
  data.matches = { name, flags, count, any: Boolean(state.prefix || state.worker || state.search) };
  return data.matches;
}

function detail(from, to, limit = settings.limit) {
  const { runs } = data, begin = from * TICKS, end = to * TICKS, lanes = data.lanes, { flags } = matching(), visible = [];
  for (let i = 0; i < runs.count; i++) if (runs.ends[i] >= begin && runs.begins[i] <= end) visible.push(i);
  const out = { left: [], right: [], bottom: [], top: [], slot: [], key: [], took: [], where: [] };
  const where = (i) => {
    const worker = data.workers[runs.workers[i]];
    return (worker ? cut(worker.label, 40) : "unknown worker") + (lanes.level === "thread" ? ", thread " + runs.threads[i] : "");
  };
  const add = (left, right, bottom, top, slot, key, took, place) => {
    out.left.push(left / TICKS); out.right.push(right / TICKS); out.bottom.push(bottom); out.top.push(top); out.slot.push(slot);
    out.key.push(key); out.took.push(took); out.where.push(place);
  };
  const slots = runs.names.map((name) => settings.slots[name] ?? 9);
  const slotAt = (i) => !flags[i] ? GREYED : runs.ok[i] ? slots[runs.prefixes[i]] : ERRED;
  let single = visible, merged = [];
  const cells = Math.min(2000, Math.max(1, Math.floor(4 * limit / (5 * lanes.count)))), width = Math.max(1, Math.floor((end - begin) / cells));
  if (lanes.level !== "thread") [single, merged] = [[], visible];
  else if (visible.length > limit) {
    const length = (i) => runs.ends[i] - runs.begins[i];
    single = visible.filter((i) => length(i) >= 2 * width).sort((a, b) => length(b) - length(a)).slice(0, limit / 5);
    const alone = new Set(single);
    merged = visible.filter((i) => !alone.has(i));
  }
  const wide = (end - begin) / 400;  // decoding and encoding get a colour of their own where it can be seen
  let spare = merged.length ? 0 : limit - single.length;
  for (const i of single) {
    const key = cut(runs.keys[i], 80), took = timeText(runs.ends[i] - runs.begins[i]), place = where(i), y = lanes.of[i], slot = slotAt(i);
    const started = runs.begins[i] + runs.decodes[i], ended = started + runs.computes[i], parts = spare > 1 && slot !== GREYED;
    const before = parts && runs.decodes[i] > wide, after = parts && runs.encodes[i] > wide;
    spare -= before + after;
    if (before) add(runs.begins[i], started, y + 0.08, y + 0.92, CODING, key, "decoding " + timeText(runs.decodes[i]), place);
    add(before ? started : runs.begins[i], after ? ended : runs.ends[i], y + 0.08, y + 0.92, slot, key, took, place);
    if (after) add(ended, runs.ends[i], y + 0.08, y + 0.92, CODING, key, "encoding " + timeText(runs.encodes[i]), place);
  }
  // Per lane, column and slot: ticks, and the first run; per lane and column: how many tasks.
  const wideCells = cells + 2, size = merged.length ? lanes.count * wideCells : 0, ticks = new Float64Array(size * SLOTS), first = new Int32Array(size * SLOTS).fill(-1), tasks = new Uint32Array(size);
  for (const i of merged) {
    const start = Math.max(runs.begins[i], begin), stop = Math.min(runs.ends[i], end), slot = slotAt(i), base = lanes.of[i] * wideCells;
    for (let c = Math.floor((start - begin) / width), last = Math.floor((stop - begin) / width); c <= last; c++) {
      const low = begin + c * width, at = (base + c) * SLOTS + slot;
      tasks[base + c]++;
      ticks[at] += Math.max(0, Math.min(stop, low + width) - Math.max(start, low));
      if (first[at] < 0) first[at] = i;
    }
  }
  for (let id = 0; id < size; id++) {
    if (!tasks[id]) continue;
    let all = 0, slot = -1;
    for (let each = 0; each < SLOTS; each++) {
      const at = id * SLOTS + each;
      if (first[at] < 0) continue;
      all += ticks[at];
      if (slot < 0 || slot === GREYED || (each !== GREYED && ticks[at] > ticks[id * SLOTS + slot])) slot = each;
    }
    const y = Math.floor(id / wideCells), left = begin + (id % wideCells) * width, share = all / width / lanes.widths[y], row = first[id * SLOTS + slot];
    add(left, left + width, y + 0.92 - 0.84 * Math.min(1, Math.max(0.04, share)), y + 0.92, slot,
      tasks[id] + " tasks, mostly " + cut(runs.names[runs.prefixes[row]], 40), "busy " + (100 * Math.min(1, share)).toFixed(0) + " % of " + timeText(width), where(row));
  }
  return { columns: out, alone: single.length, merged: merged.length, cell: width };
}

const model = (name) => timelineDocument.get_model_by_name(name);
let openGate = null;
const gate = new Promise((resolve) => { openGate = resolve; });
let timelineDocument = null, drawing = null, drawnDetail = null;
function paint() {
  if (!timelineDocument) return;
  const text = colorOf("--text"), line = colorOf("--line");
  for (const plot of timelineDocument.get_model_by_name("timeline").children) {
    for (const axis of [...plot.below, ...plot.left]) Object.assign(axis, { major_label_text_color: text, axis_label_text_color: text, axis_line_color: line, major_tick_line_color: line, minor_tick_line_color: line });
    for (const grid of plot.center) if (grid.grid_line_color !== undefined && grid.name !== "none") grid.grid_line_color = line;
    plot.outline_line_color = line;
    plot.title && (plot.title.text_color = text);
  }
  for (const name of ["outside-left", "outside-right"]) model(name).fill_color = colorOf("--ground");
  model("stream-colors").palette = isDark() ? settings.dark : settings.light;
}
themeActs.push(paint);

function refine() {
  if (!timelineDocument) return;
  const range = model("stream").x_range, view = detail(range.start, range.end);
  drawnDetail = view;
  model("stream-source").data = view.columns;
  for (const [name, wanted] of [["erred", (slot) => slot === ERRED], ["repeated", (slot) => slot >= 12 && slot < GREYED]]) {
    const rows = [...view.columns.slot.keys()].filter((i) => wanted(view.columns.slot[i]));
    model("stream-" + name).data = Object.fromEntries(["left", "right", "bottom", "top"].map((side) => [side, rows.map((i) => view.columns[side][i])]));
  }
  const notes = [];
  if (view.merged) {
    notes.push(data.lanes.level === "thread"
      ? `Drawing ${countText(view.alone)} of ${countText(view.alone + view.merged)} tasks in view one by one; the ${countText(view.merged)} shorter ones are merged into bars of ${timeText(view.cell)}, as high as the thread was busy. Zoom in to see single tasks. Totals use all tasks.`
      : `There are more than ${MAX_LANES} threads, so each lane is a ${data.lanes.level}: its ${countText(view.merged)} tasks in view are merged into bars of ${timeText(view.cell)}, as high as its threads were busy. Choose a worker to see less. Totals use all tasks.`);
  }
  const { any, count } = matching();
  if (any) notes.push(`${countText(count)} of ${countText(data.runs.count)} tasks pass the filter; the others are grey.`);
  const box = byId("timeline-notice");
  box.hidden = !notes.length;
  box.textContent = notes.join(" ");
  const from = isWhole() ? -1e9 : state.from / TICKS, to = isWhole() ? 1e9 : state.to / TICKS;
  model("outside-left").right = from;
  model("outside-right").left = to;
}
function view(from, to) {
  const full = settings.duration / TICKS, least = Math.max(1e-6, full / 1e6);
  const width = Math.min(full, Math.max(least, to - from)), middle = (from + to) / 2, start = Math.max(0, Math.min(full - width, middle - width / 2));
  model("stream").x_range.setv({ start, end: start + width });
}
const fit = () => isWhole() ? view(0, settings.duration / TICKS) : view(state.from / TICKS, state.to / TICKS);
function drawTimeline() {
  if (!byId("timeline-item")) return Promise.resolve();
  drawing = drawing || (async () => {
    await gate;
    await Bokeh.embed.embed_item(JSON.parse(byId("timeline-item").textContent), "timeline-plot");
    timelineDocument = Bokeh.documents.at(-1);
    data.lanes = lanesOf();
    paint();
    model("stream").x_range.change.connect(() => later("refine", refine));
    if (!isWhole()) fit();
    refine();
  })();
  return drawing;
}
const zoom = (factor) => { const { start, end } = model("stream").x_range, middle = (start + end) / 2, half = (end - start) / 2 * factor; view(middle - half, middle + half); };
const pan = (share) => { const { start, end } = model("stream").x_range, shift = share * (end - start); view(start + shift, end + shift); };
const onTimeline = (act) => () => { if (state.tab === "timeline" && timelineDocument) act(); };
Object.assign(keyActs, { w: onTimeline(() => zoom(0.5)), s: onTimeline(() => zoom(2)), a: onTimeline(() => pan(-0.25)), d: onTimeline(() => pan(0.25)), f: onTimeline(fit) });
byId("select-view")?.addEventListener("click", () => { if (timelineDocument) { const { start, end } = model("stream").x_range; setRange(start * TICKS, end * TICKS); } });

// n and p: the next or previous task that the search finds; without a search, that raised.
let cursor = -1;
function step(way) {
  const { runs } = data, { flags } = matching(), { from, to } = query();
  const wanted = (i) => flags[i] && (state.search || !runs.ok[i]) && runs.ends[i] > from && runs.begins[i] < to;
  data.byTime = data.byTime || [...runs.begins.keys()].sort((a, b) => runs.begins[a] - runs.begins[b]);
  let at = cursor;
  do at += way; while (at >= 0 && at < runs.count && !wanted(data.byTime[at]));
  const box = byId("found"), row = data.byTime[at];
  box.hidden = false;
  if (row === undefined) { box.textContent = way > 0 ? "No further task matches." : "No earlier task matches."; return; }
  cursor = at;
  const worker = data.workers[runs.workers[row]], what = runs.ok[row] ? "" : ", raised";
  box.textContent = `${cut(runs.keys[row], 80)}: began at ${fixed(runs.begins[row] / TICKS, 3)} s, took ${timeText(runs.ends[row] - runs.begins[row])} on ${worker ? worker.label : "an unknown worker"}${what}.`;
  if (!timelineDocument) return;
  const { start, end } = model("stream").x_range, half = Math.max((end - start) / 2, (runs.ends[row] - runs.begins[row]) / TICKS), middle = (runs.begins[row] + runs.ends[row]) / 2 / TICKS;
  if (runs.begins[row] / TICKS < start || runs.ends[row] / TICKS > end) view(middle - half, middle + half);
  const lane = data.lanes.of[row];
  Object.assign(model("found-box"), { left: runs.begins[row] / TICKS, right: runs.ends[row] / TICKS, bottom: lane, top: lane + 1, line_color: colorOf("--text"), visible: true });
}
keyActs.n = () => step(1);
keyActs.p = () => step(-1);
onChange(() => { cursor = -1; byId("found").hidden = true; });
