/* Below each page: its Markdown into the clipboard, and a report that begins with what the reader sees. Without this script the
   first link opens the Markdown, and the second an empty report. */
(() => {
  "use strict";
  const SHOWN_MS = 4000;

  // In the clipboard an address must be whole.
  const whole = (text, from) => text.replace(/(\]\()(?!https?:|mailto:|#)([^)\s]+)(?=\))/g, (_, open, to) => open + new URL(to, from));

  async function copy(link) {
    const said = link.parentElement.querySelector("[data-foot-said]");
    try {
      const answer = await fetch(link.href);
      if (!answer.ok) throw new Error(answer.status);
      await navigator.clipboard.writeText(whole(await answer.text(), link.href));
      said.textContent = "Copied.";
    } catch {
      location.href = link.href;      // then it can be copied by hand
      return;
    }
    setTimeout(() => { said.textContent = ""; }, SHOWN_MS);
  }

  const report = () => [
    `Page: ${location.href}`,         // with the state of each figure that was moved
    `Version: ${document.querySelector('meta[name="course-edition"]')?.content ?? "unknown"}`,
    "", "What it says:", "", "What is right, and by which source:", "",
  ].join("\n");

  document.addEventListener("click", event => {
    const link = event.target.closest?.("[data-copy-page], [data-mistake]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (link.matches("[data-mistake]")) {
      const address = new URL(link.href);
      address.searchParams.set("body", report());
      link.href = address;            // and goes there by itself
      return;
    }
    event.preventDefault();
    event.stopPropagation();          // Material would take it for a page of the course
    copy(link);
  }, true);
})();
