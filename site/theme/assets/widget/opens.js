// What was placed in a figure, opened as code in a puzzle: on this page, or in the lesson that has it. A row of the part is an entry
// of the list of its stage; a figure in whose state nothing can be opened has no entries.
const ON_A_LINE = 8;

export function bindOpens(view) {
  const box = view.$("[data-opens]");
  if (!box) return;
  const { puzzle, part, lesson, code } = JSON.parse(box.dataset.opens), root = new URL("../../", import.meta.url);
  const rows = () => view.drawn[part];
  view.element.addEventListener("widget-shown", () => { box.hidden = !rows().entry.some(entry => entry); });
  box.querySelector("button").addEventListener("click", async () => {
    const text = code.replace("ORDERS", orders(rows()));
    const here = document.querySelector(`[data-puzzle="${puzzle}"]`), { openCode, linkWith } = await import("../puzzle/editor.js");
    if (here) return void openCode(here, text);
    location.href = linkWith(`puzzle-${puzzle.replaceAll("_", "-")}`, text, new URL(`${lesson}/`, root));
  });
}

// The entries of each stage, eight on a line.
function orders({ stage, entry }) {
  const lists = [];
  for (let i = 0; i < entry.length; i++) (lists[stage[i] - 1] ??= []).push(entry[i]);
  const lines = list => Array.from({ length: Math.ceil(list.length / ON_A_LINE) },
    (_, i) => `            ${list.slice(i * ON_A_LINE, (i + 1) * ON_A_LINE).join(", ")},\n`).join("");
  return Array.from({ length: Math.max(4, lists.length) }, (_, s) => `        [\n${lines(lists[s] ?? [])}        ],\n`).join("");
}
