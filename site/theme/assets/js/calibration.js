// How far off a reader's predictions were, lesson by lesson: a sentence, and a strip on which each number is a dot.
import { kept } from "../widget/state.js";
import { number } from "../widget/numbers.js";

const WIDEST = 100;       // a strip goes from a hundredth to a hundred times the truth
const WIDTH = 240, HEIGHT = 28, MARGIN = 8;
export const CLOSE = 1.25;       // a number that counts as right: within a quarter either way
const SPOT_ON = 1.05;
const SVG = "http://www.w3.org/2000/svg";

const far = ratio => Math.max(ratio, 1 / ratio);

// What was first said of these predictions: { ratios, right, choices }. Anything may have been written there.
export function saidFirst(predictions) {
  const found = { ratios: [], right: 0, choices: 0 };
  for (const key of predictions) {
    const said = kept.get(`first.${key}`), ratio = Number(said);
    if (said === "right" || said === "other") {
      found.choices += 1;
      found.right += said === "right";
    } else if (said !== null && ratio > 0 && Number.isFinite(ratio)) found.ratios.push(ratio);
  }
  return found;
}

// Choices that were right, and numbers that were close.
export const rightAtFirst = predictions => {
  const { ratios, right } = saidFirst(predictions);
  return right + ratios.filter(ratio => far(ratio) <= CLOSE).length;
};

function median(values) {
  const sorted = [...values].sort((a, b) => a - b), middle = sorted.length / 2;
  return Number.isInteger(middle) ? Math.sqrt(sorted[middle - 1] * sorted[middle]) : sorted[Math.floor(middle)];
}

// "Three numbers, half of them within a factor of 1.8, and on the whole too low. Two of four choices were right."
export function sentence({ ratios, right, choices }) {
  const parts = [];
  if (ratios.length === 1) parts.push(far(ratios[0]) < SPOT_ON ? "One number, spot on." : `One number, off by a factor of ${number(far(ratios[0]), 2)}.`);
  else if (ratios.length) {
    const lean = median(ratios), way = lean > CLOSE ? ", and on the whole too high" : lean < 1 / CLOSE ? ", and on the whole too low" : "";
    parts.push(`${ratios.length} numbers, half of them within a factor of ${number(median(ratios.map(far)), 2)}${way}.`);
  }
  if (choices) parts.push(`${right} of ${choices} ${choices === 1 ? "choice" : "choices"} right.`);
  return parts.join(" ");
}

const drawn = (name, attributes) => {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
};
const across = ratio => {
  const share = Math.log(Math.min(WIDEST, Math.max(1 / WIDEST, ratio))) / Math.log(WIDEST);
  return MARGIN + (WIDTH - 2 * MARGIN) * (share + 1) / 2;
};

// The truth is the line in the middle, a factor of two the band around it; the words beside it say the same.
function strip(ratios) {
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: WIDTH, height: HEIGHT, class: "calibration-strip", "aria-hidden": "true" });
  picture.append(drawn("rect", { x: across(0.5), y: 3, width: across(2) - across(0.5), height: HEIGHT - 6, class: "near" }));
  picture.append(drawn("line", { x1: MARGIN, x2: WIDTH - MARGIN, y1: HEIGHT / 2, y2: HEIGHT / 2, class: "axis" }));
  for (const decade of [0.01, 0.1, 10, 100]) picture.append(drawn("line", { x1: across(decade), x2: across(decade), y1: 10, y2: HEIGHT - 10, class: "axis" }));
  picture.append(drawn("line", { x1: across(1), x2: across(1), y1: 2, y2: HEIGHT - 2, class: "truth" }));
  for (const ratio of ratios) picture.append(drawn("circle", { cx: across(ratio), cy: HEIGHT / 2, r: 4.5 }));
  return picture;
}

// Fills the rows of the page: those of lessons in which something was predicted, and one of all.
export function showCalibration(place, lessons) {
  const rows = lessons.map(({ title, predictions }) => ({ title, said: saidFirst(predictions) }))
    .filter(({ said }) => said.ratios.length + said.choices);
  const all = { ratios: [], right: 0, choices: 0 };
  for (const { said } of rows) {
    all.ratios.push(...said.ratios);
    all.right += said.right;
    all.choices += said.choices;
  }
  place.querySelector("[data-none]").hidden = rows.length > 0;
  place.querySelector("[data-key]").hidden = all.ratios.length === 0;
  place.querySelector("tbody").replaceChildren(...(rows.length > 1 ? [...rows, { title: "All", said: all }] : rows).map(row));
}

function row({ title, said }) {
  const line = document.createElement("tr"), head = document.createElement("th");
  head.scope = "row";
  head.textContent = title;
  const picture = document.createElement("td"), words = document.createElement("td");
  if (said.ratios.length) picture.append(strip(said.ratios));
  words.textContent = sentence(said);
  line.append(head, picture, words);
  return line;
}
