/* The home page's map: how many lessons of each part, and of all, this reader has read. progress.js has set the ticks by then. */
(() => {
  "use strict";

  function count() {
    for (const place of document.querySelectorAll("[data-read-count]")) {
      const links = [...place.closest(".map__part, .map").querySelectorAll("a[data-lesson]:has(.map__number)")];
      const read = links.filter((link) => link.hasAttribute("data-read")).length;
      place.textContent = read ? `${read} of ${links.length} read` : "";
    }
  }

  addEventListener("course-kept", count);  // bound once, the script is loaded once
  addEventListener("storage", count);
  document$.subscribe(count);
})();
