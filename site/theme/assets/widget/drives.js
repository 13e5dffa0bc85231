// Sentences that set a figure or light a part of it (course/links/figures.py).
import * as predictions from "./predict.js";
import { light, unlight } from "./light.js";
import { human, unbroken } from "./numbers.js";

const LIT_IN_SIGHT = 0.4;  // of a picture: where less is in sight, a phrase says where it lights
const READ = 0.8;  // of a picture's height: where less than this is in sight, the page goes there

// A figure that still waits for the reader's prediction shows nothing and is set by nobody.
export const isCovered = figure => predictions.isCovered?.(figure) ?? false;

// `awake(figure)` gives a figure's view once it is live, or null where it cannot start.
export function bindSentences(awake) {
  if (!holder?.phrase.isConnected) holder = null;  // of a page that was left
  sayWhere(null);
  for (const said of document.querySelectorAll(":is(a.drives, .lights):not([role])")) {
    const figure = document.getElementById(said.dataset.figure);
    if (!figure?.matches("figure.widget")) continue;  // a box that another page quotes: its link leads to the widget's own page
    said.setAttribute("role", "button");
    said.setAttribute("aria-pressed", "false");
    (said.matches("a") ? bindLink : bindLight)(said, figure, awake);
  }
}

// -- a link sets the figure; the same link, or the figure's own button, brings back what was there ----------------------
function bindLink(link, figure, awake) {
  link.addEventListener("click", event => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;  // its own page, in a window of its own
    event.preventDefault();
    press(link, figure, awake);
  });
  link.addEventListener("keydown", event => {
    if (event.key !== " ") return;
    event.preventDefault();
    press(link, figure, awake);
  });
}

async function press(link, figure, awake) {
  if (isCovered(figure)) return askFirst(figure);
  const view = await awake(figure);
  if (!view || !link.isConnected) return;
  if (link.getAttribute("aria-pressed") === "true") return view.visit.back();
  view.visit ??= new Visit(view);
  view.visit.go(link);
}

// Said beside the question: what is below it is covered.
export function askFirst(figure) {
  const question = figure.querySelector("[data-predict]") ?? figure;
  if (!question.querySelector(".widget-asked")) {
    const said = Object.assign(document.createElement("p"), { className: "widget-asked" });
    said.setAttribute("role", "status");
    question.append(said);
    question.addEventListener("click", () => said.remove(), { once: true });
    setTimeout(() => { said.textContent = "Answer this first, or have it shown: then the text can move the figure."; });
  }
  bring(question, "center");
}

// A reader's stay in a state that the text has set: it ends when a hand moves the figure on.
class Visit {
  constructor(view) {
    this.view = view;
    this.link = null;
    this.bar = Object.assign(document.createElement("p"), { className: "widget-visit", hidden: true });
    this.said = document.createElement("span");
    this.said.setAttribute("role", "status");
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "back" });
    button.setAttribute("aria-label", "Back to the state before, and to the text");
    button.addEventListener("click", () => { const { link } = this; this.back(); this.toText(link); });
    this.bar.append(this.said, " ", button);
    view.$("[data-plot]").before(this.bar);
    view.element.addEventListener("widget-shown", () => { if (this.link && !view.standsIn(this.state)) this.end(); });
  }

  go(link) {
    const { view } = this;
    view.halt();
    this.before = this.link ? this.before : { ...view.values };
    this.link?.setAttribute("aria-pressed", "false");
    this.link = link;
    const named = JSON.parse(link.dataset.set), stays = "keeps" in link.dataset;
    this.state = view.valuesOf(named, stays ? this.before : view.home);
    const others = changed(view, this.before, this.state).filter(({ name }) => !(name in named));
    view.set(this.state, true, true);
    link.setAttribute("aria-pressed", "true");
    this.bar.hidden = false;
    this.from = scrollY;
    bringPicture(view, this.bar);
    const back = others.map(control => `${control.label} back to ${worded(control, this.state[control.name])}`).join(", ");
    this.said.textContent = unbroken(`The text has set ${link.dataset.about}${back && ` and put ${back}`}.`);
  }

  back() {
    const { before } = this;
    this.end();
    this.view.halt();
    this.view.set(before, true, true);  // the figure breaks by it, but nobody has broken it
  }

  end() {
    this.link?.setAttribute("aria-pressed", "false");
    this.link = null;
    this.bar.hidden = true;
    this.said.textContent = "";
  }

  toText(link) {
    link.focus({ preventScroll: true });
    bring(link, "center");
  }
}

