// "lesson 05" and "lessons 05 and 07" in words that a widget says lead to those lessons, as they do in running text.
import { LESSONS } from "../widgets/shared.js";

const root = new URL("../../", import.meta.url);
const NAMED = /lessons? \d\d[a-z]?(?:(?:, | and | or |, and )\d\d[a-z]?)*\b/g;

function link(number) {
  const path = LESSONS[number];
  return path ? Object.assign(document.createElement("a"), { className: "term", href: new URL(`${path}/`, root), textContent: number }) : number;
}

// Pieces of text and links that say the same.
export function linked(text) {
  const pieces = [];
  let at = 0;
  for (const several of text.matchAll(NAMED)) {
    for (const one of several[0].matchAll(/\d\d[a-z]?/g)) {
      const start = several.index + one.index;
      pieces.push(text.slice(at, start), link(one[0]));
      at = start + one[0].length;
    }
  }
  return [...pieces, text.slice(at)];
}
