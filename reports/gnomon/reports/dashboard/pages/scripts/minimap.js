// The whole run in one strip: how many threads were in tasks, where tasks raised, and the range in view as a brush.
const map = byId("minimap");
let mapEnd = 0;
onAnswer((told) => {
  if (!map || !told.minimap) return;
  const { busy, errors, end, words } = told.minimap, count = busy.length, svg = map.querySelector("svg");
  map.hidden = !count;
  mapEnd = end;
  svg.setAttribute("viewBox", `0 0 ${Math.max(1, count)} 30`);
  svg.querySelector(".busy").setAttribute("d", `M0 30${busy.map((share, i) => `L${i} ${(30 - 28 * Math.min(1, share)).toFixed(1)}L${i + 1} ${(30 - 28 * Math.min(1, share)).toFixed(1)}`).join("")}L${count} 30Z`);
  svg.querySelector(".errors").setAttribute("d", errors.map((number, i) => number ? `M${i} 0h2v4h-2Z` : "").join(""));
  map.querySelector(".reading").textContent = words;
  showBrush();
});
function showBrush(from = null, to = null) {
  const brush = byId("brush");
  if (!brush || !mapEnd) return;
  if (from === null) [from, to] = rangeInView();
  brush.hidden = false;
  brush.style.left = 100 * Math.max(0, Math.min(1, from / mapEnd)) + "%";
  brush.style.width = 100 * Math.max(0, Math.min(1, (to - Math.max(0, from)) / mapEnd)) + "%";
}
function rangeInView() {
  const range = rangeOf(state.t), now = last ? last.now : 0;
  if (range) return range;
  const span = state.span || settings.span;
  return span === "all" ? [0, now] : [now - Number(span), now];
}
if (map) {
  let anchor = null, range = null;
  const at = (event) => { const box = map.getBoundingClientRect(); return mapEnd * Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)); };
  map.addEventListener("pointerdown", (event) => { if (!event.button && mapEnd) { anchor = at(event); range = null; map.setPointerCapture(event.pointerId); } });
  map.addEventListener("pointermove", (event) => {
    if (anchor === null) return;
    const here = at(event);
    if (Math.abs(here - anchor) < mapEnd / 500) return;
    range = [Math.min(anchor, here), Math.max(anchor, here)];
    showBrush(...range);
  });
  map.addEventListener("pointerup", () => {
    if (anchor === null) return;
    anchor = null;
    if (range) change({ t: range.map((each) => +each.toFixed(3)).join("-") });
  });
  map.addEventListener("dblclick", live);
}
