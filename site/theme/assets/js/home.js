/* The home page: the opening played from its first to its last stop, what a tile's lesson needs, and how many lessons of each part
   this reader has read. progress.js has set the ticks by then. */
(() => {
  "use strict";

  const PAUSE_MS = 1100;  // at each stop, so that its sentence can be read

  // A button beside the slider, for those to whom motion is welcome; any touch of the slider ends it.
  function offerToPlay(slider) {
    const row = slider.closest(".control"), button = document.createElement("button");
    let playing = 0;
    const say = () => {
      button.dataset.play = playing ? "pause" : "play";
      button.setAttribute("aria-label", playing ? "Pause" : "Play: double the GPUs from 1 on");
    };
    const halt = () => { clearInterval(playing); playing = 0; say(); };
    const go = (stop) => {
      slider.value = stop;
      slider.dispatchEvent(new Event("change", { bubbles: true }));
    };
    const step = () => {
      if (!slider.isConnected || slider.value === slider.max) return halt();
      go(slider.valueAsNumber + 1);
    };
    button.type = "button";
    button.className = "control-button opening-play";
    button.addEventListener("click", () => {
      if (playing) return halt();
      go(0);
      playing = setInterval(step, PAUSE_MS);
      say();
    });
    for (const hand of ["pointerdown", "keydown"]) slider.addEventListener(hand, halt);
    say();
    row.append(button);
  }

  // Who points at a tile sees which ones come before it.
  function showNeeds(map) {
    const tiles = [...map.querySelectorAll("a[data-needs]")];
    for (const tile of tiles) {
      const needed = tiles.filter((other) => tile.dataset.needs.split(" ").includes(other.dataset.lesson));
      const mark = (on) => needed.forEach((other) => other.classList.toggle("needed", on));
      for (const came of ["pointerenter", "focus"]) tile.addEventListener(came, () => mark(true));
      for (const left of ["pointerleave", "blur"]) tile.addEventListener(left, () => mark(false));
    }
  }

  function count() {
    for (const place of document.querySelectorAll("[data-read-count]")) {
      const links = [...place.closest(".map__part, .map").querySelectorAll("a[data-lesson]")];
      const read = links.filter((link) => link.hasAttribute("data-read")).length;
      place.textContent = read ? `${read} of ${links.length} read` : "";
    }
  }

  function arrive() {
    count();
    const slider = document.querySelector(".opening input[type=range]"), map = document.querySelector(".map");
    const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (slider && !isCalm && !slider.closest(".control").querySelector(".opening-play")) offerToPlay(slider);
    if (map) showNeeds(map);
  }

  addEventListener("course-kept", count);  // bound once, the script is loaded once
  addEventListener("storage", count);
  document$.subscribe(arrive);
})();
