// One widget on the page: its controls, its picture, its words.
import { bind, read, write } from "./controls.js";
import { askServer, isServed, Refused } from "./live.js";
import { bindPrediction, isCovered } from "./predict.js";
import { addressWith, forget, fromAddress, kept, remember } from "./state.js";
import { current, inTheme, restyle } from "./theme.js";
import { fitWidth, inFrame, retick } from "./layout.js";
import { fontsOf } from "./fonts.js";
import { adler32, unbroken } from "./numbers.js";
import { boundToThePage } from "./leftovers.js";
import { skipWork } from "./skip.js";
import { bindIntake } from "./intake.js";
import { bindActions } from "./act.js";
import { bindCarry, bindDrag, bindPress, bindTaps, SETS } from "./hands.js";
import { bindHold } from "./hold.js";
import { keepHeight } from "./headline.js";
import { bindHints } from "./hint.js";
import { bindEmbed, isEmbedded, ownPage } from "./embed.js";
import { bindPresent } from "./present.js";
import { bindPaper } from "./paper.js";
import { bindOpens } from "./opens.js";
import { bindTour } from "./tour.js";
import { dotsAsGiven, keepDots, keptDots, rowsSeen } from "./measured.js";
import { linked } from "./lessons.js";
import { bindDocuments, pictureFile, showDocuments, tableFile, tables } from "./take.js";

const here = new URL("..", import.meta.url);
let bokeh = null;

// BokehJS is fetched once, by the first widget that needs it.
function loadBokeh(again) {
  bokeh ??= new Promise((resolve, reject) => {
    if (window.Bokeh) return resolve(window.Bokeh);
    const script = document.createElement("script");
    script.src = new URL(`bokeh.min.js${again}`, here);
    script.onload = script.onerror = () => {  // a login page in the library's place, or half of it, loads without an error
      if (window.Bokeh) return resolve(window.Bokeh);
      bokeh = null;
      script.remove();
      reject(new Error("the drawing library could not be loaded"));
    };
    document.head.append(script);
  }).then(Bokeh => {
    Bokeh.set_log_level("warn");
    boundToThePage(window.visualViewport);
    skipWork(Bokeh);
    return Bokeh;
  });
  return bokeh;
}

const PATIENCE_MS = 8000;  // after that a reader is told why nothing moves yet

const same = (a, b) => a === b || (a?.length === b?.length && a.length !== undefined && typeof a !== "string"
  && Array.prototype.every.call(a, (value, i) => value === b[i]));

export class View {
  constructor(element) {
    this.element = element;
    this.slug = element.dataset.widget;
    this.$ = selector => element.querySelector(selector);
    this.drawn = {};
    this.reach = {};  // what an action's result needs the axes to reach
    this.moved = false;
    this.tries = 0;   // that failed
    this.gone = new AbortController();  // for listeners outside of the figure, which go with it
    bindPrediction(this);
    this.become("loading");
    element.addEventListener("uncovered", () => this.uncovered());
    if (kept.get(`broke.${this.slug}`)) this.$("[data-break-it]")?.setAttribute("data-found", "yes");
  }

  // A covered figure is built and answers as any other; its state is seen when it opens.
  become(state) {
    this.state = state;
    this.element.dataset.state = isCovered(this.element) ? "asked" : state;
  }

  uncovered() {
    this.become(this.state);
    if (this.values) remember(this.slug, this.changedFromHome());
  }

  start() {
    this.slow = setTimeout(() => this.note("Still loading this figure: the connection is slow.", "slow"), PATIENCE_MS);
    this.started = this.build().catch(error => this.failed(error)).finally(() => {
      clearTimeout(this.slow);
      if (this.noted === "slow" && this.element.isConnected) this.note("");
    });
    return this.started;
  }

  // The rest of the page goes on; what could not be had is asked for anew when the reader says so.
  failed(error) {
    this.release();
    if (!this.element.isConnected) return;
    console.warn(error);
    this.tries += 1;
    this.become("still");
    this.note(`This figure could not start: ${error.message}. Its words and numbers are those of its first state.`);
    const again = Object.assign(document.createElement("button"), { type: "button", textContent: "try again" });
    again.addEventListener("click", () => { this.note(""); this.become("loading"); this.start(); });
    this.$("[data-note]").append(" ", again);
  }

