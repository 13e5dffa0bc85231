// What should serve it? The reader's load and limits on the left, the cheapest deployment on the right. One worker answers in closed form at
// once; another simulates what is likely to be cheapest, which confirms the answer or corrects it.
import { parse } from "../widget/typed.js";
import { commands, element, facts, rows } from "./answer.js";
import { Frontier } from "./frontier.js";

const PAUSE_MS = 250;  // after the last key

export async function bind(place) {
  place.dataset.ready = "";
  await new Promise(resolve => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("deploy.css", import.meta.url) });
    sheet.onload = sheet.onerror = resolve;
    document.head.append(sheet);
  });
  new Page(place).restore();
}

class Page {
  constructor(place) {
    this.place = place;
    this.$ = name => place.querySelector(`[data-${name}]`);
    this.fields = [...place.querySelectorAll("[data-form] :is(input, select)")];
    this.programs = JSON.parse(place.dataset.programs);
    this.asked = 0;
    place.querySelector(".deploy-without").hidden = true;
    for (const name of ["presets", "verdict", "form", "answer"]) this.$(name).hidden = false;
    this.frontier = new Frontier(this.$("frontier"), JSON.parse(place.dataset.published));
    this.presets = [...place.querySelectorAll("[data-preset]")];
    for (const button of this.presets) button.addEventListener("click", () => { this.put(JSON.parse(button.dataset.preset)); this.now(); });
    for (const field of this.fields) field.id ||= `deploy-${field.name}`;
    this.$("jump").addEventListener("click", () => this.$("answer").focus());
    this.$("form").addEventListener("submit", event => { event.preventDefault(); this.now(); });
    this.$("form").addEventListener("input", () => this.later());
    this.$("form").addEventListener("change", () => this.now());
    addEventListener("hashchange", this.moved = () => this.place.isConnected ? this.restore() : this.left());
  }
  left() {
    removeEventListener("hashchange", this.moved);
    for (const name of ["quick", "slow"]) this.stop(name);
  }

  // -- what the reader gives: texts of fields, which the address holds ---------------------------------------------------------
  get state() { return Object.fromEntries(this.fields.map(field => [field.name, field.value.trim()])); }
  put(state) {
    for (const field of this.fields) {
      field.value = state[field.name] ?? field.dataset.usual ?? field.options?.[0].value ?? "";
      if (field.selectedIndex < 0) field.value = field.options[0].value;
    }
    this.$("more").open ||= ["formats", "pools", "drafted", "dollars_per_gpu_hour"].some(name => state[name]) || (state.caches ?? "bf16") !== "bf16";
  }
  restore() {
    const said = new URLSearchParams(location.hash.slice(1));
    if (location.hash === this.hash) return;
    const known = Object.fromEntries(this.fields.filter(field => said.has(field.name)).map(field => [field.name, said.get(field.name)]));
    this.put({ ...JSON.parse(this.presets[0].dataset.preset), ...known });
    const lost = this.fields.find(field => field.options && known[field.name] !== undefined && field.value !== known[field.name]);
    this.now(lost ? `The link's ${label(lost).toLowerCase()} “${known[lost.name].slice(0, 40)}” is not known here; this is ${lost.selectedOptions[0].textContent}. ` : "");
  }
  remember() {
    const first = JSON.parse(this.presets[0].dataset.preset), state = this.state;
    const differs = Object.entries(state).filter(([name, value]) => value !== first[name]);
    const hash = differs.length ? `#${new URLSearchParams(differs)}` : "";
    if (hash === location.hash) return;
    this.hash = hash;
    history.replaceState(history.state, "", hash || location.pathname + location.search);
  }
  // The state as numbers; a field that holds none says so.
  request() {
    const asked = { ...this.state };
    for (const field of this.fields.filter(each => each.dataset.unit)) {
      const text = asked[field.name];
      if (!text && !field.dataset.usual) continue;
      const { value, refused } = parse(text, field.dataset.unit);
      if (value === null) return this.wrong(field, refused);
      asked[field.name] = value;
    }
    return asked;
  }
  wrong(field, words) {
    this.right();
    field.setAttribute("aria-invalid", "true");
    const note = element("span", { className: "deploy-wrong", id: `${field.id}-wrong`, textContent: words });
    field.setAttribute("aria-describedby", note.id);
    field.closest("label").after(note);
    if (field.closest("details")) field.closest("details").open = true;
    return null;
  }
  right() {
    for (const note of this.place.querySelectorAll(".deploy-wrong")) note.remove();
    for (const field of this.fields) { field.removeAttribute("aria-invalid"); field.removeAttribute("aria-describedby"); }
  }

