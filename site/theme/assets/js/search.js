/* The index of the search is a quarter of a first visit's bytes, and most visits search nothing. Material asks for it at once;
   here its request waits until a reader goes to the search. Loaded before Material's own script. */
(() => {
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
