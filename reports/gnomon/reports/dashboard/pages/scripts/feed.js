// The page's numbers, asked for again and again: one request at a time, none while nobody looks, none while paused.
const form = byId("filter"), field = (name) => form.elements.namedItem(name);
let following = true, paused = false, pausedAt = 0, asking = null, timer = 0, retries = 0;
let last = null, lastAt = 0;  // what the server told last, and when, by this page's clock
const answers = [];           // who wants to see an answer
const onAnswer = (act) => answers.push(act);
const steady = () => performance.now() / 1000;

function url() {
  const said = queryOf(state);
  for (const [name, [at, way]] of Object.entries(sorts)) said.append("sort", `${name}:${at}:${way}`);
  for (const [name, page] of Object.entries(leaves)) if (page) said.append("page", `${name}:${page}`);
  for (const [name, value] of Object.entries(extra)) if (value) said.set(name, value);
  return `${settings.root}api/v1/pages/${settings.page}.json?${said}`;
}
async function ask() {
  asking = new AbortController();
  const limit = setTimeout(() => asking.abort(), 20000);
  try {
    const answer = await fetch(url(), { signal: asking.signal, credentials: "same-origin", cache: "no-store" });
    if (!answer.ok) throw new Error(`the dashboard answered ${answer.status}`);
    const told = await answer.json();
    if (paused) return;
    last = told;
    lastAt = steady();
    retries = 0;
    told.panels.forEach(showPanel);
    answers.forEach((act) => act(told));
    document.documentElement.dataset.ready = "yes";
  } catch (error) {
    if (error.name !== "AbortError" || asking?.signal.reason !== "again") retries++;
  } finally {
    clearTimeout(limit);
    asking = null;
    showBanner();
  }
}
async function turn() {
  clearTimeout(timer);
  if (asking || paused || document.hidden) return;
  const begun = steady();
  await ask();
  // A server or a browser that is slow is asked less often, never sooner than the answer was drawn.
  if (settings.refresh || retries) timer = setTimeout(turn, 1000 * Math.max(settings.refresh, 2 * (steady() - begun), Math.min(10, retries)));
}
function refresh() {
  if (asking) { asking.abort("again"); asking = null; }
  if (!paused) setTimeout(turn, 0);
}
document.addEventListener("visibilitychange", () => { if (!document.hidden && (settings.refresh || retries)) turn(); });
onChange(refresh);

// What is wrong with the data itself, said once and with its age: the page never pretends.
function showBanner() {
  const box = byId("banner"), age = last ? last.age + steady() - lastAt : steady();
  let text = "";
  if (retries) {
    text = last ? `The dashboard does not answer. What you see is ${timeText(age * TICKS)} old; asked again ${countText(retries)} ${retries === 1 ? "time" : "times"}.`
      : `The dashboard does not answer yet; asked ${countText(retries)} ${retries === 1 ? "time" : "times"}.`;
  } else if (last && !last.heard) {
    text = last.retries ? `The scheduler does not answer yet; the dashboard keeps asking (${countText(last.retries)} so far).` : "";
  } else if (last && !last.connected) {
    text = `Disconnected from the scheduler: what you see is ${timeText(age * TICKS)} old. ${last.reason || ""} The dashboard keeps trying${last.retries ? ` (${countText(last.retries)} so far)` : ""} and goes on by itself.`;
  }
  box.hidden = !text;
  if (box.textContent !== text) box.textContent = text;
  const behind = byId("behind");
  behind.hidden = !paused;
  if (paused) behind.textContent = `paused, ${timeText(Math.max(0, steady() - pausedAt) * TICKS)} behind`;
}
setInterval(() => { if (!document.hidden) showBanner(); }, 1000);

function showNotices(told) {
  const box = byId("notices"), texts = told.notices || [];
  if (JSON.stringify(texts) === box.dataset.shown) return;
  box.dataset.shown = JSON.stringify(texts);
  box.hidden = !texts.length;
  box.replaceChildren(...texts.map((text) => element("li", "", text)));
}
onAnswer(showNotices);
onAnswer((told) => {
  const link = document.querySelector('nav a[data-href$="/errors"]');
  if (!link || link.dataset.count === String(told.errors)) return;
  link.dataset.count = told.errors;
  link.querySelector("b")?.remove();
  if (told.errors) link.append(" ", element("b", "", countText(told.errors)));
});

