// A puzzle on the page: its editor, its buttons, and what came of the reader's code.
import { kept } from "../widget/state.js";
import { Sandbox } from "./sandbox.js";
import { drawn } from "./drawn.js";
import { pictured } from "./pictured.js";

const INDENT = "    ", LONGEST = 20_000;  // characters of code that are kept and run
const coming = new WeakMap();

// `event`: by which a reader has turned to it. A press that came before the editor is made again.
export async function bindEditor(puzzle, event) {
  if (!coming.has(puzzle)) coming.set(puzzle, dressed().then(() => new Puzzle(puzzle)));
  const editor = await coming.get(puzzle);
  if (event?.type === "keydown") editor.judge(event.shiftKey ? "check" : "run");
  if (event?.type === "click") event.target.closest("[data-run], [data-check], [data-again], [data-link], [data-way]")?.click();
}

// Code that a figure made, put into a puzzle's editor.
export async function openCode(puzzle, code) {
  await bindEditor(puzzle);
  const editor = await coming.get(puzzle);
  editor.put(code);
  puzzle.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

// The address of a page whose puzzle has this code in its editor.
export function linkWith(id, code, page) {
  const bytes = new TextEncoder().encode(code), address = new URL(page);
  const text = btoa(Array.from(bytes, byte => String.fromCharCode(byte)).join(""));
  address.searchParams.set(id, text.replaceAll("+", "-").replaceAll("/", "_"));
  address.hash = id;
  return address.href;
}

let sheet = null;

function dressed() {
  sheet ??= new Promise(resolve => {
    const link = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("editor.css", import.meta.url) });
    link.onload = link.onerror = resolve;
    document.head.append(link);
  });
  return sheet;
}

class Puzzle {
  constructor(element) {
    this.element = element;
    this.name = element.dataset.puzzle;
    this.$ = selector => element.querySelector(selector);
    this.area = this.$("textarea");
    this.start = this.area.value;
    this.sandbox = new Sandbox(element, this.name);
    this.area.readOnly = false;
    this.area.value = this.fromAddress() ?? kept.get(this.key) ?? this.start;
    this.area.addEventListener("input", () => this.changed());
    this.area.addEventListener("keydown", event => this.key_(event));
    this.area.addEventListener("scroll", () => { this.$(".puzzle-lines").scrollTop = this.area.scrollTop; });
    for (const task of ["run", "check"]) this.on(`[data-${task}]`, () => this.judge(task));
    this.on("[data-again]", () => this.put(this.start));
    this.on("[data-way]", () => this.put(this.$("[data-solution]").textContent));
    this.on("[data-link]", () => this.link());
    if (kept.get(`solved.${this.name}`)) element.dataset.solved = "";
    this.number();
    element.dataset.ready = "editor";
  }

  get key() { return `puzzle.${this.name}`; }

  on(selector, act) { this.$(selector)?.addEventListener("click", act); }

  // -- the code -----------------------------------------------------------------------------------------------------------
  changed() {
    kept.set(this.key, this.area.value.slice(0, LONGEST));
    this.number();
    this.mark(0);
  }

  // Typed in, so that the browser's own undo brings back what was there.
  put(code) {
    this.area.focus();
    this.area.select();
    if (!document.execCommand("insertText", false, code)) {
      this.area.value = code;
      this.changed();
    }
    this.say("");
  }

  number() {
    const lines = this.area.value.split("\n").length;
    if (lines === this.lines) return;
    this.lines = lines;
    this.$(".puzzle-lines").replaceChildren(...Array.from({ length: lines }, (_, i) => Object.assign(document.createElement("span"), { textContent: i + 1 })));
    this.area.rows = Math.min(24, Math.max(Number(this.element.dataset.rows), lines + 1));
  }

