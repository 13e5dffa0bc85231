// Finds the widgets of a page, brings each to life when it nears the view, and lets go of them when the page is left.
import { View } from "./view.js";
import { closeLink, forgetAsker } from "./live.js";
import { letGoOfThePage } from "./leftovers.js";
import { bindMissions } from "./missions.js";
import { yieldToWide } from "./contents.js";
import { bindSentences } from "./drives.js";
import { fromAddress } from "./state.js";
import { warmUp } from "./warm.js";

const views = new Map();
const near = new IntersectionObserver(entries => {
  for (const entry of entries) if (entry.isIntersecting) wake(entry.target);
}, { rootMargin: "900px 0px" });

function wake(element) {
  const view = views.get(element);
  near.unobserve(element);
  return view?.started ?? view?.start();
}

// A figure's view once it is live; null where it could not start.
async function awake(element) {
  await wake(element);
  const view = views.get(element);
  return view?.document && view.bound ? view : null;
}

const turn = () => new Promise(resolve => setTimeout(resolve));     // whatever a reader does meanwhile comes first
const idle = () => new Promise(resolve => (window.requestIdleCallback ?? setTimeout)(resolve, { timeout: 1500 }));

// The rest follow one by one, so that a fast scroll, a print or a search never meets an empty frame.
async function wakeAll() {
  for (const element of [...views.keys()]) {
    await turn();
    if (element.isConnected) await wake(element);
  }
  await idle();    // the last of them is painted
  warmAll();
}

async function warmAll() {
  for (const view of [...views.values()]) await warmUp(view);
}

function letGo(element, view) {
  near.unobserve(element);
  view.dispose();
  forgetAsker(element.id);
  views.delete(element);
}

function scan() {
  for (const [element, view] of views) if (!element.isConnected) letGo(element, view);
  letGoOfThePage();
  bindMissions();
  const found = document.querySelectorAll("figure.widget");
  yieldToWide();
  for (const element of found) {
    if (views.has(element)) continue;
    views.set(element, new View(element));
    near.observe(element);
  }
  if (found.length) bindSentences(awake);
  return found.length ? wakeAll() : closeLink();
}

// A link to a figure's state opens at that figure. Not where the address names a place, nor after a reload or a way back, where
// the browser knows the reader's place.
function openAtState() {
  const [arrived] = performance.getEntriesByType("navigation");
  if (location.hash || scrollY || arrived?.type !== "navigate") return;
  const named = [...views].find(([, view]) => Object.keys(fromAddress(view.slug)).length)?.[0];
  if (named && named.getBoundingClientRect().top > innerHeight / 2) named.scrollIntoView();
}

// The shell waits for the first page's figures; from then on it tells of each page that a reader goes to. Of the first, too: that
// one is not left by it.
addEventListener("shell-ready", () => {
  let arrived = false;
  document$.subscribe(() => { if (arrived) scan(); arrived = true; });
});
const drawn = scan();
openAtState();
Promise.resolve(drawn).then(() => dispatchEvent(new Event("figures-drawn")));
