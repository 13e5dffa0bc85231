// The list of missions beside their widget: what was won is ticked, and kept in this browser alone. A mission is won by
// leading it from a layout that loses to one that wins; whoever has the answer shown is told so, and may still win by hand.
import { uncover } from "./predict.js";
import { kept } from "./state.js";

const is = (mark, mission) => kept.get(`${mark}.${mission}`) === "yes";
const mark = (name, mission) => kept.set(`${name}.${mission}`, "yes");

function showProgress(list) {
  const cards = [...list.querySelectorAll("[data-mission]")];
  let won = 0, shown = 0;
  for (const card of cards) {
    const done = is("won", card.dataset.mission), seen = !done && is("shown", card.dataset.mission);
    card.toggleAttribute("data-won", done);
    card.toggleAttribute("data-shown", seen);
    won += done;
    shown += seen;
  }
  const also = shown ? `, ${shown} shown` : "";
  list.querySelector("[data-progress]").textContent = won + shown
    ? `${won} of ${cards.length} missions won${also}. This browser remembers it; nobody else is told.`
    : `${cards.length} missions. Progress is kept in this browser.`;
}

// Calls back with each mission that a reader leads from a losing layout to a winning one.
function watch(figure, wonByHand) {
  let losing = null, given = null;  // the mission last seen to lose; the answer that was asked for and is not yet drawn
  figure.addEventListener("widget-shown", ({ detail: { state, met } }) => {
    const won = met.includes("won");
    const isGiven = given && Object.entries(given).every(([control, text]) => state[control] === text);
    if (won && !isGiven && losing === state.mission) wonByHand(state.mission);
    losing = won || isGiven ? null : state.mission;
    if (won || !isGiven) given = null;
  });
  return state => { given = state; };
}

export function bindMissions() {
  for (const list of document.querySelectorAll("[data-missions]")) {
    if (list.dataset.bound) continue;
    list.dataset.bound = "yes";
    const figure = document.querySelector(`figure.widget[data-widget="${list.dataset.missions}"]`);
    if (!figure) continue;
    const give = watch(figure, mission => {
      if (is("won", mission)) return;
      mark("won", mission);
      showProgress(list);
    });
    for (const button of list.querySelectorAll("[data-set]")) {
      button.addEventListener("click", () => {
        const state = JSON.parse(button.dataset.set), answer = "given" in button.dataset;
        give(answer ? state : null);
        if (answer) mark("shown", state.mission);
        uncover(figure);  // who takes a mission up plays it on the figure
        figure.dispatchEvent(new CustomEvent("widget-set", { detail: { ...state } }));
        showProgress(list);
        figure.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
      });
    }
    showProgress(list);
  }
}
