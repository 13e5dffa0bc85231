/* The shell's scripts, Material's and ours, come once the page's figures are drawn: whoever opens a lesson came for these. They come
   at once where there is no figure, when a reader touches anything, and where the figures take too long. Until then they lie in
   main.html's template, where no browser runs them. */
(() => {
  "use strict";
  const PATIENCE_MS = 3000;
  const signs = ["pointerdown", "keydown", "focusin", "figures-drawn"];
  const scripts = document.querySelector("template[data-shell]").content.querySelectorAll("script");
  const addressOf = script => new URL(script.getAttribute("src"), document.baseURI);
  let waiting;

  function bring() {
    clearTimeout(waiting);
    for (const sign of signs) removeEventListener(sign, bring, true);
    let script;     // the last one
    for (const inert of scripts) {
      script = Object.assign(document.createElement("script"), { src: addressOf(inert), type: inert.type, async: false });
      document.head.append(script);
    }
    script.onload = () => {
      window.document$?.next(document);     // Material waits for the document to be loaded, which it has been for long
      document.documentElement.dataset.shell = "ready";
      dispatchEvent(new Event("shell-ready"));
    };
  }

  if (document.querySelector("figure.widget")) {
    for (const script of scripts) {     // what is wanted next can be fetched meanwhile
      document.head.append(Object.assign(document.createElement("link"), { rel: "prefetch", href: addressOf(script) }));
    }
    waiting = setTimeout(bring, PATIENCE_MS);
    for (const sign of signs) addEventListener(sign, bring, true);
  } else bring();
})();
