/* The shell's own script: how a number was computed, filters, names. Runs after each instant navigation. */
(() => {
  "use strict";

  // -- a field that leaves in sight what holds its words ------------------------------------------------------------------
  const beginsWord = (phrase) => new RegExp(`(?<![\\p{L}\\d])${phrase.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/\s+/g, "\\s+")}`, "u");
  const withoutEnding = (word) => word.replace(/(?<=\p{L}{3})(?:(?<=\p{L}{4})ing|(?<!s)s)$/u, "");

  // What is typed -> for each word, or known phrase, the ways of saying it; a word that tells nothing is left out.
  function terms(text, synonyms, idle) {
    const known = new Map(synonyms.flatMap(([typed, meant]) => typed.map((phrase) => [phrase, [...typed, ...meant]])));
    const words = text.toLowerCase().match(/[\p{L}\d_]+(?:[-./][\p{L}\d_]+)*/gu) ?? [];
    const found = [];
    while (words.length) {
      const most = words.findLastIndex((_, i) => known.has(words.slice(0, i + 1).join(" "))) + 1;
      const phrase = words.splice(0, most || 1).join(" ");
      if (most || !idle.includes(phrase)) found.push([withoutEnding(phrase), ...(known.get(phrase) ?? known.get(withoutEnding(phrase)) ?? [])]);
    }
    return found.map((ways) => ways.map(beginsWord));
  }

  function told(asked, most, left, all) {
    if (!asked) return "";
    if (!most) return asked === 1 ? "None says this. Try another word for it." : "None says any of these. Try another word for it.";
    return most === asked ? `${left} of ${all}` : `None says all of these; ${left} of ${all} say some.`;
  }

  // Where nothing holds all of the words, what holds the most of them is left; so are the sections that have any of it.
  function watchFilter() {
    const field = document.querySelector("[data-filter]");
    if (!field) return;
    const synonyms = JSON.parse(field.dataset.synonyms), idle = JSON.parse(field.dataset.idle);
    const entries = [...document.querySelectorAll(field.dataset.filter)];
    const texts = entries.map((entry) => entry.textContent.toLowerCase());
    field.addEventListener("input", () => {
      const asked = terms(field.value, synonyms, idle);
      const held = texts.map((text) => asked.filter((ways) => ways.some((way) => way.test(text))).length);
      const most = Math.max(...held);
      entries.forEach((entry, i) => { entry.hidden = held[i] < most || (asked.length > 0 && !most); });
      for (const section of new Set(entries.map((entry) => entry.closest("section")))) {
        section.hidden = entries.every((entry) => entry.hidden || entry.closest("section") !== section);
      }
      const left = entries.filter((entry) => !entry.hidden).length;
      document.querySelector("[data-filter-count]").textContent = told(asked.length, most, left, entries.length);
    });
  }

  // A widget that has not even begun after some seconds never will: say so where it stands.
  const PATIENCE_MS = 8000;
  function watchWidgets() {
    setTimeout(() => {
      for (const note of document.querySelectorAll('figure.widget[data-state="still"] [data-note]')) {
        if (!note.hidden) continue;
        note.textContent = "This figure's script could not be loaded, so it does not move. Its numbers are those of its first state.";
        note.hidden = false;
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

    const hide = () => { how.hidden = true; shown?.removeAttribute("aria-describedby"); shown = null; };
    const show = (number) => {
      if (number === shown) return;
      hide();
      shown = number;
      how.textContent = number.dataset.expr;
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

  document$.subscribe(() => {
    nameLandmarks();
    watchFilter();
    watchWidgets();
    explainNumbers();
    reachScrollers();
  });
})();
