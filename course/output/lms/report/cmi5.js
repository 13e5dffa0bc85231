// The first script of a lesson's page in a cmi5 package: it takes the learning system's address out of the launch, and sends there, and
// nowhere else, what the learner does.
import { keepApart } from "./learner.js";
import { watch } from "./watch.js";

const VERSION = "1.0.3";
const VERBS = Object.fromEntries(["initialized", "answered", "completed", "passed", "terminated"].map(name =>
  [name, { id: `http://adlnet.gov/expapi/verbs/${name}`, display: { en: name } }]));
const CATEGORY = "https://w3id.org/xapi/cmi5/context/categories/";
const MASTERY = "https://w3id.org/xapi/cmi5/context/extensions/masteryscore";
const INTERACTION = "http://adlnet.gov/expapi/activities/cmi.interaction";
const PARAMETERS = ["endpoint", "fetch", "actor", "registration", "activityId"];
const KEPT = "system-ml";   // the name of the record among the system's states

// What the system has put into the address, or null if nobody has launched the page.
export function launch(address) {
  const asked = new URL(address).searchParams;
  if (!PARAMETERS.every(name => asked.get(name))) return null;
  const found = Object.fromEntries(PARAMETERS.map(name => [name, asked.get(name)]));
  try { return { ...found, actor: JSON.parse(found.actor), endpoint: found.endpoint.replace(/\/?$/, "/") }; } catch { return null; }
}

// crypto.randomUUID is only there on https.
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const text = [...bytes].map(byte => byte.toString(16).padStart(2, "0")).join("");
  return text.replace(/(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

export class Cmi5 {
  constructor(launched) {
    Object.assign(this, launched);
    this.began = performance.now();
    this.last = Promise.resolve();   // one after another, in order
  }

  get duration() { return `PT${Math.round((performance.now() - this.began) / 10) / 100}S`; }

  // The token is given once; then what the system says of this launch, and, as cmi5 asks, the learner's preferences.
  async begin() {
    const given = await (await fetch(this.fetch, { method: "POST" })).json();
    if (!given["auth-token"]) throw new Error(`the learning system gave no token: ${given["error-text"] ?? "no reason"}`);
    this.token = given["auth-token"];
    const { contextTemplate = {}, launchMode = "Normal", masteryScore } = await this.read("activities/state", { stateId: "LMS.LaunchData" }) ?? {};
    Object.assign(this, { contextTemplate, masteryScore, counts: launchMode === "Normal" });
    await this.read("agents/profile", { profileId: "cmi5LearnerPreferences" });
    await this.send("initialized", {}, { defined: true });
  }

  async record() { return (this.counts && await this.read("activities/state", { stateId: KEPT })) || {}; }

  // -- statements -----------------------------------------------------------------------------------------------------------
  context({ defined = false, moves = false, extensions } = {}) {
    const given = this.contextTemplate, names = [defined && "cmi5", moves && "moveon"].filter(Boolean);
    const category = [...(given.contextActivities?.category ?? []), ...names.map(name => ({ id: CATEGORY + name }))];
    return {
      ...given, registration: this.registration,
      contextActivities: { ...given.contextActivities, ...(category.length ? { category } : {}) },
      extensions: { ...given.extensions, ...extensions },
    };
  }

  send(verb, rest = {}, about = {}, keepalive = false) {
    const statement = {
      id: uuid(), timestamp: new Date().toISOString(), actor: this.actor, verb: VERBS[verb], object: { objectType: "Activity", id: this.activityId },
      ...rest, context: this.context(about),
    };
    return this.ask("POST", "statements", {}, statement, keepalive);
  }

  answered({ id, type, response, right, result, says, choices }) {
    if (!this.counts) return;
    const definition = {
      type: INTERACTION, interactionType: type, description: { en: says }, correctResponsesPattern: [right],
      ...(choices ? { choices: choices.map(([letter, text]) => ({ id: letter, description: { en: text } })) } : {}),
    };
    this.queue(() => this.send("answered", {
      object: { objectType: "Activity", id: `${this.activityId}#${id}`, definition },
      result: { response, ...(result === null ? {} : { success: result }) },
    }));
  }

  // Completed and passed are said once for each registration.
  progress({ record, complete, score }) {
    if (!this.counts) return;
    if (complete && !record.completed) {
      record.completed = true;
      this.queue(() => this.send("completed", { result: { completion: true, duration: this.duration } }, { defined: true, moves: true }));
    }
    if (this.masteryScore !== undefined && score >= this.masteryScore && !record.passed) {
      record.passed = true;
      this.queue(() => this.send("passed", { result: { success: true, score: { scaled: score }, duration: this.duration } },
        { defined: true, moves: true, extensions: { [MASTERY]: this.masteryScore } }));
    }
    const now = JSON.stringify(record);
    if (now !== this.saved) this.queue(() => this.write("activities/state", { stateId: KEPT }, now));
    this.saved = now;
  }

  end() {
    if (this.token) this.send("terminated", { result: { duration: this.duration } }, { defined: true }, true);
  }

  // -- requests -------------------------------------------------------------------------------------------------------------
  queue(act) { this.last = this.last.then(act).catch(error => console.warn(`The learning system did not take it: ${error.message}`)); }

  address(path, query) {
    const address = new URL(path, this.endpoint), agent = JSON.stringify(this.actor);
    const common = path === "agents/profile" ? { agent } : path === "statements" ? {} : { agent, activityId: this.activityId, registration: this.registration };
    for (const [name, value] of Object.entries({ ...common, ...query })) address.searchParams.set(name, value);
    return address;
  }

  async ask(method, path, query, body, keepalive = false) {
    const headers = { Authorization: `Basic ${this.token}`, "X-Experience-API-Version": VERSION };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const text = body === undefined || typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(this.address(path, query), { method, headers, body: text, keepalive });
    if (!answer.ok && answer.status !== 404) throw new Error(`${method} ${path}: ${answer.status}`);
    return answer;
  }

  async read(path, query) {
    const answer = await this.ask("GET", path, query);
    return answer.status === 404 ? null : answer.json();
  }

  write(path, query, text) { return this.ask("PUT", path, query, text); }
}

const launched = launch(location.href);
if (launched) {
  const plain = new URL(location.href);   // a link that the learner copies names neither the learner nor the system
  for (const name of PARAMETERS) plain.searchParams.delete(name);
  history.replaceState(history.state, "", plain);
  keepApart(JSON.stringify(launched.actor));
  const system = new Cmi5(launched);
  addEventListener("pagehide", () => system.end(), { once: true });
  system.begin().then(() => watch(system)).catch(error => console.warn(`This lesson reports nothing: ${error.message}`));
}
