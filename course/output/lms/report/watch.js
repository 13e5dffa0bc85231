// What a learner does on a lesson's page, told to a learning system: each prediction once, as it was first said; each try of an exercise
// that can be read; the end of the lesson. What a page holds and what was right is read off the page itself.
import { CLOSE, rightAtFirst } from "../js/calibration.js";
import { kept } from "../widget/state.js";

const LETTERS = "abcd";
const nameOf = address => new URL(address).pathname.split("/").filter(part => part && part !== "index.html").pop() ?? "";
const words = element => element.textContent.replace(/\s+/g, " ").trim();

// -- what there is ---------------------------------------------------------------------------------------------------------
export function predictionsOf(page) {
  return [...page.querySelectorAll("figure.widget [data-predict]")].map(block => {
    const slug = block.closest("figure").dataset.widget, { predict, truth, kind } = block.dataset;
    const answers = [...block.querySelectorAll("[data-answer]")];
    const says = words(block.querySelector(".widget-predict-question"));
    const common = { id: `prediction.${slug}.${predict}`, key: `${slug}.${predict}`, says };
    if (kind === "choice") {
      const right = LETTERS[answers.findIndex(answer => answer.dataset.answer === "right")];
      return { ...common, type: "choice", right, choices: answers.map((answer, i) => [LETTERS[i], words(answer)]) };
    }
    return { ...common, type: "numeric", right: `${truth / CLOSE}[:]${truth * CLOSE}` };
  });
}

export function exercisesOf(page) {
  return [...page.querySelectorAll(".admonition.exercise")].flatMap(box =>
    [...box.querySelector(".answers").children].map((part, index) => ({ part, index, box })).filter(({ part }) => part.matches("form"))
      .map(({ part, index }) => ({
        id: `exercise.${box.id}.${index}`, place: `${box.id}.${index}`, type: "fill-in", right: part.dataset.shown,
        says: `${words(box.querySelector(".admonition-title"))}: ${words(part.querySelector(".answer-asked"))}`,
      })));
}

// -- what was done -----------------------------------------------------------------------------------------------------------
// A prediction as it was said, or null if there is none yet. Whoever had seen the answer before gets no result.
function said({ key, type }) {
  const value = kept.get(`predicted.${key}`);
  if (value === null) return null;
  const first = kept.get(`first.${key}`);
  return { response: type === "choice" ? LETTERS[Number(value)] : String(Number(value)), result: first === null ? null : rightAtFirst([key]) === 1 };
}

function isRead(lesson) {
  try { return [JSON.parse(kept.get("read"))].flat().some(name => typeof name === "string" && nameOf(new URL(name, location.href)) === lesson); }
  catch { return false; }
}

class Watcher {
  constructor(system, page, lesson, record) {
    Object.assign(this, { system, lesson, predictions: predictionsOf(page), exercises: exercisesOf(page) });
    this.record = { predicted: {}, right: {}, ...record };
  }

  // Everything that the page's store has and the system does not.
  catchUp() {
    for (const prediction of this.predictions) {
      const found = said(prediction);
      if (!found || this.record.predicted[prediction.id]) continue;
      this.record.predicted[prediction.id] = true;
      this.system.answered({ ...prediction, ...found });
    }
    for (const exercise of this.exercises) {
      const response = kept.get(`answer.${this.lesson}.${exercise.place}`);
      if (response && !this.record.right[exercise.id]) this.tried(exercise, response, true);
    }
    this.tell();
  }

  tried(exercise, response, result) {
    if (result) this.record.right[exercise.id] = true;
    this.system.answered({ ...exercise, response, result });
  }

  // Answers that were wrong are kept nowhere: they are told as they are given.
  submitted(form) {
    const box = form.closest(".admonition.exercise");
    if (!box || form.dataset.verdict !== "wrong") return;
    const id = `exercise.${box.id}.${[...form.parentElement.children].indexOf(form)}`;
    const exercise = this.exercises.find(each => each.id === id);
    if (exercise) this.tried(exercise, form.querySelector("input").value.trim(), false);
  }

  tell() {
    const predicted = this.predictions.filter(({ id }) => this.record.predicted[id]).length;
    const right = this.exercises.filter(({ id }) => this.record.right[id]).length;
    const complete = this.record.read ||= isRead(this.lesson);
    const all = this.predictions.length + this.exercises.length + 1;
    this.system.progress({
      record: this.record, complete, done: (predicted + right + complete) / all, score: this.exercises.length ? right / this.exercises.length : 1,
    });
  }
}

const ready = () => document.readyState === "loading" ? new Promise(resolve => addEventListener("DOMContentLoaded", resolve, { once: true })) : null;

export async function watch(system) {
  const lesson = nameOf(location.href);
  const [record] = await Promise.all([system.record(), ready()]);
  const watcher = new Watcher(system, document, lesson, record);
  watcher.catchUp();
  addEventListener("course-kept", () => queueMicrotask(() => watcher.catchUp()));
  document.addEventListener("submit", ({ target }) => {
    if (nameOf(location.href) === lesson && target.matches("form.answer")) watcher.submitted(target);
  });
}
