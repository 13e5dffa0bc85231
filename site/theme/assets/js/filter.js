// A field above each long table of the catalogue: rows that do not have all the words that are typed are hidden. The field is made here,
// so that a page without JavaScript has every row and nothing that does not work.
const LEAST_ROWS = 8;  // a shorter table is read faster than it is searched

const words = text => text.toLowerCase().replace(/\s+/g, " ");

// The rows of a catalogue, and beside each what it is found by. The fold of sources has the same things in the same order as the table
// above it, so its rows follow the rows there: a note may speak of another thing.
function read(catalogue) {
  const tables = [...catalogue.querySelectorAll("table")].filter(table => table.tBodies.length);
  const all = tables.map(table => ({ rows: [...table.tBodies[0].rows], counts: !table.closest("details") }));
  return all.flatMap(({ rows, counts }) => {
    const above = all.find(other => other.counts && other.rows.length === rows.length);
    return rows.map((row, i) => ({ row, counts, said: words((counts || !above ? row : above.rows[i]).textContent) }));
  });
}

function fieldFor(catalogue, number) {
  const known = read(catalogue), all = known.filter(({ counts }) => counts).length;
  if (all < LEAST_ROWS) return;
  const box = document.createElement("p");
  box.className = "table-filter";
  box.innerHTML = `<label for="filter-${number}">Only rows with</label> <input id="filter-${number}" type="search" autocomplete="off" spellcheck="false"> `
    + `<span role="status"></span>`;
  const field = box.querySelector("input"), status = box.querySelector("span");
  const look = () => {
    const asked = words(field.value).trim().split(" ").filter(Boolean);
    for (const each of known) each.row.hidden = !asked.every(word => each.said.includes(word));
    const shown = known.filter(({ row, counts }) => counts && !row.hidden).length;
    status.textContent = asked.length ? (shown ? `${shown} of ${all} rows` : `None of ${all} rows has this.`) : "";
  };
  field.addEventListener("input", look);
  field.addEventListener("keydown", event => {
    if (event.key !== "Escape" || !field.value) return;
    event.preventDefault();
    field.value = "";
    look();
  });
  catalogue.before(box);
}

document$.subscribe(() => {
  for (const [number, catalogue] of document.querySelectorAll(".catalogue").entries()) {
    if (catalogue.dataset.filtered !== undefined) continue;
    catalogue.dataset.filtered = "";
    fieldFor(catalogue, number);
  }
});
