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
  const of = new Uint32Array(runs.count), known = [...workers, null].map(() => new Map());  // the last one is of unknown workers
  for (let i = 0; i < runs.count; i++) {
    const worker = runs.workers[i], thread = runs.threads[i], lanes = known[worker < 0 ? workers.length : worker];
    let row = lanes.get(thread);
    if (row === undefined) lanes.set(thread, row = place.get(name(worker, thread)));
    of[i] = row;
  }
  return { of, count: Math.max(1, place.size), widths, level };
}

// For each run whether it passes prefix, worker and search.
function matching() {
  const name = JSON.stringify([state.prefix, state.worker, state.search]);
  if (data.matches?.name === name) return data.matches;
  const { runs } = data, { prefix, worker } = query(), wanted = state.search.toLowerCase(), flags = new Uint8Array(runs.count);
  const named = runs.names.map((each) => !wanted || each.toLowerCase().includes(wanted));
  const keys = wanted && (runs.lower ||= runs.keys.map((key) => key.toLowerCase()));
  let count = 0;
  for (let i = 0; i < runs.count; i++) {
    const flag = (prefix < 0 || runs.prefixes[i] === prefix) && (worker < 0 || runs.workers[i] === worker) && (named[runs.prefixes[i]] || keys[i].includes(wanted)) ? 1 : 0;
    flags[i] = flag;
    count += flag;
  }
  data.matches = { name, flags, count, any: Boolean(state.prefix || state.worker || state.search) };
  return data.matches;
}

// Rectangles in columns, as many as there is room for. `row` is a run, `part` which part of it: all, decoding, encoding; or how many are merged.
function canvasOf(room) {
  const all = columnsOf(room, "left right bottom top slot row part busy"), { left, right, bottom, top, slot, row, part, busy } = all;
  const canvas = {
    ...all, count: 0,
    add(from, to, low, high, color, i, what, share) {
      const at = canvas.count++;
      left[at] = from / TICKS; right[at] = to / TICKS; bottom[at] = low; top[at] = high; slot[at] = color; row[at] = i; part[at] = what; busy[at] = share;
    },
    columns: () => byName(["left", "right", "bottom", "top", "slot"], (name) => all[name].subarray(0, canvas.count)),
  };
  return canvas;
}
const ALL = 0, DECODING = -1, ENCODING = -2;
function detail(from, to, limit = settings.limit) {
  const { runs } = data, begin = from * TICKS, end = to * TICKS, lanes = data.lanes, { flags } = matching(), found = new Uint32Array(runs.count);
  let size = 0;
  for (let i = 0; i < runs.count; i++) if (runs.ends[i] >= begin && runs.begins[i] <= end) found[size++] = i;
  const visible = found.subarray(0, size), none = found.subarray(0, 0), slots = runs.names.map((name) => settings.slots[name] ?? 9);
  const slotAt = (i) => !flags[i] ? GREYED : runs.ok[i] ? slots[runs.prefixes[i]] : ERRED;
  let single = visible, merged = none;
  const cells = Math.min(2000, Math.max(1, Math.floor(4 * limit / (5 * lanes.count)))), width = Math.max(1, Math.floor((end - begin) / cells));
  if (lanes.level !== "thread") [single, merged] = [none, visible];
  else if (visible.length > limit) {
    const length = (i) => runs.ends[i] - runs.begins[i];
    single = largest(visible.filter((i) => length(i) >= 2 * width), length, limit / 5);
    const alone = new Uint8Array(runs.count);
    for (const i of single) alone[i] = 1;
    merged = visible.filter((i) => !alone[i]);
  }
  const thin = (end - begin) / 2000;  // about as narrow as can be seen
  const wide = (end - begin) / 400;  // decoding and encoding get a colour of their own where it can be seen
  const canvas = canvasOf((merged.length ? lanes.count * (cells + 2) : limit + 2) + single.length);
  let spare = merged.length ? 0 : limit - single.length;
  for (const i of single) {
    const y = lanes.of[i], slot = slotAt(i), started = runs.begins[i] + runs.decodes[i], ended = started + runs.computes[i], parts = spare > 1 && slot !== GREYED;
    const before = parts && runs.decodes[i] > wide, after = parts && runs.encodes[i] > wide;
    spare -= before + after;
    if (before) canvas.add(runs.begins[i], started, y + 0.08, y + 0.92, CODING, i, DECODING, 0);
    canvas.add(before ? started : runs.begins[i], after ? ended : Math.max(runs.ends[i], runs.begins[i] + thin), y + 0.08, y + 0.92, slot, i, ALL, 0);
    if (after) canvas.add(ended, runs.ends[i], y + 0.08, y + 0.92, CODING, i, ENCODING, 0);
  }
  if (merged.length) mergeInto(canvas, merged, slotAt, { begin, end, cells, width });
  return { canvas, columns: canvas.columns(), alone: single.length, merged: merged.length, cell: width };
}
// One bar for each cell of lane and column that the runs touch, as high as it was busy.
function mergeInto(canvas, merged, slotAt, { begin, end, cells, width }) {
  const { runs, lanes } = data, wideCells = cells + 2, size = lanes.count * wideCells;
  const ticks = new Float64Array(size * SLOTS), first = new Int32Array(size * SLOTS).fill(-1), tasks = new Uint32Array(size);
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
    const y = Math.floor(id / wideCells), left = begin + (id % wideCells) * width, share = all / width / lanes.widths[y];
    canvas.add(left, left + width, y + 0.92 - 0.84 * Math.min(1, Math.max(0.04, share)), y + 0.92, slot, first[id * SLOTS + slot], tasks[id], share);
  }
}
// What a rectangle that is drawn says of itself: key, time and place.
function textsOf(at) {
  const { runs } = data, { canvas, cell: width } = drawnDetail, i = canvas.row[at], part = canvas.part[at], worker = data.workers[runs.workers[i]];
  const where = (worker ? cut(worker.label, 40) : "unknown worker") + (data.lanes.level === "thread" ? ", thread " + runs.threads[i] : "");
  if (part > 0) return { key: part + " tasks, mostly " + cut(runs.names[runs.prefixes[i]], 40), took: "busy " + (100 * Math.min(1, canvas.busy[at])).toFixed(0) + " % of " + timeText(width), where };
  const took = part === DECODING ? "decoding " + timeText(runs.decodes[i]) : part === ENCODING ? "encoding " + timeText(runs.encodes[i]) : timeText(runs.ends[i] - runs.begins[i]);
  return { key: cut(runs.keys[i], 80), took, where };
}
function tooltip(_, { index }) {
  const { key, took, where } = textsOf(index), box = element("div", "tip");
  for (const [name, text] of [["task", key], ["took", took], ["on", where]]) {
    const line = box.appendChild(element("div"));
    line.append(element("b", "", name + " "), text);
  }
  return box;
}

