// A widget in another site: the snippet that puts it there, and what its page does while it stands there.
import { addressWith } from "./state.js";

const BESIDES_PX = 46;  // the line below an embedded widget that says where it is from, and the space around both
const MAY = 'sandbox="allow-scripts allow-same-origin allow-popups allow-downloads" allow="fullscreen; clipboard-write"';
const THEMES = { auto: "as the reader's system", light: "light", dark: "dark" };
const OWN_PAGE = new URL("../../", import.meta.url);  // a widget's own page is this and its slug

export const isEmbedded = () => document.documentElement.dataset.embedded !== undefined;

// The widget's own page in its present state. A lesson may start a widget elsewhere than its own page does.
export function ownPage(view) {
  return addressWith(view.slug, view.changedFrom(view.defaults), new URL(`${view.slug}/`, OWN_PAGE));
}

const quoted = text => text.replace(/[&"<]/g, sign => ({ "&": "&amp;", '"': "&quot;", "<": "&lt;" })[sign]);

function heightWithout(panel, card) {
  panel.hidden = true;  // nobody sees it go: it is back before the next picture
  const height = card.offsetHeight;
  panel.hidden = false;
  return height;
}

function snippet(view, theme) {
  const address = new URL(ownPage(view));
  address.search = `?embed${theme === "auto" ? "" : `&theme=${theme}`}${address.search.replace("?", "&")}`;
  const height = Math.ceil((heightWithout(view.$("[data-embed-panel]"), view.$(".widget-card")) + BESIDES_PX) / 10) * 10;
  const title = `${view.$(".widget-title").textContent} (System ML)`;
  return `<iframe src="${quoted(address.href)}" title="${quoted(title)}" width="100%" height="${height}" style="border: 0" loading="lazy" ${MAY}></iframe>`;
}

export function bindEmbed(view) {
  view.on("[data-embed]", () => toggle(view));
  for (const link of document.querySelectorAll("[data-with-state]")) {  // an own page's ways back to its lessons
    link.addEventListener("click", () => { link.href = addressWith(view.slug, view.changedFromHome(), link.href); });
  }
  if (isEmbedded() && parent !== window) tellHeight(view.slug);
}

function toggle(view) {
  const panel = view.$("[data-embed-panel]") ?? made(view);
  panel.hidden = !panel.hidden;
  view.$("[data-embed]").setAttribute("aria-expanded", String(!panel.hidden));
  if (!panel.hidden) panel.write();
}

function made(view) {
  const panel = Object.assign(document.createElement("div"), { className: "widget-embed", hidden: true });
  panel.dataset.embedPanel = "";
  panel.innerHTML = `<p>Paste this into a page of yours. The figure opens there in its present state.</p>
    <textarea readonly rows="5" spellcheck="false" aria-label="HTML of the embedded figure"></textarea>
    <p class="widget-action"><label>Colours <select></select></label> <button type="button" data-copy-snippet>copy</button>
    <span data-said role="status"></span></p>`;
  const [code, theme, said] = ["textarea", "select", "[data-said]"].map(selector => panel.querySelector(selector));
  theme.append(...Object.entries(THEMES).map(([value, name]) => new Option(name, value)));
  panel.write = () => { code.value = snippet(view, theme.value); said.textContent = ""; };
  theme.addEventListener("change", panel.write);
  view.element.addEventListener("widget-shown", () => { if (!panel.hidden) panel.write(); });
  panel.querySelector("[data-copy-snippet]").addEventListener("click", async () => {
    code.select();
    try {
      await navigator.clipboard.writeText(code.value);
      said.textContent = "Copied.";
    } catch {
      said.textContent = "This browser lets no page copy: the text is selected, copy it with your keyboard.";
    }
  });
  view.$(".widget-head").after(panel);
  return panel;
}

// The host may set the frame's height by this; nothing is ever taken from the host.
function tellHeight(widget) {
  new ResizeObserver(() => parent.postMessage({ type: "system-ml:height", widget, height: Math.ceil(document.body.offsetHeight) }, "*"))
    .observe(document.body);
}
