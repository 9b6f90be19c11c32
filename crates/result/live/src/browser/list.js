// The list of results: times in the reader's time zone, and columns that a click sorts.
"use strict";
(() => {
  const two = (number) => String(number).padStart(2, "0");
  for (const time of document.querySelectorAll("time")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    time.title = time.textContent;
    time.textContent = `${day} ${two(at.getHours())}:${two(at.getMinutes())}`;
  }
  const key = (row, column) => {
    const cell = row.cells[column];
    if (!cell || cell.colSpan > 1) return "";
    const text = cell.dataset.v ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const order = (a, b) => typeof a === "number" && typeof b === "number"
    ? a - b
    : typeof a === "number" ? 1 : typeof b === "number" ? -1 : a.localeCompare(b);
  for (const table of document.querySelectorAll("table.results")) {
    const head = table.tHead.rows[0], body = table.tBodies[0];
    [...head.cells].forEach((cell, column) => {
      if (cell.textContent === "" || column === head.cells.length - 1) return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        const way = cell.ariaSort === "descending" ? "ascending" : "descending";
        for (const other of head.cells) other.ariaSort = null;
        cell.ariaSort = way;
        const sign = way === "descending" ? -1 : 1;
        const rows = [...body.rows].sort((a, b) => sign * order(key(a, column), key(b, column)));
        body.append(...rows);
      });
    });
  }
})();
