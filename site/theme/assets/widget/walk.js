// A figure by keyboard: from mark to mark with the arrow keys, each shown and spoken with its hint. Nothing is worked out before
// the first key, and nothing while nobody walks.
import { isCovered } from "./drives.js";
import { marks } from "./marks.js";

const HOW = "Arrow keys go from mark to mark, with Shift one by one where there are many. Escape leaves.";
const PRESS = " Enter presses a mark, and so does the key that it names, anywhere in the figure. Backspace takes the last press back.";
const MANY = 64, STOPS = 32;  // marks of a lane from which on a key passes over some, and how many stops it then has
const POINT = 9;         // pixels around a point
const LEAST = 0.4;       // pixels: what is thinner cannot be seen
const SETTLED_MS = 600;  // after a move the axes are at rest, too (view.js)
const SAME = 2;          // pixels: marks that begin no further apart stand in one line

let count = 0;

export function bindWalk(view, hints) {
  const place = view.$("[data-plot]"), walk = new Walk(view, place, hints);
  const how = Object.assign(document.createElement("span"), { id: `${view.element.id}-walk-${++count}`, hidden: true, textContent: howTo(view) });
  place.after(how);
  place.tabIndex = 0;
  place.setAttribute("role", "application");          // arrow keys reach the page, also with a screen reader
  place.setAttribute("aria-roledescription", "figure");
  place.setAttribute("aria-describedby", `${place.getAttribute("aria-describedby")} ${how.id}`);
  place.addEventListener("mousedown", event => event.preventDefault());  // a mouse points: the keyboard stays where it was
  place.addEventListener("focus", () => { if (place.matches(":focus-visible")) walk.offer(); });
  place.addEventListener("keydown", event => { 
    if (!walk.key(event)) return;
    event.preventDefault();
    event.stopPropagation();  // the site has letters of its own
  });
  place.addEventListener("blur", () => walk.leave());
}

const howTo = view => view.press.length ? HOW + PRESS : HOW;

class Walk {
  constructor(view, place, hints) {
    Object.assign(this, { view, place, hints, at: null });
    this.follow = () => this.stay();
  }

  // A reader who arrives by keyboard sees how to go on, and is heard from then on.
  offer() {
    this.spoken ??= this.add("visually-hidden", { "aria-live": "polite" });
    this.ring ??= this.add("widget-mark", { "aria-hidden": "true" });
    this.ring.hidden = true;
    const { left, top } = this.place.getBoundingClientRect();
    this.hints.show(howTo(this.view), { clientX: left, clientY: top });
  }

  add(name, attributes) {
    const element = Object.assign(document.createElement("div"), { className: name });
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    this.place.append(element);
    return element;
  }

  // Whether the key was for the walk.
  key({ key, ctrlKey, altKey, metaKey, shiftKey }) {
    if (altKey || metaKey || !this.view.plot) return false;
    if (key === "Escape" && this.at) { this.leave(); return true; }
    if ((key === "Enter" || key === " ") && this.at && this.view.press.includes(this.at.part)) {
      this.view.pressMark(this.at.part, this.at.row);
      return true;
    }
    const way = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1], Home: "first", End: "last" }[key];
    if (!way || (ctrlKey && way instanceof Array)) return false;
    if (isCovered(this.view.element)) { this.say("Answer the figure’s question first."); return true; }
    const lanes = this.lanes();
    if (!lanes.length) return false;
    if (!this.at) this.view.element.addEventListener("widget-shown", this.follow);
    const here = this.at && found(lanes, this.at), to = here ? next(lanes, here, way, ctrlKey, shiftKey) : lanes[0][0];
    if (to !== here) this.go(to);
    return true;
  }

  // The lanes of the marks, worked out anew where another state is shown or an axis or the frame has moved: a key that is held
  // down asks for them at each repeat, and a schedule has thousands of marks.
  lanes() {
    const { view } = this, { frame } = view.plot, { left, right, top, bottom } = frame.bbox;
    const scales = [frame.x_scale, frame.y_scale, ...frame.x_scales.values(), ...frame.y_scales.values()];
    const drawn = [view.shown, left, right, top, bottom, ...scales.flatMap(({ source_range: { start, end } }) => [start, end])];
    if (drawn.length !== this.of?.length || drawn.some((each, i) => each !== this.of[i])) {
      this.of = drawn;
      this.known = lanesOf(view, this.hints.said);
    }
    return this.known;
  }

  // `stays`: the reader pressed nothing, so it is spoken only where it says something else now.
  go(node, stays = false) {
    this.at = node;
    const { count, of, box } = node, text = this.hints.said(node.part, node.row);
    const plot = this.view.plot.el.getBoundingClientRect(), own = this.place.getBoundingClientRect();
    if (!this.ring) this.offer();
    this.hints.show(text, { clientX: plot.left + (box.left + box.right) / 2, clientY: plot.top + box.top });
    Object.assign(this.ring, { hidden: false });
    Object.assign(this.ring.style, {
      left: `${plot.left - own.left + box.left}px`, top: `${plot.top - own.top + box.top}px`,
      width: `${box.right - box.left}px`, height: `${box.bottom - box.top}px`,
    });
    const words = `${text} (${count} of ${of})`;
    if (!stays || words !== this.words) this.say(words);
    this.words = words;
  }

  say(text) {
    this.spoken ??= this.add("visually-hidden", { "aria-live": "polite" });
    this.spoken.textContent = this.spoken.textContent === text ? `${text}\u00a0` : text;  // another mark may say the same: it is heard, too
  }

  // The figure has moved under the walk: the same mark where it is now, or what stands in its place.
  stay() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => { if (this.at) this.find(); }, SETTLED_MS);
    this.find();
  }

  find() {
    const lanes = this.lanes();
    if (!lanes.length) return this.leave();
    this.go(found(lanes, this.at), true);
  }

  leave() {
    clearTimeout(this.settling);
    this.view.element.removeEventListener("widget-shown", this.follow);
    this.at = null;
    if (this.ring) this.ring.hidden = true;
    if (this.spoken) this.spoken.textContent = "";
    this.hints.hide();
  }
}

