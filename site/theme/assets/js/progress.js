// What a reader has done, out of the one store that all pages share (keys "course.*" of this browser): the ticks beside lessons
// read, the line at a lesson's end, and the page "Your progress", which can save it to a file, take it back and clear it.
import { kept } from "../widget/state.js";
import { save } from "../widget/take.js";
import { rightAtFirst, showCalibration } from "./calibration.js";

const PREFIX = "course.", COURSE = "System ML", VERSION = 1;
const LARGEST = 1_000_000, MOST = 5000, LONGEST = 20_000;  // of a file, its entries, one of them: far above what a course leaves
const HURRIED_MS = 60_000;  // who is at the end sooner has jumped there: the button is offered, the tick is not set

// A lesson's name is the last part of its address, wherever the site is hosted.
const nameOf = href => new URL(href, location.href).pathname.split("/").filter(part => part && part !== "index.html").pop() ?? "";

// -- the store -----------------------------------------------------------------------------------------------------------------
function everything() {
  try {
    const keys = Object.keys(localStorage).filter(key => key.startsWith(PREFIX)).sort();
    return Object.fromEntries(keys.map(key => [key.slice(PREFIX.length), localStorage.getItem(key)]));
  } catch { return {}; }
}

// Tried once: to try it tells other tabs, and were they to try it in answer, two of them would never come to rest.
const remembering = (() => {
  try {
    localStorage.setItem(`${PREFIX}trial`, "");
    localStorage.removeItem(`${PREFIX}trial`);
    return true;
  } catch { return false; }
})();

const parsed = text => { try { return JSON.parse(text); } catch { return null; } };
const list = text => [parsed(text)].flat().filter(entry => typeof entry === "string");
const readLessons = () => new Set(list(kept.get("read")).map(nameOf));

function setRead(read) {
  const lessons = readLessons();
  if (read) lessons.add(nameOf("")); else lessons.delete(nameOf(""));
  kept.set("read", JSON.stringify([...lessons]));
}

// -- counts ----------------------------------------------------------------------------------------------------------------------
// What a lesson holds: its predictions, the targets of its widgets, its puzzles, its exercises with the parts that each has to be answered.
function contentsOfPage() {
  const figures = [...document.querySelectorAll("figure.widget")];
  const asking = figures.filter(figure => figure.querySelector("[data-predict]"));
  return {
    lesson: nameOf(""),
    predictions: asking.map(figure => `${figure.dataset.widget}.${figure.querySelector("[data-predict]").dataset.predict}`),
    targets: figures.filter(figure => figure.querySelector("[data-break-it]")).map(figure => figure.dataset.widget),
    puzzles: [...document.querySelectorAll("[data-puzzle]")].map(puzzle => puzzle.dataset.puzzle),
    exercises: Object.fromEntries([...document.querySelectorAll(".admonition.exercise")].map(box => [box.id, box.querySelector(".answers").childElementCount])),
  };
}

function counts({ lesson, predictions, targets, puzzles, exercises }) {
  const answered = ([name, parts]) => Array.from({ length: parts }, (_, part) => kept.get(`answer.${lesson}.${name}.${part}`)).every(Boolean);
  return {
    read: [+readLessons().has(lesson), 1],
    predictions: [predictions.filter(key => kept.get(`predicted.${key}`) !== null).length, predictions.length],
    first: [rightAtFirst(predictions), predictions.length],
    targets: [targets.filter(slug => kept.get(`broke.${slug}`)).length, targets.length],
    puzzles: [puzzles.filter(name => kept.get(`solved.${name}`)).length, puzzles.length],
    exercises: [Object.entries(exercises).filter(answered).length, Object.keys(exercises).length],
  };
}

// A learning system that has launched the page says so by this mark (course/output/lms/report).
const toldTo = () => document.documentElement.dataset.toldTo ? `${document.documentElement.dataset.toldTo} is told` : "nobody else is told";

const of = ([done, all]) => `${done} of ${all}`;

// -- every page: ticks -----------------------------------------------------------------------------------------------------------
function showTicks() {
  const lessons = readLessons();
  for (const link of document.querySelectorAll("a.md-nav__link:not([href*='#']), a[data-lesson]")) {
    link.toggleAttribute("data-read", lessons.has(nameOf(link.href)));
  }
}

// -- a lesson: the line at its end ---------------------------------------------------------------------------------------------
// Reaching it counts as having read the lesson; the line says so, and offers to take it back.
function watchEnd() {
  const end = document.querySelector("[data-lesson-end]");
  if (!end || end.dataset.bound) return;
  end.dataset.bound = "yes";
  end.hidden = false;
  const [note, done, button, more] = ["span", "span", "button", "a"].map(tag => document.createElement(tag));
  button.type = "button";
  more.href = end.dataset.progress;
  more.textContent = "Your progress";
  end.replaceChildren(note, done, button, " · ", more);
  const opened = performance.now(), contents = contentsOfPage();
  end.say = () => {
    const { read, predictions, first, targets, puzzles, exercises } = counts(contents);
    note.textContent = read[0] ? "✓ You have read this lesson. " : "";
    done.textContent = `Predictions ${of(predictions)}${first[0] ? `, ${first[0]} right at first` : ""}; targets found ${of(targets)}; ${puzzles[1] ? `puzzles ${of(puzzles)}; ` : ""}exercises ${of(exercises)}. `
      + (remembering ? `This browser remembers it; ${toldTo()}. ` : "This browser keeps nothing, so it is forgotten when you leave. ");
    button.textContent = read[0] ? "Mark as unread" : "Mark as read";
  };
  const watcher = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting || performance.now() - opened < HURRIED_MS) return;
    watcher.disconnect();
    setRead(true);
  });
  button.addEventListener("click", () => {
    watcher.disconnect();
    setRead(!readLessons().has(contents.lesson));
  });
  end.say();
  watcher.observe(end);
}

