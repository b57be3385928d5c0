// Panels from what the server tells: every kind of panel has one way to be drawn, and nothing is drawn that did not change.
const shown = new Map();

function cellElement(each, number) {
  const td = element("td", number ? "n" : "");
  if (each.h) td.title = each.h;
  const bars = each.b || [];
  if (each.s >= 0 && each.t) td.append(element("i", "swatch slot-" + each.s));
  if (bars.length && !each.t) {
    const box = td.appendChild(element("span", "bars"));
    for (const [name, percent, words] of bars) {
      const bar = box.appendChild(element("i", name === "slot" ? "slot-" + each.s : name));
      bar.style.width = percent + "%";
      if (words) bar.title = words;
    }
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", bars.map(([, percent, words]) => words || percent + " %").join(", "));
  } else if (bars.length) td.append(element("i", "swatch " + bars[0][0]));
  if (each.a) {
    const link = td.appendChild(element("a", "go", each.t));
    link.href = settings.root + each.a;
  } else td.append(each.t);
  return td;
}
function headCell(panel, [label, number], at) {
  const head = element("th", number ? "n" : "");
  head.scope = "col";
  if (!label) return head;
  if (!panel.sortable) { head.textContent = label; return head; }
  const button = head.appendChild(element("button", "", label));
  button.type = "button";
  if (panel.sort && panel.sort[0] === at) head.setAttribute("aria-sort", panel.sort[1] > 0 ? "ascending" : "descending");
  button.addEventListener("click", () => {
    const before = panel.sort && panel.sort[0] === at ? panel.sort[1] : 0;
    sorts[panel.name] = [at, before ? -before : number ? -1 : 1];
    leaves[panel.name] = 0;
    refresh();
  });
  return head;
}
function pager(panel) {
  const box = element("p", "pager note");
  const turn = (text, to, able) => {
    const button = box.appendChild(element("button", "", text));
    button.type = "button";
    button.disabled = !able;
    button.addEventListener("click", () => { leaves[panel.name] = to; refresh(); });
  };
  turn("◀ previous", panel.page - 1, panel.page > 0);
  turn("next ▶", panel.page + 1, panel.page + 1 < panel.pages);
  box.append(` page ${countText(panel.page + 1)} of ${countText(panel.pages)}, ${countText(panel.total)} rows`);
  return box;
}
const paged = (panel) => [...(panel.pages > 1 ? [pager(panel)] : []), ...(panel.note ? [element("p", "note", panel.note)] : [])];
const kinds = {
  text: (panel) => [element("p", panel.tone || "empty", panel.text)],
  strip: (panel) => {
    const list = element("dl", "strip");
    for (const [name, value, what, more] of panel.items) {
      const box = list.appendChild(element("div"));
      const dt = box.appendChild(element("dt", "", what)), dd = box.appendChild(element("dd", "", value));
      dd.dataset.head = name;
      if (more) box.title = more;
      dt.id = "head-" + name;
      dd.setAttribute("aria-labelledby", dt.id);
    }
    return [list];
  },
  bar: (panel) => {
    const bar = element("div", "bar");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", panel.parts.map(([, word, percent]) => `${word} ${percent} %`).join(", "));
    for (const [name, word, percent, text] of panel.parts) {
      const part = bar.appendChild(element("i", name.startsWith("slot-") ? name : "part-" + name));
      part.style.width = percent + "%";
      part.title = `${word}: ${text}, ${percent} %`;
      part.append(element("span", "", percent >= 9 ? `${word} ${percent} %` : ""));
    }
    const list = element("ul", "legend");
    for (const [name, word, percent, text] of panel.parts) {
      const item = list.appendChild(element("li"));
      item.append(element("i", "swatch part-" + name), `${word} `, element("b", "", `${plain(percent, 1)} %`), ` ${text}`);
    }
    return [bar, ...(panel.bare ? [] : [list]), element("p", panel.amber ? "closing amber" : "closing", panel.closing)];
  },
  table: (panel) => {
    const scroll = element("div", "scroll"), table = scroll.appendChild(element("table"));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", panel.caption);
    table.id = "table-" + panel.name;
    if (panel.caption) table.append(element("caption", "", panel.caption));
    table.createTHead().insertRow().append(...panel.columns.map((column, at) => headCell(panel, column, at)));
    const body = table.createTBody();
    for (const row of panel.rows) body.insertRow().append(...row.map((each, at) => cellElement(each, panel.columns[at][1])));
    if (panel.last) table.createTFoot().insertRow().append(...panel.last.map((each, at) => cellElement(each, panel.columns[at][1])));
    return [scroll, ...paged(panel)];
  },
  groups: (panel) => panel.groups.map((group) => {
    const box = element("details", "error"), head = box.appendChild(element("summary"));
    head.append(element("b", "", group.times + " ×"), ` in ${group.prefix}: ${group.summary}`);
    const first = box.appendChild(element("p", "", "First: "));
    first.append(element("code", "", group.key), group.where);
    const text = box.appendChild(element("pre", "", group.text));
    text.tabIndex = 0;
    box.dataset.keep = group.prefix + "\n" + group.summary;
    return box;
  }).concat(paged(panel)),
  lines: (panel) => {
    const box = element("pre", "log");
    box.tabIndex = 0;
    for (const line of panel.lines) box.append(element("span", "", line));
    return [box, ...paged(panel)];
  },
  histogram: (panel) => {
    const box = element("div", "histogram"), most = Math.max(1, ...panel.bins.map(([, count]) => count));
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", panel.words);
    panel.bins.forEach(([label, count, words], i) => {
      const bin = box.appendChild(element("div", "bin"));
      bin.title = words;
      bin.append(element("b", "", count ? countText(count) : ""), element("i"), element("small", "", i % panel.every === 0 ? label : ""));
      bin.children[1].style.height = 100 * count / most + "%";
    });
    return panel.note ? [box, element("p", "note", panel.note)] : [box];
  },
  matrix: (panel) => {
    const scroll = element("div", "scroll"), table = scroll.appendChild(element("table", "matrix"));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", panel.caption);
    table.createTHead().insertRow().append(element("th", "", "from / to"), ...panel.names.map((name) => element("th", "", cut(name, 14))));
    const body = table.createTBody();
    panel.cells.forEach((row, i) => {
      const line = body.insertRow();
      line.append(element("th", "", cut(panel.names[i], 20)));
      row.forEach(([text, share, words]) => {
        const td = line.appendChild(element("td", "n", text));
        td.title = words;
        if (share) td.style.background = `color-mix(in srgb, var(--transfer) ${share}%, var(--ground))`;
      });
    });
    return [scroll];
  },
};
function keep(box) {
  const open = new Set([...box.querySelectorAll("details[open]")].map((each) => each.dataset.keep));
  const scrolls = [...box.querySelectorAll(".scroll, pre")].map((each) => [each.scrollLeft, each.scrollTop]);
  const focused = box.contains(document.activeElement) ? [...box.querySelectorAll("button, a, summary, [tabindex]")].indexOf(document.activeElement) : -1;
  return () => {
    for (const each of box.querySelectorAll("details")) each.open = open.has(each.dataset.keep);
    box.querySelectorAll(".scroll, pre").forEach((each, i) => { if (scrolls[i]) [each.scrollLeft, each.scrollTop] = scrolls[i]; });
    if (focused >= 0) [...box.querySelectorAll("button, a, summary, [tabindex]")][focused]?.focus({ preventScroll: true });
  };
}
function showPanel(panel) {
  const box = byId("panel-" + panel.name)?.querySelector(".body");
  if (!box) return;
  const text = JSON.stringify(panel);
  if (shown.get(panel.name) === text) return;
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && box.contains(selection.anchorNode)) return;  // someone is copying from it
  shown.set(panel.name, text);
  const restore = keep(box);
  try {
    box.replaceChildren(...kinds[panel.kind](panel));
  } catch (error) {
    box.replaceChildren(element("p", "notice", `This part could not be drawn: ${error.message}. The others go on.`));
  }
  restore();
}
