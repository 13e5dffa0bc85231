/* Runs before everything else. A browser may forbid storage, and anything may stand in it; Material reads it unguarded. */
(() => {
  "use strict";
  const isJson = (text) => { try { JSON.parse(text); return true; } catch { return false; } };
  const nothing = {
    getItem: () => null,
    setItem() { throw new DOMException("this browser keeps nothing", "SecurityError"); },
    removeItem() {},
    clear() {},
    key: () => null,
    length: 0,
  };

  for (const name of ["localStorage", "sessionStorage"]) {
    try {
      const theirs = Object.keys(window[name]).filter((key) => /\.__\w+$/.test(key));  // Material's: the theme, say
      for (const key of theirs) if (!isJson(window[name].getItem(key))) window[name].removeItem(key);
    } catch {
      Object.defineProperty(window, name, { value: nothing, configurable: true });
    }
  }
})();
