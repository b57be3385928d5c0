// Charts: documents of Bokeh's in a session of the dashboard's server. The server draws from its model and pushes; this side
// says what it wants to see and what it has shown, moves ranges while it follows, and never lets anybody else move them.
const figures = settings.names.map((name) => byId("chart-" + name));
let chartDocument = null, viewerModel = null, noteModel = null, told = null, opening = false, chosen = null, shownNumber = 0, moving = false, failures = 0;

function say(name, why) {
  const figure = byId("chart-" + name);
  if (!figure) return;
  figure.classList.toggle("nothing", Boolean(why));
  const box = figure.querySelector(".why");
  if (why && box.textContent !== why) box.textContent = why;
}
function wish() {
  const range = rangeOf(state.t);
  return { shown: shownNumber, visible: !document.hidden, paused, view: following || range ? null : chosen, query: Object.fromEntries(queryOf({ ...state, span: state.span || settings.span })) };
}
let wishSaid = "";
function tellServer() {
  if (!viewerModel) return;
  const text = JSON.stringify(wish());
  if (text === wishSaid) return;
  wishSaid = text;
  try { viewerModel.tags = [text]; } catch { drop(); }
}
viewActs.push(tellServer);
onChange(() => { tellServer(); follow(); });
document.addEventListener("visibilitychange", tellServer);

async function open() {
  if (!settings.charts || opening || chartDocument || typeof Bokeh === "undefined" || document.hidden) return;
  opening = true;
  try {
    const answer = await fetch(`${settings.root}api/v1/pages/token.json`, { credentials: "same-origin", cache: "no-store" });
    if (!answer.ok) throw new Error(`the dashboard answered ${answer.status}`);
    const { token } = await answer.json(), way = location.protocol === "https:" ? "wss:" : "ws:";
    const before = new Set(Bokeh.documents);
    figures.forEach((figure) => figure.querySelector(".plot").replaceChildren());
    await Bokeh.embed.add_document_from_session(`${way}//${location.host}${settings.root}${settings.charts}/ws`, token, document.body.appendChild(element("div")), figures.map((figure) => figure.querySelector(".plot")));
    chartDocument = Bokeh.documents.find((each) => !before.has(each));
    failures = 0;
    begin();
  } catch (error) {
    failures++;
    chartDocument = null;
    for (const name of settings.names) say(name, `The chart can't be shown: it needs a websocket to the dashboard, which is closed or blocked (${error.message || error}). Numbers and tables go on without it.`);
    setTimeout(open, Math.min(30000, 1000 * 2 ** failures));
  } finally {
    opening = false;
  }
}
function drop() {
  if (!chartDocument) return;
  chartDocument = viewerModel = noteModel = null;
  figures.forEach((figure) => figure.classList.add("stale"));
  setTimeout(open, 1000);
}
const plots = () => [...chartDocument.all_models].filter((each) => each.type === "Figure");
// Ranges that go with the time: all that do not fit themselves to data.
const timed = () => [...new Set(plots().filter((plot) => ["stream"].includes(plot.name) || plot.x_range.tags.includes("time")).map((plot) => plot.x_range))];

function begin() {
  viewerModel = chartDocument.get_model_by_name("viewer");
  noteModel = chartDocument.get_model_by_name("note");
  chartDocument.on_event?.("connection_lost", drop);
  shownNumber = 0;
  wishSaid = "";
  figures.forEach((figure) => figure.classList.remove("stale"));
  noteModel.properties.data.change.connect(onNote);
  for (const range of timed()) range.change.connect(() => onRange(range));
  for (const plot of plots()) if (plot.name === "stream") {
    const source = chartDocument.get_model_by_name("stream-source");
    source.properties.data.change.connect(() => addWords(source));
    source.inspect.connect(() => point(source));
  }
  paint();
  onNote();
  tellServer();
}
function onNote() {
  const text = noteModel.data.told?.[0];
  if (!text) return;
  told = JSON.parse(text);
  for (const [name, each] of Object.entries(told.charts)) {
    say(name, each.empty);
    const notes = byId("chart-" + name).querySelector(".notes"), texts = each.notes;
    if (notes.dataset.shown !== JSON.stringify(texts)) {
      notes.dataset.shown = JSON.stringify(texts);
      notes.hidden = !texts.length;
      notes.replaceChildren(...texts.map((each) => element("li", "", each)));
    }
  }
  const slow = byId("slow");
  slow.hidden = told.skipped < 5;
  if (!slow.hidden) slow.textContent = `${countText(told.skipped)} updates skipped: this browser or its network is slower than the refresh`;
  const source = chartDocument.get_model_by_name("stream-source");
  if (source) addWords(source);
  follow();
  shownNumber = told.number;
  document.documentElement.dataset.drawn = told.number;
  // The acknowledgement waits for the drawing: a browser that can't keep up is sent less.
  requestAnimationFrame(() => setTimeout(tellServer, 0));
}
// The range in view goes on with the time, unless somebody chose one.
function follow() {
  if (!chartDocument || !told || paused) return;
  const range = rangeOf(state.t);
  if (!following && !range) return;
  const [start, end] = range || [told.from, told.to];
  if (!(end > start)) return;
  moving = true;
  for (const each of timed()) if (each.start !== start || each.end !== end) each.setv({ start, end }, { sync: false });
  moving = false;
}
let rangeTimer = 0;
function onRange(range) {
  if (moving) return;
  chosen = [range.start, range.end];
  moving = true;
  for (const each of timed()) if (each !== range) each.setv({ start: range.start, end: range.end }, { sync: false });
  moving = false;
  if (following) setFollowing(false);
  byId("live").hidden = false;
  clearTimeout(rangeTimer);
  rangeTimer = setTimeout(tellServer, 250);
  showBrush(...chosen);
}
const zoom = (factor, shift = 0) => {
  const range = timed()[0];
  if (!range) return;
  const middle = (range.start + range.end) / 2 + shift * (range.end - range.start), half = (range.end - range.start) / 2 * factor;
  for (const each of timed()) each.setv({ start: middle - half, end: middle + half }, { sync: false });
};
Object.assign(keyActs, { w: () => zoom(0.5), s: () => zoom(2), a: () => zoom(1, -0.25), d: () => zoom(1, 0.25) });

