/* The index of the search is a quarter of a first visit's bytes, and most visits search nothing. Material asks for it at once;
   here its request waits until a reader goes to the search. A pasted log is cut, what people type is said in the course's words
   (spoken.js), and where nothing is found, words that differ in a letter are tried. Loaded before Material's own script. */
(() => {
  const LONGEST = 200;       // characters: no question is longer, and Material would look for every word of it
  addEventListener("input", ({ target }) => {
    if (!target.matches?.(".md-search__input")) return;
    const output = document.querySelector(".md-search__output");
    const line = output.querySelector(".search-said") ?? Object.assign(document.createElement("p"), { className: "search-said" });
    line.setAttribute("role", "status");
    if (!line.isConnected) output.prepend(line);
    const long = target.value.length > LONGEST;
    if (long) target.value = target.value.slice(0, LONGEST);
    const ours = said(target.value);
    line.textContent = long ? `Only the first ${LONGEST} characters are searched for; the page Symptoms reads whole error messages.`
      : ours !== target.value ? `Searched for: ${ours}` : "";
  }, true);                 // before Material reads it

  const QUERY = 2, RESULT = 3;              // kinds of messages between Material and the thread that searches
  const LEAST = 5;          // letters of a word of which one may be wrong
  const near = query => query.split(/\s+/).map(word => /^[\p{L}\p{N}]+$/u.test(word) && word.length >= LEAST ? `${word}~1` : word).join(" ");
  const listened = new WeakSet(), post = Worker.prototype.postMessage;
  let asked = "";
  Worker.prototype.postMessage = function (message, ...more) {
    const { type, data } = message ?? {}, typed = data?.input ?? data;
    if (type !== QUERY || typeof typed !== "string") return post.call(this, message, ...more);
    asked = said(typed.slice(0, LONGEST));
    if (typed !== data) return post.call(this, { ...message, data: { ...data, input: asked } }, ...more);    // Zensical's
    if (!listened.has(this)) {
      listened.add(this);
      this.addEventListener("message", ({ data }) => {
        if (data?.type !== RESULT || data.data.items.length || !asked || near(asked) === asked) return;
        const query = near(asked);
        asked = "";                         // once
        post.call(this, { type: QUERY, data: query });
      });
    }
    return post.call(this, { ...message, data: asked }, ...more);
  };

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
