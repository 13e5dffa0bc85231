/* For the page that is shown where there is none (404.html): where this script was found, the site begins two folders up. */
(() => {
  "use strict";
  const home = new URL("../..", document.currentScript.src);
  for (const link of document.querySelectorAll("[data-from-home]")) link.href = new URL(link.dataset.fromHome, home);
})();
