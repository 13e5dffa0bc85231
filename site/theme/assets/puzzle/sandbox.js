// Runs a reader's Python where it can harm nothing: Brython, in a worker, in a frame of opaque origin that has a content policy of its
// own and no network. What takes too long is ended together with its frame; each run gets a fresh one.
const LIMIT_MS = 2000;        // for the reader's code and its checks, and on a slow or busy machine ...
const AS_READY = 5;           // ... so many times as long as Python took to get ready there,
const MOST_MS = 10_000;       // at most
const OPENING_MS = 20_000;    // for the frame and Brython to come
const LONGEST = 400_000;      // characters of an answer
const SCRIPTS = ["before.js", "brython.js", "math.js", "worker.js"];
const at = name => new URL(name, import.meta.url);

export const endless = ms => `Stopped after ${Math.round(ms / 1000)} seconds. Is there a loop that never ends, or a list of millions? Your code is kept.`;
export const LOST = "Stopped: this took more memory than the browser gives, or Python itself failed. Your code is kept.";
const UNREADABLE = "Stopped: what came back is not what a puzzle's judge says. Your code is kept.";
const UNREACHED = "The page's Python could not be loaded. Your code is kept; try again when you are online.";

const kept = new Map();  // what has been fetched, for the next run

async function text(name) {
  if (!kept.has(name)) {
    const answer = await fetch(at(name)).catch(() => null);
    if (!answer?.ok) throw new Error(UNREACHED);
    kept.set(name, await answer.text());
  }
  return kept.get(name);
}

const late = (ms, words) => new Promise((_, reject) => setTimeout(reject, ms, new Error(words)));

const isText = value => typeof value === "string";
const isObject = value => typeof value === "object" && value !== null && !Array.isArray(value);
const isBox = value => Array.isArray(value) && value.length === 4 && value.slice(0, 2).every(Number.isFinite) && value.slice(2).every(isText);
const isLine = value => Array.isArray(value) && value.length === 2 && isText(value[0]) && Array.isArray(value[1]) && value[1].every(isBox);
const isPicture = ({ lines, key, says, unit }) => Array.isArray(lines) && lines.every(isLine) && isObject(key) && isText(says) && isText(unit);
const isDrawn = value => value === null || (isObject(value) && (isObject(value.picture) ? isPicture(value.picture) : isObject(value.set) && isObject(value.give)));

// An answer as judging.tried gives it; an Error with words for the reader where it is none.
export function read(text) {
  let found = null;
  try { found = JSON.parse(text); } catch { /* it is none */ }
  const { right, words, line, printed, drawn } = found ?? {};
  const is = typeof right === "boolean" && isText(words) && Number.isInteger(line) && Array.isArray(printed) && printed.every(isText) && isDrawn(drawn);
  if (!is) throw new Error(UNREADABLE);
  return { right, words, line, printed, drawn };
}

export class Sandbox {
  constructor(place, name) {
    this.place = place;
    this.name = name;
  }

  // What the judge says of this code; an Error whose message is for the reader where it says nothing.
  async run(code, task) {
    this.next ??= this.open();
    const room = this.next;
    this.next = null;
    try {
      const { frame, said, took } = await Promise.race([room, late(OPENING_MS, UNREACHED)]);
      const limit = Math.min(MOST_MS, Math.max(LIMIT_MS, AS_READY * took));
      const answer = said();
      frame.contentWindow.postMessage({ code, task }, "*");
      const { answer: found } = await Promise.race([answer, late(limit, endless(limit))]);
      if (typeof found !== "string" || found.length > LONGEST) throw new Error(LOST);
      return read(found);
    } finally {
      room.then(({ close }) => close(), () => {});
      if (this.place.isConnected) (this.next = this.open()).catch(() => { this.next = null; });
    }
  }

  // A frame whose Python is ready. Its messages carry a secret that the reader's code cannot read.
  async open() {
    const secret = Array.from(crypto.getRandomValues(new Uint32Array(4)), word => word.toString(36)).join("-");
    const puzzle = await text(`puzzles/${this.name}.txt`), texts = await Promise.all(SCRIPTS.map(text));
    const frame = Object.assign(document.createElement("iframe"), { src: at("frame.html"), title: "Python", hidden: true, tabIndex: -1 });
    frame.setAttribute("sandbox", "allow-scripts");
    frame.setAttribute("aria-hidden", "true");
    let tell = null;
    const heard = ({ source, data }) => {
      if (source === frame.contentWindow && (data?.open || data?.secret === secret)) tell?.(data);
    };
    const close = () => { removeEventListener("message", heard); frame.remove(); };
    const said = () => new Promise(resolve => { tell = resolve; });
    addEventListener("message", heard);
    const opened = said();
    let took = 0;
    this.place.append(frame);
    try {
      await Promise.race([opened, late(OPENING_MS, UNREACHED)]);
      const ready = said(), begun = performance.now();
      frame.contentWindow.postMessage({ texts, puzzle, secret }, "*");
      if (!(await Promise.race([ready, late(OPENING_MS, UNREACHED)])).ready) throw new Error(LOST);
      took = performance.now() - begun;
    } catch (error) {
      close();
      throw error;
    }
    return { frame, said, close, took };
  }
}
