"use strict";
// Sorting, the page's only behaviour: numbers by their exact value, text as text.
document.addEventListener("click", (event) => {
  const button = event.target.closest("th button");
  if (!button) return;
  const header = button.parentElement, table = header.closest("table"), body = table.tBodies[0];
  const column = header.cellIndex, before = header.getAttribute("aria-sort");
  const way = before ? (before === "ascending" ? -1 : 1) : (header.classList.contains("n") ? -1 : 1);
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
  const value = (row) => {
    const cell = row.cells[column];
    return "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent;
  };
  const rows = [...body.rows].map((row) => [value(row), row]);
  rows.sort(([a], [b]) => way * (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
  body.append(...rows.map(([, row]) => row));
});
