// Sliders, selects, switches and players: native elements, so that labels, keyboard and screen readers work as they should.
import { human, stop } from "./numbers.js";
import { cut, fitting, isCounted, scaleBehind, read as quantity } from "./typed.js";

const SWITCH = new Map([["on", 1], ["true", 1], ["1", 1], ["off", 0], ["false", 0], ["0", 0]]);  // "__proto__" is none of them
const SPEEDS = [1, 2, 4, 0.5];
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

// Text of a link or a fence -> a value, or null where the control does not take it.
export function read(control, text) {
  if (control.kind === "choice") {
    const index = control.keys.indexOf(text);
    return index < 0 ? null : index;
  }
  if (control.kind === "switch") return SWITCH.get(text) ?? null;
  if (control.kind === "bits" && !/^\d+$/.test(text)) return null;
  if (!/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text)) return null;
  return fits(control, Number(text)) ? Number(text) : null;
}

const fits = (control, value) => value >= control.low && value <= control.high && (!control.whole || Number.isInteger(value))
  && (!control.only || control.grid.includes(value));

export function write(control, value) {
  if (control.kind === "choice") return control.keys[value];
  if (control.kind === "switch") return value ? "on" : "off";
  if (control.kind === "bits") return String(value);
  const rounded = Number(value.toPrecision(12)), kept = rounded >= control.low && rounded <= control.high;
  const plain = String(kept ? rounded : value), short = Number(plain).toExponential().replace("e+", "e");
  return short.length < plain.length ? short : plain;
}

// What was typed into a number's field that shows a value: { value }, or { refused } and why. A number alone is in the unit that
// the field shows ("80" beside "40 GB"), or in the family's first ("13e9" beside "70B"), whichever of them fits; where things are
// counted the first goes before. A text that the page prints for a stop is that stop: "8.19k" is 8,192, though "8,190" is not.
export function readTyped(control, text, shown) {
  const { family, label, low, high, whole, only, grid } = control;
  const base = scaleBehind("1", family), seen = scaleBehind(human(shown, family), family) ?? base;
  const [scale, ...others] = isCounted(family) ? [base, seen] : [seen, base];
  const prints = (stop, value) => quantity(human(stop, family), family, base).value === value;
  const meant = ({ value, half }) =>
    [shown, ...grid, low, high].find(stop => Math.abs(stop - value) <= half * (1 + 1e-9) && prints(stop, value)) ?? value;
  const found = fitting(text, { family, scale, label, others }, way => fits(control, meant(way)));
  const takes = `it takes ${only ?? `a ${whole ? "whole " : ""}number`} from ${human(low, family)} to ${human(high, family)}.`;
  const quoted = `${label} cannot be “${text.slice(0, 40)}”`;
  if (found.value === null) return { refused: `${quoted}: ${takes} ${found.refused}` };
  if (fits(control, meant(found))) return { value: meant(found) };
  const read = human(found.value, family);
  return { refused: `${quoted}${found.bare && read !== text.trim() ? `, read as ${read}` : ""}: ${takes}` };
}

// Binds a control to its elements. `changed(value, settled)` is called with each new value, `refused(words)` with what is
// wrong with one that was typed.
export function bind(root, control, changed, refused) {
  const element = root.querySelector(`[data-control="${control.name}"]`);
  return { choice: bindSelect, switch: bindSwitch, bits: bindBits, number: bindSlider, player: bindPlayer }[control.kind](
    element, control, changed, refused);
}

function bindSelect(element, control, changed) {
  const select = element.querySelector("select");
  select.addEventListener("change", () => changed(select.selectedIndex, true));
  return { show: value => { select.selectedIndex = value; } };
}

function bindSwitch(element, control, changed) {
  const box = element.querySelector("input");
  box.addEventListener("change", () => changed(+box.checked, true));
  return { show: value => { box.checked = !!value; } };
}

