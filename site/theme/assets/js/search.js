/* The index of the search is a quarter of a first visit's bytes, and most visits search nothing. Material asks for it at once;
   here its request waits until a reader goes to the search. And a pasted log is cut, which is said. Loaded before Material's own
   script. */
(() => {
  const LONGEST = 200;       // characters: no question is longer, and Material would look for every word of it
  addEventListener("input", ({ target }) => {
    if (!target.matches?.(".md-search__input")) return;
    const output = document.querySelector(".md-search__output");
    const said = output.querySelector(".search-said") ?? Object.assign(document.createElement("p"), { className: "search-said" });
    said.setAttribute("role", "status");
    if (!said.isConnected) output.prepend(said);
    const long = target.value.length > LONGEST;
    if (long) target.value = target.value.slice(0, LONGEST);
    said.textContent = long ? `Only the first ${LONGEST} characters are searched for; the page Symptoms reads whole error messages.` : "";
  }, true);                 // before Material reads it

  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, address, ...more) {
    open.call(this, method, address, ...more);
    if (!String(address).endsWith("/search/search_index.json")) return;
    XMLHttpRequest.prototype.open = open;       // it is asked for once
    this.send = () => {
      const go = event => {
        if (!event.target.closest?.(".md-search, [for=__search]")) return;
        for (const kind of ["focusin", "pointerover"]) removeEventListener(kind, go);
        XMLHttpRequest.prototype.send.call(this);
      };
      for (const kind of ["focusin", "pointerover"]) addEventListener(kind, go);
      if (document.activeElement) go({ target: document.activeElement });     // an address with ?q= goes there by itself
    };
  };
})();
