// Flame graphs of the profiles in the recording: heaviest first or as recorded, and a table of functions.
const MOST_FRAMES = 5000, flameView = (id, table, profiles) => ({ id, table, profiles, profile: 0, way: "heavy", root: 0 });
const sampledView = flameView("flame", "functions", settings.profiles), deepView = flameView("deep", "deep-functions", settings.deep);

// Seconds of each node with all below it, of the samples in the range and of the prefix. A bucket of time counts by its overlap.
function weigh(profile, own) {
  const { from, to } = query(), parts = profile.buckets.map(([begin, end]) => end > begin ? overlap(begin * TICKS, end * TICKS, from, to) / (end - begin) / TICKS : 0);
  const weight = new Float64Array(profile.parent.length), byPrefix = state.prefix && profile.labels.some((label) => label);
  for (let i = 0; i < profile.node.length; i++) {
    const label = profile.labels[profile.label[i]];
    if (!byPrefix || label === state.prefix) weight[profile.node[i]] += profile.seconds[i] * (isWhole() ? 1 : parts[profile.bucket[i]]);
  }
  for (let i = 0; i < weight.length; i++) own.set(profile.name[i], (own.get(profile.name[i]) || 0) + weight[i]);
  for (let i = weight.length - 1; i > 0; i--) weight[profile.parent[i]] += weight[i];
  return { weight, byPrefix };
}
function showFlames(view) {
  const box = byId(view.id), profile = view.profiles[view.profile];
  if (!box || !profile) return;
  const own = new Map(), { weight, byPrefix } = weigh(profile, own), children = profile.parent.map(() => []);
  for (let i = 1; i < profile.parent.length; i++) children[profile.parent[i]].push(i);
  if (!weight[view.root]) view.root = 0;
  const all = weight[view.root] || 1, frames = [];
  let folded = 0;
  const place = (node, left, depth) => {
    if (weight[node] / all < 0.001 || frames.length >= MOST_FRAMES) { folded += weight[node] > 0; return; }
    frames.push([node, left, depth]);
    for (const child of view.way === "heavy" ? [...children[node]].sort((a, b) => weight[b] - weight[a]) : children[node]) {
      place(child, left, depth + 1);
      left += weight[child] / all;
    }
  };
  place(view.root, 0, 0);
  const wanted = state.search.toLowerCase();
  box.style.height = 19 * (1 + Math.max(0, ...frames.map((frame) => frame[2]))) + "px";
  box.replaceChildren(...frames.map(([node, left, depth]) => {
    const label = profile.names[profile.name[node]], share = weight[node] / all, button = element("button", "frame" + (wanted && label.toLowerCase().includes(wanted) ? " hit" : ""), share > 0.02 ? label : "");
    button.type = "button";
    button.style.cssText = `left:${100 * left}%;width:${100 * share}%;top:${19 * depth}px`;
    button.style.setProperty("--hue", [...label].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 40, 7));
    button.title = `${label}\n${timeText(weight[node] * TICKS)}, ${(100 * share).toFixed(1)} %`;
    button.setAttribute("aria-label", button.title);
    button.dataset.node = node;
    return button;
  }));
  byId(view.id + "-note").textContent = `${profile.title}: ${timeText(weight[0] * TICKS)} of threads sampled, ${[isWhole() ? "whole run" : rangeText(), byPrefix ? "tasks of " + cut(state.prefix, 30) : ""].filter(Boolean).join(", ")}.`
    + (state.prefix && !byPrefix && view === sampledView ? " It can't be told by prefix." : "") + (folded + profile.hidden ? ` ${countText(folded + profile.hidden)} frames below 0.1 % are folded into their callers.` : "")
    + (view.root ? " Click the top frame to go back." : " Click a frame to look at it alone.");
  fill({ name: view.table, columns: [["function", false], ["own time", true], ["share", true]], rows: [...own].filter(([, self]) => self > 0).sort((a, b) => b[1] - a[1]).map(([id, self]) => [textCell(profile.names[id], 80), timeCell(self * TICKS), shareCell(100 * self / (weight[0] || 1))]) }, { match: searchMatch() });
}
for (const view of [sampledView, deepView]) {
  byId(view.id)?.addEventListener("click", (event) => {
    const frame = event.target.closest("button");
    if (!frame) return;
    view.root = +frame.dataset.node === view.root ? 0 : +frame.dataset.node;
    showFlames(view);
  });
  byId(view.id + "-choice")?.addEventListener("change", (event) => {
    if (event.target.name === "profile") Object.assign(view, { profile: +event.target.value, root: 0 });
    if (event.target.name === "way") view.way = event.target.value;
    showFlames(view);
  });
}
