// The whole run in one strip: how many threads were in tasks, where tasks raised, and the range as a brush.
const MAP_BINS = 600;
function busyShares(bins) {
  const sums = new Float64Array(bins), errors = new Uint32Array(bins), capacity = new Float64Array(bins), width = Math.max(1, data.duration) / bins;
  const add = (target, from, to, weight) => {
    const begin = Math.max(0, from), end = Math.min(data.duration, to);
    for (let bin = Math.floor(begin / width); end > begin && bin < bins && bin * width < end; bin++) target[bin] += weight * overlap(begin, end, bin * width, (bin + 1) * width);
  };
  const { runs, laid } = data;
  for (let i = 0; i < runs.count; i++) {
    if (laid.ends[i] > laid.begins[i]) add(sums, laid.begins[i], laid.ends[i], 1);
    if (!runs.ok[i]) errors[Math.max(0, Math.min(bins - 1, Math.floor(runs.ends[i] / width)))]++;
  }
  for (const worker of data.workers) add(capacity, worker.low, worker.high, worker.nthreads);
  return { busy: sums.map((sum, i) => capacity[i] ? sum / capacity[i] : 0), errors };
}
const map = byId("minimap"), mapBrush = byId("brush");
function drawMap() {
  const { busy, errors } = busyShares(MAP_BINS), svg = map.querySelector("svg");
  const points = [...busy].map((share, i) => `L${i} ${(30 - 28 * Math.min(1, share)).toFixed(2)}H${i + 1}`).join("");
  svg.querySelector(".busy").setAttribute("d", `M0 30${points}L${MAP_BINS} 30Z`);
  svg.querySelector(".errors").setAttribute("d", [...errors].map((count, i) => count ? `M${i} 0h2v4h-2Z` : "").join(""));
  const count = errors.reduce((a, b) => a + b, 0);
  map.querySelector(".reading").textContent = `The whole run, 0 to ${timeText(data.duration)}: share of threads in tasks${count ? `; ${countText(count)} errors as marks on top` : ""}. Drag to choose a range.`;
}
function showBrush(from = isWhole() ? null : state.from, to = state.to) {
  mapBrush.hidden = from === null;
  if (from === null) return;
  mapBrush.style.left = 100 * from / settings.duration + "%";
  mapBrush.style.width = 100 * (to - from) / settings.duration + "%";
}
onChange(() => showBrush());
{
  let anchor = null, moved = false, kind = "", start = null;
  const at = (event) => { const box = map.getBoundingClientRect(); return settings.duration * Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)); };
  let range = null;
  map.addEventListener("pointerdown", (event) => {
    if (event.button || !data) return;
    anchor = at(event);
    moved = false;
    start = [state.from, state.to];
    const box = map.getBoundingClientRect(), near = (ticks) => ticks !== null && Math.abs(ticks - anchor) * box.width / settings.duration < 6;
    kind = near(state.from) ? "from" : near(state.to) ? "to" : !isWhole() && anchor > state.from && anchor < state.to ? "move" : "new";
    map.setPointerCapture(event.pointerId);
  });
  map.addEventListener("pointermove", (event) => {
    if (anchor === null) return;
    const here = at(event), [from, to] = start;
    moved = moved || Math.abs(here - anchor) > settings.duration / 500;
    if (!moved) return;
    if (kind === "move") { const shift = Math.max(-from, Math.min(settings.duration - to, here - anchor)); range = [from + shift, to + shift]; }
    else { const fix = kind === "from" ? to : kind === "to" ? from : anchor; range = [Math.min(fix, here), Math.max(fix, here)]; }
    showBrush(...range);
    later("brush", () => { if (range) setRange(...range, { replace: true }); });
  });
  map.addEventListener("pointerup", () => {
    if (anchor === null) return;
    anchor = null;
    if (moved && range) { const wanted = range; range = null; setRange(...wanted, { replace: true }); quietly(() => history.pushState(null, "", hashOf(state))); }
    else if (kind === "new" || kind === "move") change({ from: null, to: null });
  });
  map.addEventListener("dblclick", () => change({ from: null, to: null }));
}
// Once per frame at most, the newest call of a name. What an act asks for comes in the same frame; the plots follow once all is known.
const waitingActs = new Map();
let inFrame = false;
function later(name, act) {
  if (!waitingActs.size && !inFrame) { requestAnimationFrame(actAll); requestAnimationFrame(repaint); }
  waitingActs.set(name, act);
}
function actAll() {
  inFrame = true;
  try { for (const [name, act] of waitingActs) { waitingActs.delete(name); act(); } } finally { inFrame = false; waitingActs.clear(); }
}
