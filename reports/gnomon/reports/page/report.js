"use strict";
// The page's behaviour: tabs in the URL, sorting, the recording decoded, and the task stream's level of detail.
// Without this script the page is one long readable document.
const gnomon = (() => {
  const byId = (id) => document.getElementById(id);

  // Tabs. The hash is the only state; where it can't be written (sandboxed frames) tabs still work.
  const sections = [...document.querySelectorAll("main > section")];
  const tabs = sections.map((section) => byId("tab-" + section.id));
  const shown = [];
  function show(name) {
    const at = Math.max(0, sections.findIndex((section) => section.id === name));
    sections.forEach((section, i) => { section.style.display = i === at ? "" : "none"; });
    tabs.forEach((tab, i) => {
      tab.setAttribute("aria-selected", i === at);
      tab.tabIndex = i === at ? 0 : -1;
    });
    shown.filter(([id]) => id === sections[at].id).forEach(([, act]) => act());
  }
  const named = () => new URLSearchParams(location.hash.slice(1)).get("tab") || "summary";
  function go(name) {
    try { history.pushState(null, "", "#tab=" + name); } catch { /* a sandboxed frame has no history */ }
    show(name);
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#tab="]');
    if (!link) return;
    event.preventDefault();
    go(link.getAttribute("href").slice(5));
    window.scrollTo(0, 0);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(event.target.tagName)) return;
    const at = tabs.indexOf(event.target);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key >= "1" && event.key <= String(sections.length)) go(sections[event.key - 1].id);
    else if (at >= 0 && step) {
      const next = (at + step + tabs.length) % tabs.length;
      go(sections[next].id);
      tabs[next].focus();
    }
  });
  window.addEventListener("popstate", () => show(named()));
  document.querySelector("nav").hidden = false;

  // Sorting: numbers by their exact value, text as text.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("th button");
    if (!button) return;
    const header = button.parentElement, table = header.closest("table"), body = table.tBodies[0];
    const column = header.cellIndex, number = header.classList.contains("n");
    const before = header.getAttribute("aria-sort");
    const way = before ? (before === "ascending" ? -1 : 1) : (number ? -1 : 1);
    for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    const value = (row) => {
      const cell = row.cells[column];
      return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
    };
    const rows = [...body.rows].map((row) => [value(row), row]);
    rows.sort(([a], [b]) => way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
    body.append(...rows.map(([, row]) => row));
  });

  // The recording: base64 of zlib-compressed msgpack, columns as [code, delta, bytes].
  function unpack(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), text = new TextDecoder();
    let at = 0;
    const take = (n) => bytes.subarray(at, at += n);
    const uint = (n) => { const v = n === 1 ? view.getUint8(at) : n === 2 ? view.getUint16(at) : n === 4 ? view.getUint32(at) : Number(view.getBigUint64(at)); at += n; return v; };
    const int = (n) => { const v = n === 1 ? view.getInt8(at) : n === 2 ? view.getInt16(at) : n === 4 ? view.getInt32(at) : Number(view.getBigInt64(at)); at += n; return v; };
    const many = (n) => { const list = []; for (let i = 0; i < n; i++) list.push(value()); return list; };
    const map = (n) => { const result = Object.create(null); for (let i = 0; i < n; i++) { const key = value(); result[key] = value(); } return result; };
    function value() {
      const b = uint(1);
      if (b < 0x80) return b;
      if (b < 0x90) return map(b & 15);
      if (b < 0xa0) return many(b & 15);
      if (b < 0xc0) return text.decode(take(b & 31));
      if (b >= 0xe0) return b - 256;
      switch (b) {
        case 0xc0: return null;
        case 0xc2: return false;
        case 0xc3: return true;
        case 0xc4: case 0xc5: case 0xc6: return take(uint(1 << (b - 0xc4)));
        case 0xca: at += 4; return view.getFloat32(at - 4);
        case 0xcb: at += 8; return view.getFloat64(at - 8);
        case 0xcc: case 0xcd: case 0xce: case 0xcf: return uint(1 << (b - 0xcc));
        case 0xd0: case 0xd1: case 0xd2: case 0xd3: return int(1 << (b - 0xd0));
        case 0xd9: case 0xda: case 0xdb: return text.decode(take(uint(1 << (b - 0xd9))));
        case 0xdc: case 0xdd: return many(uint(2 << (b - 0xdc)));
        case 0xde: case 0xdf: return map(uint(2 << (b - 0xde)));
      }
      throw new Error("unknown byte in the recording: " + b);
    }
    return value();
  }
  function column([code, delta, bytes]) {
    const copy = bytes.slice().buffer;  // aligned
    const kinds = { B: Uint8Array, H: Uint16Array, I: Uint32Array, i: Int32Array, q: BigInt64Array };
    const result = Float64Array.from(new kinds[code](copy), Number);
    if (delta) for (let i = 1; i < result.length; i++) result[i] += result[i - 1];
    return result;
  }
  function packed() {
    return Uint8Array.from(atob(byId("recording").textContent), (c) => c.charCodeAt(0));
  }
  async function recording() {
    const stream = new Blob([packed()]).stream().pipeThrough(new DecompressionStream("deflate"));
    const body = unpack(new Uint8Array(await new Response(stream).arrayBuffer()));
    const runs = { keys: body.runs.keys.split("\n"), names: body.runs.prefix_names };
    for (const name of ["prefixes", "workers", "threads", "begins", "decodes", "computes", "encodes", "ok"]) runs[name] = column(body.runs[name]);
    runs.ends = runs.begins.map((begin, i) => begin + runs.decodes[i] + runs.computes[i] + runs.encodes[i]);
    // A row whose worker is unknown was stored as -1, which an unsigned column can't hold, so the column is signed then.
    return { ticks: body.ticks, duration: body.duration, workers: body.workers, runs };
  }

  // Numbers as in the tables.
  function time(ticks, perSecond) {
    const s = ticks / perSecond, digits = (v) => v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2);
    if (s === 0) return "0 s";
    if (s >= 3600) return digits(s / 3600) + " h";
    if (s >= 120) return digits(s / 60) + " min";
    if (s >= 0.9995) return digits(s) + " s";
    if (s >= 0.9995e-3) return digits(s * 1e3) + " ms";
    if (s >= 0.9995e-6) return digits(s * 1e6) + " µs";
    return (s * 1e9).toFixed(0) + " ns";
  }
  const count = (n) => n.toLocaleString("en-US");
  const cut = (text, length) => text.length <= length ? text : text.slice(0, length * 2 / 3) + "…" + text.slice(text.length - length / 3);

  // The task stream: single tasks while they can be told apart, else one bar per lane and column (as the page's first view).
  function lanes(data) {
    const threads = data.workers.map(() => new Set()), unknown = new Set();
    data.runs.workers.forEach((worker, i) => (worker >= 0 ? threads[worker] : unknown).add(data.runs.threads[i]));
    const place = new Map();
    const add = (worker, set) => [...set].sort((a, b) => a - b).forEach((thread) => place.set(worker + ":" + thread, place.size));
    threads.forEach((set, worker) => {
      for (let i = 0; set.size < data.workers[worker][3]; i++) set.add(i);
      add(worker, set);
    });
    add(-1, unknown);
    return Float64Array.from(data.runs.workers, (worker, i) => place.get(worker + ":" + data.runs.threads[i]));
  }
  function detail(data, settings, lane, from, to) {
    const { runs, ticks } = data, begin = from * ticks, end = to * ticks;
    const visible = [];
    for (let i = 0; i < runs.begins.length; i++) if (runs.ends[i] >= begin && runs.begins[i] <= end) visible.push(i);
    const height = new Set(lane).size || 1;
    const out = { left: [], right: [], bottom: [], top: [], slot: [], key: [], took: [], where: [] };
    const where = (i) => {
      const worker = data.workers[runs.workers[i]];
      return (worker ? cut(/^\d+$/.test(worker[1]) ? "worker " + worker[1] : worker[1] || worker[2], 40) : "unknown worker") + ", thread " + runs.threads[i];
    };
    const add = (left, right, bottom, top, slot, key, took, place) => {
      out.left.push(left / ticks); out.right.push(right / ticks); out.bottom.push(bottom); out.top.push(top);
      out.slot.push(slot); out.key.push(key); out.took.push(took); out.where.push(place);
    };
    const slotOf = (i) => runs.ok[i] ? settings.slots[runs.prefixes[i]] : 11;
    let single = visible, merged = [];
    const cell = Math.max(1, Math.floor((end - begin) / Math.min(2000, Math.max(1, 4 * settings.limit / (5 * height)))));
    if (visible.length > settings.limit) {
      const length = (i) => runs.ends[i] - runs.begins[i];
      single = visible.filter((i) => length(i) >= 2 * cell).sort((a, b) => length(b) - length(a)).slice(0, settings.limit / 5);
      const alone = new Set(single);
      merged = visible.filter((i) => !alone.has(i));
    }
    const wide = (end - begin) / 400;  // decoding and encoding get a colour of their own where it can be seen
    for (const i of single) {
      const key = cut(runs.keys[i], 80), took = time(runs.ends[i] - runs.begins[i], ticks), place = where(i), y = lane[i];
      const started = runs.begins[i] + runs.decodes[i], ended = started + runs.computes[i];
      const parts = single.length <= settings.limit / 3;
      const split1 = parts && runs.decodes[i] > wide, split2 = parts && runs.encodes[i] > wide;
      if (split1) add(runs.begins[i], started, y + 0.08, y + 0.92, 10, key, "decoding " + time(runs.decodes[i], ticks), place);
      add(split1 ? started : runs.begins[i], split2 ? ended : runs.ends[i], y + 0.08, y + 0.92, slotOf(i), key, took, place);
      if (split2) add(ended, runs.ends[i], y + 0.08, y + 0.92, 10, key, "encoding " + time(runs.encodes[i], ticks), place);
    }
    const cells = new Map();
    for (const i of merged) {
      const start = Math.max(runs.begins[i], begin), stop = Math.min(runs.ends[i], end);
      for (let c = Math.floor((start - begin) / cell); c <= Math.floor((stop - begin) / cell); c++) {
        const low = begin + c * cell, id = lane[i] * 4096 + c;
        let bin = cells.get(id);
        if (!bin) cells.set(id, bin = { tasks: 0, slots: new Map() });
        bin.tasks++;
        const slot = slotOf(i), of = bin.slots.get(slot) || { ticks: 0, row: i };
        of.ticks += Math.max(0, Math.min(stop, low + cell) - Math.max(start, low));
        bin.slots.set(slot, of);
      }
    }
    for (const [id, bin] of cells) {
      const y = Math.floor(id / 4096), left = begin + (id % 4096) * cell;
      const ordered = [...bin.slots].sort((a, b) => b[1].ticks - a[1].ticks || a[0] - b[0]);
      const busy = ordered.reduce((sum, [, of]) => sum + of.ticks, 0) / cell, row = ordered[0][1].row;
      add(left, left + cell, y + 0.92 - 0.84 * Math.min(1, Math.max(0.04, busy)), y + 0.92, ordered[0][0],
        bin.tasks + " tasks, mostly " + cut(runs.names[runs.prefixes[row]], 40),
        "busy " + (100 * Math.min(1, busy)).toFixed(0) + " % of " + time(cell, ticks), where(row));
    }
    return { columns: out, alone: single.length, merged: merged.length, cell };
  }

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  function paint(document_, settings) {
    const style = getComputedStyle(document.documentElement), text = style.getPropertyValue("--text").trim(), line = style.getPropertyValue("--line").trim();
    const plot = document_.get_model_by_name("stream");
    for (const axis of [...plot.below, ...plot.left]) Object.assign(axis, { major_label_text_color: text, axis_label_text_color: text, axis_line_color: line, major_tick_line_color: line, minor_tick_line_color: line });
    for (const grid of plot.center) grid.grid_line_color = grid.grid_line_color === null ? null : line;
    plot.outline_line_color = line;
    document_.get_model_by_name("stream-colors").palette = dark.matches ? settings.dark : settings.light;
  }
  function notice(view, data) {
    const box = byId("stream-notice");
    box.hidden = view.merged === 0;
    box.textContent = view.merged === 0 ? "" :
      `Drawing ${count(view.alone)} of ${count(view.alone + view.merged)} tasks in view one by one; the ${count(view.merged)} shorter ones are merged into bars of ${time(view.cell, data.ticks)}, as high as the thread was busy. Zoom in to see single tasks. Totals use all tasks.`;
  }
  async function draw() {
    const settings = JSON.parse(byId("stream-settings").textContent);
    const views = await Bokeh.embed.embed_item(JSON.parse(byId("stream-item").textContent), "stream-plot");
    const document_ = Bokeh.documents[Bokeh.documents.length - 1];
    paint(document_, settings);
    dark.addEventListener("change", () => requestAnimationFrame(() => paint(document_, settings)));
    const data = await recording(), lane = lanes(data);
    const plot = document_.get_model_by_name("stream"), source = document_.get_model_by_name("stream-source");
    let asked = false;
    const refine = () => {
      asked = false;
      const view = detail(data, settings, lane, plot.x_range.start, plot.x_range.end);
      source.data = view.columns;
      notice(view, data);
    };
    const later = () => { if (!asked) { asked = true; requestAnimationFrame(refine); } };
    plot.x_range.change.connect(later);
    refine();
    return views;
  }
  let drawn = false;
  function stream() {
    const begin = () => {
      if (drawn) return;
      drawn = true;
      draw().catch((error) => {
        const box = byId("stream-notice");
        box.hidden = false;
        box.textContent = "The task stream could not be drawn: " + error.message;
      });
    };
    shown.push(["stream", begin]);
    if (named() === "stream") begin();
  }

  // The recording as a file.
  const link = document.createElement("a");
  link.textContent = "Save the recording (.gnomon)";
  link.download = "recording.gnomon";
  link.href = "#";
  link.addEventListener("click", () => { link.href = URL.createObjectURL(new Blob([packed()])); }, { once: true });
  byId("download").append(link);

  show(named());
  return { stream, recording, detail, lanes };
})();
