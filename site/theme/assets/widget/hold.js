// On a phone the picture stays in sight while a reader holds one of its controls, by a finger or by the focus that it left.
import { header } from "./drives.js";

const DRAGGED = "input[type=range]", PRESSED = "input[role=switch], select, .bits button", HANDLES = `${DRAGGED}, ${PRESSED}`;
const GAP_PX = 8;
const phone = matchMedia("(max-width: 600px)");
let held = null;  // the figure's element

export function bindHold(view) {
  const card = view.$(".widget-card");
  // What is pressed is held once it was pressed: a page that scrolls under the finger before would take the press away.
  for (const [way, handles] of [["pointerdown", DRAGGED], ["focusin", DRAGGED], ["click", PRESSED], ["change", PRESSED]]) {
    card.addEventListener(way, ({ target }) => { if (phone.matches && target.closest(handles)) hold(view, target.closest(".control")); });
  }
  card.addEventListener("focusout", ({ relatedTarget }) => { if (!relatedTarget?.closest(HANDLES)) release(); });
}

// A finger anywhere else lets go, so that nothing sticks while the page is scrolled and read.
document.addEventListener("pointerdown", ({ target }) => { if (!target.closest(HANDLES)) release(); }, { capture: true });

// The picture sticks under the page's header; higher up, where the window is too low for it and the control together. A control
// that it would cover comes out below it: a slider only asks how far a finger has gone to the side.
function hold({ element }, control) {
  release();
  held = element;
  const plot = element.querySelector("[data-plot]"), { height } = plot.getBoundingClientRect();
  const room = innerHeight - header() - control.offsetHeight - 2 * GAP_PX;
  plot.style.top = `${header() + Math.min(0, room - height)}px`;
  held.dataset.held = "";
  const covered = plot.getBoundingClientRect().bottom + GAP_PX - control.getBoundingClientRect().top;
  if (covered > 0) scrollBy({ top: -covered, behavior: "instant" });
}

function release() {
  if (held) delete held.dataset.held;
  held = null;
}
