// Published points in a figure: a reader who hides them in one does so in all, until they are asked for again.
import { kept } from "./state.js";

const HIDDEN = "dots.hidden";

const has = view => view.controls.some(control => control.name === "dots");

// What the reader chose before, in this figure or another; a lesson's or a link's own word comes before it.
export function keptDots(view) {
  return has(view) && kept.get(HIDDEN) === "yes" ? { dots: 0 } : {};
}

// The choice becomes the figure's own state, so that presets leave it alone.
export function keepDots(view, { dots }) {
  if (dots === undefined || dots === view.home.dots) return;
  view.home.dots = dots;
  kept.set(HIDDEN, dots ? "no" : "yes");
}

// "Reset" brings the points back, as they were before the reader chose.
export const dotsAsGiven = view => has(view) ? { dots: JSON.parse(view.element.dataset.initial ?? "{}").dots ?? view.defaults.dots } : {};

// For who takes the numbers along: the points of this state alone, without the places where they are drawn.
const SAID = ["what", "measured", "ours", "source"];

export function rowsSeen(columns) {
  return Object.fromEntries(SAID.map(name => [name, Array.from(columns[name]).filter((_, i) => columns.seen[i])]));
}
