// Every panel but the timeline, for the range and filter in force. Only the tab that is looked at is drawn.
const slotOf = (name) => settings.slots[name] ?? 9;
// The bar in a box: class, percent and words of each segment, which says them itself from a width on.
function showBar(box, segments, least) {
  const bar = box.querySelector(".bar");
  bar.replaceChildren(...segments.map(([name, share, text]) => {
    const segment = element("i", name);
    segment.style.width = share + "%";
    segment.title = text;
    segment.append(element("span", "", share >= least ? text : ""));
    return segment;
  }));
  bar.setAttribute("aria-label", segments.map(([, , text]) => text).join(", "));
  return bar;
}
const saved = byId("whole").innerHTML, savedStrip = byId("strip").innerHTML;

function showSummary(account) {
  const summary = byId("whole");
  if (!filtered()) {  // the very text that the page came with
    if (summary.innerHTML !== saved) summary.innerHTML = saved;
    if (byId("strip").innerHTML !== savedStrip) byId("strip").innerHTML = savedStrip;
    return;
  }
  if (!byId("table-account")) return;
  showHead(account);
  if (state.tab !== "summary") return;
  const table = accountTable(account, settings), parts = table.rows.filter((row) => row[2].value);
  showBar(summary, parts.map(([first, , share]) => ["part-" + first.bars[0][0], share.value, `${first.text} ${share.text}`]), 9);
  fill(table);
  summary.querySelector(".closing").textContent = closingText(account);
  summary.querySelector(".closing").classList.toggle("amber", account.parts.unaccounted > 0.05 * account.capacity);
  fill(prefixShareTable(account, slotOf));
  fill(workerShareTable(account));
}
function showHead(account) {
  const least = account.partial ? "≥ " : "", length = account.to - account.from, busy = account.capacity ? 100 * busyOf(account.parts) / account.capacity : 0, moved = movedIn(query());
  const head = { wall: timeText(length), workers: countText(account.workers.length), threads: countText(account.threads), busy: plain(busy, 1) + " %", tasks: least + countText(account.tasks), erred: least + countText(account.erred), rate: least + rateText(account.tasks, length), moved: state.prefix ? "-" : bytesText(moved) };
  const loop = loopParts(), all = loop.work + loop.gc + loop.waiting;
  head.loop = all ? plain(100 * loop.work / all, 1) + " %" : "-";
  for (const dd of byId("strip").querySelectorAll("dd")) if (head[dd.dataset.head]) dd.textContent = head[dd.dataset.head];
}

// Counts by length, on a logarithmic axis, as bars in the page.
function showHistogram(durations) {
  const box = byId("histogram"), lists = durations.known.filter(Boolean).map((each) => each.list), all = lists.flatMap((list) => [list[0], list.at(-1)]);
  box.replaceChildren();
  if (!all.length) return;
  const low = Math.floor(3 * Math.log10(Math.max(1, Math.min(...all)))), high = Math.ceil(3 * Math.log10(Math.max(2, Math.max(...all)))), counts = new Array(Math.max(1, high - low)).fill(0);
  for (const list of lists) for (const ticks of list) counts[Math.max(0, Math.min(counts.length - 1, Math.floor(3 * Math.log10(Math.max(1, ticks)) - low)))]++;
  const most = Math.max(...counts);
  counts.forEach((count, i) => {
    const bar = box.appendChild(element("div", "bin")), from = timeText(10 ** ((low + i) / 3)), to = timeText(10 ** ((low + i + 1) / 3));
    bar.title = `${countText(count)} runs of ${from} to ${to}`;
    bar.append(element("b", "", count ? countText(count) : ""), element("i"), element("small", "", i % 3 === 0 || counts.length < 8 ? from : ""));
    bar.children[1].style.height = 100 * count / most + "%";
  });
  box.setAttribute("aria-label", "Runs by computing time: " + counts.map((count, i) => count ? `${count} from ${timeText(10 ** ((low + i) / 3))}` : "").filter(Boolean).join(", "));
}
function showTasks(account) {
  if (!byId("table-prefixes")) return;
  const durations = account.durations ||= durationsOf(data, query()), match = searchMatch();
  fill(prefixTable(account, durations, slotOf), { match });
  showHistogram(durations);
  if (byId("table-slowest")) {
    const { flags } = matching(), rows = state.search ? durations.rows.filter((i) => flags[i]) : durations.rows;
    fill(slowestTable(data, rows, slotOf));
  }
  showDeep();
}
// Deep profiles of tasks: a filter by prefix leaves its tasks to choose from.
function showDeep() {
  const choice = byId("deep-choice");
  if (!choice) return;
  const fits = settings.deep.map((each) => !state.prefix || each.prefix === state.prefix), first = fits.indexOf(true), options = choice.elements.namedItem("profile").options;
  fits.forEach((fit, i) => { options[i].hidden = options[i].disabled = !fit; });
  if (first >= 0 && !fits[deepView.profile]) Object.assign(deepView, { profile: first, root: 0 });
  options[deepView.profile].selected = true;
  byId("deep").hidden = byId("table-deep-functions").hidden = first < 0;
  if (first < 0) byId("deep-note").textContent = `No task of ${cut(state.prefix, 40)} has a deep profile here.`;
  else showFlames(deepView);
}