function setPaused(wanted) {
  if (wanted === paused) return;
  paused = wanted;
  pausedAt = steady();
  const button = byId("pause");
  button.textContent = paused ? "Resume" : "Pause";
  button.setAttribute("aria-pressed", paused);
  if (paused) { asking?.abort("again"); clearTimeout(timer); } else turn();
  viewActs.forEach((act) => act());
  showBanner();
}
// A range that someone chose or a plot that someone moved stays where it is, until "Live".
const viewActs = [];
function setFollowing(wanted) {
  following = wanted;
  byId("live").hidden = following && !paused;
  viewActs.forEach((act) => act());
}
function live() {
  setFollowing(true);
  if (state.t) change({ t: "" });
  setPaused(false);
  byId("live").hidden = true;
}
byId("pause").addEventListener("click", () => setPaused(!paused));
byId("live").addEventListener("click", live);

// The filter.
function showFilter() {
  const range = rangeOf(state.t);
  field("span").value = range ? "range" : state.span || settings.span;
  field("from").value = range ? range[0] : "";
  field("to").value = range ? range[1] : "";
  if (field("prefix") !== document.activeElement) field("prefix").value = state.prefix;
  if (field("search") !== document.activeElement) field("search").value = state.search;
  for (const name of ["prefix", "search"]) field(name).classList.toggle("set", Boolean(state[name]));
  byId("reset").disabled = !state.prefix && !state.search && !state.t && !state.span;
  if (range) setFollowing(false);
}
onChange(showFilter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", (event) => {
  const { name, value } = event.target;
  if (name === "span") { if (value !== "range") { change({ span: value === settings.span ? "" : value, t: "" }); setFollowing(true); } }
  if (name === "prefix" || name === "search") { for (const each of Object.keys(leaves)) leaves[each] = 0; change({ [name]: value.trim().slice(0, 500) }); }
  if (name === "from" || name === "to") {
    const from = field("from").value.trim(), to = field("to").value.trim();
    if (rangeOf(`${from}-${to}`)) change({ t: `${+from}-${+to}` });
  }
});
let typing = 0;
field("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => change({ search: field("search").value.trim().slice(0, 500) }), 250); });
function reset() {
  for (const each of Object.keys(leaves)) leaves[each] = 0;
  change({ span: "", t: "", prefix: "", worker: "", search: "" });
  live();
}
byId("reset").addEventListener("click", reset);
onAnswer((told) => {
  const list = byId("prefix-names"), names = told.prefixes || [];
  if (list.children.length === names.length && [...list.children].every((each, i) => each.value === names[i])) return;
  list.replaceChildren(...names.map((name) => { const option = element("option"); option.value = name; return option; }));
});

// Theme, help and keys, as in the report.
const THEMES = ["system", "light", "dark"];
const sayTheme = () => { const theme = document.documentElement.dataset.theme; byId("theme").textContent = { system: "◐ system", light: "○ light", dark: "● dark" }[theme]; byId("theme").setAttribute("aria-label", "Theme: " + theme); };
const nextTheme = () => setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]);
themeActs.push(sayTheme);
byId("theme").addEventListener("click", nextTheme);
const help = byId("help");
byId("help-button").addEventListener("click", () => help.showModal());
help.addEventListener("click", (event) => { if (event.target === help || event.target.closest("button")) help.close(); });
const keyActs = { t: nextTheme, "?": () => help.showModal(), "/": () => field("search").focus(), " ": () => setPaused(!paused), l: live, 0: () => change({ span: "all", t: "" }) };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const inField = /^(input|textarea|select)$/i.test(event.target.tagName), pressing = event.key === " " && /^(button|a|summary)$/i.test(event.target.tagName);
  if (event.key === "Escape" && !help.open) { if (inField) event.target.blur(); else reset(); return; }
  if (inField || pressing || help.open) return;
  if (event.key >= "1" && event.key <= "9") { document.querySelectorAll("nav a")[event.key - 1]?.click(); return; }
  if (keyActs[event.key]) { event.preventDefault(); keyActs[event.key](); }
});
