// What is wider than the text reaches under the list of contents in the right margin: figures, and tables that tables.js has found to
// need it. The list gives way while one of them stands beside it.
const REACHING = "figure.widget, [data-reaches]";
let watch = null;

export function yieldToWide() {
  watch?.disconnect();
  const list = document.querySelector(".md-sidebar--secondary"), entries = list?.querySelector(".md-nav");
  if (!entries) return;
  const { top, bottom } = entries.getBoundingClientRect(), beside = new Set();
  list.removeAttribute("data-yields");
  watch = new IntersectionObserver(seen => {
    for (const { isIntersecting, target } of seen) beside[isIntersecting ? "add" : "delete"](target);
    list.toggleAttribute("data-yields", beside.size > 0);
  }, { rootMargin: `${-Math.max(0, top)}px 0px ${Math.min(0, bottom - innerHeight)}px` });
  for (const wide of document.querySelectorAll(REACHING)) watch.observe(wide);
}

addEventListener("tables-fitted", yieldToWide);