// The controls whose values differ; where an animation stands is not worth a word.
const changed = (view, one, other) => view.controls.filter(({ kind, name }) => kind !== "player" && one[name] !== other[name]);

// A value as its control shows it.
function worded({ name, kind, labels, family }, value) {
  if (kind === "choice") return labels[value];
  if (kind === "switch") return value ? "on" : "off";
  return kind === "bits" ? String(value) : human(value, family);
}

// -- a phrase lights a part: while it is pointed at or has the focus, and where it is pressed until the focus goes -------
let described = 0;
let holder = null;  // the phrase that is pressed, and how to let go of it

document.addEventListener("pointerdown", event => {  // a finger elsewhere does not take the focus everywhere
  if (holder && !holder.phrase.contains(event.target)) holder.release();
});

function bindLight(phrase, figure, awake) {
  const about = Object.assign(document.createElement("span"), { id: `light-${++described}`, hidden: true });
  about.textContent = `Lights in the figure: ${phrase.dataset.about}.`;
  phrase.after(about);
  phrase.tabIndex = 0;
  phrase.setAttribute("aria-describedby", about.id);
  let wanted = false;
  const isHeld = () => holder?.phrase === phrase;
  const shine = async on => {
    wanted = on;
    const view = on && isCovered(figure) ? null : await awake(figure);
    if (!view || wanted !== on) return;  // the pointer may have left while the figure was on its way
    if (on) light(view, phrase.dataset.light); else unlight(view);
    phrase.classList.toggle("lit", on);
    sayWhere(on ? phrase : null, view);
  };
  const hold = on => {
    if (on) holder = { phrase, release: () => hold(false) }; else if (isHeld()) holder = null;
    phrase.setAttribute("aria-pressed", String(on));
    if (on !== wanted) shine(on);
  };
  const press = async () => {
    if (isCovered(figure)) return askFirst(figure);
    hold(!isHeld());
    const view = isHeld() && await awake(figure);
    sayWhere(null);
    if (view) bringPicture(view, view.$("[data-plot]"));
  };
  phrase.addEventListener("pointerenter", event => { if (event.pointerType === "mouse") shine(true); });
  phrase.addEventListener("pointerleave", event => { if (event.pointerType === "mouse" && document.activeElement !== phrase) shine(false); });
  phrase.addEventListener("focus", () => shine(true));
  phrase.addEventListener("blur", () => hold(false));
  phrase.addEventListener("click", () => { phrase.focus({ preventScroll: true }); press(); });
  phrase.addEventListener("keydown", event => {
    if (event.key === "Escape") return hold(false);
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    press();
  });
}

// What is lit out of sight would be lit for nobody: a note beside the phrase says where it is.
let where = null;

function sayWhere(phrase, view) {
  where?.remove();
  where = null;
  if (!phrase || inSight(view) > LIT_IN_SIGHT) return;
  const at = phrase.getClientRects()[0], isBelow = view.$("[data-plot]").getBoundingClientRect().top > at.top;
  where = Object.assign(document.createElement("div"), { className: "n-how lit-where",
    textContent: `${isBelow ? "↓" : "↑"} It is lit in the figure ${isBelow ? "below" : "above"}. Press to go there.` });
  where.setAttribute("aria-hidden", "true");  // said by the phrase's description
  document.body.append(where);
  const left = Math.max(12, Math.min(at.left, document.documentElement.clientWidth - where.offsetWidth - 12));
  Object.assign(where.style, { left: `${left + scrollX}px`, top: `${at.bottom + 6 + scrollY}px` });
}

// -- into sight ----------------------------------------------------------------------------------------------------------
export function bringPicture(view, top) {
  if (inSight(view) < READ) bring(top, "start");
}

// The share of a picture that can be seen, of what would fit.
function inSight(view) {
  const { top, bottom, height } = view.$("[data-plot]").getBoundingClientRect();
  return (Math.min(bottom, innerHeight) - Math.max(top, header())) / Math.min(height, innerHeight - header());
}

export const header = () => document.querySelector(".md-header")?.getBoundingClientRect().bottom ?? 0;

function bring(element, block) {
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  element.scrollIntoView({ block, behavior: calm ? "auto" : "smooth" });
}
