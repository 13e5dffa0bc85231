/* The shell's own script: how a number was computed, names. Runs after each instant navigation. */
(() => {
  "use strict";

  // A widget that has not even begun after some seconds never will: say so where it stands.
  const PATIENCE_MS = 8000;
  function watchWidgets() {
    setTimeout(() => {
      for (const note of document.querySelectorAll('figure.widget[data-state="still"] [data-note]')) {
        if (!note.hidden) continue;
        note.textContent = "This figure's script could not be loaded, so it does not move. Its numbers are those of its first state.";
        note.hidden = false;
        note.closest("figure").dataset.noted = "";
      }
    }, PATIENCE_MS);
  }

  // One tooltip for all computed numbers, placed beside the number and within the page's width.
  function explainNumbers() {
    document.getElementById("n-how")?.remove();
    const how = Object.assign(document.createElement("div"), { id: "n-how", className: "n-how", hidden: true });
    how.setAttribute("role", "tooltip");
    document.body.append(how);
    let shown = null;

    const said = words => Object.assign(document.createElement("p"), { textContent: `Computed by the engine. Here ${words}.` });
    const hide = () => { how.hidden = true; shown?.removeAttribute("aria-describedby"); shown = null; };
    const show = (number) => {
      if (number === shown) return;
      hide();
      shown = number;
      how.replaceChildren(...(number.dataset.says ? [said(number.dataset.says)] : []), number.dataset.expr);
      how.hidden = false;
      number.setAttribute("aria-describedby", how.id);
      const at = number.getBoundingClientRect();
      const left = Math.min(at.left, document.documentElement.clientWidth - how.offsetWidth - 12);
      const above = at.bottom + how.offsetHeight + 8 > innerHeight;
      how.style.left = `${Math.max(12, left) + scrollX}px`;
      how.style.top = `${(above ? at.top - how.offsetHeight - 6 : at.bottom + 6) + scrollY}px`;
    };
    for (const number of document.querySelectorAll("[data-expr]")) {
      number.addEventListener("pointerenter", () => show(number));
      number.addEventListener("focus", () => show(number));
      number.addEventListener("pointerleave", () => { if (document.activeElement !== number) hide(); });
      number.addEventListener("blur", hide);
      number.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
    }
  }

  // What scrolls sideways can be scrolled by keyboard too.
  function reachScrollers() {
    for (const box of document.querySelectorAll(".md-typeset .math, .md-typeset__scrollwrap, .md-typeset pre > code")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    }
  }

  // Names for screen readers that Material leaves out or gives twice.
  function nameLandmarks() {
    document.querySelector(".md-search")?.setAttribute("aria-label", "Search");
    document.querySelector(".md-path")?.setAttribute("aria-label", "Breadcrumbs");
    document.querySelectorAll(".md-code__nav").forEach((nav, i) => nav.setAttribute("aria-label", `Code ${i + 1}`));
  }

  // An address whose place is on another page now leads there, with the state of its figures.
  function followMoved() {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (place?.dataset.moved === undefined) return;
    const there = new URL(place.href);
    there.search = location.search;
    location.replace(there);
  }

  document$.subscribe(() => {
    followMoved();
    nameLandmarks();
    watchWidgets();
    explainNumbers();
    reachScrollers();
  });
})();