// -- where one can go ---------------------------------------------------------------------------------------------------

// All marks that can be seen and have something to say, in lanes from the top: [[{part, row, box, lane, count, of}]]. They are
// counted within their lane; those that have a lane each, within their part.
export function lanesOf(view, said) {
  const lanes = view.hinted.flatMap(part => inLanes(nodes(view, part, said)));
  lanes.sort((a, b) => Math.round(middle(a)) - Math.round(middle(b)));  // parts in one line stay in their order
  for (const lane of lanes) {
    lane.sort((a, b) => across(a) - across(b) || b.box.bottom - a.box.bottom);
    const alone = lane.length === 1 && lanes.filter(([{ part }]) => part === lane[0].part);
    lane.forEach((node, place) => Object.assign(node, { lane, count: place + 1, of: lane.length },
      alone && { count: alone.indexOf(lane) + 1, of: alone.length }));
  }
  return lanes;
}

const across = ({ box }) => (box.left + box.right) / 2;
const middle = lane => lane.reduce((sum, { box }) => sum + (box.top + box.bottom) / 2, 0) / lane.length;

function nodes(view, part, said) {
  const { frame } = view.plot, { left, right, top, bottom } = frame.bbox, seen = new Map();
  for (const mark of marks(view, part, frame)) {
    const rows = (mark.left ?? mark.x).length;
    for (let row = 0; row < rows; row++) {
      const box = boxOf(mark, row);
      const inside = { left: Math.max(box.left, left), right: Math.min(box.right, right), top: Math.max(box.top, top), bottom: Math.min(box.bottom, bottom) };
      if (!(inside.right - inside.left > LEAST && inside.bottom - inside.top > LEAST) || seen.has(row) || !said(part, row)) continue;
      seen.set(row, { part, row, box: inside, isPoint: !mark.left });
    }
  }
  return [...seen.values()];
}

function boxOf({ left, right, bottom, top, x, y, across: sx, upwards: sy }, row) {
  if (!left) {
    const [px, py] = [sx.compute(x[row]), sy.compute(y[row])];
    return { left: px - POINT, right: px + POINT, top: py - POINT, bottom: py + POINT };
  }
  const [a, b, c, d] = [sx.compute(left[row]), sx.compute(right[row]), sy.compute(bottom[row]), sy.compute(top[row])];
  return { left: Math.min(a, b), right: Math.max(a, b), top: Math.min(c, d), bottom: Math.max(c, d) };
}

// Marks that stand on one line are a lane; bars below one another are a lane each; what lies anywhere is one lane.
function inLanes(all) {
  if (!all.length) return [];
  const rows = grouped(all, ({ box }) => box.bottom);
  if (areBelowOneAnother(all)) return all.map(node => [node]);
  return all[0].isPoint || 2 * rows.length > all.length ? [all] : rows;
}

function areBelowOneAnother(all) {
  if (all[0].isPoint) return grouped(all, ({ box }) => box.left).length === 1;
  const sorted = [...all].sort((a, b) => a.box.top - b.box.top);
  return sorted.every(({ box }, i) => i === 0 || box.top >= sorted[i - 1].box.bottom - SAME);
}

function grouped(all, edge) {
  const groups = [];
  for (const node of [...all].sort((a, b) => edge(a) - edge(b))) {
    const last = groups.at(-1);
    if (last && edge(node) - edge(last[0]) <= SAME) last.push(node); else groups.push([node]);
  }
  return groups;
}

// The node of these lanes that another one, of an earlier state, is now.
function found(lanes, { part, row, box }) {
  const all = lanes.flat(), same = all.find(node => node.part === part && node.row === row);
  return same ?? nearest(all, across({ box }), (box.top + box.bottom) / 2);
}

function nearest(all, x, y) {
  const far = ({ box }) => Math.hypot(across({ box }) - x, (box.top + box.bottom) / 2 - y);
  return all.reduce((best, node) => far(node) < far(best) ? node : best);
}

// Sideways in reading order, from the end of a lane on to the next one, in strides along one of many marks; up and down to what
// stands nearest in the lane there.
function next(lanes, node, way, all, single) {
  const lane = all ? null : node.lane, order = lane ?? lanes.flat();
  if (way === "first") return order[0];
  if (way === "last") return order.at(-1);
  const [step, down] = way;
  if (down) {
    const to = lanes[lanes.indexOf(node.lane) + down];
    return to ? to.reduce((best, each) => Math.abs(across(each) - across(node)) < Math.abs(across(best) - across(node)) ? each : best) : node;
  }
  const here = node.lane, end = step > 0 ? here.length - 1 : 0, at = here.indexOf(node);
  if (!single && here.length > MANY && at !== end) {
    const stride = Math.ceil(here.length / STOPS);
    return here[Math.min(here.length - 1, Math.max(0, at + step * stride))];
  }
  const line = lanes.flat();
  return line[line.indexOf(node) + step] ?? node;
}