  // Its files' addresses hold their version; one more word at a later try passes by whatever a cache has kept of the first.
  file(name) {
    return new URL(`widgets/${name}?v=${this.element.dataset.version}${this.tries ? `&try=${this.tries}` : ""}`, here);
  }

  async loadModule() {
    try {
      return await import(this.file(`${this.slug}.js`));
    } catch (cause) {
      throw new Error("its script could not be loaded", { cause });
    }
  }

  async build() {
    const [made, Bokeh] = await Promise.all([this.loadModule(), loadBokeh(this.tries ? `?try=${this.tries}` : "")]);
    if (!this.element.isConnected) return;
    Object.assign(this, made.widget);
    const numbers = await this.loadTable();
    if (!this.element.isConnected) return;
    this.compute ??= this.reading(numbers);
    this.hints = this.compute.later;
    this.defaults = Object.fromEntries(this.controls.map(control => [control.name, control.default]));
    this.home = { ...this.defaults, ...keptDots(this), ...JSON.parse(this.element.dataset.initial ?? "{}") };
    this.values = { ...this.home, ...this.asked() };
    const first = this.compute(this.values);
    await fontsOf(this.picture);
    if (!this.element.isConnected) return;
    await this.draw(first, Bokeh);
    if (!this.element.isConnected) return this.release();
    this.plot = [...this.views][0];
    this.fit.observe(this.plot.el);
    this.plot.canvas_view?.events_el?.setAttribute("tabindex", "-1");  // nothing there answers a key: hint.js does, beside it
    if (!this.bound) this.bindAll();
    this.show(first);
    this.$("[data-controls]").disabled = false;
    this.become("live");
    if (this.asksPython()) this.ask();
  }

  // The figure gets its data, its ranges and its width before it is drawn, so that it is drawn once.
  async draw(first, Bokeh) {
    this.theme = current();
    const { doc } = JSON.parse(inTheme(this.picture, this.theme)), place = this.$("[data-plot]");
    this.document = Bokeh.require("document").Document.from_json(doc);
    this.document.config.notifications = null;
    this.model = this.document.roots()[0];
    this.sources = {};
    this.fill(first);
    this.settle(true);
    this.fit = fitWidth(this.document, this.model, place.clientWidth);
    this.drawing = true;
    try { this.views = await Bokeh.embed.add_document_standalone(this.document, place); } finally { this.drawing = false; }
  }

  async loadTable() {
    if (!this.table) return null;
    const answer = await fetch(this.file(`${this.slug}.table`)).catch(() => ({ ok: false }));
    const numbers = answer.ok ? await answer.arrayBuffer().catch(() => null) : null;
    if (!numbers || numbers.byteLength !== 8 * this.table || adler32(new Uint8Array(numbers)) !== this.tableSum) {
      throw new Error("its table is missing or damaged");
    }
    return new Float64Array(numbers);
  }

  // -- state ----------------------------------------------------------------------------------------------------------
  asked() {
    const values = {}, refused = [];
    for (const [name, text] of Object.entries(fromAddress(this.slug))) {
      const control = this.controls.find(c => c.name === name);
      const value = control ? read(control, text) : null;
      if (value === null) refused.push(control ? `${control.label} cannot be “${text.slice(0, 40)}”` : `there is no control “${name.slice(0, 40)}”`);
      else values[name] = value;
    }
    const some = refused.length > 4 ? [...refused.slice(0, 3), `and ${refused.length - 3} more`] : refused;
    if (refused.length) this.note(`The link asked for something this widget does not take: ${some.join("; ")}. The default is shown instead.`);
    return values;
  }

  changedFromHome() {
    return this.changedFrom(this.home);
  }

  changedFrom(state) {
    const changed = {};
    for (const control of this.controls) {
      if (control.kind !== "player" && this.values[control.name] !== state[control.name]) {
        changed[control.name] = write(control, this.values[control.name]);
      }
    }
    return changed;
  }

  // `led`: the text or a tour has set it, not the reader's hand.
  set(changes, settled, led = false) {
    this.led = led;
    const all = { ...this.untouched(changes), ...changes };
    for (const name of this.given ?? []) delete all[name];
    Object.assign(this.values, all);
    for (const name of this.given ?? []) delete this.values[name];
    keepDots(this, changes);
    for (const name of Object.keys(all)) this.bound[name].show(this.values[name]);
    this.moved = true;
    if (this.noted === "typed" || this.noted === "given") this.note("");
    this.pressPresets();
    this.update(settled);
  }