const model = (name) => timelineDocument.get_model_by_name(name), inView = () => model("stream").x_range;
// Bokeh stands in the page as text. Run from a file of the page's own it is compiled beside the main thread, and whole (its
// first line asks for that); as a script of the page it stopped the page for half a second. Where such files are forbidden, it is run so.
function loadBokeh() {
  const text = byId("bokeh")?.textContent;
  if (!text) return Promise.resolve();
  const script = element("script"), url = URL.createObjectURL(new Blob(["//# allFunctionsCalledOnLoad\n", text], { type: "text/javascript" }));
  return new Promise((resolve) => {
    script.onload = resolve;
    script.onerror = () => resolve(document.head.append(Object.assign(element("script"), { text })));
    script.src = url;
    document.head.append(script);
  }).then(() => URL.revokeObjectURL(url));
}
const bokehLoaded = loadBokeh();
let timelineDocument = null, plotViews = [], preparing = null, drawnDetail = null, drawnOf = "", fitWanted = false, shown = 0;  // how often it was shown, drawn to the last
function paint() {
  if (!timelineDocument) return;
  const text = colorOf("--text"), line = colorOf("--line");
  for (const plot of model("timeline").children) {
    for (const axis of [...plot.below, ...plot.left]) Object.assign(axis, { major_label_text_color: text, axis_label_text_color: text, axis_line_color: line, major_tick_line_color: line, minor_tick_line_color: line });
    for (const grid of plot.center) if (grid.grid_line_color !== undefined && grid.name !== "none") grid.grid_line_color = line;
    plot.outline_line_color = line;
    plot.title && (plot.title.text_color = text);
  }
  for (const name of ["outside-left", "outside-right"]) model(name).fill_color = colorOf("--ground");
  model("stream-colors").palette = isDark() ? settings.dark : settings.light;
}
themeActs.push(paint);

