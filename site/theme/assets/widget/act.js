// Something that only Python can do, such as to measure this machine: a button that a page without a server does not show.
import { actOnServer, isServed, Refused } from "./live.js";

export function bindActions(view) {
  if (!isServed()) return;
  for (const button of view.element.querySelectorAll("[data-action]")) {
    button.parentElement.hidden = false;
    button.addEventListener("click", () => act(view, button));
  }
}

// What it gives is drawn over the same picture and said beside the button.
async function act(view, button) {
  const said = button.parentElement.querySelector("[data-said]");
  button.disabled = true;
  said.textContent = "Running: a few seconds …";
  try {
    const { columns, ranges, words } = await actOnServer(view.slug, button.dataset.action);
    if (!view.document) return;
    said.textContent = words;
    Object.assign(view.reach, ranges);
    view.showPart(button.dataset.action, columns);
    view.settle(false);
  } catch (error) {
    said.textContent = error instanceof Refused ? error.message : "The server is gone; nothing came back.";
  }
  button.disabled = false;
}
