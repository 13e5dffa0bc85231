// The first script of a lesson's page in a SCORM 1.2 package: as scorm.js, with the words and the limits of the older standard.
import { findApi, short } from "./find.js";
import { keepApart } from "./learner.js";
import { watch } from "./watch.js";

const two = number => String(number).padStart(2, "0");
export const clock = now => `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`;
export function duration(ms) {
  const hundredths = Math.max(0, Math.round(ms / 10)), seconds = Math.floor(hundredths / 100);
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  return `${String(hours).padStart(4, "0")}:${two(minutes)}:${two(seconds % 60)}.${two(hundredths % 100)}`;
}

export class Scorm12 {
  constructor(api) {
    this.api = api;
    this.began = performance.now();
  }

  get learner() { return this.api.LMSGetValue("cmi.core.student_id"); }

  begin() {
    if (this.api.LMSInitialize("") !== "true") return false;   // left already, or never launched
    this.noted = Number(this.api.LMSGetValue("cmi.interactions._count")) || 0;
    this.set("cmi.core.exit", "suspend");
    if (this.api.LMSGetValue("cmi.core.lesson_status") === "not attempted") this.set("cmi.core.lesson_status", "incomplete");
    return true;
  }

  async record() {
    try { return JSON.parse(this.api.LMSGetValue("cmi.suspend_data")) ?? {}; } catch { return {}; }
  }

  set(name, value) { return this.api.LMSSetValue(name, String(value)) === "true"; }

  // A range has no form in this standard, so only a choice and a number that was asked for have their right answer beside them.
  answered({ id, type, response, right, result }) {
    const at = `cmi.interactions.${this.noted}`;
    if (!this.set(`${at}.id`, id)) return;
    this.noted += 1;
    this.set(`${at}.type`, type);
    this.set(`${at}.time`, clock(new Date()));
    if (right !== null && type !== "numeric") this.set(`${at}.correct_responses.0.pattern`, short(right));
    this.set(`${at}.student_response`, short(response));
    this.set(`${at}.result`, result === null ? "neutral" : result ? "correct" : "wrong");
  }

  // One word says how far a learner is; whether the score is enough, the system decides by the manifest's mastery score.
  progress({ record, score, complete }) {
    this.set("cmi.core.score.min", 0);
    this.set("cmi.core.score.max", 100);
    this.set("cmi.core.score.raw", Math.round(100 * score));
    if (complete) this.set("cmi.core.lesson_status", "completed");
    this.set("cmi.suspend_data", JSON.stringify(record));
    this.api.LMSCommit("");
  }

  end() {
    this.set("cmi.core.session_time", duration(performance.now() - this.began));
    this.api.LMSCommit("");
    this.api.LMSFinish("");
  }
}

const api = findApi(window, "API"), system = api && new Scorm12(api);
if (system?.begin()) {
  keepApart(system.learner);
  watch(system);
  addEventListener("pagehide", () => system.end(), { once: true });
}