// Words for the hover, made from the typed columns; the key of a task is asked for when somebody points at it.
function addWords(source) {
  const facts = told?.charts["task-stream"], { data } = source;
  if (!facts || !data.left || data.key?.length === data.left.length) return;
  const count = data.left.length, key = new Array(count), took = new Array(count), where = new Array(count);
  for (let i = 0; i < count; i++) {
    const slot = data.slot[i];
    key[i] = facts.slots[slot] ?? (slot === 11 ? "erred" : slot === 21 ? "left out by the filter" : "other prefix");
    took[i] = timeText((data.right[i] - data.left[i]) * TICKS);
    where[i] = facts.rows[Math.floor(data.bottom[i])] ?? "";
  }
  data.key = key; data.took = took; data.where = where;
}
let pointed = "";
async function point(source) {
  const i = source.inspected.indices[0], facts = told?.charts["task-stream"];
  if (i === undefined || !facts) return;
  const who = facts.who?.[Math.floor(source.data.bottom[i])];
  if (!who) return;
  const at = (source.data.left[i] + source.data.right[i]) / 2, name = `${at} ${who}`;
  if (pointed === name) return;
  pointed = name;
  await new Promise((resolve) => setTimeout(resolve, 120));
  if (pointed !== name) return;
  const answer = await fetch(`${settings.root}api/v1/pages/timeline.json?ask=run&at=${at}&worker=${who[0]}&thread=${who[1]}`, { credentials: "same-origin" }).then((each) => each.json()).catch(() => null);
  const words = answer?.panels?.[0]?.text;
  if (words && pointed === name) byId("found").textContent = words;
}

// Colours of what the figures leave to the theme.
function paint() {
  if (!chartDocument) return;
  const text = colorOf("--text"), line = colorOf("--line"), quiet = { sync: false };
  for (const plot of plots()) {
    for (const axis of [...plot.below, ...plot.left]) axis.setv({ major_label_text_color: text, axis_label_text_color: text, axis_line_color: line, major_tick_line_color: line, minor_tick_line_color: line }, quiet);
    for (const grid of plot.center) if (grid.type === "Grid" && grid.grid_line_color !== null) grid.setv({ grid_line_color: line }, quiet);
    plot.setv({ outline_line_color: line }, quiet);
    if (plot.title) plot.title.setv({ text_color: text }, quiet);
  }
  const ground = colorOf("--ground");
  for (const name of ["outside-left", "outside-right"]) chartDocument.get_model_by_name(name)?.setv({ fill_color: ground }, quiet);
  chartDocument.get_model_by_name("stream-colors")?.setv({ palette: isDark() ? settings.dark : settings.light }, quiet);
}
themeActs.push(() => requestAnimationFrame(paint));
document.addEventListener("visibilitychange", () => { if (!document.hidden) open(); });

// Begin.
sayTheme();
showFilter();
showDownloads();
carry();
turn();
open();
if (settings.refresh) setInterval(() => { if (last && chartDocument && told && !paused) figures.forEach((figure) => figure.classList.toggle("stale", Boolean(retries) || !last.connected)); }, 1000);
if (settings.alone) document.querySelectorAll("a").forEach((each) => { each.target = "_blank"; });