// A grid of shares: rows of a name and numbers from 0 to 1 (NaN: nothing there), drawn as one picture.
function heat(canvas, rows) {
  const width = rows[0].length, image = new ImageData(width, rows.length), ground = colorOf("--panel"), ink = colorOf("--compute");
  const rgb = (color) => [1, 3, 5].map((i) => parseInt(color.slice(i, i + 2), 16)), [low, high] = [rgb(ground), rgb(ink)];
  rows.forEach((row, y) => row.forEach((share, x) => {
    const at = 4 * (y * width + x);
    for (let c = 0; c < 3; c++) image.data[at + c] = low[c] + (high[c] - low[c]) * Math.min(1, share || 0);
    image.data[at + 3] = Number.isNaN(share) ? 0 : 255;
  }));
  canvas.width = width;
  canvas.height = rows.length;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
function showHeat() {
  const box = byId("heat"), { from, to, worker, prefix } = query(), bins = 200, width = Math.max(1, to - from) / bins;
  if (!box) return;
  const shown = data.workers.map((_, i) => i).filter((i) => worker < 0 || i === worker).slice(0, 100), at = new Map(shown.map((w, i) => [w, i]));
  const rows = shown.map((w) => Array.from({ length: bins }, (_, i) => data.workers[w].low < from + (i + 1) * width && data.workers[w].high > from + i * width ? 0 : NaN));
  for (let i = 0; i < data.runs.count; i++) {
    const row = rows[at.get(data.runs.workers[i])], begin = Math.max(from, data.laid.begins[i]), end = Math.min(to, data.laid.ends[i]);
    if (!row || !(end > begin) || (prefix >= 0 && data.runs.prefixes[i] !== prefix)) continue;
    for (let bin = Math.floor((begin - from) / width); bin < bins && from + bin * width < end; bin++) row[bin] += overlap(begin, end, from + bin * width, from + (bin + 1) * width) / width / data.workers[data.runs.workers[i]].nthreads;
  }
  if (!rows.length) return;
  box.querySelector("ol").replaceChildren(...shown.map((w) => element("li", "", cut(data.workers[w].label, 24))));
  const canvas = box.querySelector("canvas");
  canvas.style.height = 18 * rows.length + "px";
  heat(canvas, rows);
  box.querySelector(".reading").textContent = `Each row a worker, left to right ${fixed(from / TICKS, 2)} to ${fixed(to / TICKS, 2)} s; the darker, the more of its threads were in tasks.` + (data.workers.length > 100 && worker < 0 ? ` 100 of ${countText(data.workers.length)} workers are drawn; all are in the table.` : "");
}
function showWorkers(account) {
  fill(workerTable(account), { match: searchMatch() });
  showHeat();
}

function showMemory(account) {
  showProcesses("processes", data.workers.map((_, i) => i).filter((i) => !state.worker || i === rowOfWorker()));
  const rows = account.prefixes.filter((each) => each.nbytes).sort((a, b) => b.nbytes - a.nbytes).map((each) => [prefixCell(each.name, 60, slotOf(each.name)), countCell(each.tasks), bytesCell(each.nbytes), bytesCell(each.tasks ? Math.round(each.nbytes / each.tasks) : 0)]);
  fill({ name: "results", rows, columns: [["prefix", false], ["tasks", true], ["results", true], ["mean", true]], note: "Sizes as the workers estimated them, of all results together: how much was held at one time is not recorded." + leftOut(rows.length, "prefixes") }, { match: searchMatch() });
}
function showErrors() {
  const { from, to } = query(), wanted = state.search.toLowerCase();
  let lines = 0;
  for (const line of document.querySelectorAll("#errors .log span")) {
    line.hidden = !(+line.dataset.t >= from && +line.dataset.t <= to) && !isWhole() || Boolean(wanted && !line.textContent.toLowerCase().includes(wanted));
    lines += line.hidden ? 0 : 1;
  }
  let groups = 0;
  for (const group of document.querySelectorAll("#errors .error")) {
    group.hidden = Boolean((state.prefix && group.dataset.prefix !== state.prefix) || (wanted && !group.textContent.toLowerCase().includes(wanted)));
    groups += group.hidden ? 0 : 1;
  }
  const note = byId("errors-note"), all = document.querySelectorAll("#errors .log span").length;
  note.textContent = (isWhole() ? "" : `${countText(lines)} of ${countText(all)} log lines lie in ${rangeText()}. Groups of errors are counted over the whole run, not filtered by time.`) + (state.search ? ` The search finds ${groups} groups and ${lines} log lines.` : "");
}

const shows = { tasks: showTasks, workers: showWorkers, communication: () => showCommunication(), scheduler: () => showScheduler(), memory: showMemory, errors: showErrors };
// The account for the range and filter in force. A search or another tab asks for the same again.
function currentAccount() {
  const asked = JSON.stringify(query());
  if (data.asked !== asked) Object.assign(data, { asked, account: accountOf(data, query()) });
  return data.account;
}
function draw() {
  if (!data) return;
  const account = currentAccount();
  showSummary(account);
  if (state.tab === "timeline") drawTimeline().catch((error) => fail("timeline", error));
  else if (shows[state.tab]) try { shows[state.tab](account); } catch (error) { fail(state.tab, error); }
}
// All tables of the tabs, whichever is looked at: what the page came with must come out again.
function drawAll() {
  const account = currentAccount();
  fill(accountTable(account, settings));
  fill(prefixShareTable(account, slotOf));
  fill(workerShareTable(account));
  for (const show of Object.values(shows)) show(account);
}
function fail(name, error) {
  const section = byId(name), box = section.querySelector(".failed") || section.insertBefore(element("p", "failed notice"), section.children[1]);
  box.setAttribute("role", "alert");
  box.textContent = `This part could not be drawn: ${error.message}. The others go on. `;
  const copy = box.appendChild(element("button", "", "Copy details"));
  copy.type = "button";
  copy.addEventListener("click", () => quietly(() => navigator.clipboard.writeText(String(error.stack))));
}
