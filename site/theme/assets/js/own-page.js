/* Before the first paint of a widget's own page or a deck: its theme, and whether it stands in another site (?embed, ?theme=dark|light). */
(() => {
  "use strict";
  const HOME = new URL("../..", document.currentScript.src);
  const SCHEMES = { dark: "slate", light: "default" };
  const asked = new URLSearchParams(location.search);
  const embedded = asked.has("embed");
  const root = document.documentElement;
  if (embedded) root.dataset.embedded = "";

  // What the reader chose on the course's pages; a page in another site asks its host or the system instead.
  const chosen = () => {
    if (embedded) return null;
    try { return JSON.parse(localStorage.getItem(`${HOME.pathname}.__palette`)).color.scheme; } catch { return null; }
  };
  const own = SCHEMES[asked.get("theme")] ?? chosen();
  const system = matchMedia("(prefers-color-scheme: dark)");
  const wear = () => {
    const scheme = own ?? SCHEMES[system.matches ? "dark" : "light"];
    for (const element of [root, document.body]) if (element) element.dataset.mdColorScheme = scheme;
  };
  wear();
  addEventListener("DOMContentLoaded", wear);
  system.addEventListener("change", wear);
})();
