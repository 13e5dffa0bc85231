/* The shell's scripts, Material's and ours, come once the page's figures are drawn: whoever opens a lesson came for these. They come
   at once where there is no figure, when a reader touches anything, and where the figures take too long. In main.html's order. */
(() => {
  "use strict";
  const PATIENCE_MS = 3000;
  const signs = ["pointerdown", "keydown", "focusin", "figures-drawn"];
  let waiting;

  function bring() {
    clearTimeout(waiting);
    for (const sign of signs) removeEventListener(sign, bring, true);
    let script;
    for (const { href, dataset } of document.querySelectorAll("link[data-shell]")) {
      script = Object.assign(document.createElement("script"), { src: href, type: dataset.shell, async: false });
      document.head.append(script);
    }
    script.onload = () => {
      window.document$?.next(document);     // Material waits for the document to be loaded, which it has been for long
      document.documentElement.dataset.shell = "ready";
      dispatchEvent(new Event("shell-ready"));
    };
  }

  if (document.querySelector("figure.widget")) {
    waiting = setTimeout(bring, PATIENCE_MS);
    for (const sign of signs) addEventListener(sign, bring, true);
  } else bring();
})();