  // -- asking ---------------------------------------------------------------------------------------------------------------
  later() {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.now(), PAUSE_MS);
  }
  get isGone() { return !this.place.isConnected || !this.$("form"); }  // the reader has left for another page
  now(note = "") {
    clearTimeout(this.waiting);
    if (this.isGone) return;
    const state = this.state, text = JSON.stringify(state);
    if (text === this.text && !note) return;
    this.text = text;
    this.note = note;
    this.remember();
    for (const button of this.presets) button.setAttribute("aria-pressed", String(Object.entries(JSON.parse(button.dataset.preset)).every(([name, value]) => state[name] === value)));
    const asked = this.request();
    this.asked++;
    if (!asked) { this.stop("slow"); return this.none("One field needs another value: what is wrong is said beside it."); }
    this.right();
    this.first = this.found = null;
    this.place.dataset.state = "asked";
    this.began = performance.now();
    if (this.busy) this.stop("slow");
    this.busy = true;
    this.worker("quick").postMessage({ id: this.asked, steps: ["expected", "others"], asked });
    this.sent = asked;
  }
  worker(name) {
    if (this[name]) return this[name];
    const made = this[name] = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    made.onmessage = ({ data }) => this.isGone ? this.left() : this.heard(data);
    made.onerror = () => { this.stop(name); this.none("The page's own program could not be loaded. Your values are as they were; try again when you are online."); };
    return made;
  }
  stop(name) {
    this[name]?.terminate();
    this[name] = null;
    if (name === "slow") this.busy = false;
  }
  heard({ id, step, found, failed }) {
    if (id !== this.asked) return;
    if (failed) { this.stop("slow"); return this.none(`This could not be worked out: ${failed}. Your values are as they were.`); }
    if (found.refused) return this.refused(found);
    this[`heard_${step}`](found);
  }
  heard_expected(found) {
    this.first = found;
    this.place.dataset.state = "expected";
    this.place.dataset.took = String(Math.round(performance.now() - this.began));
    this.say(found.headline, `${this.note}In closed form, out of ${found.considered.toLocaleString("en")} kinds. Now the cheapest are simulated, request by request, which may correct this …`);
    this.show([found.best], 0);
    this.worker("slow").postMessage({ id: this.asked, steps: ["simulated"], asked: this.sent });
  }
  heard_others(found) {
    this.frontier.draw(found, this.sent, this.marked ?? [this.first.best]);
  }
  heard_simulated(found) {
    this.busy = false;
    this.found = found;
    this.place.dataset.state = "simulated";
    const { best } = this.first, [now] = found.found, same = now.split === best.split && now.weights === best.weights && now.cache === best.cache && now.chunk === best.chunk && now.drafted === best.drafted;
    this.say(found.headline, `${this.note}Simulated: ${found.simulated} deployments, up to ${found.most.toLocaleString("en")} requests each after a warm-up. ${same ? "The closed forms had said the same." : `The closed forms had said ${best.split} in ${best.weights}, ${best.gpus} GPU${best.gpus > 1 ? "s" : ""}.`}`);
    this.show(found.found, 0);
  }
  refused({ refused, field }) {
    this.stop("slow");
    const at = this.fields.find(each => each.name === field);
    if (at) this.wrong(at, refused);
    this.none(at ? "No deployment serves this: why is said beside the field." : refused);
    this.place.dataset.state = "refused";
  }

  // -- saying ---------------------------------------------------------------------------------------------------------------
  say(words, how) {
    this.$("said").textContent = words;
    this.$("how").textContent = how;
  }
  none(words) {
    this.place.dataset.state = "refused";
    this.say(words, this.note);
    this.marked = null;
    for (const name of ["facts", "others", "commands"]) this.$(name).replaceChildren();
    this.frontier.clear();
  }
  show(all, chosen) {
    this.marked = all;
    const one = all[chosen], had = this.place.contains(document.activeElement) && document.activeElement.dataset.row;
    this.$("facts").replaceChildren(...facts(one, this.first.price));
    this.$("others").replaceChildren(...(all.length > 1 ? rows(all, chosen, at => this.show(all, at), this.found.leavesOut) : []));
    this.$("commands").replaceChildren(...(one.commands ? commands(one, this.programs) : []));
    if (had) this.place.querySelector(`[data-row="${had}"]`)?.focus();
    this.frontier.mark(all, chosen);
  }
}
const label = field => field.closest("label").firstChild.textContent.trim();
