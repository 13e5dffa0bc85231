// A tour of a figure: a few steps, each a sentence and the state in which it is true. It leaves the figure as its last step has it.
import { askFirst, bringPicture, isCovered } from "./drives.js";
import { light, unlight } from "./light.js";

export function bindTour(view) {
  if (view.$("[data-tour]")) new Tour(view);
}

class Tour {
  constructor(view) {
    this.view = view;
    const $ = name => view.$(`[data-tour-${name}]`);
    this.steps = [...view.element.querySelectorAll("[data-tour-all] [data-step]")].map(line =>
      ({ words: line.textContent, state: view.valuesOf(JSON.parse(line.dataset.step), view.defaults), light: line.dataset.light }));
    [this.start, this.bar, this.at, this.words, this.again, this.back, this.next, this.close] =
      ["start", "bar", "at", "words", "again", "back", "next", "end"].map($);
    this.here = null;
    $("all").hidden = true;
    this.start.hidden = false;
    this.start.addEventListener("click", () => this.begin());
    this.back.addEventListener("click", () => this.go(this.here - 1));
    this.next.addEventListener("click", () => this.go(this.here + 1));
    this.again.addEventListener("click", () => { this.go(this.here); this.next.focus(); });
    this.close.addEventListener("click", () => this.end());
    this.bar.addEventListener("keydown", event => this.key(event));
    view.element.addEventListener("widget-shown", () => { if (this.here !== null) this.see(); });
  }

  begin() {
    if (isCovered(this.view.element)) return askFirst(this.view.element);
    this.bar.hidden = false;
    this.start.hidden = true;
    this.go(0);
    this.next.focus({ preventScroll: true });
    bringPicture(this.view, this.bar);
  }

  key(event) {
    const act = { ArrowRight: () => this.go(this.here + 1), ArrowLeft: () => this.go(this.here - 1), Home: () => this.go(0),
                  End: () => this.go(this.steps.length - 1), Escape: () => this.end() }[event.key];
    if (!act || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();  // Escape would also end a presentation
    act();
  }

  go(step) {
    const { view, steps } = this;
    if (step < 0) return;
    if (step >= steps.length) return this.end();
    this.here = step;
    this.at.textContent = `Step ${step + 1} of ${steps.length}`;
    this.words.textContent = steps[step].words;
    if (step === 0 && document.activeElement === this.back) this.next.focus();
    this.back.disabled = step === 0;
    this.next.textContent = step + 1 < steps.length ? "next" : "done";
    view.halt();
    view.set(steps[step].state, true, true);
    this.see();
  }

  // A hand may move the figure on: then the sentence is no longer about what is seen, and says so.
  see() {
    const { view } = this, { state, light: lights } = this.steps[this.here], stands = view.standsIn(state);
    this.bar.toggleAttribute("data-left", !stands);
    this.again.hidden = stands;
    const stays = stands && lights ? lights : null;
    if (view.stays === stays) return;
    view.stays = stays;
    if (stays) light(view, stays); else unlight(view);
  }

  end() {
    this.here = null;
    this.view.stays = null;
    unlight(this.view);
    this.bar.hidden = true;
    this.bar.removeAttribute("data-left");
    this.start.hidden = false;
    this.start.focus({ preventScroll: true });
  }
}
