// What is asked for on demand: call stacks, profiles, graphs, reports; and the drawing of a graph.
if (settings.what) extra.what = settings.what;
for (const button of document.querySelectorAll("[data-ask]")) {
  button.addEventListener("click", () => {
    const wanted = button.dataset.ask;
    if (wanted !== "again") extra.ask = wanted;
    button.closest(".block").querySelector(".body").setAttribute("aria-busy", "true");
    refresh();
  });
}
onAnswer(() => document.querySelectorAll("[aria-busy]").forEach((each) => each.removeAttribute("aria-busy")));
byId("process")?.addEventListener("change", (event) => { extra.process = event.target.value; refresh(); });
function showDownloads() {
  for (const link of document.querySelectorAll("[data-download]")) link.href = `${settings.root}report/gnomon-report.${link.dataset.download}?${queryOf(state)}`;
}
onChange(showDownloads);

const SVG = "http://www.w3.org/2000/svg";
function drawn(tag, attributes) {
  const result = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) result.setAttribute(name, value);
  return result;
}
kinds.graph = (panel) => {
  const labelled = panel.boxes.length <= 150, width = labelled ? 150 : 26, step = labelled ? 230 : 70, height = labelled ? 30 : 14, row = labelled ? 42 : 17;
  const box = element("div", "graph"), full = panel.columns * step + 40, tall = panel.rows * row + 20;
  const svg = box.appendChild(drawn("svg", { width: full, height: tall, viewBox: `0 0 ${full} ${tall}`, role: "img" }));
  box.tabIndex = 0;
  svg.setAttribute("aria-label", `${panel.boxes.length} boxes and ${panel.edges.length} arrows; the table below has the same.`);
  const x = (each) => 20 + each[5] * step, y = (each) => 10 + each[6] * row;
  for (const [from, to] of panel.edges) {
    const a = panel.boxes[from], b = panel.boxes[to], x0 = x(a) + width, x1 = x(b), bend = Math.max(20, (x1 - x0) / 2);
    svg.append(drawn("path", { d: `M${x0} ${y(a)}C${x0 + bend} ${y(a)} ${x1 - bend} ${y(b)} ${x1} ${y(b)}m-6 -3l6 3l-6 3` }));
  }
  for (const each of panel.boxes) {
    const [label, words, slot, done, link] = each, target = drawn("a", { href: settings.root + link });
    target.append(drawn("title", {}));
    target.firstChild.textContent = words;
    target.append(drawn("rect", { x: x(each), y: y(each) - height / 2, width, height, rx: 3, fill: `var(--slot-${slot})`, "fill-opacity": 0.25 }));
    target.append(drawn("rect", { x: x(each), y: y(each) - height / 2, width: Math.max(0, width * done), height, rx: 3, fill: `var(--slot-${slot})`, "stroke-width": 0 }));
    if (labelled) {
      const shown = cut(label, 21);
      target.append(drawn("rect", { class: "label", x: x(each) + 4, y: y(each) - 8, width: Math.min(width - 8, 8 + 6.4 * shown.length), height: 16, rx: 2 }));
      const text = target.appendChild(drawn("text", { x: x(each) + 8, y: y(each) + 4 }));
      text.textContent = shown;
    }
    svg.append(target);
  }
  return [box, element("p", "note", panel.note)];
};
