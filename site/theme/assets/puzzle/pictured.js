// The picture of an answer, where a puzzle drives no figure: lines of boxes on one axis, with a key, as judging.picture describes it.
const span = (name, text = "") => Object.assign(document.createElement("span"), { className: name, textContent: text });

export function pictured(puzzle, { lines, key, says, unit }) {
  const place = puzzle.querySelector(".puzzle-picture") ?? puzzle.querySelector("[data-printed]").insertAdjacentElement("afterend", document.createElement("figure"));
  place.className = "puzzle-picture";
  const end = Math.max(...lines.flatMap(([, boxes]) => boxes.map(([, to]) => to)), 1e-9);
  const rows = span("puzzle-rows");
  rows.setAttribute("role", "img");
  rows.setAttribute("aria-label", says);
  for (const [name, boxes] of lines) {
    const track = span("puzzle-track");
    for (const [from, to, text, look] of boxes) {
      const box = span("puzzle-box", text);
      box.dataset.look = look;
      box.style.left = `${(100 * from) / end}%`;
      box.style.width = `${(100 * (to - from)) / end}%`;
      track.append(box);
    }
    rows.append(span("puzzle-name", name), track);
  }
  if (unit) rows.append(span("puzzle-name"), span("puzzle-axis", `0 to ${end.toLocaleString("en")} ${unit}`));
  const legend = span("puzzle-legend");
  for (const [look, words] of Object.entries(key)) {
    const swatch = span("puzzle-box");
    swatch.dataset.look = look;
    const entry = span("puzzle-entry");
    entry.append(swatch, words);
    legend.append(entry);
  }
  const told = document.createElement("figcaption");
  told.append(says, " ", legend);
  place.replaceChildren(told, rows);
  fit(rows);
}

// A text without room is left out; its words are in what the picture says.
const watch = new ResizeObserver(entries => { for (const { target } of entries) fit(target); });

function fit(rows) {
  watch.observe(rows);
  for (const box of rows.querySelectorAll(".puzzle-box")) delete box.dataset.narrow;
  const narrow = [...rows.querySelectorAll(".puzzle-box")].filter(box => box.scrollWidth > box.clientWidth);
  for (const box of narrow) box.dataset.narrow = "";
}
