// Predict first: a figure stays covered until its reader has answered its question or asks to see it. Both are kept in this browser
// only, and so is whether the reader wants figures covered at all.
import { bindGuess, offBy, saidAndTrue } from "./guess.js";
import { human, unbroken } from "./numbers.js";
import { drawMarks, showWhereSeen } from "./mark.js";
import { fromAddress, kept } from "./state.js";

const SWITCH = "predict", OFF = "off";
const UNCOVERED = ".widget-head, .widget-note, .widget-cover, .widget-plot";  // of a covered figure's card, what is not taken away

export const areOff = () => kept.get(SWITCH) === OFF;
export const isCovered = figure => figure.dataset.covered !== undefined;

// All that a covered figure shows is its title, its notes, and a picture that nobody can read or touch.
function cover(figure) {
  figure.dataset.covered = "";
  for (const part of figure.querySelector(".widget-card").children) part.inert = !part.matches(UNCOVERED);
  setOver(figure, true);
}

// Opens a figure without an answer to its question.
export function uncover(figure) {
  if (!isCovered(figure)) return;
  delete figure.dataset.covered;
  for (const part of figure.querySelector(".widget-card").children) part.inert = false;
  setOver(figure, false);
  figure.dispatchEvent(new Event("uncovered"));
}

function setOver(figure, covered) {
  figure.querySelector("[data-cover]").hidden = !covered;
  const plot = figure.querySelector("[data-plot]");
  plot.inert = covered && figure.querySelector("[data-kind=point]") === null;  // on a point's axis the reader puts a mark
  if (covered) plot.setAttribute("aria-hidden", "true"); else plot.removeAttribute("aria-hidden");
}

export function bindPrediction(view) {
  const block = view.$("[data-predict]");
  if (block) new Prediction(view, block).begin();
}

class Prediction {
  constructor(view, block) {
    Object.assign(this, { view, block, figure: view.element, key: `${view.slug}.${block.dataset.predict}` });
    this.$ = selector => block.querySelector(selector);
    this.answers = [...block.querySelectorAll("[data-answer]")];
    this.guess = this.$("[data-guess]") && bindGuess(view, block, value => this.guessed(value));
  }

  begin() {
    this.answers.forEach((answer, index) => answer.addEventListener("click", () => this.chosen(index)));
    this.$("[data-show-me]").addEventListener("click", () => this.skipped());
    this.$("[data-predictions]").addEventListener("click", () => this.turn());
    this.view.$("[data-to-question]").addEventListener("click", () => this.toQuestion());
    this.figure.addEventListener("uncovered", () => this.offer());
    this.figure.addEventListener("predictions-off", () => uncover(this.figure));
    const isLink = Object.keys(fromAddress(this.view.slug)).length > 0;  // its sender wants this state to be seen
    if (!this.remembered() && !areOff() && !isLink) cover(this.figure);
    this.offer();
  }

  // What this reader answered earlier; anything may have been written there.
  remembered() {
    const before = kept.get(`predicted.${this.key}`);
    if (this.guess && before !== null && Number(before) > 0 && Number.isFinite(Number(before))) this.tellGuess(Number(before));
    else if (!this.guess && /^\d$/.test(before) && this.answers[before]) this.tellChoice(Number(before));
    else if (kept.get(`skipped.${this.key}`) === "yes") this.tellTruth();
    else return false;
    return true;
  }

  // -- what the reader does -----------------------------------------------------------------------------------------------
  chosen(index) {
    const { answer } = this.answers[index].dataset;
    this.keepFirst(answer);
    kept.set(`predicted.${this.key}`, index);
    this.tellChoice(index, true);
    this.open();
  }

  guessed(value) {
    this.keepFirst(value / this.block.dataset.truth);
    kept.set(`predicted.${this.key}`, value);
    this.tellGuess(value, true);
    this.open();
  }

  skipped() {
    kept.set(`skipped.${this.key}`, "yes");
    this.tellTruth(true);
    this.open();
  }

  // Only what was said before the truth was seen says how well somebody predicts.
  keepFirst(said) {
    const isFirst = kept.get(`predicted.${this.key}`) === null && kept.get(`skipped.${this.key}`) === null;
    if (isFirst) kept.set(`first.${this.key}`, said);
  }

  // A covered figure opens, and whoever cannot see it do so is taken to the reply.
  open() {
    uncover(this.figure);
    this.offer();
    this.$("[data-why]").focus();
  }

  turn() {
    const off = !areOff();
    kept.set(SWITCH, off ? OFF : "on");
    if (off) for (const figure of document.querySelectorAll("figure.widget[data-covered]")) figure.dispatchEvent(new Event("predictions-off"));
    this.offer();
  }

  toQuestion() {
    const first = this.answers[0] ?? this.$("[data-guess] input:enabled") ?? this.$("[data-show-me]");
    first.focus();
    this.block.scrollIntoView({ block: "nearest" });
  }

  // -- what the page says -------------------------------------------------------------------------------------------------
  reply(verdict, more = "") {
    this.$("[data-verdict]").textContent = verdict;
    this.$("[data-said-and-true]").textContent = more;
    this.$("[data-why]").hidden = false;
    this.block.dataset.answered = "yes";
    if (this.guess) this.$("[data-guess]").hidden = true;
    this.$("[data-guess-said]").textContent = "";
    this.offer();
  }

  // `answered`: just now, and not on an earlier visit.
  tellChoice(index, answered = false) {
    this.answers.forEach((answer, i) => {
      answer.setAttribute("aria-pressed", String(i === index));
      answer.classList.toggle("right", answer.dataset.answer === "right");
    });
    this.reply(this.answers[index].dataset.answer === "right" ? "Right." : "Not quite.");
    this.showWhereSeen("", answered);
  }

  tellGuess(value, answered = false) {
    const { truth, family } = this.block.dataset;
    this.reply(offBy(value, Number(truth), family), saidAndTrue(value, this.block.dataset));
    drawMarks(this.view, this.block.dataset, value);
    this.showWhereSeen(`you: ${human(value, this.block.dataset.family)}`, answered);
  }

  tellTruth(answered = false) {
    for (const answer of this.answers) answer.classList.toggle("right", answer.dataset.answer === "right");
    this.reply(this.guess ? `${this.block.dataset.shown}.` : "");
    drawMarks(this.view, this.block.dataset, null);
    this.showWhereSeen("", answered);
  }

  async showWhereSeen(said, answered) {
    if (!this.block.dataset.seen) return;
    const seen = JSON.parse(this.block.dataset.seen);
    if (await showWhereSeen(this.view, seen, unbroken(said), answered)) this.$("[data-gone-to]").textContent = `The question has set ${seen.words}.`;
  }

  // The line below the question: what covers the figure, and the two ways round it.
  offer() {
    const covered = isCovered(this.figure), off = areOff(), answered = "answered" in this.block.dataset;
    this.$("[data-covering]").hidden = answered;
    this.$("[data-how]").textContent = covered ? "The figure opens when you have answered." : off ? "Figures are not covered." : "";
    this.$("[data-show-me]").textContent = covered ? "Show me" : "Show the answer";
    this.$("[data-predictions]").textContent = off ? "Cover them again" : "Never cover figures";
  }
}

// Another tab may have switched it off; one that clears everything covers again when the page is next opened.
addEventListener("storage", () => {
  if (areOff()) for (const figure of document.querySelectorAll("figure.widget[data-covered]")) uncover(figure);
});
