// Hands on the picture itself: dragging it moves controls (turning a cube), a click picks the nearest point of a part, a mark that is
// carried onto another names both, and a mark that is pressed sets what its row says.
import { isCovered } from "./drives.js";
import { marks, scalesOf } from "./marks.js";

export function bindDrag(view) {
  const place = view.$("[data-plot]");
  place.classList.add("draggable");
  let from = null;
  place.addEventListener("pointerdown", event => {
    from = { x: event.clientX, y: event.clientY, values: { ...view.values } };
    place.setPointerCapture(event.pointerId);
  });
  place.addEventListener("pointermove", event => {
    if (!from) return;
    const changes = {};
    for (const [axis, [name, perPixel]] of Object.entries(view.drag)) {
      const control = view.controls.find(c => c.name === name);
      const raw = from.values[name] + perPixel * (axis === "x" ? event.clientX - from.x : event.clientY - from.y);
      changes[name] = Math.min(control.high, Math.max(control.low, Math.round(raw * 10) / 10));
    }
    view.set(changes, false);
  });
  for (const end of ["pointerup", "pointercancel"]) place.addEventListener(end, () => { from = null; });
}

export function bindTaps(view) {
  const place = view.$("[data-plot]");
  for (const [part, name] of Object.entries(view.tap)) {
    let down = null;
    place.addEventListener("pointerdown", event => { down = [event.clientX, event.clientY]; });
    place.addEventListener("pointerup", event => {
      if (!down || Math.hypot(event.clientX - down[0], event.clientY - down[1]) > 6) return;
      const index = nearestPoint(view, part, event);
      if (index !== null) view.set({ [name]: index }, true);
    });
  }
}

// What a mark carried onto another does is seen while it is on its way. Let go where it was taken up, it names itself twice.
export function bindCarry(view) {
  const place = view.$("[data-plot]");
  for (const [part, [from, to]] of Object.entries(view.carry)) {
    place.classList.add("draggable");
    let taken = null;
    const over = (event, settled) => {
      const index = nearestPoint(view, part, event);
      if (index === null || !settled && view.values[from] === taken && view.values[to] === index) return;
      view.set({ [from]: taken, [to]: index }, settled);
    };
    place.addEventListener("pointerdown", event => {
      taken = nearestPoint(view, part, event);
      if (taken !== null) place.setPointerCapture(event.pointerId);
    });
    place.addEventListener("pointermove", event => { if (taken !== null) over(event, false); });
    place.addEventListener("pointerup", event => {
      if (taken !== null) over(event, true);
      taken = null;
    });
    place.addEventListener("pointercancel", () => { taken = null; });
  }
}

// Where the hand presses, or Enter or the mark's own key (walk.js), the controls get what the row's columns `sets_…` say. Each press
// can be taken back, as long as nothing else has moved these controls since.
export const SETS = "sets_";
const STILL_PX = 10;
const TYPES = "input:not([type=range], [type=checkbox]), textarea, [contenteditable]";  // what takes letters itself

export function bindPress(view) {
  if (!view.press.length) return;
  const place = view.$("[data-plot]"), before = [];
  view.pressMark = (part, row) => {
    const columns = Object.entries(view.drawn[part]).filter(([name]) => name.startsWith(SETS));
    const sets = Object.fromEntries(columns.map(([name, column]) => [name.slice(SETS.length), column[row]]));
    before.push({ stood: { ...view.values }, sets });  // before it is shown, when what does not stand any more is forgotten
    view.set(sets, true);
    offer();
  };
  const back = view.$("[data-take-back]"), stands = ({ sets }) => Object.entries(sets).every(([name, value]) => view.values[name] === value);
  const offer = () => {
    if (before.length && !stands(before.at(-1))) before.length = 0;
    if (back) back.disabled = !before.length;
  };
  view.takeBack = () => {
    offer();
    if (before.length) view.set(before.pop().stood, true);
    offer();
  };
  if (back) {
    back.parentElement.hidden = false;
    back.addEventListener("click", event => {
      view.takeBack();
      if (event.detail) place.focus({ preventScroll: true });  // a hand goes on with the marks' keys
    });
    view.element.addEventListener("widget-shown", offer);
  }
  let pressed = null;  // where the page was last clicked or tapped
  document.addEventListener("pointerdown", event => { pressed = event.target; }, { capture: true, signal: view.gone.signal });
  document.addEventListener("keydown", event => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if (!view.plot || isCovered(view.element) || !isMeant(view, event.target === document.body ? pressed : event.target)) return;
    const mark = namedMark(view, event.key);
    if (mark) view.pressMark(...mark); else if (event.key === "Backspace") view.takeBack(); else return;
    event.preventDefault();
    event.stopImmediatePropagation();  // the site and the slide have letters of their own
  }, { signal: view.gone.signal });
  place.classList.add("pressable");
  let down = null;
  place.addEventListener("pointerdown", event => { down = event.isPrimary && event.button === 0 ? [event.clientX, event.clientY] : null; });
  place.addEventListener("pointermove", event => { place.classList.toggle("over-mark", pressedMark(view, event) !== null); });
  place.addEventListener("pointercancel", () => { down = null; });
  place.addEventListener("pointerup", event => {
    if (!down || Math.hypot(event.clientX - down[0], event.clientY - down[1]) > STILL_PX) return;
    down = null;
    const found = pressedMark(view, event);
    if (!found) return;
    view.pressMark(...found);
    place.focus({ preventScroll: true });  // the keys of the marks go on from here
    const note = place.querySelector(".widget-hint");  // it was about the mark as it stood
    if (note) note.hidden = true;
  });
}

// Whether a key was for this figure: pressed anywhere in it but where one types, or on a sentence that has set it. Where nothing
// has the focus, what was clicked last decides, so that no letter does anything for who has not been here.
function isMeant(view, target) {
  if (view.element.contains(target)) return !target.matches(TYPES);
  return target?.closest?.("[data-figure]")?.dataset.figure === view.element.id;
}

// The mark that names this key in its part's column `key`.
function namedMark(view, key) {
  for (const part of view.press) {
    const row = view.drawn[part].key?.indexOf(key) ?? -1;
    if (row >= 0) return [part, row];
  }
  return null;
}

// The uppermost mark under the pointer that can be pressed.
function pressedMark(view, event) {
  const { frame, el } = view.plot, box = el.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  for (const part of view.press.toReversed()) {
    for (const { left, right, bottom, top, across, upwards } of marks(view, part, frame)) {
      const [px, py] = [across.invert(x), upwards.invert(y)];
      for (let row = left.length - 1; row >= 0; row--) {
        if (left[row] <= px && px <= right[row] && bottom[row] <= py && py <= top[row]) return [part, row];
      }
    }
  }
  return null;
}

// Within reach of the pointer; points without a height are columns and those without a place across are rows, the nearest of
// which is meant all along.
function nearestPoint(view, part, event) {
  const frame = view.plot.frame, box = view.plot.el.getBoundingClientRect();
  const { across, upwards } = scalesOf(view, part, frame), { x, y } = view.drawn[part];
  let best = null, least = x && y ? 40 : Infinity;
  for (let i = 0; i < (x ?? y).length; i++) {
    const right = x ? event.clientX - box.left - across.compute(x[i]) : 0;
    const far = Math.hypot(right, y ? event.clientY - box.top - upwards.compute(y[i]) : 0);
    if (far < least) [best, least] = [i, far];
  }
  return best;
}
