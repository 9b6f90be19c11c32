// Tables that a click on a heading sorts; a second click turns the order round.
(() => {
  "use strict";
  const key = cell => {
    const text = cell.dataset.v ?? cell.textContent.trim();
    const number = Number(text);
    return text === "" || Number.isNaN(number) ? text : number;
  };
  const order = (a, b) => typeof a === "number" && typeof b === "number"
    ? a - b
    : typeof a === "number" ? 1 : typeof b === "number" ? -1 : a.localeCompare(b);
  for (const table of document.querySelectorAll("table.sortable")) {
    const [head, ...rows] = table.rows;
    [...head.cells].forEach((cell, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...cell.childNodes);
      cell.append(button);
      button.addEventListener("click", () => {
        // figures begin with the largest, names with the first
        const way = (cell.ariaSort ? cell.ariaSort === "ascending" : column > 0) ? "descending" : "ascending";
        for (const other of head.cells) other.ariaSort = null;
        cell.ariaSort = way;
        const sign = way === "descending" ? -1 : 1;
        rows.sort((a, b) => sign * order(key(a.cells[column]), key(b.cells[column])));
        rows.forEach(row => row.parentNode.append(row));
      });
    });
  }
})();
