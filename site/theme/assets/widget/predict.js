import { kept } from "./state.js";

// Predict first: an answer, once chosen, shows what the engine says and why. It is kept in this browser only.
export function bindPrediction(element, slug) {
  const block = element.querySelector("[data-predict]");
  if (!block) return;
  const answers = [...block.querySelectorAll("[data-answer]")];
  const reveal = index => {
    answers.forEach((answer, i) => {
      answer.setAttribute("aria-pressed", String(i === index));
      answer.classList.toggle("right", answer.dataset.answer === "right");
    });
    const verdict = block.querySelector("[data-verdict]");
    if (verdict) verdict.textContent = answers[index].dataset.answer === "right" ? "Right." : "Not quite.";
    block.querySelector("[data-why]").hidden = false;
    block.dataset.answered = answers[index].dataset.answer;
  };
  answers.forEach((answer, index) => answer.addEventListener("click", () => {
    const key = `${slug}.${block.dataset.predict}`;
    reveal(index);
    if (kept.get(`predicted.${key}`) === null) kept.set(`first.${key}`, answer.dataset.answer);
    kept.set(`predicted.${key}`, index);
  }));
  const before = kept.get(`predicted.${slug}.${block.dataset.predict}`);
  if (/^\d$/.test(before) && answers[before]) reveal(Number(before));  // anything may have been written there
}
