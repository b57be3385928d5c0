// Flame graphs of the profiles in the recording: in order of time, heaviest first, or as a table of functions.
const MOST_FRAMES = 5000, flameView = { profile: 0, way: "heavy", root: null };

function showFlames() {
  const box = byId("flame");
  if (!box) return;
  const profile = settings.profiles[flameView.profile];
  if (!profile) return;
  const { name, parent, weight } = profile, children = name.map(() => []);
  for (let i = 1; i < parent.length; i++) children[parent[i]].push(i);
  const root = flameView.root ?? 0, all = weight[root] || 1, frames = [];
  let folded = 0;
  const place = (node, left, depth) => {
    if (weight[node] / all < 0.001 || frames.length >= MOST_FRAMES) { folded++; return; }
    frames.push([node, left, depth]);
    let at = left;
    const order = flameView.way === "heavy" ? [...children[node]].sort((a, b) => weight[b] - weight[a]) : children[node];
    for (const child of order) { place(child, at, depth + 1); at += weight[child] / all; }
  };
  place(root, 0, 0);
  const wanted = state.search.toLowerCase(), deepest = Math.max(...frames.map((frame) => frame[2]));
  box.style.height = 19 * (deepest + 1) + "px";
  box.replaceChildren(...frames.map(([node, left, depth]) => {
    const label = profile.names[name[node]], button = element("button", "frame" + (wanted && label.toLowerCase().includes(wanted) ? " hit" : ""), 100 * weight[node] / all > 2 ? label : "");
    button.type = "button";
    button.style.cssText = `left:${100 * left}%;width:${100 * weight[node] / all}%;top:${19 * depth}px`;
    button.style.setProperty("--hue", [...label].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 40, 7));
    button.title = `${label}\n${timeText(weight[node] * TICKS)}, ${(100 * weight[node] / all).toFixed(1)} %`;
    button.dataset.node = node;
    return button;
  }));
  byId("flame-note").textContent = `${profile.title}: ${timeText(weight[0] * TICKS)} sampled, whole run, not filtered.` + (folded ? ` ${countText(folded)} frames below 0.1 % are folded away.` : "") + (flameView.root ? " Click the top frame to go back." : " Click a frame to look at it alone.");
  const own = new Map();
  weight.forEach((value, i) => { const self = value - children[i].reduce((sum, child) => sum + weight[child], 0), sum = own.get(name[i]) || [0, 0]; own.set(name[i], [sum[0] + Math.max(0, self), sum[1] + 1]); });
  fill({ name: "functions", columns: [["function", false], ["own time", true], ["share", true]], rows: [...own].filter(([, [self]]) => self > 0).sort((a, b) => b[1][0] - a[1][0]).map(([id, [self]]) => [textCell(profile.names[id], 80), timeCell(self * TICKS), shareCell(100 * self / (weight[0] || 1))]) }, { match: searchMatch() });
}
byId("flame")?.addEventListener("click", (event) => {
  const frame = event.target.closest("button");
  if (!frame) return;
  flameView.root = +frame.dataset.node === (flameView.root ?? 0) ? null : +frame.dataset.node;
  showFlames();
});
byId("flame-choice")?.addEventListener("change", (event) => {
  if (event.target.name === "profile") Object.assign(flameView, { profile: +event.target.value, root: null });
  if (event.target.name === "way") flameView.way = event.target.value;
  showFlames();
});
