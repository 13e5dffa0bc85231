/* Before a page's first paint: what Material's own script expects to find (kept settings, under the site's path), and the
   colours that the reader chose. Loaded where the switch of the colours stands, which names them. */
var __md_scope = new URL(document.currentScript.dataset.home, location);
var __md_hash = text => [...text].reduce((sum, letter) => (sum << 5) - sum + letter.charCodeAt(0), 0);

function __md_get(name, store, scope = __md_scope) {
  try { return JSON.parse((store ?? localStorage).getItem(`${scope.pathname}.${name}`)); } catch { return null; }
}

function __md_set(name, value, store, scope = __md_scope) {
  try { (store ?? localStorage).setItem(`${scope.pathname}.${name}`, JSON.stringify(value)); } catch { /* storage is off */ }
}

document.documentElement.classList.replace("no-js", "js");    // Material does it later, when it means styling all anew

/* Material's script makes the addresses of the head absolute, once it has read the sitemap. By then a page has often been loaded, and
   a browser asks the server again for a style sheet or a font whose address is set anew. While a page loads it does not. */
for (const link of document.head.querySelectorAll("link[href]")) link.setAttribute("href", link.href);

/* Readers who want no figure covered see each as it is, also until its script has come, which would have covered it (predict.js).
   So do those who have answered its question before, or whose link leads to a state of it. */
(() => {
  const kept = key => { try { return localStorage.getItem(`course.${key}`); } catch { return null; } };
  const tell = () => document.documentElement.toggleAttribute("data-uncovered", kept("predict") === "off");
  for (const change of ["course-kept", "storage"]) addEventListener(change, tell);
  tell();

  const isKnown = (slug, question) => kept(`predicted.${slug}.${question}`) !== null || kept(`skipped.${slug}.${question}`) === "yes";
  const isLinked = slug => [...new URLSearchParams(location.search).keys()].some(key => key.startsWith(`${slug}.`));
  const look = () => {
    for (const block of document.querySelectorAll("figure.widget:not([data-uncovered]) > [data-predict]")) {
      const slug = block.parentElement.dataset.widget;
      if (isKnown(slug, block.dataset.predict) || isLinked(slug)) block.parentElement.dataset.uncovered = "";
    }
  };
  const come = new MutationObserver(look);    // called before what has come is painted
  come.observe(document.documentElement, { childList: true, subtree: true });
  addEventListener("DOMContentLoaded", () => {
    look();
    come.disconnect();
    come.observe(document.body, { childList: true });    // a page that is read next comes whole, in place of this one
  });
})();

(() => {
  let colour = __md_get("__palette")?.color;
  if (!colour || colour.media === "(prefers-color-scheme)") {    // nothing chosen, or those of the system
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const data = document.querySelector(`[data-md-color-media="(prefers-color-scheme: ${system})"]`).dataset;
    colour = { media: data.mdColorMedia, scheme: data.mdColorScheme, primary: data.mdColorPrimary, accent: data.mdColorAccent };
  }
  for (const [name, value] of Object.entries(colour)) document.body.setAttribute(`data-md-color-${name}`, value);
})();
