// A widget's own page as a slide: it fills the screen, and what was 13 pixels high is read from the back row.
import { allModels } from "./layout.js";

const SCREEN = { width: 1150, height: 620 };  // on one of this size everything is as large as in a lesson
const LARGEST = 4;
const SIDE_BY_SIDE = 1.25;                    // width over height from which on the words stand beside the picture
const SHRUNK = 0.45;                          // of the screen's height: the picture where the words stand below it
const LEAST_BESIDE = 0.7;                     // how far words are made smaller that are too many for the column beside
const BESIDE = ".widget-note, .widget-hands, .widget-readouts";
const ABOVE = ".widget-head, .widget-summary, .widget-tour";
const BELOW = ".widget-under, .widget-regimes";
const SLACK_PX = 16;
const LEAST_PICTURE = 0.75;                   // how flat a picture may become; then the slide scrolls
const IN_PIXELS = /font_size$|line_width$|^size$|_offset$|_standoff$|^hatch_scale$/;
const WHOLE = /_standoff$/;                    // BokehJS takes no half pixel there

export function bindPresent(view) {
  if (!document.body.classList.contains("alone")) return;
  const slide = new Slide(view);
  view.on("[data-present]", () => slide.turn());
  document.addEventListener("keydown", event => slide.key(event));
  document.addEventListener("fullscreenchange", () => { if (slide.full && !document.fullscreenElement) slide.leave(); });
  addEventListener("resize", () => slide.fit());
  view.element.addEventListener("widget-shown", () => slide.fitSoon());
  if (new URLSearchParams(location.search).has("present")) slide.enter();
}

class Slide {
  constructor(view) {
    this.view = view;
    this.plain = new Map();  // model -> its own sizes
    this.on = this.full = false;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && this.on && !this.full) this.leave();
    if (event.key === "f" && !event.target.closest("input:not([type=range], [role=switch]), textarea, select")) this.turn();
  }

  turn() {
    if (this.on && (this.full || !document.fullscreenEnabled)) return this.leave();
    this.enter();
    this.fillScreen();
  }

  // Where a browser or a host forbids it, the window is filled.
  async fillScreen() {
    if (!document.fullscreenEnabled) return;
    this.full = true;
    try { await document.documentElement.requestFullscreen(); } catch { this.full = false; }
  }

  enter() {
    this.on = true;
    document.body.classList.add("presenting");
    this.say();
    this.fit();
  }

  leave() {
    if (document.fullscreenElement) document.exitFullscreen();
    this.on = this.full = false;
    document.body.classList.remove("presenting", "beside");
    this.say();
    this.scale(1);
    this.plain.clear();
  }

  say() {
    this.view.$("[data-present]").textContent = this.on ? "leave" : "present";
  }

  // -- sizes ------------------------------------------------------------------------------------------------------------
  fitSoon() {
    clearTimeout(this.waiting);
    if (this.on) this.waiting = setTimeout(() => this.fit(), 300);
  }

  fit() {
    if (!this.on || !this.view.document) return;
    const by = Math.min(LARGEST, Math.max(1, Math.min(innerWidth / SCREEN.width, innerHeight / SCREEN.height)));
    const beside = innerWidth > SIDE_BY_SIDE * innerHeight, { body } = document;
    body.classList.toggle("beside", beside);
    body.style.setProperty("--larger", by);
    let height = beside ? this.left() : SHRUNK * innerHeight;
    if (beside) height = Math.max(height, this.fitBeside(by, height));
    height = Math.floor(Math.max(height, LEAST_PICTURE * by * this.plainHeight()));
    body.style.setProperty("--picture", `${height}px`);
    this.scale(by, height);
  }

  // The words beside the picture, made smaller until they are no higher than this; gives the height that they have then.
  fitBeside(by, height) {
    const least = LEAST_BESIDE * by;
    for (let size = by; ; size = Math.max(least, size * Math.sqrt(height / this.extent(BESIDE)) - 0.01)) {
      document.body.style.setProperty("--beside", size);
      const taken = this.extent(BESIDE);
      if (taken <= height || size === least) return taken;
    }
  }

  // What the lines above and below leave of the screen's height.
  left() {
    const { paddingTop, paddingBottom } = getComputedStyle(this.view.$(".widget-card"));
    const around = parseFloat(paddingTop) + parseFloat(paddingBottom) + SLACK_PX;
    return Math.max(0, innerHeight - around - this.extent(ABOVE) - this.extent(BELOW));
  }

  // From the top of the first of these to the bottom of the last, as drawn.
  extent(selector) {
    const boxes = [...this.view.element.querySelectorAll(selector)].map(element => element.getBoundingClientRect()).filter(box => box.height);
    return boxes.length ? Math.max(...boxes.map(box => box.bottom)) - Math.min(...boxes.map(box => box.top)) : 0;
  }

  plainHeight() {
    const { model } = this.view.plot;
    return this.plain.get(model)?.height ?? model.height;
  }

  // Everything in the drawing that is measured in pixels; its data stay.
  scale(by, height = this.plainHeight()) {
    for (const model of allModels(this.view.document)) {
      if (!this.plain.has(model)) this.plain.set(model, sizes(model));
      const changed = Object.entries(this.plain.get(model)).map(([name, value]) => [name, name === "height" ? height : larger(name, value, by)]);
      if (changed.length) model.setv(Object.fromEntries(changed));
    }
  }
}

const sized = value => typeof value === "number" || (typeof value === "string" && /^[\d.]+px$/.test(value));
const inner = value => value && typeof value === "object" && sized(value.value) ? value.value : value;

// The settings of a model that are lengths on the screen; of a picture, its height too.
function sizes(model) {
  const found = {};
  for (const [name, value] of Object.entries(model.attributes)) {
    if ((IN_PIXELS.test(name) && sized(inner(value))) || (name === "height" && "x_range" in model.attributes)) found[name] = value;
  }
  return found;
}

function larger(name, value, by) {
  if (typeof value === "object") return { ...value, value: larger(name, value.value, by) };
  if (typeof value === "string") return `${parseFloat(value) * by}px`;
  return WHOLE.test(name) ? Math.round(value * by) : value * by;
}
