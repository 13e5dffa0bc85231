/* Runs before everything else: the one place that knows what this browser may keep for the course. A browser may forbid storage; an
   older version, another program or a curious reader may have written anything. What does not fit the schema is dropped here, before
   any script asks for it, and again when another tab writes it. */
(() => {
  "use strict";
  const MOST = 20_000, SHORT = 200;  // characters of a program, and of anything else that is typed

  const parsed = (text) => { try { return JSON.parse(text); } catch { return undefined; } };
  const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
  const isShort = (value) => typeof value === "string" && value.length <= SHORT;
  const isNumber = (text) => text.trim() !== "" && Number.isFinite(Number(text));
  const listOf = (fits) => (value) => Array.isArray(value) && value.every(fits);
  const one = (...words) => (text) => words.includes(text);
  const json = (fits) => (text) => text.length <= MOST && fits(parsed(text));
  const isStep = (step) => isObject(step) && isShort(step.url) && typeof step.title === "string";
  const isPath = (path) => isObject(path) && typeof path.name === "string" && listOf(isStep)(path.steps) && path.steps.length > 0
    && Array.isArray(path.seen);
  const isResult = (paper) => isObject(paper) && (paper.seen === true || Number.isFinite(paper.points)) && Number.isFinite(paper.of);

  // course.NAME, or course.NAME.what: what may be kept under it, as text.
  const OURS = {
    read: json(listOf(isShort)),
    predict: one("on", "off"),
    predicted: (text) => isShort(text) && isNumber(text),
    skipped: one("yes"),
    first: (text) => text === "right" || text === "other" || (isShort(text) && Number(text) > 0 && isNumber(text)),
    broke: one("yes"),
    won: one("yes"),
    shown: one("yes"),
    solved: one("yes"),
    dots: one("yes", "no"),
    answer: isShort,
    puzzle: (text) => text.length <= MOST,
    path: json(isPath),
    exam: json(isResult),
  };
  // PATH.__NAME: what Material keeps, which reads it unguarded.
  const THEIRS = {
    palette: (value) => isObject(value) && isObject(value.color) && ["media", "scheme", "primary", "accent"].every((name) => isShort(value.color[name]))
      && (value.index === undefined || Number.isInteger(value.index)),
    tabs: listOf(isShort),
    announce: Number.isFinite,
    consent: isObject,
  };

  const fits = (key, text) => {
    const [, ours] = key.match(/^course\.(\w+)(\.|$)/) ?? [], [, theirs] = key.match(/\.__(\w+)$/) ?? [];
    if (ours && Object.hasOwn(OURS, ours)) return OURS[ours](text);
    if (!theirs) return true;  // nobody here reads it
    const value = parsed(text);
    return value !== undefined && (Object.hasOwn(THEIRS, theirs) ? THEIRS[theirs](value) : true);
  };

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
      const store = window[name];
      for (const key of Object.keys(store)) if (!fits(key, store.getItem(key))) store.removeItem(key);
    } catch {
      Object.defineProperty(window, name, { value: nothing, configurable: true });
    }
  }
  addEventListener("storage", ({ key, newValue, storageArea }) => {
    if (key !== null && newValue !== null && !fits(key, newValue)) storageArea?.removeItem(key);
  });
})();
