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

(() => {
  let colour = __md_get("__palette")?.color;
  if (!colour || colour.media === "(prefers-color-scheme)") {    // nothing chosen, or those of the system
    const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    const data = document.querySelector(`[data-md-color-media="(prefers-color-scheme: ${system})"]`).dataset;
    colour = { media: data.mdColorMedia, scheme: data.mdColorScheme, primary: data.mdColorPrimary, accent: data.mdColorAccent };
  }
  for (const [name, value] of Object.entries(colour)) document.body.setAttribute(`data-md-color-${name}`, value);
})();
