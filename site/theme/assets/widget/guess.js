// A number that is predicted: typed, slid to over decades, or pointed at on the figure's own axis.
import { human } from "./numbers.js";
import { placeGuess } from "./mark.js";
import { cut, readAnswer } from "./typed.js";
import { off_by, sentence } from "../widgets/answers.js";

// What was typed, as { value } in SI or { said } about why it is none.
async function readTyped(text, { family, scale }) {
  const { value, refused } = readAnswer(text, family, Number(scale));
  return value === null ? { said: refused } : { value };
}

// Calls back with the value, in SI, once the reader has settled on one.
export function bindGuess(view, block, guessed) {
  const form = block.querySelector("[data-guess]"), input = form.querySelector("input"), said = block.querySelector("[data-guess-said]");
  const say = words => { said.textContent = words; };
  const guess = { number: typedGuess, slider: slidGuess, point: pointedGuess }[block.dataset.kind](view, block.dataset, input, say);
  form.addEventListener("submit", async event => {
    event.preventDefault();
    const { value, said: fault } = await guess().catch(() => ({ said: "The script that reads numbers could not be loaded. Try again." }));
    const none = value === undefined ? fault : value > 0 ? "" : "It is more than zero.";
    input.setAttribute("aria-invalid", String(!!none));
    say(none);
    if (!none) guessed(value);
  });
  return guess;
}

function typedGuess(view, about, input, say) {
  input.addEventListener("input", () => {
    input.removeAttribute("aria-invalid");
    say(cut(input, about.family));
  });
  return () => readTyped(input.value, about);
}

// Nobody predicts 23.8 GPUs.
const whole = (value, { family, truth }) => family === "count" && Number.isInteger(Number(truth)) ? Math.round(value) : value;

// Where its handle stands at first is nobody's answer.
function slidGuess(view, about, input) {
  const { low, high } = input.dataset, last = Number(input.max);
  let moved = false;
  input.addEventListener("input", () => { moved = true; });
  const value = () => whole(Number(low) * (high / low) ** (input.valueAsNumber / last), about);
  showWhileMoved(input, () => moved ? human(value(), about.family, 2) : "move the handle");
  return async () => moved ? { value: value() } : { said: "Move the handle to your number first." };
}

function pointedGuess(view, about, input) {
  const place = placeGuess(view, about, input);
  const value = () => place.at() * about.per;
  const text = () => place.isTouched() ? human(value(), about.family, Number(about.digits)) : "move the mark";
  place.onMove(showWhileMoved(input, () => place.at() === null ? "" : text()));
  return async () => place.at() === null ? { said: "The figure is not there yet." }
    : place.isTouched() ? { value: value() } : { said: "Move the mark to your number first." };
}

// The value beside a slider, for eyes and for screen readers.
function showWhileMoved(input, text) {
  const output = input.parentElement.querySelector("output");
  const show = () => {
    output.textContent = text();
    input.setAttribute("aria-valuetext", text());
    input.style.setProperty("--at", `${100 * input.valueAsNumber / input.max}%`);
  };
  input.addEventListener("input", show);
  show();
  return show;
}

export const saidAndTrue = (value, { shown, family, digits }) => `You said ${human(value, family, Number(digits))}; it is ${shown}.`;

// "4× too low."
export const offBy = (value, truth, family) => sentence(off_by(value, truth, Number(family === "percent")));