// A row of toggle buttons; `wear` gives them the faces that the widget's own part has for them.
function bindBits(element, control, changed) {
  const buttons = [...element.querySelectorAll("button")];
  let shown = 0, count = 0;
  buttons.forEach((button, i) => button.addEventListener("click", () => {
    const weight = 2 ** (count - 1 - i);
    changed(shown + (Math.floor(shown / weight) % 2 ? -weight : weight), true);
  }));
  const wear = ({ bit, role, turned }) => {
    count = bit.findIndex(Number.isNaN);
    if (count < 0) count = bit.length;
    buttons.forEach((button, i) => {
      button.hidden = i >= count;
      if (button.hidden) return;
      const name = control.roles[role[i]], below = role.slice(i + 1, count).filter(other => other === role[i]).length;
      button.dataset.place = count - 1 - i;
      button.dataset.role = name;
      button.dataset.first = role[i] !== role[i - 1];
      button.textContent = bit[i];
      button.setAttribute("aria-pressed", String(turned[i] === 1));
      button.setAttribute("aria-label", `${name} bit ${below}: ${bit[i]}`);
    });
  };
  return { show: value => { shown = value; }, wear };
}

function bindSlider(element, control, changed, refused) {
  const range = element.querySelector("input[type=range]");
  const typed = element.querySelector("input[type=text]");
  let last = control.grid.length - 1;
  let shown = control.default;
  const show = value => {
    shown = value;
    const text = human(value, control.family);
    const at = stop(value, control.grid);
    range.value = at;
    range.setAttribute("aria-valuetext", text);
    range.style.setProperty("--at", `${100 * Math.min(1, at / last)}%`);
    if (typed && document.activeElement !== typed) typed.value = text;
  };
  range.addEventListener("input", () => changed(control.grid[range.valueAsNumber], false));
  range.addEventListener("change", () => changed(control.grid[range.valueAsNumber], true));
  typed?.addEventListener("change", () => {
    const { value, refused: said } = readTyped(control, typed.value, shown);
    typed.setAttribute("aria-invalid", String(!!said));
    if (said) refused(said);
    else changed(value, true);
  });
  typed?.addEventListener("input", () => {
    const said = cut(typed, control.family);
    if (said) refused(said);
  });
  typed?.addEventListener("blur", () => {
    typed.setAttribute("aria-invalid", "false");
    show(shown);
  });
  typed?.addEventListener("keydown", event => { if (event.key === "Enter") typed.blur(); });
  const limit = value => { range.max = last = stop(value, control.grid); };
  return { show, limit };
}

function bindPlayer(element, control, changed) {
  const slider = bindSlider(element, control, (value, settled) => { halt(); changed(value, settled); });
  const [play, step, speed] = ["play", "step", "speed"].map(name => element.querySelector(`[data-${name}]`));
  let now = control.default, playing = 0, pace = 0, end = control.frames;
  const label = () => {
    play.dataset.play = playing ? "pause" : "play";
    play.setAttribute("aria-label", `${playing ? "Pause" : "Play"}: ${control.label}`);
  };
  const halt = () => { cancelAnimationFrame(playing); clearTimeout(playing); playing = 0; label(); };
  const go = (value, settled) => { now = value; slider.show(value); changed(value, settled); };
  const run = () => {
    let before = performance.now();
    const tick = time => {
      const next = Math.min(end, now + SPEEDS[pace] * (time - before) / 1000 / control.seconds);
      before = time;
      if (next >= end) halt(); else playing = requestAnimationFrame(tick);
      go(next, next >= end);
    };
    const hop = () => {  // reduced motion: whole frames, no tweening
      const next = Math.min(end, Math.floor(now) + 1);
      if (next >= end) halt(); else playing = setTimeout(hop, 1000 * control.seconds / SPEEDS[pace]);
      go(next, next >= end);
    };
    playing = calm() ? setTimeout(hop, 0) : requestAnimationFrame(tick);
    label();
  };
  play.addEventListener("click", () => {
    if (playing) return halt();
    if (now >= end) go(0, false);
    run();
  });
  step.addEventListener("click", () => {
    halt();
    const here = control.grid[stop(now, control.grid)];  // where the handle is seen, not a hair before it
    go(here >= end ? 0 : Math.floor(here + 1e-9) + 1, true);
  });
  speed.addEventListener("click", () => {
    pace = (pace + 1) % SPEEDS.length;
    speed.textContent = `${SPEEDS[pace]}×`;
  });
  const limit = value => {  // the run is over earlier in some states
    if (value === end) return;
    end = value;
    slider.limit(value);
    slider.show(now);
  };
  return { show: value => { now = value; slider.show(value); }, limit, stop: halt };
}
