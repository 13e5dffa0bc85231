/* Tables that are wider than their column. On a phone one is set closer. Where that is not enough, a table of numbers scrolls under its
   first column, because numbers are compared down a column; of any other each row becomes a card, with the heading of its column beside
   each value. The page itself never scrolls sideways. On a desk it reaches under the list of
   contents, which gives way (contents.js); where that is not enough it is set closer, and at last it scrolls. */
(() => {
  "use strict";

  const narrow = matchMedia("(max-width: 44.9375em)"), desk = matchMedia("(min-width: 60em)");
  const TABLES = ".md-typeset table:not([class])";
  const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };  // a card has lost its own

  const room = table => (table.closest(".md-typeset__scrollwrap") ?? table.parentElement).clientWidth;
  const isCut = table => table.scrollWidth > room(table) + 1;

  const NUMBER = /^[≈<>~–−+-]?\s*[\d.,]+\s*\S{0,8}$|^–?$/, MOSTLY = 0.8, LEAST_COLUMNS = 3;

  // Whether nearly all of it but the first column are numbers, in at least two columns.
  function isOfNumbers(table) {
    const rows = [...table.tBodies[0]?.rows ?? []], cells = rows.flatMap(row => [...row.cells].slice(1));
    const numbers = cells.filter(cell => NUMBER.test(cell.textContent.trim())).length;
    return rows.length > 1 && (rows[0]?.cells.length ?? 0) >= LEAST_COLUMNS && numbers >= MOSTLY * cells.length;
  }

  // A box that scrolls is reached by keyboard, and says what it is.
  function scrolls(table) {
    const box = table.closest(".md-typeset__scrollwrap");
    if (!box) return false;
    table.dataset.numbers = "";
    box.dataset.scrolls = "";
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `Table: ${[...table.tHead.rows[0].cells].map(headOf).filter(Boolean).join(", ")}`);
    return true;
  }

  function still(box) {
    delete box.dataset.scrolls;
    for (const name of ["tabindex", "role", "aria-label"]) box.removeAttribute(name);
  }

  function fit(table) {
    delete table.dataset.close;
    delete table.dataset.stacked;
    delete table.dataset.numbers;
    if (desk.matches) return fitOnDesk(table);
    if (!narrow.matches || !table.tHead || !isCut(table)) return;
    table.dataset.close = "";
    if (!isCut(table) || (isOfNumbers(table) && scrolls(table))) return;
    name(table);
    table.dataset.stacked = "";
  }

  // Only what stands in the page's own column can reach beyond it; a table in a fold or a box has to stay there.
  function fitOnDesk(table) {
    const wrapper = table.closest(".md-typeset__scrollwrap"), block = table.closest(".md-content__inner > :is(.wide, .md-typeset__scrollwrap)");
    if (!wrapper || !table.offsetParent || !isCut(table)) return;
    if (block) block.dataset.reaches = "";
    if (isCut(table)) table.dataset.close = "";
    if (isCut(table)) wrapper.dataset.scrolls = "";
  }

  // Each cell gets its column's heading, and all of it the roles that its form takes away.
  function name(table) {
    if (table.dataset.title !== undefined) return;
    const heads = [...table.tHead.rows[0].cells].map(headOf);
    table.dataset.title = heads[0];
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, i) => { if (i) cell.dataset.head = heads[i] ?? ""; });
    }
    for (const part of [table, ...table.querySelectorAll("thead, tbody, tr, td")]) part.setAttribute("role", ROLES[part.tagName]);
    for (const head of table.tHead.querySelectorAll("th")) head.setAttribute("role", "columnheader");
    for (const head of table.querySelectorAll("tbody th")) head.setAttribute("role", "rowheader");
  }

  // "step (ms)": the unit's brackets are the style sheet's.
  function headOf(cell) {
    const copy = cell.cloneNode(true);
    for (const unit of copy.querySelectorAll("small")) unit.textContent = `(${unit.textContent})`;
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  function fitAll() {
    for (const each of document.querySelectorAll("[data-reaches], [data-scrolls]")) {
      delete each.dataset.reaches;
      if (each.dataset.scrolls !== undefined) still(each);
    }
    for (const table of document.querySelectorAll(TABLES)) if (!table.closest("figure, .progress, .book")) fit(table);
    dispatchEvent(new Event("tables-fitted"));
  }

  let waiting = 0;
  const soon = () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(fitAll);
  };
  document$.subscribe(() => {
    fitAll();
    document.fonts.ready.then(soon);
  });
  addEventListener("toggle", ({ target }) => target.querySelector?.("table") && soon(), true);  // a fold's tables have no width while it is closed
  let before = innerWidth;
  addEventListener("resize", () => {  // a phone's browser bars change the height alone
    if (innerWidth !== before) soon();
    before = innerWidth;
  });
})();
