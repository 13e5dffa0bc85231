// Will it fit? The reader's files on the left, what can be said of them on the right, and their lines with what was read below.
import { fromAddress, LONGEST_LINK, toAddress } from "./link.js";
import { element, held, lines, report } from "./report.js";

const PAUSE_MS = 80;       // after the last key: the answer is there within 150
const MOST_FILES = 64, TEXTS = /\.(sh|bash|slurm|sbatch|txt|ya?ml|json|toml|py|env|conf|cfg|ini|md|modelfile)$|^[^.]+$/i;  // of a folder
const LIMIT_MS = 20_000;   // for a verdict; nothing that a person launches takes a tenth of it
const MOST_SHOWN = 200_000;

export async function bind(place) {
  place.dataset.ready = "";
  await new Promise(resolve => {
    const sheet = Object.assign(document.createElement("link"), { rel: "stylesheet", href: new URL("fit.css", import.meta.url) });
    sheet.onload = sheet.onerror = resolve;
    document.head.append(sheet);
  });
  const page = new Page(place);
  await page.restore();
}

// The texts of folders that were dropped, by their paths; what is no text by its name, or hidden, is left out.
async function inFolders(entries) {
  const found = [], waiting = entries.filter(Boolean);
  while (waiting.length && found.length < MOST_FILES) {
    const entry = waiting.shift();
    if (entry.name.startsWith(".")) continue;
    if (entry.isDirectory) {
      const reader = entry.createReader();
      for (let more = [0]; more.length;) waiting.push(...more = await new Promise((done, failed) => reader.readEntries(done, failed)));
    } else if (TEXTS.test(entry.name)) {
      const file = await new Promise((done, failed) => entry.file(done, failed));
      found.push(new File([file], entry.fullPath.replace(/^\/[^/]+\//, "")));
    }
  }
  return found;
}

class Page {
  constructor(place) {
    this.place = place;
    this.$ = name => place.querySelector(`[data-${name}]`);
    this.longest = Number(place.dataset.longest);
    this.asked = 0;
    this.edits = [];
    place.querySelector(".fit-without").hidden = true;
    for (const name of ["form", "report"]) this.$(name).hidden = false;
    this.$("form").addEventListener("submit", event => event.preventDefault());
    this.$("form").addEventListener("input", () => this.later());
    for (const name of ["gpu", "gpus"]) this.$(name).addEventListener("change", () => this.later());
    this.$("add").addEventListener("click", () => this.card("", "").querySelector("textarea").focus());
    this.$("clear").addEventListener("click", () => this.put({ files: [], gpu: "", gpus: "", own: {} }));
    this.$("open").addEventListener("change", event => { this.take([...event.target.files]); event.target.value = ""; });
    this.$("link").addEventListener("click", () => this.link());
    this.$("issue").addEventListener("click", () => this.copy(this.text, "The report is copied."));
    for (const button of place.querySelectorAll("[data-example]")) button.addEventListener("click", () => this.example(JSON.parse(button.dataset.example)));
    for (const kind of ["dragenter", "dragover"]) place.addEventListener(kind, event => { if (event.dataTransfer?.types.includes("Files")) { event.preventDefault(); place.dataset.over = ""; } });
    for (const kind of ["dragleave", "drop"]) place.addEventListener(kind, event => { if (kind === "drop" || !place.contains(event.relatedTarget)) delete place.dataset.over; });
    place.addEventListener("drop", event => {
      if (!event.dataTransfer?.files.length) return;
      event.preventDefault();
      const entries = [...event.dataTransfer.items].map(item => item.webkitGetAsEntry?.()), plain = [...event.dataTransfer.files];
      if (entries.some(entry => entry?.isDirectory)) inFolders(entries).then(files => this.take(files));
      else this.take(plain);
    });
    addEventListener("hashchange", this.moved = () => this.place.isConnected ? this.restore() : removeEventListener("hashchange", this.moved));
  }

  // -- what the reader gives ------------------------------------------------------------------------------------------------
  card(name, text) {
    const area = element("textarea", { rows: 12, spellcheck: false, autocomplete: "off", autocapitalize: "off", wrap: "off", placeholder: "Paste a script, a TOML, JSON or YAML file or a serve line, or drop files here" });
    const title = element("input", { type: "text", value: name, placeholder: "pasted", spellcheck: false, autocomplete: "off", ariaLabel: "Name of this file" });
    const gone = element("button", { type: "button", textContent: "Remove" });
    const card = element("div", { className: "fit-file" }, element("p", {}, title, gone), area);
    area.setAttribute("aria-label", "What you are about to launch");
    if (text.length > MOST_SHOWN || /\0/.test(text.slice(0, 4096))) {  // as it is, but not into a field that it would hold up
      card.kept = text;
      area.readOnly = true;
      area.placeholder = "Kept, and not shown: this is too long or no text.";
    } else area.value = text;
    gone.addEventListener("click", () => { card.remove(); if (!this.cards.length) this.card("", ""); this.later(); });
    this.$("files").append(card);
    this.alone();
    return card;
  }
  get cards() { return [...this.$("files").children]; }
  alone() { this.$("files").toggleAttribute("data-alone", this.cards.length < 2); }
  textOf(card) { return card.kept ?? card.querySelector("textarea").value; }

  async take(files) {
    for (const file of files) {
      const text = file.size > 50e6 ? "" : await file.text(), empty = this.cards.find(card => !this.textOf(card).trim());
      empty?.remove();
      this.card(file.name, text || " ".repeat(Math.min(file.size, 1)));
    }
    this.now();
  }
  example({ files, gpu, gpus, own }) {
    this.put({ files, gpu, gpus: gpus ? String(gpus) : "", own: Object.fromEntries(this.fields.filter(each => own[each.dataset.field]).map(each => [each.dataset.field, String(own[each.dataset.field] / each.dataset.scale)])) });
  }
  get isGone() { return !this.place.isConnected || !this.$("files"); }  // the reader has left for another page
  get fields() { return [...this.place.querySelectorAll("[data-field]")]; }
  put({ files, gpu, gpus, own }) {
    this.$("files").replaceChildren();
    for (const [name, text] of files.length ? files : [["", ""]]) this.card(name, text);
    this.$("gpu").value = gpu;
    if (this.$("gpu").selectedIndex < 0) this.$("gpu").value = "";
    this.$("gpus").value = gpus;
    for (const field of this.fields) field.value = own[field.dataset.field] ?? "";
    this.$("own").open ||= Object.keys(own).length > 0;
    this.now();
  }
  get state() {
    const files = this.cards.map(card => [card.querySelector("input").value.trim(), this.textOf(card)]).filter(([, text]) => text.trim());
    return { files, gpu: this.$("gpu").value, gpus: this.$("gpus").value.trim(), own: Object.fromEntries(this.fields.map(each => [each.dataset.field, each.value.trim()]).filter(([, said]) => said)) };
  }

  // -- asking ---------------------------------------------------------------------------------------------------------------
  later() {
    this.alone();
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.now(), PAUSE_MS);
  }
  request() {
    const { files, gpu, gpus, own: said } = this.state, most = Number(this.place.dataset.most);
    const names = new Map(), each = files.map(([name, text], at) => {
      let own = name || (files.length === 1 ? "pasted" : `pasted ${at + 1}`);
      while (names.has(own)) own += "'";
      names.set(own, text);
      return [own, text];
    });
    if (gpus && !(/^\d+$/.test(gpus.replaceAll(",", "")) && Number(gpus.replaceAll(",", "")) >= 1 && Number(gpus.replaceAll(",", "")) <= most)) return { wrong: `The number of GPUs must be a whole number from 1 to ${most.toLocaleString("en")}.` };
    const own = {};
    for (const field of this.fields.filter(each => said[each.dataset.field])) {
      const number = Number(said[field.dataset.field].replace(",", ".")), name = field.parentElement.firstChild.textContent.trim();
      if (!(number > 0 && number < 1e6)) return { wrong: `${name} must be a number above 0.` };
      if (field.dataset.field === "gpus_per_node" && !Number.isInteger(number)) return { wrong: `${name} must be a whole number.` };
      own[field.dataset.field] = number * Number(field.dataset.scale);
    }
    return { files: each, gpu: Object.keys(own).length && !gpu ? "h100-sxm" : gpu, gpus: gpus ? Number(gpus.replaceAll(",", "")) : 0, own };
  }
  now() {
    clearTimeout(this.waiting);
    if (this.isGone) return;
    const request = this.request();
    this.asked++;
    if (request.wrong) return this.say(request.wrong);
    if (!request.files.length) return this.empty();
    this.sent = request;
    clearTimeout(this.limit);
    this.limit = setTimeout(() => this.ended("This took too long and was stopped. Your files are as they were."), LIMIT_MS);
    this.place.dataset.busy = "";
    if (!this.text) this.say("Reading …");
    this.worker().postMessage({ id: this.asked, ...request });
  }
  worker() {
    if (this.running) return this.running;
    this.running = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.running.onmessage = ({ data }) => this.heard(data);
    this.running.onerror = () => this.ended("The page's own program could not be loaded. Your files are as they were; try again when you are online.");
    return this.running;
  }
  ended(words) {
    this.running?.terminate();
    this.running = null;
    clearTimeout(this.limit);
    delete this.place.dataset.busy;
    if (this.isGone) return;
    this.clear();
    this.say(words);
  }
  heard({ id, found, failed, done, files }) {
    if (this.isGone) return this.ended("");
    if (id !== this.asked) return;
    if (files) return this.change(Object.fromEntries(files));
    if (files === null) return this.note("No file here can hold this value. Write it into one of them above.");
    clearTimeout(this.limit);
    if (failed) return this.ended(`This could not be worked out: ${failed}. Your files are as they were.`);
    if (done) delete this.place.dataset.busy;
    this.text = found.text;
    this.edits = found.edits;
    this.say(found.headline);
    this.place.dataset.verdict = found.verdict;
    const back = held(this.place);
    this.$("found").replaceChildren(...report(found, done, edit => this.change(edit)));
    const mend = { line: (...what) => this.correct(...what), assumed: (name, value) => this.running?.postMessage({ id: this.asked, ...this.sent, correct: { name, value } }) };
    this.$("lines").replaceChildren(...lines(this.sent.files, found, mend));
    this.$("lines").hidden = this.$("take").hidden = false;
    back();
  }
  correct(name, number, said) {  // one line of a file, as it was corrected below
    const at = this.sent.files.findIndex(([each]) => each === name), card = this.cards.filter(each => this.textOf(each).trim())[at], area = card?.querySelector("textarea");
    if (!area || card.kept) return;
    area.value = area.value.split("\n").with(number - 1, said).join("\n");
    this.now();
  }
  change(texts) {
    this.put({ ...this.state, files: Object.entries(texts) });
    this.$("said").scrollIntoView({ block: "nearest" });
  }

  // -- saying ---------------------------------------------------------------------------------------------------------------
  say(words) { this.$("said").textContent = words; }
  clear() {
    this.text = "";
    delete this.place.dataset.verdict;
    this.$("found").replaceChildren();
    this.$("lines").replaceChildren();
    this.$("lines").hidden = this.$("take").hidden = true;
  }
  empty() {
    clearTimeout(this.limit);
    delete this.place.dataset.busy;
    this.clear();
    this.say("What you paste is read here, line by line: whether it fits, how fast it goes, and what to change.");
  }

  // -- taking it along ------------------------------------------------------------------------------------------------------
  async restore() {
    try {
      const state = await fromAddress(location.hash);
      if (state) return this.put(state);
    } catch {
      if (!this.cards.length) this.put({ files: [], gpu: "", gpus: "", own: {} });
      return this.say("The link's files are damaged, so nothing of them could be read.");
    }
    if (!this.cards.length) this.put({ files: [], gpu: "", gpus: "", own: {} });
  }
  async link() {
    const hash = await toAddress(this.state);
    if (hash.length > LONGEST_LINK) return this.note("These files are too long for a link.");
    history.replaceState(history.state, "", hash);
    await this.copy(location.href, "A link with these files is copied; it is in the address too.");
  }
  async copy(text, words) {
    try {
      await navigator.clipboard.writeText(text);
      this.note(words);
    } catch {
      window.prompt("Copy this", text);
    }
  }
  note(words) {
    const place = this.$("take");
    place.querySelector("span")?.remove();
    place.append(element("span", { role: "status", textContent: words }));
  }
}
