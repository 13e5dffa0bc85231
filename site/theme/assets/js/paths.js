/* Reading paths: a path that was taken on the page of paths is kept in this browser, and each page on it says where the reader
   is and what comes next. A path is a list on that page; nothing else knows what is on it. */
(() => {
  "use strict";

  const KEY = "course.path";  // {key, name, steps: [{url, title, why}], at, seen}; addresses are relative to the home page

  const isPath = (path) => path && typeof path.name === "string" && Array.isArray(path.steps) && path.steps.length > 0
    && Array.isArray(path.seen) && path.steps.every((step) => typeof step.url === "string" && typeof step.title === "string");

  function kept() {
    try {
      const path = JSON.parse(localStorage.getItem(KEY));
      return isPath(path) ? path : null;
    } catch { return null; }
  }

  function keep(path) {
    try { localStorage.setItem(KEY, JSON.stringify(path)); } catch { /* without storage there are no paths, only lists */ }
  }

  function leave() {
    try { localStorage.removeItem(KEY); } catch { /* nothing was kept */ }
    show();
  }

  const home = () => document.querySelector(".md-header a.md-logo").href.replace(/index\.html$/, "");
  const place = (href) => new URL(href).pathname.replace(/index\.html$/, "");
  const addressOf = (step) => {
    const address = new URL(step.url, home());
    return address.origin === location.origin ? address.href : home();  // what is kept may be anybody's
  };

  function element(name, attributes = {}, ...children) {
    const made = Object.assign(document.createElement(name), attributes);
    made.append(...children);
    return made;
  }

  /* The step that this page is: the one with its anchor, else the one that was gone to, else the first on this page. */
  function stepHere(path) {
    const here = path.steps.map((_, i) => i).filter((i) => place(addressOf(path.steps[i])) === place(location.href));
    const exact = here.find((i) => location.hash && new URL(addressOf(path.steps[i])).hash === location.hash);
    return exact ?? (here.includes(path.at) ? path.at : here[0] ?? -1);
  }

  function linkTo(path, i, words) {
    const link = element("a", { href: addressOf(path.steps[i]) }, words ?? path.steps[i].title);
    link.addEventListener("click", () => keep({ ...path, at: i }));
    return link;
  }

  const button = (words, act) => {
    const made = element("button", { type: "button" }, words);
    made.addEventListener("click", act);
    return made;
  };
  const counted = (path, i) => `step ${i + 1} of ${path.steps.length}`;

  /* The slim line: a second row of the header, which all that reckons with the header's height then reckons with too. */
  function slimLine(path, ...leads) {
    const leaving = button("Leave", leave);
    leaving.append(element("span", { className: "path-line__rest" }, " the path"));
    return element("p", { className: "path-line md-grid" }, element("span", { className: "path-line__name" }, `Your path: ${path.name}, `),
      ...leads, leaving);
  }

  const lead = (...children) => element("span", { className: "path-line__lead" }, ...children);
  const lineOnStep = (path, i) => slimLine(path, element("span", {}, counted(path, i)),
    i === path.steps.length - 1 ? lead("the last one") : lead("Next: ", linkTo(path, i + 1)));

  /* The box at the page's end. */
  function boxBelow(path, i) {
    const next = path.steps[i + 1];
    const box = element("nav", { className: "path-next" }, element("p", {}, `Your path: ${path.name}, ${counted(path, i)}`));
    box.setAttribute("aria-label", "Your path");
    if (next) {
      box.append(element("p", { className: "path-next__link" }, "Next: ", linkTo(path, i + 1)), element("p", {}, next.why ?? ""),
        button("Leave the path", leave));
    } else {
      box.append(element("p", {}, "That was its last step. ", element("a", { href: new URL("paths/", home()).href }, "Other paths")),
        button("Finish the path", leave));
    }
    return box;
  }

  /* On a page that has no step of it: a way back. */
  function wayBack(path) {
    const at = Math.min(path.at ?? 0, path.steps.length - 1);
    return slimLine(path, lead(`Go on with ${counted(path, at)}: `, linkTo(path, at)));
  }

  /* A path from its list on the page. */
  function fromList(list) {
    const steps = [...list.querySelectorAll("ol > li")].map((item) => {
      const link = item.querySelector("a");
      return { url: link.href.slice(home().length), title: link.textContent.replace(/\s+/g, " ").trim(),
               why: item.querySelector(".path__why")?.textContent.trim() };
    });
    return { key: list.dataset.path, name: list.dataset.name, steps, at: 0, seen: [] };
  }

  function take(list) {
    const path = fromList(list);
    const unread = [...list.querySelectorAll("ol > li > a")].findIndex((link) => !link.hasAttribute("data-read"));
    path.at = list.closest(".chains") ? Math.max(unread, 0) : 0;    // a chain begins with the first lesson not read yet
    keep(path);
    location.href = addressOf(path.steps[path.at]);
  }

  /* Under each list on the page of paths: take it, or where you are on it; and ticks at the steps that were seen. */
  function showLists(path) {
    for (const list of document.querySelectorAll("[data-path]")) {
      list.querySelector(".path__take")?.remove();
      const taken = path?.key === list.dataset.path;
      list.querySelectorAll("ol > li").forEach((item, i) => item.toggleAttribute("data-seen", taken && path.seen.includes(i)));
      const about = element("p", { className: "path__take" });
      if (taken) about.append(`You are on this path, at ${counted(path, path.at)}. `, linkTo(path, path.at, "Go on"), " ", button("Leave the path", leave));
      else about.append(button("Take this path", () => take(list)));
      list.append(about);
      if (taken || location.hash === `#${list.id}`) list.open = true;
    }
  }

  /* One chain of lessons at a time, by a list to choose from; without a script all of them can be opened. */
  function chooseChain(path) {
    const chains = document.querySelector("div.chains");
    if (!chains || chains.querySelector("select")) return;
    const lists = [...chains.querySelectorAll("[data-path]")];
    const select = element("select", { id: "chain" }, ...lists.map((list) =>
      element("option", { value: list.dataset.path }, list.dataset.name.replace(/^To /, ""))));
    const choose = () => {
      for (const list of lists) list.hidden = !(list.open = list.dataset.path === select.value);   // its summary goes too
    };
    const asked = [location.hash.slice(1), path?.key, "to-10"];
    select.value = asked.find((key) => lists.some((list) => list.dataset.path === key)) ?? lists[0].dataset.path;
    select.addEventListener("change", choose);
    chains.prepend(element("p", { className: "chains__choose" }, element("label", { htmlFor: "chain" }, "I want to reach "), select));
    choose();
  }

  function show() {
    for (const old of document.querySelectorAll(".path-line, .path-next")) old.remove();
    const path = kept(), article = document.querySelector("article.md-content__inner"), header = document.querySelector(".md-header");
    chooseChain(path);
    if (path && article) {
      const i = stepHere(path);
      if (i >= 0) {
        path.at = i;
        if (!path.seen.includes(i)) path.seen.push(i);
        keep(path);
        header.append(lineOnStep(path, i));
        article.append(boxBelow(path, i));
      } else header.append(wayBack(path));
    }
    document.documentElement.toggleAttribute("data-on-path", Boolean(header.querySelector(".path-line")));
    showLists(path);
  }

  // The line above pushes the page down: whoever came for a place on it is brought there again.
  function arrive() {
    show();
    const sought = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (sought && document.querySelector(".path-line")) sought.scrollIntoView();
  }

  addEventListener("hashchange", show);   // a step further on the same page; bound once, the script is loaded once
  addEventListener("course-kept", () => kept() ?? show());    // progress was cleared
  document$.subscribe(arrive);
})();
