// An examination on a widget: draw another paper, copy the link to the bare paper, and keep what the first hand-in gave, in
// this browser alone. Who has seen the answer first, by a link or a preset, gets no points for it.
import { addressWith, kept } from "./state.js";

function resultOf(key) {
  try { return JSON.parse(kept.get(key)); } catch { return null; }
}

export function bindPaper(view) {
  const box = view.$("[data-paper]");
  if (!box) return;
  const { name, seed, done, points, most, draws } = JSON.parse(box.dataset.paper);
  const said = box.querySelector("[data-said]");
  box.hidden = false;

  for (const button of box.querySelectorAll("[data-draw]")) {
    button.addEventListener("click", () => {
      const [, low, high] = draws[button.dataset.draw];
      view.set({ ...view.home, [seed]: low + Math.floor(Math.random() * (high - low + 1)) }, true);
    });
  }
  const copy = box.querySelector("[data-copy-paper]"), label = copy.textContent;
  copy.addEventListener("click", async () => {
    const address = addressWith(view.slug, { [seed]: view.values[seed] }, location.href.split("#")[0]);
    try {
      await navigator.clipboard.writeText(address);
      copy.textContent = "Copied";
    } catch { window.prompt("Copy this link", address); }
    setTimeout(() => { copy.textContent = label; }, 1600);
  });

  let open = null;  // the paper that was last seen without its answer
  view.element.addEventListener("widget-shown", ({ detail: { state, readouts } }) => {
    const paper = Number(state[seed]), handedIn = state[done] === "on", key = `${name}.${paper}`;
    if (!handedIn) open = paper;
    else if (!resultOf(key)) kept.set(key, JSON.stringify(open === paper
      ? { points: parseInt(readouts[points].text, 10), of: most, answers: state } : { points: 0, of: most, seen: true }));
    const result = resultOf(key);
    const first = result?.seen ? "You saw this answer before you handed in: no points are kept."
      : result ? `Kept in this browser: ${result.points} of ${result.of}, your first hand-in.` : "";
    if (said.textContent !== first) said.textContent = first;
  });
}