  // Bits that a reader turned were those of one pattern: a move of any other control gives another. A switch or a number may be
  // about the value of one control, and goes back with it.
  untouched(changes) {
    const over = ({ kind, until }) => kind === "bits" || until in changes;
    return Object.fromEntries(this.controls.filter(over).map(({ name, kind }) => [name, kind === "number" ? this.defaults[name] : 0]));
  }

  // A preset is pressed while the widget stands in just its state; an animation's position counts only between presets that
  // differ in nothing else.
  pressPresets() {
    const buttons = [...this.element.querySelectorAll("[data-preset]")];
    const stands = (button, but) => {
      const state = { ...this.defaults, ...keptDots(this), ...this.presets[button.dataset.preset] };  // also where a lesson starts elsewhere
      return this.controls.every(({ kind, name }) => kind === but || this.values[name] === state[name]);
    };
    const fitting = buttons.filter(button => stands(button, "player"));
    const pressed = fitting.find(button => stands(button)) ?? fitting[0];
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === pressed));
  }

  update(settled) {
    if (this.state === "live") {
      if (this.asksPython()) this.ask(); else this.showHere();
    }
    if (!isCovered(this.element)) remember(this.slug, this.changedFromHome());  // an address with a state uncovers
    if (settled) this.settleSoon();
  }

  asksPython() {
    return isServed() && !this.inPage;
  }

  // -- with a server: one question at a time, the newest state next ------------------------------------------------------
  async ask() {
    if (this.asking) { this.again = true; return; }
    this.asking = true;
    do {
      this.again = false;
      try {
        this.show(await askServer(this.element.id, this.slug, this.values, state => this.connection(state)));
      } catch (error) {
        if (error instanceof Refused) this.note(`The server does not take this: ${error.message}.`);
        else this.connection("lost");
      }
    } while (this.again && this.element.isConnected);
    this.asking = false;
  }

  connection(state) {
    if (!this.element.isConnected || this.state === state) return;
    this.become(state);
    this.note(state === "lost" ? "The server is gone. The last picture stays; this widget will go on when the server is back." : "");
    if (state === "live") this.ask();
  }

  // By the page's own arithmetic. A fault in it leaves what was shown, and says so.
  showHere() {
    try {
      this.show(this.compute(this.values));
      if (this.noted === "fault") this.note("");
    } catch (error) {
      console.error(error);
      this.note("This state cannot be shown: a fault of this figure. What you see is the state before it.", "fault");
    }
  }

  // -- the picture and the words ---------------------------------------------------------------------------------------
  show(out) {
    this.fill(out);
    const say = (place, words) => {
      const text = unbroken(words);
      if (place.textContent !== text) place.textContent = text;
    };
    for (const [key, { text, alarm }] of Object.entries(out.readouts)) {
      const place = this.$(`[data-readout="${key}"]`);
      say(place, text);
      place.classList.toggle("over", !!alarm);
    }
    say(this.$("[data-summary]"), out.summary);
    const measured = this.$("[data-measured]");
    if (measured) {
      say(measured, out.measured);
      measured.parentElement.classList.toggle("none", !!out.unmeasured);
    }
    for (const [key, { met, text }] of Object.entries(out.regimes)) this.showRegime(key, !!met, unbroken(text));
    showDocuments(this.element, out.documents);
    for (const { name, faces } of this.controls) if (faces) this.bound[name].wear(out.parts[faces]);
    for (const [name, end] of Object.entries(out.ends)) this.bound[name].limit(end);
    this.shown = out;
    this.tell(out);
    if (this.sheet) this.sheet.replaceChildren(...tables(this.readable()));
  }

  fill({ parts, ranges }) {
    for (const [name, columns] of Object.entries(parts)) this.showPart(name, columns);
    this.ranges = ranges;
  }

  // For scripts of the page: what is shown, and a state to go to (controls not named go back to their defaults).
  tell({ regimes, readouts }) {
    const met = Object.keys(regimes).filter(name => regimes[name].met), { controls, moved } = this, values = { ...this.values };
    const detail = {
      get state() { return Object.fromEntries(controls.map(each => [each.name, write(each, values[each.name])])); },  // few ask for it
      met, readouts, moved,
    };
    this.element.dispatchEvent(new CustomEvent("widget-shown", { detail }));
  }

  // Columns that a script of the page computed, and the state to show them in; a move of any control puts them aside.
  give({ set, give }) {
    const columns = Object.entries(give).filter(([name, column]) => this.given?.includes(name) && column.every(Number.isFinite));
    this.set({ ...this.valuesOf(set, this.defaults), ...keptDots(this) }, true, true);
    Object.assign(this.values, Object.fromEntries(columns));
    for (const button of this.element.querySelectorAll("[data-preset]")) button.setAttribute("aria-pressed", "false");
    this.note("Drawn from your code. A move of any control leaves it.", "given");
    this.update(true);
  }

  setTexts(texts) {
    this.set(this.valuesOf(texts), true);
  }

  // The values of controls given as texts; of all others those of a state.
  valuesOf(texts, others = this.home) {
    const values = this.controls.filter(control => control.name in texts).map(control => [control.name, read(control, texts[control.name])]);
    return { ...others, ...Object.fromEntries(values.filter(([, value]) => value !== null)) };
  }

  standsIn(state) {
    return this.controls.every(({ name }) => this.values[name] === state[name]);
  }

  halt() {
    for (const bound of Object.values(this.bound)) bound.stop?.();
  }

  // What the data drawer and the CSV give: the parts that say something, not the places where they are drawn.
  readable() {
    const parts = Object.entries(this.shown.parts).filter(([name]) => !this.geometry.includes(name));
    const told = columns => Object.fromEntries(Object.entries(columns).filter(([name]) => !name.startsWith(SETS)));
    return Object.fromEntries(parts.map(([name, columns]) => [name, this.measuredParts.includes(name) ? rowsSeen(columns) : told(columns)]));
  }

  showPart(name, columns) {
    const known = this.drawn[name];
    const data = {};
    let changed = !known;
    for (const [column, value] of Object.entries(columns)) {
      data[column] = typeof value === "object" ? value : [value];
      changed ||= !same(known[column], data[column]);
    }
    if (!changed) return;
    this.drawn[name] = data;
    this.sources[name] ??= this.document.get_model_by_name(name);
    this.sources[name]?.setv({ data }, { check_eq: false });   // that it is another was seen above
  }

  // The picture that is there, once more.
  repaint() {
    for (const [name, data] of Object.entries(this.drawn)) this.sources[name]?.setv({ data: { ...data } }, { check_eq: false });
  }

  showRegime(key, met, text) {
    const list = this.$("[data-regimes]");
    let line = list.querySelector(`[data-regime="${key}"]`);
    if (met && !line) {
      line = document.createElement("p");
      line.dataset.regime = key;
      line.className = this.targets.includes(key) ? "widget-regime target" : "widget-regime";
      list.append(line);
      if (this.moved && !this.led && this.targets.includes(key)) this.found();  // crossed by this reader, not met from the start
    }
    if (!met) return line?.remove();
    if (line.textContent !== text) line.replaceChildren(...linked(text));
  }

  found() {
    const line = this.$("[data-break-it]");
    if (!line || line.dataset.found) return;
    line.dataset.found = "yes";
    kept.set(`broke.${this.slug}`, "yes");
  }

  // Axes stay fixed while a reader drags; when the hand rests, a range that has a better home moves there.
  settleSoon() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.settle(false), 200);
  }

  settle(atOnce) {
    for (const [name, own] of Object.entries(this.ranges ?? {})) {
      const range = this.document.get_model_by_name(name), reach = this.reach[name] ?? own;
      const ends = [Math.min(own[0], reach[0]), Math.max(own[1], reach[1])], [start, end] = inFrame(range, ...ends);
      retick(this.model, name, start, end);
      if (range.start === start && range.end === end) continue;
      if (atOnce || matchMedia("(prefers-reduced-motion: reduce)").matches) range.setv({ start, end });
      else this.glide(range, ends);
    }
  }

  // A window that is resized meanwhile gives the picture another frame.
  glide(range, ends) {
    const from = [range.start, range.end], began = performance.now();
    const tick = now => {
      const [start, end] = inFrame(range, ...ends);
      const t = Math.min(1, (now - began) / 260), eased = 1 - (1 - t) ** 3;
      range.setv({ start: from[0] + (start - from[0]) * eased, end: from[1] + (end - from[1]) * eased });
      if (t < 1) requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  }

  note(text, about = "") {
    this.noted = about;
    const place = this.$("[data-note]");
    place.textContent = text;
    place.hidden = !text;
    this.element.toggleAttribute("data-noted", Boolean(text));
  }

  // -- hands ------------------------------------------------------------------------------------------------------------
  bindAll() {
    this.bound = {};
    for (const control of this.controls) {
      this.bound[control.name] = bind(this.element, control, (value, settled) => this.set({ [control.name]: value }, settled),
        said => {
          this.note(said, "typed");
          this.bound[control.name].show(this.values[control.name]);
        });
      this.bound[control.name].show(this.values[control.name]);
    }
    this.on("[data-reset]", () => { this.note(""); this.set({ ...this.home, ...dotsAsGiven(this) }, true); });
    this.on("[data-copy]", () => this.copyLink());
    this.on("[data-png]", () => pictureFile(this.plot, this.slug, this.$("[data-summary]").textContent));
    this.on("[data-csv]", () => tableFile(this.readable(), this.slug));
    for (const button of this.element.querySelectorAll("[data-preset]")) {
      button.addEventListener("click", () => this.set({ ...this.defaults, ...keptDots(this), ...this.presets[button.dataset.preset] }, true));
    }
    this.pressPresets();
    const alone = this.$("[data-alone]");
    if (alone) {
      alone.href = ownPage(this);
      alone.addEventListener("click", () => { alone.href = ownPage(this); });
    }
    const data = this.$("[data-data]");
    data?.addEventListener("toggle", () => {
      this.sheet = data.open ? data.querySelector("[data-table]") : null;
      this.sheet?.replaceChildren(...tables(this.readable()));
    });
    this.on("[data-unfold]", ({ currentTarget }) => {
      const unfolded = this.element.toggleAttribute("data-unfolded");
      currentTarget.setAttribute("aria-expanded", String(unfolded));
    });
    keepHeight(this.$("[data-summary]"));
    bindHold(this);
    if (Object.keys(this.drag).length) bindDrag(this);
    bindTaps(this);
    bindCarry(this);
    bindPress(this);
    bindHints(this);
    bindActions(this);
    bindDocuments(this.element);
    bindIntake(this);
    bindEmbed(this);
    bindPresent(this);
    bindPaper(this);
    bindOpens(this);
    bindTour(this);
    this.element.addEventListener("widget-set", event => this.setTexts(event.detail));
    this.element.addEventListener("widget-give", event => this.give(event.detail));
    this.watch = new MutationObserver(() => this.wear(current()));
    this.watch.observe(document.body, { attributeFilter: ["data-md-color-scheme"] });
    this.onPaper = () => this.wear("light");
    this.offPaper = () => this.wear(current());
    addEventListener("beforeprint", this.onPaper);
    addEventListener("afterprint", this.offPaper);
  }

  wear(theme) {
    restyle(this.document, this.theme, theme);
    this.theme = theme;
  }

  on(selector, act) {
    this.$(selector)?.addEventListener("click", act);
  }

  async copyLink() {
    const link = isEmbedded() ? ownPage(this) : addressWith(this.slug, this.changedFromHome(), location.href.split("#")[0]);
    const button = this.$("[data-copy]");
    try {
      await navigator.clipboard.writeText(link);
      button.dataset.done = "copied";
    } catch {
      window.prompt("Copy this link", link);
    }
    setTimeout(() => { delete button.dataset.done; }, 1600);
  }

  dispose() {
    this.gone.abort();
    forget();
    this.watch?.disconnect();
    removeEventListener("beforeprint", this.onPaper);
    removeEventListener("afterprint", this.offPaper);
    if (this.bound) this.halt();
    clearTimeout(this.slow);
    clearTimeout(this.settling);
    this.release();
  }

  // Bokeh keeps a list of all documents and what was drawn of them; also of one that it would not draw, for its page was left.
  // One that is being drawn is let go of afterwards (build).
  release() {
    if (!this.document || this.drawing) return;
    const all = window.Bokeh.documents;
    this.fit?.disconnect();
    this.views?.clear();
    all.splice(all.indexOf(this.document), 1)[0].clear();
    this.document = this.model = this.plot = this.views = this.fit = null;
    this.drawn = {};
  }
}
