// How a picture fits its place: round ticks for a range that moves, and what is shown on wide or narrow screens alone.
// A lesson's page has it as assets/widget/layout.js, a component in its callback (scripts.py).
import { human } from "./numbers.js";

const NARROW = 520;
const tagged = (model, key) => model.tags?.find(tag => tag && typeof tag === "object" && (key in tag || tag.get?.(key)));
const value = (tag, key) => tag instanceof Map ? tag.get(key) : tag[key];

// Steps of 1, 2 or 5 that cut the range into four to seven.
function roundTicks(start, end) {
  const raw = (end - start) / 5, size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * size).find(s => s >= raw);
  const ticks = [];
  for (let i = Math.ceil(start / step); i * step <= end * 1.000001; i++) ticks.push(i * step);
  return ticks;
}

export function retick(plot, rangeName, start, end) {
  const axes = [...plot.left, ...plot.right, ...plot.below, ...plot.above];
  for (const axis of axes) {
    const tag = tagged(axis, "ticks");
    const vertical = plot.left.includes(axis) || plot.right.includes(axis);
    const range = vertical ? plot.y_range : plot.x_range;
    if (!tag || range.name !== rangeName) continue;
    const [low, high] = Array.isArray(axis.bounds) ? axis.bounds : [-Infinity, Infinity];
    const ticks = roundTicks(start, end).filter(each => each >= low && each <= high);
    axis.setv({ major_label_overrides: new Map(ticks.map(tick => [tick, human(tick, value(tag, "ticks"))])) });
    axis.ticker.setv({ ticks });
  }
}

// How much larger a slide's texts are than a lesson's (present.js).
const larger = () => document.body.classList.contains("presenting") ? parseFloat(document.body.style.getPropertyValue("--larger")) || 1 : 1;

// One unit as long across as up, with at least these halves in view around (0, 0), and beside them room for texts; (0, 0) is
// the middle of a part of the frame.
const WHOLE = [[0, 1], [0, 1]];

function sameScales({ x_range, y_range }, [halfWidth, halfHeight, room], width, height, [[left, right], [low, high]] = WHOLE) {
  const unit = Math.min(((right - left) * width - 2 * room) / halfWidth, (high - low) * height / halfHeight);
  const range = (start, end, pixels) => ({ start: -(start + end) * pixels / unit, end: (2 - start - end) * pixels / unit });
  x_range.setv(range(left, right, width));
  y_range.setv(range(low, high, height));
}

// The range begins so far before a place that the texts left of it have their room; never later than the picture's own.
function leaveRoom({ x_range }, [place, room], own, width) {
  x_range.setv({ start: Math.min(own, (place * width - room * x_range.end) / (width - room)) });
}

// A panel's scale is a range of the whole frame, so chosen that the panel's ends lie at its two places in it (panels.py).
const ends = new WeakMap(), sizes = new WeakMap();

export function inFrame(range, start, end) {
  const panel = tagged(range, "panel") && value(tagged(range, "panel"), "panel");
  if (!panel) return [start, end];
  ends.set(range, [start, end]);
  const [first, last] = value(panel, sizes.get(range) ?? "wide"), before = first / (last - first), after = (1 - last) / (last - first);
  if (!value(panel, "log")) return [start - (end - start) * before, end + (end - start) * after];
  return [start / (end / start) ** before, end * (end / start) ** after];
}

function placePanels({ extra_x_ranges, extra_y_ranges }, size) {
  for (const range of [extra_x_ranges, extra_y_ranges].flatMap(named => Object.values(named))) {
    const panel = tagged(range, "panel");
    if (!panel) continue;
    sizes.set(range, size);
    const [start, end] = inFrame(range, ...ends.get(range) ?? value(value(panel, "panel"), "ends"));
    range.setv({ start, end });
  }
}

// Every model of a drawing: Bokeh's own list of them, or what can be reached from its roots.
export const allModels = drawing => [...drawing.all_models ?? drawing.roots().flatMap(root => [...root.references()])];

// Arranges a picture for a width and a height: what is tagged for one width alone is shown or hidden, and so on. A function
// to call whenever they change; `scale` is how much larger than a lesson's its texts are.
export function fitting(drawing, plot) {
  const models = allModels(drawing).filter(model => tagged(model, "only"));
  const reach = tagged(plot, "reach"), room = tagged(plot, "room"), own = plot.x_range.start;
  const tall = tagged(plot, "narrow_height"), heights = { wide: plot.height, narrow: tall ? value(tall, "narrow_height") : plot.height };
  let now = null;
  return (width, height, scale = 1) => {
    const size = width && (width < NARROW ? "narrow" : "wide");     // neither while there is no width yet
    for (const model of models) model.setv({ visible: value(tagged(model, "only"), "only") === size });
    if (size && size !== now) {
      if (plot.height !== heights[size]) plot.setv({ height: heights[size] });   // only now: a slide has another height while the width stays
      placePanels(plot, now = size);
    }
    if (!width || !height) return;
    const text = size === "wide" ? scale : 0;
    if (reach) {
      const halves = value(reach, "reach").map((each, i) => i < 2 ? each : each * text), places = value(reach, "places");
      sameScales(plot, halves, width, height, places ? value(places, size) : WHOLE);
    }
    if (room) leaveRoom(plot, value(room, "room").map((each, i) => i < 1 ? each : each * text), own, width);
  };
}

// For this width, and whenever the size of what is watched changes.
export function fitWidth(drawing, plot, width) {
  const fit = fitting(drawing, plot);
  fit(width, plot.height, larger());
  return new ResizeObserver(([{ contentRect }]) => fit(contentRect.width, contentRect.height, larger()));
}
