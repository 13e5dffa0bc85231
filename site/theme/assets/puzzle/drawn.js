// The figure that a puzzle drives comes to it: it is moved below the editor, where the reader's code is, until it is sent back.
import { uncover } from "../widget/predict.js";

// `set` and `give` are what a reader's code led to: texts for controls and columns of numbers, whatever they hold.
export async function drawn(puzzle, { set, give }) {
  const figure = document.querySelector(`figure.widget[data-widget="${puzzle.dataset.figure}"]`);
  if (!figure) return;
  uncover(figure);
  if (puzzle.nextElementSibling !== figure) bring(puzzle, figure);
  await alive(figure);
  figure.dispatchEvent(new CustomEvent("widget-give", { detail: { set, give } }));
}

// Figures start one by one; this one may still be on its way.
function alive(figure) {
  return new Promise(resolve => {
    if (figure.dataset.state === "live") return resolve();
    const watch = new MutationObserver(() => {
      if (figure.dataset.state !== "live") return;
      watch.disconnect();
      resolve();
    });
    watch.observe(figure, { attributeFilter: ["data-state"] });
  });
}

// The place that a figure has in the lesson: several puzzles may drive one.
const places = new WeakMap();

function bring(puzzle, figure) {
  if (places.get(figure)?.isConnected) return void puzzle.after(figure);
  const place = Object.assign(document.createElement("p"), { className: "puzzle-place" });
  const back = Object.assign(document.createElement("button"), { type: "button", textContent: "Bring it back" });
  place.append("This figure is at the puzzle, where your code draws it. ", back);
  back.addEventListener("click", () => place.replaceWith(figure), { once: true });
  places.set(figure, place);
  figure.replaceWith(place);
  puzzle.after(figure);
}