  // Tab indents, so that there must be a way out: after Escape it goes on to the next control.
  key_(event) {
    const { key, shiftKey, ctrlKey, metaKey } = event;
    if (key === "Enter" && (ctrlKey || metaKey)) {
      event.preventDefault();
      return this.judge(shiftKey ? "check" : "run");
    }
    if (key === "Escape") { this.leaving = true; return; }
    if (key === "Tab" && !this.leaving && !ctrlKey && !metaKey) {
      event.preventDefault();
      this.indent(shiftKey);
    } else if (key === "Enter" && !event.isComposing) {
      event.preventDefault();
      const line = this.before().split("\n").pop();
      this.type(`\n${line.match(/^ */)[0]}${/:\s*(#.*)?$/.test(line) ? INDENT : ""}`);
    }
    if (key !== "Shift" && key !== "Tab") this.leaving = false;
  }

  before() { return this.area.value.slice(0, this.area.selectionStart); }

  type(text) {
    if (!document.execCommand("insertText", false, text)) {
      this.area.setRangeText(text, this.area.selectionStart, this.area.selectionEnd, "end");
      this.changed();
    }
  }

  // Whole lines where several are selected, or with Shift; else up to the next stop.
  indent(back) {
    const { area } = this, { selectionStart: from, selectionEnd: to, value } = area;
    if (!back && !value.slice(from, to).includes("\n")) return this.type(" ".repeat(INDENT.length - (this.before().split("\n").pop().length % INDENT.length)));
    const first = value.lastIndexOf("\n", from - 1) + 1, last = (value.indexOf("\n", to) + 1 || value.length + 1) - 1;
    const lines = value.slice(first, last).split("\n").map(line => back ? line.replace(/^ {1,4}|^\t/, "") : INDENT + line).join("\n");
    area.setSelectionRange(first, last);
    this.type(lines);
    area.setSelectionRange(from === to ? first + lines.length : first, first + lines.length);
  }

  // -- what came of it ------------------------------------------------------------------------------------------------------
  async judge(task) {
    if (this.busy) return;
    this.busy = true;
    this.element.dataset.busy = "";
    this.say(this.ran ? "Running …" : "Loading Python, 300 kB, this once …");
    this.print([]);
    this.mark(0);
    try {
      if (this.area.value.length > LONGEST) throw new Error(`This is longer than a puzzle's code can be: ${LONGEST.toLocaleString("en")} characters.`);
      this.show(await this.sandbox.run(this.area.value, task), task);
    } catch (error) {
      this.say(error.message, "wrong");
    }
    this.ran = true;
    this.busy = false;
    delete this.element.dataset.busy;
  }

  show({ right, words, line, printed, drawn: state }, task) {
    const solved = right && task === "check";
    this.say(line ? `Line ${line}: ${words}` : words, solved ? "right" : right ? "ran" : "wrong");
    this.print(printed);
    this.mark(line);
    if (solved) {
      kept.set(`solved.${this.name}`, "yes");
      this.element.dataset.solved = "";
    }
    if (state?.picture) pictured(this.element, state.picture);
    else if (state) drawn(this.element, state);
    if (!state?.picture) this.$(".puzzle-picture")?.remove();
  }

  say(words, verdict = "") {
    const said = this.$("[data-said]");
    said.textContent = words;
    said.dataset.verdict = verdict;
  }

  print(lines) {
    const place = this.$("[data-printed]");
    place.textContent = lines.join("\n");
    place.hidden = !lines.length;
  }

  mark(line) {
    this.area.setAttribute("aria-invalid", String(line > 0));
    this.$(".puzzle-lines > [data-fault]")?.removeAttribute("data-fault");
    const place = this.$(".puzzle-lines").children[line - 1];
    if (place) place.dataset.fault = "";
  }

  // -- a link with the code, when the reader asks for one ---------------------------------------------------------------------
  fromAddress() {
    const given = new URLSearchParams(location.search).get(this.element.id);
    if (given === null) return null;
    try {
      return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(given.replaceAll("-", "+").replaceAll("_", "/")), c => c.charCodeAt(0))).slice(0, LONGEST);
    } catch {
      this.say("The link's code is damaged; here is yours.", "wrong");
      return null;
    }
  }

  async link() {
    const address = linkWith(this.element.id, this.area.value, new URL(location.pathname, location.href));
    try {
      await navigator.clipboard.writeText(address);
      this.say("A link with your code is copied.");
    } catch {
      window.prompt("Copy this link", address);
    }
  }
}
