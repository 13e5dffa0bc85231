// What a mark says under the pointer, or under a finger: the words are made when they are first asked for in a state.
import { marks } from "./marks.js";
import { unbroken } from "./numbers.js";
import { bindWalk } from "./walk.js";

const MARGIN = 24;  // pixels around a point in which it counts as meant

export function bindHints(view) {
  if (!view.hinted.length) return;
  const place = view.$("[data-plot]");
  const note = document.createElement("div");
  note.className = "widget-hint";
  note.hidden = true;
  place.append(note);
  let of = null, texts = null;
  const said = (part, row) => {
    if (of !== view.shown) [of, texts] = [view.shown, view.hints(view.values)];
    return texts[part][row];
  };
  const move = event => {
    const at = spot(view, event);
    const found = at && view.hinted.map(part => [part, rowAt(view, part, at, said)]).findLast(([, row]) => row >= 0);
    note.hidden = !found;
    if (found) put(note, place, said(...found), event);
  };
  place.addEventListener("pointermove", move);
  place.addEventListener("pointerdown", move);
  for (const leaving of ["pointerleave", "pointercancel"]) place.addEventListener(leaving, () => { note.hidden = true; });
  bindWalk(view, {
    said,
    show: (text, at) => { note.hidden = false; put(note, place, text, at); },
    hide: () => { note.hidden = true; },
  });
}

// The pointer in the picture's own coordinates; null outside the frame.
function spot(view, event) {
  const { frame, el } = view.plot, box = el.getBoundingClientRect();
  const sx = event.clientX - box.left, sy = event.clientY - box.top;
  if (!frame.bbox.contains(sx, sy)) return null;
  return { sx, sy, frame };
}

// The uppermost mark under the pointer that has something to say: the last of those that hold it, or the nearest of points.
function rowAt(view, part, { sx, sy, frame }, said) {
  let best = -1, least = MARGIN;
  for (const { left, right, bottom, top, x: xs, y: ys, across, upwards } of marks(view, part, frame)) {
    const x = across.invert(sx), y = upwards.invert(sy);
    if (left) {
      for (let i = left.length - 1; i >= 0; i--) if (left[i] <= x && x <= right[i] && bottom[i] <= y && y <= top[i] && said(part, i)) return i;
      continue;
    }
    for (let i = 0; i < xs.length; i++) {
      const far = Math.hypot(sx - across.compute(xs[i]), sy - upwards.compute(ys[i]));
      if (far < least && said(part, i)) [best, least] = [i, far];
    }
  }
  return best;
}

// Beside the pointer, inside the picture, never under a finger.
function put(note, place, words, event) {
  const text = unbroken(words);
  if (note.textContent !== text) note.textContent = text;
  const box = place.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  note.style.left = `${Math.max(0, Math.min(x + 14, box.width - note.offsetWidth))}px`;
  note.style.top = `${y - note.offsetHeight - 12 < 0 ? y + 20 : y - note.offsetHeight - 12}px`;
}
