// The fields of the exercises: what is typed is checked, and what was right is remembered.
import { kept } from "../widget/state.js";
import { cut } from "../widget/typed.js";
import { judge } from "./verdict.js";

const PATIENCE = 2;  // tries that fail before the solution is offered

const lesson = () => location.pathname.split("/").filter(part => part && part !== "index.html").pop() ?? "";
const keyOf = (exercise, index) => `answer.${lesson()}.${exercise.id}.${index}`;

function asked(form) {
  const { expected, family, scale, within, side, shown, unit, slips, trap, hint } = form.dataset;
  return { expected: Number(expected), family, scale: Number(scale), within: Number(within), side, shown, unit,
    slips: JSON.parse(slips), trap: Number(trap), hint,
    label: form.querySelector(".answer-asked").textContent };
}

function bindField(form, key, offer, tell) {
  const input = form.querySelector("input"), said = form.querySelector(".answer-said"), about = asked(form);
  let tries = 0, checked = null;
  const show = verdict => {
    form.dataset.verdict = verdict.right ? "right" : verdict.counts ? "wrong" : "unread";
    input.setAttribute("aria-invalid", String(!verdict.right));
    said.textContent = verdict.said;
    if (verdict.right) tell(true);
  };
  form.addEventListener("submit", event => {
    event.preventDefault();
    const verdict = judge(input.value, about);
    show(verdict);
    if (verdict.right) return kept.set(key, input.value.trim());
    if (verdict.counts && input.value !== checked) tries += 1;
    checked = input.value;
    if (tries >= PATIENCE) offer(said);
  });
  input.addEventListener("input", () => {
    const tooLong = cut(input, about.family);
    if (!form.dataset.verdict && !tooLong) return;
    delete form.dataset.verdict;
    input.removeAttribute("aria-invalid");
    said.textContent = tooLong;
    if (tooLong) form.dataset.verdict = "unread";
  });
  const before = kept.get(key);
  if (before !== null && judge(before, about).right) {  // what was right once may be asked otherwise now
    input.value = before;
    show(judge(before, about));
  }
}

function bindOpen(button, key, tell) {
  const show = done => {
    button.setAttribute("aria-pressed", String(done));
    tell(done);
  };
  button.addEventListener("click", () => {
    const done = button.getAttribute("aria-pressed") !== "true";
    show(done);
    kept.set(key, done ? "yes" : "");
  });
  show(kept.get(key) === "yes");
}

// The solution is offered where the words about the answer stand; it opens where it always was.
function offering(exercise) {
  const solution = exercise.querySelector("details");
  return said => {
    if (solution.open) return;
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Show the solution" });
    button.addEventListener("click", () => {
      solution.open = true;
      solution.querySelector("summary").focus();
      button.remove();
    });
    said.append(" ", button);
  };
}

function bind() {
  if (!document.querySelector("[data-lesson-end]")) return;  // on other pages that show an exercise it is for reading
  for (const exercise of document.querySelectorAll(".admonition.exercise")) {
    const group = exercise.querySelector(".answers"), offer = offering(exercise), done = new Set();
    if (group.dataset.bound) continue;
    group.dataset.bound = "yes";
    [...group.children].forEach((part, index) => {
      const tell = is => {
        done[is ? "add" : "delete"](index);
        exercise.toggleAttribute("data-done", done.size === group.childElementCount);
      };
      if (part.matches("form")) bindField(part, keyOf(exercise, index), offer, tell);
      else bindOpen(part.querySelector("button"), keyOf(exercise, index), tell);
    });
  }
}

document$.subscribe(bind);
