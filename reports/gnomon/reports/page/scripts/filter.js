// The bar that is always there: range, prefix, worker, search, theme, help; and the keys.
const settings = JSON.parse(byId("settings").textContent);
let data = null;  // the decoded recording, once it is

const rowOfPrefix = () => state.prefix ? data.runs.names.indexOf(state.prefix) : -1;
const rowOfWorker = () => state.worker ? data.workers.findIndex((each) => (each.name || each.address) === state.worker) : -1;
const isWhole = () => state.from === null;
const filtered = () => Boolean(state.prefix || state.worker || !isWhole());
// The range and filter in rows and ticks. A name that the recording does not know selects nothing.
const query = () => ({
  from: isWhole() ? 0 : Math.max(0, Math.min(state.from, data.duration)), to: isWhole() ? data.duration : Math.min(state.to, data.duration),
  prefix: state.prefix && rowOfPrefix() < 0 ? Infinity : rowOfPrefix(), worker: state.worker && rowOfWorker() < 0 ? Infinity : rowOfWorker(),
});
function searchMatch() {
  const wanted = state.search.toLowerCase();
  return wanted ? (row) => row.some((each) => (each.title || each.text).toLowerCase().includes(wanted)) : null;
}
function rangeText() {
  if (isWhole()) return "whole run";
  const share = 100 * (state.to - state.from) / Math.max(1, settings.duration);
  const digits = state.to - state.from < TICKS / 10 ? 4 : state.to - state.from < 10 * TICKS ? 2 : 1;
  return `${fixed(state.from / TICKS, digits)}-${fixed(state.to / TICKS, digits)} s (${share < 1 ? plain(share, 1) : plain(share, 0)}%)`;
}
function setRange(from, to, options) {
  from = Math.max(0, Math.round(from));
  to = Math.min(settings.duration, Math.round(to));
  if (!(to > from)) return;
  change(from === 0 && to === settings.duration ? { from: null, to: null } : { from, to }, options);
}

const form = byId("filter"), field = (name) => form.elements.namedItem(name);
function showFilter() {
  const digits = 4, text = (ticks) => plain(ticks / TICKS, digits).replace(/\.?0+$/, "");
  field("from").value = isWhole() ? "" : text(state.from);
  field("to").value = isWhole() ? "" : text(state.to);
  field("from").placeholder = "0";
  field("to").placeholder = text(settings.duration);
  for (const name of ["prefix", "worker"]) {
    const select = field(name);
    if (state[name] && ![...select.options].some((option) => option.value === state[name])) select.append(new Option(cut(state[name], 40), state[name]));
    select.value = state[name];
    select.classList.toggle("set", Boolean(state[name]));
  }
  if (field("search").value !== state.search) field("search").value = state.search;
  byId("scope").textContent = [rangeText(), state.prefix && cut(state.prefix, 30), state.worker && cut(state.worker, 30)].filter(Boolean).join(" · ");
  byId("scope").classList.toggle("set", filtered());
  byId("reset").disabled = !filtered() && !state.search;
}
onChange(showFilter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("change", (event) => {
  const { name, value } = event.target;
  if (name === "prefix" || name === "worker") change({ [name]: value });
  if (name !== "from" && name !== "to") return;
  const number = (which, otherwise) => { const text = field(which).value.trim().replace(",", "."); return text && isFinite(text) ? text * TICKS : otherwise; };
  const from = number("from", 0), to = number("to", settings.duration);
  if (from < to) setRange(from, to);
  showFilter();
});
field("search").addEventListener("input", () => change({ search: field("search").value.slice(0, 200) }, { replace: true }));
const reset = () => change({ from: null, to: null, prefix: "", worker: "", search: "" });
byId("reset").addEventListener("click", reset);

// Theme: the system's, until the reader says otherwise.
const THEMES = ["system", "light", "dark"], themeActs = [];
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = { system: "◐ system", light: "○ light", dark: "● dark" }[theme];
  byId("theme").setAttribute("aria-label", "Theme: " + theme);
  quietly(() => localStorage.setItem("gnomon-theme", theme));
  requestAnimationFrame(() => themeActs.forEach((act) => act()));
}
const nextTheme = () => setTheme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % 3]);
byId("theme").addEventListener("click", nextTheme);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => requestAnimationFrame(() => themeActs.forEach((act) => act())));
// A colour of the style sheet as it is now, resolved for the theme in force.
function colorOf(name) {
  const probe = byId("probe");
  probe.style.color = `var(${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g);
  return "#" + [r, g, b].map((each) => Math.round(each).toString(16).padStart(2, "0")).join("");
}
const isDark = () => { const ground = colorOf("--ground"); return parseInt(ground.slice(1, 3), 16) < 128; };

const help = byId("help");
byId("help-button").addEventListener("click", () => help.showModal());
help.addEventListener("click", (event) => { if (event.target === help || event.target.closest("button")) help.close(); });

const keyActs = {};  // panels add theirs: w s a d f n p
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const typing = /^(input|textarea|select)$/i.test(event.target.tagName);
  if (event.key === "Escape" && !help.open) {
    if (typing) event.target.blur();
    else reset();
    return;
  }
  if (typing || help.open) return;
  if (event.key >= "1" && event.key <= String(sections.length)) change({ tab: sections[event.key - 1].id });
  else if (event.key === "0") change({ from: null, to: null });
  else if (event.key === "/") { event.preventDefault(); field("search").focus(); }
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") help.showModal();
  else if (keyActs[event.key] && data) { event.preventDefault(); keyActs[event.key](); }
});
