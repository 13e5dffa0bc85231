/* A deck: one slide at a time, by keys, by buttons or by a finger. What a slide keeps back comes with the first step forward, the
   next slide with the second, so that a presenter's remote needs one key. A figure lives only while its slide is seen. */
(() => {
  "use strict";

  const FORWARD = ["ArrowRight", "ArrowDown", "PageDown", " ", "Enter"], BACK = ["ArrowLeft", "ArrowUp", "PageUp", "Backspace"];
  const TAKES_KEYS = "input, select, textarea, summary, [role=slider]";   // of a figure: arrows and space are theirs while they have the focus
  const PRESSED = "a, button";                                            // space and Enter are theirs
  const SWIPE_PX = 60, PHONE_PX = 720;
  const SMALLEST = 0.66, STEP = 0.03;                                     // of a slide's words

  const { body } = document;
  const slides = [...document.querySelectorAll(".slide")];
  const find = (name) => document.querySelector(`[data-${name}]`);
  let at = -1;

  const keepsBack = (slide) => slide.querySelector("[data-reveal]") && !("revealed" in slide.dataset);

  // -- figures ---------------------------------------------------------------------------------------------------------
  function bringFigure(slide) {
    const place = slide.querySelector("[data-live]");
    if (!place || place.firstChild) return;
    const address = new URL(place.dataset.live, location);
    address.search = `?present${address.search.replace("?", "&")}`;
    const frame = Object.assign(document.createElement("iframe"), { src: address.href, title: place.dataset.title, allow: "fullscreen" });
    frame.addEventListener("load", () => {
      frame.contentDocument.documentElement.dataset.ofADeck = "";
      frame.contentWindow.addEventListener("keydown", key, { capture: true });
    });
    place.append(frame);
  }

  const takeFigure = (slide) => slide.querySelector("[data-live]")?.replaceChildren();

  // -- sizes -----------------------------------------------------------------------------------------------------------
  // A slide with more words than most has them a little smaller, down to SMALLEST; beyond that it scrolls.
  function fit(slide, name = "--fit") {
    for (let size = 1; size >= SMALLEST; size -= STEP) {
      slide.style.setProperty(name, size);
      if (slide.scrollHeight <= slide.clientHeight + 1) return;
    }
  }

  const fitShown = () => { if (innerWidth > PHONE_PX && !slides[at].matches(".figure")) fit(slides[at]); else slides[at].style.removeProperty("--fit"); };

  function fitToPaper() {
    body.dataset.measured = "";
    for (const slide of slides) if (!slide.matches(".figure")) fit(slide, "--fit-paper");
    delete body.dataset.measured;
  }

  // -- steps -----------------------------------------------------------------------------------------------------------
  function show(index) {
    const next = Math.max(0, Math.min(slides.length - 1, index));
    if (next === at) return;
    slides.forEach((slide, i) => {
      slide.toggleAttribute("data-shown", i === next);
      if (i !== next) takeFigure(slide);
    });
    at = next;
    bringFigure(slides[at]);
    fitShown();
    slides[at].scrollTop = 0;
    find("count").textContent = `${at + 1} / ${slides.length}`;
    find("back").disabled = at === 0;
    find("next").disabled = at === slides.length - 1 && !keepsBack(slides[at]);
    try { history.replaceState(null, "", `#${at + 1}`); } catch { /* some browsers count these */ }
  }

  function forward() {
    if (!keepsBack(slides[at])) return show(at + 1);
    slides[at].dataset.revealed = "";
    find("next").disabled = at === slides.length - 1;
    slides[at].querySelector("[data-reveal]").scrollIntoView({ block: "nearest" });
  }

  const asked = () => Number(location.hash.slice(1)) - 1 || 0;

  // -- keys, buttons, fingers --------------------------------------------------------------------------------------------
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const on = event.target.closest?.(TAKES_KEYS), presses = event.target.closest?.(PRESSED) && [" ", "Enter"].includes(event.key);
    if ((on && !event.key.startsWith("Page")) || presses) return;
    const act = FORWARD.includes(event.key) ? (event.shiftKey ? () => show(at - 1) : forward) : BACK.includes(event.key) ? () => show(at - 1)
      : { Home: () => show(0), End: () => show(slides.length - 1), n: notes, f: full, p: full, Escape: leave }[event.key];
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  function notes() {
    const on = body.toggleAttribute("data-with-notes");
    find("notes").setAttribute("aria-pressed", String(on));
    fitShown();
  }

  // Where a browser forbids the whole screen, the window is filled.
  async function full() {
    if (body.hasAttribute("data-presenting")) return leave();
    body.toggleAttribute("data-presenting", true);
    find("full").textContent = "Leave";
    try { await document.documentElement.requestFullscreen?.(); } catch { /* the window, then */ }
  }

  function leave() {
    if (document.fullscreenElement) document.exitFullscreen();
    body.toggleAttribute("data-presenting", false);
    find("full").textContent = "Present";
  }

  function bindFingers() {
    let from = null;
    addEventListener("touchstart", ({ touches, target }) => {
      from = touches.length === 1 && !target.closest("[data-live], button") ? touches[0] : null;
    }, { passive: true });
    addEventListener("touchend", ({ changedTouches: [to] }) => {
      if (!from) return;
      const right = to.clientX - from.clientX, down = to.clientY - from.clientY;
      if (Math.abs(right) > SWIPE_PX && Math.abs(right) > 2 * Math.abs(down)) right < 0 ? forward() : show(at - 1);
      from = null;
    }, { passive: true });
  }

  body.toggleAttribute("data-stepped", true);
  addEventListener("keydown", key);
  addEventListener("resize", fitShown);
  addEventListener("beforeprint", fitToPaper);
  document.fonts.ready.then(fitShown);
  addEventListener("hashchange", () => show(asked()));
  document.addEventListener("fullscreenchange", () => { if (!document.fullscreenElement) leave(); });
  find("back").addEventListener("click", () => show(at - 1));
  find("next").addEventListener("click", forward);
  find("notes").addEventListener("click", notes);
  find("full").addEventListener("click", full);
  bindFingers();
  show(asked());
})();
