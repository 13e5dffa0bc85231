// The first script of a lesson's page in a SCORM 2004 package: it finds the learning system's API_1484_11, says there what the
// learner does, and leaves when the page is left.
import { findApi, short } from "./find.js";
import { keepApart } from "./learner.js";
import { watch } from "./watch.js";

export const duration = ms => `PT${Math.max(0, Math.round(ms / 10) / 100)}S`;
// Hundredths of a second: SCORM takes no more digits, and refuses a zone that stands behind whole seconds.
export const stamp = (now = new Date()) => now.toISOString().replace(/(\.\d\d)\dZ$/, "$1Z");

export class Scorm {
  constructor(api) {
    this.api = api;
    this.began = performance.now();
  }

  get learner() { return this.api.GetValue("cmi.learner_id"); }

  begin() {
    if (this.api.Initialize("") !== "true") return false;   // left already, or never launched
    this.noted = Number(this.api.GetValue("cmi.interactions._count")) || 0;
    this.set("cmi.exit", "suspend");
    if (this.api.GetValue("cmi.completion_status") === "unknown") this.set("cmi.completion_status", "incomplete");
    return true;
  }

  // What this learner has done in earlier sessions, as it was kept here.
  async record() {
    try { return JSON.parse(this.api.GetValue("cmi.suspend_data")) ?? {}; } catch { return {}; }
  }

  set(name, value) { return this.api.SetValue(name, String(value)) === "true"; }

  answered({ id, type, response, right, result, says }) {
    const at = `cmi.interactions.${this.noted}`;
    if (!this.set(`${at}.id`, id)) return;
    this.noted += 1;
    this.set(`${at}.type`, type);
    this.set(`${at}.timestamp`, stamp());
    this.set(`${at}.description`, short(says));
    if (right !== null) this.set(`${at}.correct_responses.0.pattern`, type === "fill-in" ? short(right) : right);
    this.set(`${at}.learner_response`, type === "fill-in" ? short(response) : response);
    this.set(`${at}.result`, result === null ? "neutral" : result ? "correct" : "incorrect");
  }

  progress({ record, done, score, complete }) {
    this.set("cmi.progress_measure", done);
    this.set("cmi.score.min", 0);
    this.set("cmi.score.max", 100);
    this.set("cmi.score.raw", Math.round(100 * score));
    this.set("cmi.score.scaled", score);
    if (complete) this.set("cmi.completion_status", "completed");
    const needed = Number(this.api.GetValue("cmi.scaled_passing_score") || NaN);
    if (score >= needed) this.set("cmi.success_status", "passed");
    this.set("cmi.suspend_data", JSON.stringify(record));
    this.api.Commit("");
  }

  end() {
    this.set("cmi.session_time", duration(performance.now() - this.began));
    this.api.Commit("");
    this.api.Terminate("");
  }
}

const api = findApi(window, "API_1484_11"), system = api && new Scorm(api);
if (system?.begin()) {
  keepApart(system.learner);
  watch(system);
  addEventListener("pagehide", () => system.end(), { once: true });
}