// Give a source new columns. Setting them as usual has Bokeh take them in twice.
function give(name, columns) {
  const source = model(name);
  source.setv({ data: columns }, { silent: true });
  source.properties.data.change.emit();
}
// The rectangles of some rows as one patch: a pattern is then made once, not for each of them.
function outlines({ left, right, bottom, top }, rows) {
  const x = new Float64Array(5 * rows.length).fill(NaN), y = x.slice();
  rows.forEach((row, i) => { x.set([left[row], left[row], right[row], right[row]], 5 * i); y.set([bottom[row], top[row], top[row], bottom[row]], 5 * i); });
  return { x, y };
}
// Paint at once what changed; Bokeh by itself waits for the next frame.
const repaint = () => state.tab === "timeline" && plotViews.forEach((each) => each.repaint?.());
// Draw what is in view, unless it is there already.
function refine() {
  if (!timelineDocument) return;
  const { start, end } = inView(), wanted = JSON.stringify([start, end, state.from, state.to, state.prefix, state.worker, state.search]);
  if (wanted === drawnOf) return;
  drawnOf = wanted;
  const view = drawnDetail = detail(start, end), { slot } = view.columns;
  give("stream-source", view.columns);
  for (const [name, marked] of [["erred", (each) => each === ERRED], ["repeated", (each) => each >= 12 && each < GREYED]]) {
    const columns = outlines(view.columns, slot.reduce((rows, each, i) => { if (marked(each)) rows.push(i); return rows; }, []));
    if (columns.x.length || model("stream-" + name).data.x.length) give("stream-" + name, columns);
  }
  showNotice(view);
  const from = isWhole() ? -1e9 : state.from / TICKS, to = isWhole() ? 1e9 : state.to / TICKS, left = model("outside-left"), right = model("outside-right");
  if (left.right !== from) left.right = from;
  if (right.left !== to) right.left = to;
}
function showNotice(view) {
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
}
function view(from, to) {
  const full = settings.duration / TICKS, least = Math.max(1e-6, full / 1e6);
  const width = Math.min(full, Math.max(least, to - from)), middle = (from + to) / 2, start = Math.max(0, Math.min(full - width, middle - width / 2));
  inView().setv({ start, end: start + width });
}
// At each paint Bokeh writes anew where everything is, and each time the browser computes styles again. Glyphs have nothing
// in the page that could be elsewhere; the rest seldom moves.
function keepPlaces(plot) {
  for (const { position, glyph } of plot.computed_renderer_views ?? []) {
    const write = position?.replace;
    let last = "";
    if (write) position.replace = (css) => { if (!glyph && css !== last) write.call(position, last = css); };
  }
}
const fit = () => isWhole() ? view(0, settings.duration / TICKS) : view(state.from / TICKS, state.to / TICKS);
// The chart, once: made before anyone asks, while the page has nothing else to do. It keeps its size while another tab is shown.
function prepareTimeline() {
  if (!byId("timeline-item")) return Promise.resolve();
  preparing ||= (async () => {
    await bokehLoaded;
    byId("timeline").classList.add("prepared");
    data.lanes = lanesOf();
    const made = Bokeh.require("document").Document.from_json(JSON.parse(byId("timeline-item").textContent).doc);
    await pause();
    const { roots } = await Bokeh.embed.add_document_standalone(made, byId("timeline-plot"));
    plotViews = roots[0]?.child_views ?? [];
    plotViews.forEach(keepPlaces);
    timelineDocument = made;
    model("stream-hover").tooltips = tooltip;
    paint();
    inView().change.connect(() => later("refine", refine));
    fitWanted = !isWhole();
  })();
  return preparing;
}
async function drawTimeline() {
  if (!timelineDocument) await prepareTimeline();
  if (!timelineDocument) return;
  if (fitWanted) fit();
  fitWanted = false;
  refine();
  shown++;
}
const zoom = (factor) => { const { start, end } = inView(), middle = (start + end) / 2, half = (end - start) / 2 * factor; view(middle - half, middle + half); };
const pan = (share) => { const { start, end } = inView(), shift = share * (end - start); view(start + shift, end + shift); };
const onTimeline = (act) => () => { if (state.tab === "timeline" && timelineDocument) act(); };
Object.assign(keyActs, { w: onTimeline(() => zoom(0.5)), s: onTimeline(() => zoom(2)), a: onTimeline(() => pan(-0.25)), d: onTimeline(() => pan(0.25)), f: onTimeline(fit) });
byId("select-view")?.addEventListener("click", () => { if (timelineDocument) { const { start, end } = inView(); setRange(start * TICKS, end * TICKS); } });

// n and p: the next or previous task that the search finds; without a search, that raised.
let cursor = -1;
function step(way) {
  const { runs } = data, { flags } = matching(), { from, to } = query();
  const wanted = (i) => flags[i] && (state.search || !runs.ok[i]) && runs.ends[i] > from && runs.begins[i] < to;
  const byTime = data.laid.order ||= sortedBy(runs.begins);
  let at = cursor;
  do at += way; while (at >= 0 && at < runs.count && !wanted(byTime[at]));
  const box = byId("found"), row = byTime[at];
  box.hidden = false;
  if (row === undefined) { box.textContent = way > 0 ? "No further task matches." : "No earlier task matches."; return; }
  cursor = at;
  const worker = data.workers[runs.workers[row]], what = runs.ok[row] ? "" : ", raised";
  box.textContent = `${cut(runs.keys[row], 80)}: began at ${fixed(runs.begins[row] / TICKS, 3)} s, took ${timeText(runs.ends[row] - runs.begins[row])} on ${worker ? worker.label : "an unknown worker"}${what}.`;
  if (!timelineDocument) return;
  const { start, end } = inView(), half = Math.max((end - start) / 2, (runs.ends[row] - runs.begins[row]) / TICKS), middle = (runs.begins[row] + runs.ends[row]) / 2 / TICKS;
  if (runs.begins[row] / TICKS < start || runs.ends[row] / TICKS > end) view(middle - half, middle + half);
  const lane = data.lanes.of[row];
  Object.assign(model("found-box"), { left: runs.begins[row] / TICKS, right: runs.ends[row] / TICKS, bottom: lane, top: lane + 1, line_color: colorOf("--text"), visible: true });
}
keyActs.n = () => step(1);
keyActs.p = () => step(-1);
onChange(() => { cursor = -1; byId("found").hidden = true; });