// -- the page "Your progress" ----------------------------------------------------------------------------------------------------
function showTable() {
  const table = document.querySelector("[data-progress-table]");
  if (!table) return;
  const totals = {};
  for (const row of table.querySelectorAll("[data-contents]")) {
    for (const [name, [done, all]] of Object.entries(counts(JSON.parse(row.dataset.contents)))) {
      fill(row, name, done, all);
      totals[name] = [(totals[name]?.[0] ?? 0) + done, (totals[name]?.[1] ?? 0) + all];
    }
  }
  for (const [name, [done, all]] of Object.entries(totals)) fill(table.tFoot, name, done, all);
  const lessons = [...table.querySelectorAll("[data-contents]")];
  showCalibration(document.querySelector("[data-calibration]"), lessons.map(row =>
    ({ title: row.querySelector("th").textContent.trim(), predictions: JSON.parse(row.dataset.contents).predictions })));
  document.querySelector("[data-cover-figures]").checked = kept.get("predict") !== "off";
  const all = everything(), won = document.querySelector("[data-missions-won]"), exams = document.querySelector("[data-exams]");
  won.textContent = of([Object.keys(all).filter(key => key.startsWith("won.")).length, Number(won.dataset.missionsWon)]);
  exams.textContent = examsIn(all) || "none yet";
}

function fill(row, name, done, all) {
  const cell = row.querySelector(`[data-cell="${name}"]`);
  const isOne = name === "read" && all === 1;
  cell.textContent = isOne ? (done ? "✓" : "–") : all ? of([done, all]) : "–";
  cell.toggleAttribute("data-all", all > 0 && done === all);
}

// The papers handed in before their answer was seen; whatever else lies there is left out.
function examsIn(all) {
  const papers = Object.entries(all).filter(([key]) => key.startsWith("exam.")).map(([key, text]) => ({ seed: key.slice("exam.".length), ...parsed(text) }));
  return papers.filter(({ points, of: most, seen }) => Number.isFinite(points) && Number.isFinite(most) && !seen)
    .map(({ seed, points, of: most }) => `seed ${seed}: ${points} of ${most} points`).join("; ");
}

function file() {
  return JSON.stringify({ course: COURSE, version: VERSION, saved: new Date().toISOString().slice(0, 10), kept: everything() }, null, 1);
}

// What a file holds, or { fault } in words.
export function readFile(text) {
  const found = parsed(text);
  if (found?.course !== COURSE) return { fault: "This is not a file that this page has saved." };
  if (found.version !== VERSION) return { fault: `This file is of version ${String(found.version).slice(0, 20)}; this page reads version ${VERSION}.` };
  const entries = found.kept && typeof found.kept === "object" && !Array.isArray(found.kept) ? Object.entries(found.kept) : [];
  if (!entries.length) return { fault: "There is no progress in this file." };
  const sound = entries.length <= MOST && entries.every(([key, value]) => key.length <= LONGEST && typeof value === "string" && value.length <= LONGEST);
  return sound ? { entries } : { fault: "This file has been changed since it was saved: it holds what no lesson leaves." };
}

// Adds what a file has to what is here; nothing of the reader's is replaced.
function take(entries) {
  for (const [key, value] of entries) {
    if (key === "read") kept.set(key, JSON.stringify([...new Set([...readLessons(), ...list(value).map(nameOf)])]));
    else if (!kept.get(key)) kept.set(key, value);
  }
}

function clear() {
  for (const key of Object.keys(everything())) localStorage.removeItem(PREFIX + key);
  dispatchEvent(new Event("course-kept"));
}

function bindPage() {
  const page = document.querySelector(".progress[data-progress]");
  if (!page || page.dataset.bound) return;
  page.dataset.bound = "yes";
  const part = name => page.querySelector(`[data-${name}]`), said = part("said"), asking = part("asking");
  const say = words => { said.textContent = words; };
  if (!remembering) say("This browser does not let pages keep anything, so there is no progress to show. The course works all the same.");
  part("cover-figures").addEventListener("change", ({ target }) => {
    kept.set("predict", target.checked ? "on" : "off");
    say(target.checked ? "Figures are covered until you have predicted." : "Figures are no longer covered.");
  });
  part("export").addEventListener("click", () => {
    if (!Object.keys(everything()).length) return say("There is nothing to save yet.");
    save(new Blob([file()], { type: "application/json" }), "system-ml-progress.json");
    say("Saved to your downloads.");
  });
  part("import").addEventListener("change", async ({ target }) => {
    const [chosen] = target.files;
    if (!chosen) return;
    const found = chosen.size > LARGEST ? { fault: "This file is larger than any progress could be." } : readFile(await chosen.text());
    target.value = "";
    if (found.fault) return say(`${found.fault} Nothing was changed.`);
    take(found.entries);
    say(remembering ? "Taken in: what the file has was added to what is here." : "This browser keeps nothing, so it could not be taken in.");
  });
  const ask = open => {
    asking.hidden = !open;
    part("clear").hidden = open;
    (open ? part("keep") : part("clear")).focus();
  };
  part("clear").addEventListener("click", () => ask(true));
  part("keep").addEventListener("click", () => ask(false));
  part("sure").addEventListener("click", () => {
    clear();
    ask(false);
    say("Cleared. This browser remembers nothing of the course.");
  });
}

// -- when ----------------------------------------------------------------------------------------------------------------------
function show() {
  showTicks();
  document.querySelector("[data-lesson-end]")?.say?.();
  showTable();
}

addEventListener("course-kept", show);  // from this page
addEventListener("storage", show);      // from another tab
document$.subscribe(() => {
  watchEnd();
  bindPage();
  show();
});
