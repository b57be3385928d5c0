/* The page of the flame graph: draws a Layout on a canvas the size of the window, and tells in text what is selected. */

(() => {
  const ROW = 19, PAD = 4, SMALLEST = 0.6;
  const HUES = ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#44bb99", "#bbcc33", "#99ddff", "#c79fef"];
  const profile = JSON.parse(document.getElementById("profile").textContent);
  const { functions, nodes } = profile;
  const $ = (id) => document.getElementById(id);
  const view = $("view"), canvas = $("canvas"), pen = canvas.getContext("2d"), tip = $("tip");
  const state = { order: "heavy", thread: -1, busy: false, from: 0, to: 1, selected: 0, zoomed: 0, query: "" };
  let layout, hits = [], hitSet = new Set(), hit = -1, colours, widths = new Map(), waiting = false;

  // ---------------------------------------------------------------- words

  const digits = (x) => (x >= 99.95 ? x.toLocaleString("en", { maximumFractionDigits: 0 }) : x.toFixed(x >= 9.995 ? 1 : 2));
  function seconds(x) {
    if (x === 0) return "0 s";
    if (x >= 7200) return `${digits(x / 3600)} h`;
    if (x >= 120) return `${digits(x / 60)} min`;
    if (x >= 0.9995) return `${digits(x)} s`;
    return x >= 0.9995e-3 ? `${digits(x * 1e3)} ms` : `${digits(x * 1e6)} µs`;
  }
  const share = (x) => `${(layout.total ? (100 * x) / layout.total : 0).toFixed(1)} %`;
  const length = (r) => layout.stop[r] - layout.start[r];
  const named = (r) => (layout.node[r] < 0 ? "Whole run" : functions.name[nodes.function[layout.node[r]]]);
  function where(f) {
    const line = functions.line[f] ? `:${functions.line[f]}` : "";
    return functions.file[f] ? `${functions.file[f]}${line}` : functions.module[f];
  }
  function element(tag, text, name) {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  }

  // ---------------------------------------------------------------- colours

  function readColours() {
    const style = getComputedStyle(document.documentElement), get = (name) => style.getPropertyValue(name).trim();
    const blend = Number(get("--blend")), ground = get("--ground");
    const mix = (a) => "#" + [1, 3, 5].map((i) => {
      const one = parseInt(a.slice(i, i + 2), 16), two = parseInt(ground.slice(i, i + 2), 16);
      return Math.round(one * blend + two * (1 - blend)).toString(16).padStart(2, "0");
    }).join("");
    colours = { slots: HUES.map(mix), other: get("--other"), faint: get("--faint"), ground, text: get("--text"),
      soft: get("--soft"), hit: get("--hit"), link: get("--link") };
  }
  function colour(node) {
    if (node < 0) return colours.other;
    const slot = functions.slot[nodes.function[node]];
    return slot < 0 ? colours.other : colours.slots[slot];
  }
  function drawLegend() {
    $("legend").replaceChildren(element("li", "Own time:", "aside"), ...profile.modules.map(([name, slot, value]) => {
      const item = element("li"), swatch = element("i");
      swatch.style.background = slot < 0 ? colours.other : colours.slots[slot];
      item.append(swatch, `${name} ${(100 * value / (profile.total || 1)).toFixed(1)} %`);
      return item;
    }));
  }

  // ---------------------------------------------------------------- drawing

  function draw() {
    waiting = false;
    $("spacer").style.height = `${layout.rows.length * ROW + PAD}px`;
    const ratio = devicePixelRatio || 1, wide = view.clientWidth, high = view.clientHeight;
    if (!wide || !high) return;
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
      canvas.style.height = `${high}px`;
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, wide, high);
    pen.font = getComputedStyle(document.body).fontFamily.replace(/^/, "12px ");
    pen.textBaseline = "middle";
    const scale = wide / (state.to - state.from), top = view.scrollTop;
    const firstRow = Math.max(0, Math.floor(top / ROW)), lastRow = Math.ceil((top + high) / ROW);
    for (let depth = firstRow; depth < Math.min(lastRow, layout.rows.length); depth++) drawRow(depth, scale, wide, depth * ROW - top);
    outline(state.selected, scale, top, colours.text, 2);
    if (hit >= 0) outline(hits[hit], scale, top, colours.hit, 3);
  }
  function firstVisible(row) {
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (layout.stop[row[middle]] <= state.from) low = middle + 1; else high = middle;
    }
    return low;
  }
  function drawRow(depth, scale, wide, y) {
    const row = layout.rows[depth];
    let crumbs = -1, end = -1, lit = false; // a run of rectangles too narrow to be seen, drawn as one grey piece
    const sweep = () => {
      if (crumbs < 0) return;
      pen.fillStyle = lit ? colours.hit : colours.other;
      pen.fillRect(crumbs, y + 1, Math.max(0.5, end - crumbs), ROW - 2);
      crumbs = -1;
      lit = false;
    };
    for (let i = firstVisible(row); i < row.length; i++) {
      const r = row[i];
      if (layout.start[r] >= state.to) break;
      const left = Math.max(0, (layout.start[r] - state.from) * scale), right = Math.min(wide, (layout.stop[r] - state.from) * scale);
      if (right - left < SMALLEST) {
        if (crumbs >= 0 && left - end > 1) sweep();
        if (crumbs < 0) crumbs = left;
        end = right;
        lit ||= hitSet.has(r);
        continue;
      }
      sweep();
      drawRectangle(r, left, right, y);
    }
    sweep();
  }
  function drawRectangle(r, left, right, y) {
    const dimmed = state.query && !hitSet.has(r), gap = right - left > 3 ? 1 : 0;
    pen.fillStyle = dimmed ? colours.faint : colour(layout.node[r]);
    pen.fillRect(left, y + 1, right - left - gap, ROW - 2);
    if (hitSet.has(r)) {
      pen.fillStyle = colours.hit;
      pen.fillRect(left, y + ROW - 4, right - left - gap, 3);
    }
    const room = right - left - 9;
    if (room < 14) return;
    pen.fillStyle = dimmed ? colours.soft : colours.text;
    pen.fillText(fitted(named(r), room), left + 4, y + ROW / 2 + 0.5);
  }
  function fitted(text, room) {
    if (text.length > 400) text = text.slice(0, 400);
    let size = widths.get(text);
    if (size === undefined) widths.set(text, (size = pen.measureText(text).width));
    if (size <= room) return text;
    let keep = Math.floor((text.length * room) / size);
    while (keep > 0 && pen.measureText(text.slice(0, keep) + "…").width > room) keep--;
    return keep > 0 ? text.slice(0, keep) + "…" : "";
  }
  function outline(r, scale, top, style, size) {
    const left = Math.max(0, (layout.start[r] - state.from) * scale), right = Math.min(view.clientWidth, (layout.stop[r] - state.from) * scale);
    if (right < 0 || left > view.clientWidth) return;
    pen.strokeStyle = style;
    pen.lineWidth = size;
    pen.strokeRect(left + 1, layout.depth[r] * ROW - top + 1.5, Math.max(2, right - left - 2), ROW - 3);
  }
  function redraw() {
    if (!waiting) requestAnimationFrame(draw);
    waiting = true;
  }

  // ---------------------------------------------------------------- what is shown

  function arrange() {
    layout = Layout[state.order](profile, state);
    state.from = 0;
    state.to = layout.total || 1;
    state.selected = state.zoomed = 0;
    hit = -1;
    $("heavy").setAttribute("aria-pressed", state.order === "heavy");
    $("time").setAttribute("aria-pressed", state.order === "time");
    find();
    select(0);
    remember();
  }
  function select(r) {
    state.selected = r;
    const box = $("selection"), first = element("p"), f = layout.node[r] < 0 ? -1 : nodes.function[layout.node[r]];
    first.append(element("strong", named(r)), " ", element("span", f < 0 ? "" : where(f), "where"));
    const up = layout.up[r], parts = [`${seconds(length(r))} of ${seconds(layout.total)} (${share(length(r))})`, `own ${seconds(layout.own[r])} (${share(layout.own[r])})`];
    if (up > 0) parts.push(`${((100 * length(r)) / (length(up) || 1)).toFixed(1)} % of its caller`);
    const lines = f < 0 ? [] : profile.lines[layout.node[r]] || [];
    if (lines.length) parts.push("lines in all: " + lines.map(([line, value]) => `${line} (${seconds(value)})`).join(", "));
    const exact = f < 0 ? undefined : profile.regions[f];
    if (exact) parts.push(`counted in all: ${exact[0].toLocaleString("en")} times, ${seconds(exact[1])}`);
    box.replaceChildren(first, element("p", parts.join(" · "), "numbers"), path(r));
    redraw();
  }
  function path(r) {
    const callers = element("div", undefined, "path"), chain = [];
    for (let up = layout.up[r]; up >= 0; up = layout.up[up]) chain.push(up);
    for (const up of chain.reverse()) {
      if (up > 0) callers.append("›");
      const button = element("button", named(up));
      button.type = "button";
      button.addEventListener("click", () => { select(up); zoom(up); });
      callers.append(button);
    }
    return callers;
  }
  function zoom(r) {
    state.zoomed = r;
    show(layout.start[r], layout.stop[r]);
    reveal(r);
  }
  function show(from, to) {
    const least = layout.total * 1e-6;
    if (to - from < least) to = from + least;
    const span = Math.min(to - from, layout.total || 1);
    state.from = Math.max(0, Math.min(from, (layout.total || 1) - span));
    state.to = state.from + span;
    const whole = span >= layout.total * (1 - 1e-9);
    $("whole").disabled = whole;
    caption(whole);
    redraw();
  }
  function caption(whole) {
    const sort = state.order === "heavy" ? "width is time, heaviest left" : `in order of time, to ${seconds(profile.resolution)}`;
    const extent = whole ? `whole run, ${seconds(layout.total)}` : `${seconds(state.to - state.from)} of ${seconds(layout.total)} (${share(state.to - state.from)})`;
    const left = state.busy ? "; without waiting" : "";
    const many = state.thread < 0 && profile.threads.length > 1 ? ` of ${profile.threads.length} threads` : "";
    $("caption").textContent = layout.total ? `Sampled time${many}${left}; ${sort}. Shown: ${extent}.${found()}` : "No samples in this recording.";
  }
  function found() {
    if (!state.query) return "";
    const sum = Layout.covered(layout, hitSet);
    return ` Found: ${hits.length.toLocaleString("en")} frames, ${seconds(sum)} (${share(sum)}).`;
  }
  function reveal(r) {
    const y = layout.depth[r] * ROW;
    if (y < view.scrollTop || y + 2 * ROW > view.scrollTop + view.clientHeight) view.scrollTop = Math.max(0, y - 3 * ROW);
    const least = (state.to - state.from) / view.clientWidth;
    if (layout.stop[r] < state.from + least || layout.start[r] > state.to - least) {
      const span = state.to - state.from, middle = (layout.start[r] + layout.stop[r]) / 2;
      show(middle - span / 2, middle + span / 2);
    }
  }
  function whole() { state.zoomed = 0; show(0, layout.total); }

  // ---------------------------------------------------------------- search

  function find() {
    const wanted = state.query.toLowerCase(), matches = new Uint8Array(functions.name.length);
    hits = [];
    if (wanted) {
      for (let f = 0; f < matches.length; f++) {
        matches[f] = `${functions.name[f]}\n${functions.module[f]}\n${functions.file[f]}`.toLowerCase().includes(wanted);
      }
      for (const row of layout.rows) for (const r of row) if (layout.node[r] >= 0 && matches[nodes.function[layout.node[r]]]) hits.push(r);
    }
    hitSet = new Set(hits);
    hit = -1;
    $("next").disabled = $("previous").disabled = !hits.length;
    show(state.from, state.to);
  }
  function step(by) {
    if (!hits.length) return;
    hit = hit < 0 ? (by > 0 ? 0 : hits.length - 1) : (hit + by + hits.length) % hits.length;
    select(hits[hit]);
    reveal(hits[hit]);
  }
  function search(text) {
    $("search").value = state.query = text;
    find();
    remember();
  }

  // ---------------------------------------------------------------- pointer

  function under(event) {
    const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
    const row = layout.rows[Math.floor((y + view.scrollTop) / ROW)];
    if (!row) return -1;
    const at = state.from + (x * (state.to - state.from)) / box.width;
    let low = 0, high = row.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (layout.stop[row[middle]] <= at) low = middle + 1; else high = middle;
    }
    return low < row.length && layout.start[row[low]] <= at ? row[low] : -1;
  }
  let grip = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    grip = { x: event.clientX, from: state.from, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (grip && (grip.moved || Math.abs(event.clientX - grip.x) > 4)) {
      grip.moved = true;
      tip.hidden = true;
      const span = state.to - state.from, from = grip.from - ((event.clientX - grip.x) * span) / view.clientWidth;
      show(from, from + span);
      return;
    }
    const r = under(event);
    tip.hidden = r < 0;
    if (r < 0) return;
    tip.textContent = `${named(r)} · ${seconds(length(r))} (${share(length(r))}), own ${seconds(layout.own[r])}`;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 8 : event.clientY + 18}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    const moved = grip && grip.moved;
    grip = null;
    const r = under(event);
    if (moved || event.button || r < 0) return;
    select(r);
    zoom(r);
  });
  canvas.addEventListener("pointercancel", () => { grip = null; });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return;
    event.preventDefault();
    const span = state.to - state.from, box = canvas.getBoundingClientRect();
    if (event.ctrlKey || event.metaKey) scaleBy(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
    else show(state.from + (event.deltaX * span) / box.width, state.to + (event.deltaX * span) / box.width);
  }, { passive: false });
  view.addEventListener("scroll", redraw);

  // ---------------------------------------------------------------- keys

  function scaleBy(factor, place = 0.5) {
    const span = (state.to - state.from) * factor, centre = state.from + (state.to - state.from) * place;
    show(centre - span * place, centre + span * (1 - place));
  }
  function move(by) {
    const row = layout.rows[layout.depth[state.selected]], at = row.indexOf(state.selected) + by;
    return at >= 0 && at < row.length ? row[at] : state.selected;
  }
  function heaviestBelow(r) {
    let best = -1;
    for (const below of layout.rows[layout.depth[r] + 1] || []) if (layout.up[below] === r && (best < 0 || length(below) > length(best))) best = below;
    return best < 0 ? r : best;
  }
  function go(r) { select(r); reveal(r); }
  function out() {
    if (state.query) return search("");
    if (state.zoomed > 0) { const up = layout.up[state.zoomed]; select(up); return zoom(up); }
    return whole();
  }
  const everywhere = {
    "/": () => $("search").focus(), "?": () => $("keys").showModal(), t: () => theme(), 1: () => order("heavy"), 2: () => order("time"),
    0: whole, n: () => step(1), p: () => step(-1), Escape: out,
    w: () => scaleBy(0.7), s: () => scaleBy(1 / 0.7),
    a: () => show(state.from - (state.to - state.from) / 5, state.to - (state.to - state.from) / 5),
    d: () => show(state.from + (state.to - state.from) / 5, state.to + (state.to - state.from) / 5),
    f: () => zoom(state.selected),
  };
  const inView = {
    ArrowLeft: () => go(move(-1)), ArrowRight: () => go(move(1)), ArrowUp: () => go(Math.max(0, layout.up[state.selected])),
    ArrowDown: () => go(heaviestBelow(state.selected)), Enter: () => zoom(state.selected),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
    if (event.target.matches("select, input:not([type=checkbox])")) return;
    const act = (event.target === view && inView[event.key]) || everywhere[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  $("search").addEventListener("input", (event) => { state.query = event.target.value; find(); remember(); });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") step(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") { search(""); view.focus(); }
    else return;
    event.preventDefault();
  });

  // ---------------------------------------------------------------- controls and memory

  function order(name) { state.order = name; arrange(); }
  function theme() {
    const root = document.documentElement, next = { undefined: "dark", dark: "light", light: undefined }[root.dataset.theme];
    if (next) root.dataset.theme = next; else delete root.dataset.theme;
    $("theme").textContent = `Theme: ${next || "system"}`;
    restyle();
  }
  function restyle() { readColours(); drawLegend(); redraw(); }
  function remember() {
    const parts = new URLSearchParams();
    if (state.order !== "heavy") parts.set("order", state.order);
    if (state.thread >= 0) parts.set("thread", state.thread);
    if (state.busy) parts.set("busy", 1);
    if (state.query) parts.set("q", state.query);
    // A sandboxed frame may forbid it; the page works without.
    try { history.replaceState(null, "", parts.size ? `#${parts}` : location.pathname + location.search); } catch { /* no memory */ }
  }
  function recall() {
    const parts = new URLSearchParams(location.hash.slice(1));
    if (parts.get("order") === "time") state.order = "time";
    if (profile.threads.some(([node]) => String(node) === parts.get("thread"))) state.thread = Number(parts.get("thread"));
    $("busy").checked = state.busy = parts.has("busy");
    $("search").value = state.query = parts.get("q") || "";
  }
  function start() {
    $("tools").hidden = view.hidden = false;
    $("thread").append(new Option("all", "-1"), ...profile.threads.map(([node, name]) => new Option(name, node)));
    $("thread").parentElement.hidden = profile.threads.length < 2;
    recall();
    $("thread").value = String(state.thread);
    $("thread").addEventListener("change", (event) => { state.thread = Number(event.target.value); arrange(); });
    $("busy").parentElement.hidden = !functions.idle.includes(1);
    $("busy").addEventListener("change", (event) => { state.busy = event.target.checked; arrange(); });
    for (const name of ["heavy", "time"]) $(name).addEventListener("click", () => order(name));
    $("whole").addEventListener("click", () => { select(0); whole(); });
    $("theme").addEventListener("click", theme);
    $("help").addEventListener("click", () => $("keys").showModal());
    $("next").addEventListener("click", () => step(1));
    $("previous").addEventListener("click", () => step(-1));
    for (const button of document.querySelectorAll("#functions button")) {
      button.addEventListener("click", () => { search(button.textContent); view.scrollIntoView({ block: "center" }); });
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
    new ResizeObserver(redraw).observe(view);
    readColours();
    drawLegend();
    arrange();
  }
  start();
})();
