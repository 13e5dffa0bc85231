// With Python behind the page: one session and one websocket for all its widgets, over Bokeh's own protocol.
// The session's document holds one model with two properties: `question` (set here) and `answer` (set by Python).

const mark = () => document.querySelector("meta[name=course-server]");
export const isServed = () => mark() !== null;

export class Refused extends Error {}  // the server is there and says no

// By the page's own number a host with several processes keeps its questions with one of them (deploy/nginx/site.conf).
const page = `page=${Math.random().toString(36).slice(2)}`;

const OPENING_MS = 10_000;   // a server that has not opened a session by then is taken for lost
const ANSWER_MS = 40_000;    // and one that has not answered by then; an action alone may take half of it

let link = null;      // a promise of the open session
let attempts = 0;
const waiting = new Map();   // question number -> {resolve, reject}
const listeners = new Map(); // widget id -> told "live" or "lost"
let asked = 0;

const late = ms => new Promise((_, reject) => setTimeout(reject, ms, new Error("no answer in time")));

async function token(base) {
  const answer = await fetch(new URL(`live/token?${page}`, base), { cache: "no-store", signal: AbortSignal.timeout(OPENING_MS) });
  const text = await answer.text();
  if (!answer.ok || !/^[\w.-]{1,4000}$/.test(text)) throw new Error("no token");  // a proxy's page, or a network's that wants a login
  return text;
}

async function open() {
  const base = new URL(mark().content, location.href);
  const address = new URL("live/ws", base);
  address.protocol = address.protocol.replace("http", "ws");
  const { pull_session } = window.Bokeh.require("client/connection");
  const opening = pull_session(address.href, await token(base), page);
  const session = await Promise.race([opening, late(OPENING_MS)]).catch(error => {
    opening.then(close, () => {});
    throw error;
  });
  const model = session.document.roots()[0];
  model.connect(model.properties.answer.change, () => {
    const { number, refused, text, numbers } = model.answer;
    const asker = waiting.get(number);
    waiting.delete(number);
    if (refused === undefined) asker?.resolve(unpacked(text, numbers)); else asker?.reject(new Refused(refused));
  });
  session._connection?.socket?.addEventListener("close", () => lost(session));  // without them a late answer tells (ANSWER_MS)
  attempts = 0;
  for (const tell of listeners.values()) tell("live");
  return { session, model };
}

// Bokeh keeps a list of all documents; that of a session that is over would stay on it.
function close(session) {
  session.over = true;
  session.close();
  const index = window.Bokeh.documents.indexOf(session.document);
  if (index >= 0) window.Bokeh.documents.splice(index, 1);
}

function lost(session) {
  if (session?.over) return;
  if (session) close(session);
  link = null;
  for (const { reject } of waiting.values()) reject(new Error("server lost"));
  waiting.clear();
  for (const tell of listeners.values()) tell("lost");
  if (listeners.size) setTimeout(reconnect, Math.min(8000, 500 * 2 ** attempts++));
}

function reconnect() {
  if (link || !listeners.size) return;
  link = open().catch(error => { lost(null); throw error; });
  link.catch(() => {});
}

async function converse(question) {
  if (!link) reconnect();
  const { session, model } = await link;
  const number = ++asked;
  const answer = new Promise((resolve, reject) => waiting.set(number, { resolve, reject }));
  const patience = setTimeout(lost, ANSWER_MS, session);  // the connection may be dead without anybody having said so
  model.setv({ question: { number, ...question } });
  try { return await answer; } finally { clearTimeout(patience); }
}

// What the widget shows for these values.
export async function askServer(id, widget, values, tell) {
  listeners.set(id, tell);
  return converse({ widget, values: { ...values } });
}

// What one of the widget's actions gave; other questions are answered meanwhile.
export async function actOnServer(widget, action) {
  return converse({ widget, action });
}

// A widget has left the page.
export function forgetAsker(id) {
  listeners.delete(id);
}

// The page has no widgets any more: close the socket.
export async function closeLink() {
  listeners.clear();
  if (!link) return;
  const open = link;
  link = null;
  try {
    close((await open).session);
  } catch { /* it never opened */ }
}

// An answer is a text and one run of numbers: {"$": [start, length]} stands for so many of them, {"$": place} for one.
function unpacked(text, numbers) {
  const column = (start, length) => new Float64Array(numbers.buffer, numbers.byteOffset + 8 * start, length);
  return JSON.parse(text, (_, value) => {
    if (value === null || typeof value !== "object" || !("$" in value)) return value;
    return Array.isArray(value.$) ? column(...value.$) : numbers[value.$];
  });
}
