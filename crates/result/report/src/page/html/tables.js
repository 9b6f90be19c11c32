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
  // rows by their outcome: one kind at a time, or all
  for (const table of document.querySelectorAll("table.filtered")) {
    const rows = [...table.rows].filter(row => row.dataset.outcome);
    const counts = new Map();
    for (const row of rows) counts.set(row.dataset.outcome, (counts.get(row.dataset.outcome) ?? 0) + 1);
    const bar = document.createElement("div");
    bar.className = "filter";
    const add = (text, wanted, pressed) => {
      const button = document.createElement("button");
      Object.assign(button, { type: "button", textContent: text, ariaPressed: String(pressed) });
      button.addEventListener("click", () => {
        for (const other of bar.children) other.ariaPressed = String(other === button);
        for (const row of rows) row.hidden = wanted !== null && row.dataset.outcome !== wanted;
      });
      bar.append(button);
    };
    add(`all ${rows.length}`, null, true);
    for (const [outcome, count] of counts) add(`${outcome} ${count}`, outcome, false);
    (table.closest(".wide") ?? table).before(bar);
  }
  // of many rows, or of tagged ones, those that contain a text
  for (const table of document.querySelectorAll("table.sortable:not(.filtered)")) {
    const [head, ...all] = table.rows;
    const rows = all.filter(row => !row.matches(".sum, .rest"));
    const tagged = [...head.cells].some(cell => cell.textContent.trim() === "tags");
    if (rows.length < (tagged ? 2 : 8)) continue;
    const box = document.createElement("input");
    Object.assign(box, { type: "search", placeholder: "filter rows", ariaLabel: "filter rows" });
    box.addEventListener("input", () => {
      const wanted = box.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
    const bar = document.createElement("div");
    bar.className = "filter";
    bar.append(box);
    (table.closest(".wide") ?? table).before(bar);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    const [head, ...all] = table.rows;
    // a row that stands for several stays at the end
    const rows = all.filter(row => !row.matches(".sum, .rest"));
    const last = all.filter(row => row.matches(".sum, .rest"));
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
        [...rows, ...last].forEach(row => row.parentNode.append(row));
      });
    });
  }
})();
