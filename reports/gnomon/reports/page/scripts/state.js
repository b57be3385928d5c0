// What the reader looks at: tab, range, prefix, worker and search; kept in the hash. One bus tells every panel of a change.
const byId = (id) => document.getElementById(id);
const quietly = (act) => { try { return act(); } catch { return undefined; } };  // a sandboxed frame has no history and no storage
let paused = 0;
// Between two long steps, so that the page answers; between short ones only if the last pause was a while ago.
const pause = async () => { await new Promise((resolve) => setTimeout(resolve)); paused = performance.now(); };
const breathe = async () => { if (performance.now() - paused > 100) await pause(); };

const sections = [...document.querySelectorAll("main > section")];
const tabs = sections.map((section) => byId("tab-" + section.id));
const EMPTY = { tab: "summary", from: null, to: null, prefix: "", worker: "", search: "" };
let state = { ...EMPTY };
const listeners = [];
const onChange = (act) => listeners.push(act);

function hashOf(wanted) {
  const parts = ["tab=" + wanted.tab];
  if (wanted.from !== null) parts.push(`t=${seconds(wanted.from)}-${seconds(wanted.to)}`);
  for (const name of ["prefix", "worker", "search"]) if (wanted[name]) parts.push(name + "=" + encodeURIComponent(wanted[name]));
  return "#" + parts.join("&");
}
// What a hash says; what it does not mention stays as `base` has it.
function readHash(hash, base = EMPTY) {
  const said = new URLSearchParams(hash.replace(/^#/, "").replaceAll("+", "%2B")), result = { ...base };
  if (sections.some((section) => section.id === said.get("tab"))) result.tab = said.get("tab");
  if (said.has("t")) {
    const [, from, to] = /^(-?[\d.]+)-([\d.]+)$/.exec(said.get("t")) || [];
    result.from = to > +from ? Math.round(from * TICKS) : null;
    result.to = result.from === null ? null : Math.round(to * TICKS);
  }
  for (const name of ["prefix", "worker", "search"]) if (said.has(name)) result[name] = said.get(name);
  return result;
}
function change(patch, { replace = false } = {}) {
  const before = state;
  state = { ...state, ...patch };
  const hash = hashOf(state);
  if (hash === hashOf(before)) return;
  quietly(() => replace ? history.replaceState(null, "", hash) : history.pushState(null, "", hash));
  listeners.forEach((act) => act(before));
}
window.addEventListener("popstate", () => {
  const before = state;
  state = readHash(location.hash);
  if (hashOf(before) !== hashOf(state)) listeners.forEach((act) => act(before));
});
document.addEventListener("click", (event) => {
  const link = event.target.closest('a[href^="#"]');
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const href = link.getAttribute("href"), target = !href.includes("=") && byId(href.slice(1));
  if (target) return target.scrollIntoView();
  const wanted = readHash(href, state), moved = wanted.tab !== state.tab;
  if (link.classList.contains("go") && wanted.prefix === state.prefix && wanted.worker === state.worker) Object.assign(wanted, { prefix: "", worker: "" });
  change(wanted);
  if (moved) window.scrollTo(0, 0);
  return undefined;
});

function showTab(before) {
  const at = Math.max(0, sections.findIndex((section) => section.id === state.tab));
  sections.forEach((section, i) => { section.hidden = i !== at; });
  tabs.forEach((tab, i) => {
    tab.setAttribute("aria-selected", i === at);
    tab.tabIndex = i === at ? 0 : -1;
    tab.href = hashOf({ ...state, tab: sections[i].id });
  });
  if (before && before.tab !== state.tab && tabs.includes(document.activeElement)) tabs[at].focus();
}
onChange(showTab);
document.querySelector("nav").addEventListener("keydown", (event) => {
  const at = tabs.indexOf(event.target), step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const next = event.key === "Home" ? 0 : event.key === "End" ? tabs.length - 1 : step && (at + step + tabs.length) % tabs.length;
  if (at < 0 || next === undefined) return;
  event.preventDefault();
  tabs[next].focus();
  change({ tab: sections[next].id });
});
