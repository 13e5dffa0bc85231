// How a picture fits its place: round ticks for a range that moves, and what is shown on wide or narrow screens alone.
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
    const ticks = roundTicks(start, end);
    axis.major_label_overrides = new Map(ticks.map(tick => [tick, human(tick, value(tag, "ticks"))]));
    axis.ticker.ticks = ticks;
  }
}

// How much larger a slide's texts are than a lesson's (present.js).
const larger = () => document.body.classList.contains("presenting") ? parseFloat(document.body.style.getPropertyValue("--larger")) || 1 : 1;

// One unit as long across as up, with at least these halves in view around (0, 0), and beside them room for texts.
function sameScales({ x_range, y_range }, [halfWidth, halfHeight, room], width, height) {
  const unit = Math.min((width - 2 * room) / halfWidth, height / halfHeight);
  x_range.setv({ start: -width / unit, end: width / unit });
  y_range.setv({ start: -height / unit, end: height / unit });
}

// The range begins so far before a place that the texts left of it have their room; never later than the picture's own.
function leaveRoom({ x_range }, [place, room], own, width) {
  x_range.start = Math.min(own, (place * width - room * x_range.end) / (width - room));
}

// Shows and hides what is tagged for one width, for this one and whenever the size of what is watched changes.
export function fitWidth(drawing, plot, width) {
  const models = [...(drawing.all_models ?? drawing._all_models.values())].filter(model => tagged(model, "only"));
  const reach = tagged(plot, "reach"), room = tagged(plot, "room"), own = plot.x_range.start;
  const fit = ({ width, height }) => {
    const size = width && (width < NARROW ? "narrow" : "wide");     // neither while there is no width yet
    for (const model of models) model.visible = value(tagged(model, "only"), "only") === size;
    if (!width || !height) return;
    const text = size === "wide" ? larger() : 0;
    if (reach) sameScales(plot, value(reach, "reach").map((each, i) => i < 2 ? each : each * text), width, height);
    if (room) leaveRoom(plot, value(room, "room").map((each, i) => i < 1 ? each : each * text), own, width);
  };
  fit({ width, height: plot.height });
  return new ResizeObserver(([entry]) => fit(entry.contentRect));
}
