// What the reader looks at: span or range, prefix, worker and search; kept in the address, and carried from page to page.
const byId = (id) => document.getElementById(id);
const settings = JSON.parse(byId("settings").textContent);
const quietly = (act) => { try { return act(); } catch { return undefined; } };  // a frame of a notebook may have no history and no storage
const FIELDS = ["span", "t", "prefix", "worker", "search"];

function readAddress() {
  const said = new URLSearchParams(location.search), result = {};
  for (const name of FIELDS) result[name] = said.get(name) || "";
  return result;
}
let state = readAddress();
const sorts = {}, leaves = {}, extra = {};
const listeners = [];
const onChange = (act) => listeners.push(act);

function queryOf(wanted) {
  const said = new URLSearchParams();
  for (const name of FIELDS) if (wanted[name]) said.set(name, wanted[name]);
  return said;
}
function change(patch) {
  state = { ...state, ...patch };
  const text = queryOf(state).toString();
  quietly(() => history.replaceState(null, "", location.pathname + (text ? "?" + text : "")));
  carry();
  listeners.forEach((act) => act());
}
// Links to other pages keep the filter; links that name a prefix or worker say so by their path.
function carry() {
  const text = queryOf(state).toString();
  for (const link of document.querySelectorAll("nav a")) link.href = link.dataset.href + (text ? "?" + text : "");
}
function rangeOf(text) {
  const [, from, to] = /^(-?[\d.]+)-([\d.]+)$/.exec(text) || [];
  return +to > +from ? [+from, +to] : null;
}

// An element with text. Text is text: nothing that a user named is ever parsed.
function element(tag, className, text) {
  const result = document.createElement(tag);
  if (className) result.className = className;
  if (text !== undefined) result.textContent = text;
  return result;
}
const colorOf = (name) => {  // as #rrggbb, whatever functions the style sheet used
  const probe = byId("probe");
  probe.style.color = `var(${name})`;
  const [r, g, b] = getComputedStyle(probe).color.match(/[\d.]+/g).map(Number);
  return "#" + [r, g, b].map((value) => Math.round(value).toString(16).padStart(2, "0")).join("");
};
const isDark = () => document.documentElement.dataset.theme === "dark"
  || (document.documentElement.dataset.theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
const themeActs = [];
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  quietly(() => localStorage.setItem("gnomon-theme", theme));
  themeActs.forEach((act) => act());
}
document.documentElement.dataset.theme = quietly(() => localStorage.getItem("gnomon-theme")) || "system";
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => themeActs.forEach((act) => act()));
