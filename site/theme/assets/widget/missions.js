// The list of missions beside their widget: what was won is ticked, and kept in this browser alone.
import { kept } from "./state.js";

const key = mission => `won.${mission}`;

function showProgress(list) {
  const cards = [...list.querySelectorAll("[data-mission]")];
  let won = 0;
  for (const card of cards) {
    const done = kept.get(key(card.dataset.mission)) === "yes";
    card.toggleAttribute("data-won", done);
    won += done;
  }
  list.querySelector("[data-progress]").textContent = won
    ? `${won} of ${cards.length} missions won. This browser remembers it; nobody else is told.`
    : `${cards.length} missions. Progress is kept in this browser.`;
}

export function bindMissions() {
  for (const list of document.querySelectorAll("[data-missions]")) {
    if (list.dataset.bound) continue;
    list.dataset.bound = "yes";
    const figure = document.querySelector(`figure.widget[data-widget="${list.dataset.missions}"]`);
    if (!figure) continue;
    for (const button of list.querySelectorAll("[data-set]")) {
      button.addEventListener("click", () => {
        figure.dispatchEvent(new CustomEvent("widget-set", { detail: { ...JSON.parse(button.dataset.set) } }));
        figure.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      });
    }
    figure.addEventListener("widget-shown", ({ detail: { state, met, moved } }) => {
      if (!moved || !met.includes("won") || kept.get(key(state.mission)) === "yes") return;
      kept.set(key(state.mission), "yes");
      showProgress(list);
    });
    showProgress(list);
  }
}
