// With Python behind the page: one session and one websocket for all its widgets, over Bokeh's own protocol.
// The session's document holds one model with two properties: `question` (set here) and `answer` (set by Python).

const mark = () => document.querySelector("meta[name=course-server]");
export const isServed = () => mark() !== null;

export class Refused extends Error {}  // the server is there and says no

let link = null;      // a promise of the open session
let attempts = 0;
const waiting = new Map();   // question number -> {resolve, reject}
const listeners = new Map(); // widget id -> told "live" or "lost"
let asked = 0;

async function open() {
  const base = new URL(mark().content, location.href);
  const token = await (await fetch(new URL("live/token", base), { cache: "no-store" })).text();
  const address = new URL("live/ws", base);
  address.protocol = address.protocol.replace("http", "ws");
  const { pull_session } = window.Bokeh.require("client/connection");
  const session = await pull_session(address.href, token, "");
  const model = session.document.roots()[0];
  model.connect(model.properties.answer.change, () => {
    const { number, refused, ...answer } = model.answer;
    const asker = waiting.get(number);
    waiting.delete(number);
    if (refused === undefined) asker?.resolve(answer); else asker?.reject(new Refused(refused));
  });
  session._connection.socket.addEventListener("close", () => lost(session));
  attempts = 0;
  for (const tell of listeners.values()) tell("live");
  return { session, model };
}

// Bokeh keeps a list of all documents; that of a session that is over would stay on it.
function unlist(session) {
  const index = window.Bokeh.documents.indexOf(session?.document);
  if (index >= 0) window.Bokeh.documents.splice(index, 1);
}

function lost(session) {
  unlist(session);
  if (session && session.closing) return;
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
  const { model } = await link;
  const number = ++asked;
  const answer = new Promise((resolve, reject) => waiting.set(number, { resolve, reject }));
  model.setv({ question: { number, ...question } });
  return plain(await answer);
}

// What the widget shows for these values.
export async function askServer(id, widget, values, tell) {
  listeners.set(id, tell);
  return (await converse({ widget, values: { ...values } })).shown;
}

// What one of the widget's actions gave; other questions are answered meanwhile.
export async function actOnServer(widget, action) {
  return (await converse({ widget, action })).acted;
}

// The page has no widgets any more: close the socket.
export async function closeLink() {
  listeners.clear();
  if (!link) return;
  const open = link;
  link = null;
  try {
    const { session } = await open;
    session.closing = true;
    session.close();
    unlist(session);
  } catch { /* it never opened */ }
}

// Bokeh hands nested dicts over as Maps.
function plain(value) {
  if (value instanceof Map) return Object.fromEntries([...value].map(([key, inner]) => [key, plain(inner)]));
  if (Array.isArray(value)) return value.map(plain);
  if (value && Object.getPrototypeOf(value) === Object.prototype) {
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
  }
  return value;
}
