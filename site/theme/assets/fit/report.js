// What is said of a launch, as elements of the page.
const GIB = 2 ** 30;
const gib = bytes => `${(bytes / GIB).toFixed(1)} GiB`;
const PARTS = { weights: "weights", gradients: "gradients", optimizer: "optimizer state", activations: "activations", adam_step: "more in Adam's step", buckets: "buckets of gradients", overhead: "framework's own", framework: "framework's own", graphs: "graphs", cache: "cache", reference: "reference model", reward: "reward model", critic: "critic", rollout: "engine that writes", gathered: "weights gathered for it", adapters: "adapters" };

export function element(kind, properties = {}, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  if (properties.role) made.setAttribute("role", properties.role);
  made.append(...children);
  return made;
}
const heading = words => element("h2", { textContent: words, className: "fit-title" });

export function report(found, done, change) {
  const parts = [];
  if (found.about.length) parts.push(...found.about.map(words => element("p", { className: "fit-about", textContent: words })));
  if (found.memory_bytes) parts.push(...memory(found));
  if (found.over) parts.push(...overStep(found));
  const rate = found.rate.filter(Boolean), reach = found.reachWords.filter(Boolean);
  if (rate.length) parts.push(heading("Time"), ...rate.map(words => element("p", { textContent: words })));
  if (reach.length) parts.push(heading("How far it goes"), ...reach.map(words => element("p", { textContent: words })));
  if (found.refused.length) {
    parts.push(heading("What the framework will say"));
    parts.push(element("ul", { className: "fit-errors" }, ...found.refused.map(({ error, file, line }) => element("li", {}, element("code", { textContent: error }), line ? ` (${file}, line ${line})` : ""))));
  }
  if (found.unmodelled.length) {
    parts.push(heading(found.memory_bytes ? "Not modelled" : "Why nobody here can say"), element("ul", {}, ...found.unmodelled.map(({ key, why }) => element("li", {}, element("code", { textContent: key }), `: ${why}`))));
  }
  if (found.faults.length) parts.push(heading("Wrong in the texts"), element("ul", { className: "fit-errors" }, ...found.faults.map(words => element("li", { textContent: words }))));
  if (found.changes.length) {
    parts.push(heading("The best changes"));
    if (found.noEdit) parts.push(element("p", { textContent: found.noEdit }));
    parts.push(element("ol", { className: "fit-changes" }, ...found.changes.map((each, at) => {
      const make = element("button", { type: "button", textContent: "Make this change" });
      make.dataset.place = `change ${at}`;
      make.addEventListener("click", () => change(found.edits[at]));
      return element("li", {}, element("b", { textContent: found.gains[at] }), element("pre", {}, element("code", { textContent: each.lines.join("\n") })), make);
    })));
  } else if (done && found.memory_bytes && found.fits) parts.push(heading("The best changes"), element("p", { textContent: "No single edit makes it faster by more than a hundredth and still fits." }));
  else if (done && found.noEdit) parts.push(heading("The best changes"), element("p", { textContent: found.noEdit }));
  if (found.bestHeadline) parts.push(element("details", { className: "fit-best" }, element("summary", { textContent: found.bestHeadline }), element("pre", {}, element("code", { textContent: found.bestText.trim() }))));
  if (!done && found.memory_bytes) parts.push(element("p", { className: "fit-wait", textContent: "Looking for better ones …" }));
  return parts;
}

// One row a part, each beginning where the one above ends, against the line of what there is.
function memory(found) {
  const rows = Object.entries(found.memory_bytes).filter(([, bytes]) => bytes > 0), top = 1.04 * Math.max(found.capacity_bytes, found.total_bytes, found.total_band_bytes?.[1] ?? 0);
  const percent = bytes => `${(100 * bytes / top).toFixed(2)}%`;
  let at = 0;
  const drawn = rows.map(([name, bytes]) => {
    const begin = at, bar = element("i");
    at += bytes;
    bar.style.left = percent(begin);
    bar.style.width = percent(bytes);
    const within = Math.max(0, Math.min(1, (found.capacity_bytes - begin) / bytes));
    bar.style.setProperty("--within", `${(100 * within).toFixed(2)}%`);
    if (within < 1) bar.dataset.over = "";
    return element("tr", {}, element("th", { scope: "row", textContent: PARTS[name] ?? name }), element("td", { className: "fit-bar" }, bar), element("td", { textContent: gib(bytes) }));
  });
  const all = element("tr", { className: "fit-all" }, element("th", { scope: "row", textContent: "all" }), element("td", { className: "fit-bar" }), element("td", { textContent: gib(found.total_bytes) }));
  if (found.total_band_bytes) {
    const band = element("i", { className: "fit-band" }), [low, high] = found.total_band_bytes;
    band.style.left = percent(low);
    band.style.width = percent(high - low);
    all.children[1].append(band);
  }
  const table = element("table", { className: "fit-memory" }, element("caption", { textContent: `Memory of the fullest GPU; the line is what ${found.server ? "the server may take" : "the driver leaves"}: ${gib(found.capacity_bytes)}` }), element("tbody", {}, ...drawn, all));
  table.style.setProperty("--limit", percent(found.capacity_bytes));
  const words = [heading("Memory"), element("div", { className: "fit-table" }, table)];
  if (found.stage_bytes) words.push(element("p", { textContent: `By stage of the pipeline: ${Object.entries(found.stage_bytes).map(([name, bytes]) => `${name} ${gib(bytes)}`).join(", ")}.` }));
  if (found.total_band_bytes) words.push(element("p", { textContent: `80 % of comparable runs lie between ${gib(found.total_band_bytes[0])} and ${gib(found.total_band_bytes[1])}.` }));
  return words;
}

const SHORT = { forward: "fwd", backward: "bwd" };  // where many passes stand side by side

// The memory of a step as PyTorch's own viewer draws it: up through the forward passes, down through the backward ones.
function overStep(found) {
  const { moments, drawn, micro_batches: all, beside_bytes: beside } = found.over, limit = found.capacity_bytes - beside;
  const top = 1.05 * Math.max(limit, ...moments.map(([, most, , reserved]) => Math.max(most, reserved))), wide = 1000, high = 240;
  const x = at => (wide * at / moments.length).toFixed(1), y = bytes => (high * (1 - bytes / top)).toFixed(1);
  const saw = moments.map(([, most, end], at) => `L${x(at + 0.7)} ${y(most)}L${x(at + 1)} ${y(end)}`).join("");
  const kept = moments.map(([, , , reserved], at) => `${at ? "L" : "M"}${x(at)} ${y(reserved)}L${x(at + 1)} ${y(reserved)}`).join("");
  const from = moments.at(-1)[2];
  const drawing = `<svg viewBox="0 0 ${wide} ${high}" preserveAspectRatio="none" aria-hidden="true"><path class="fit-saw" d="M0 ${high}L0 ${y(from)}${saw}L${wide} ${high}Z"/><path class="fit-reserved" d="${kept}"/><path class="fit-limit" d="M0 ${y(limit)}L${wide} ${y(limit)}"/></svg>`;
  const picture = element("div", { className: "fit-over", role: "img", ariaLabel: `Memory over one step: ${found.overWords}`, innerHTML: drawing });
  const names = moments.length > 8 ? [] : [element("p", { className: "fit-passes" }, ...moments.map(([what]) => element("span", { textContent: drawn < 2 ? what.split(" ")[0] : moments.length > 5 ? SHORT[what.split(" ")[0]]?.concat(what.slice(what.indexOf(" "))) ?? "step" : what })))];
  const first = drawn < all ? ` Drawn are the first ${drawn} of ${all} micro-batches of a step, and its end.` : "";
  const key = element("p", { className: "fit-key" }, element("i", { className: "fit-saw" }), "allocated ", element("i", { className: "fit-reserved" }), "reserved ", element("i", { className: "fit-limit" }), `what PyTorch may have, ${gib(limit)}`);
  const record = element("details", {}, element("summary", { textContent: "See it on your own GPU" }), element("pre", {}, element("code", { textContent: 'torch.cuda.memory._record_memory_history()\n…  # two steps\ntorch.cuda.memory._dump_snapshot("snapshot.pickle")' })), element("p", { textContent: "Open the file at pytorch.org/memory_viz: its active memory timeline is what is drawn here." }));
  return [heading("Over a step"), picture, ...names, key, element("p", { textContent: `${found.overWords}${first}` }), record];
}

// -- the reader's lines, with what was read of them ----------------------------------------------------------------------------------
const AROUND = 2, MOST = 400, LONGEST_NOTE = 100;  // the whole error is said above

// ``mend`` is told a file, a line's number and what it now says, or an assumed name and its value.
export function lines(files, found, mend) {
  const notes = new Map(), add = (file, line, kind, words) => {
    const key = `${file}\n${line}`;
    if (line) (notes.get(key) ?? notes.set(key, []).get(key)).push([kind, words]);
  };
  for (const { name, value, file, line } of found.read) add(file || files[0][0], line, "read", `${name} ${value}`);
  for (const { key, file, line, why } of found.ignored) add(file || files[0][0], line, "ignored", `${key}: ${why}`);
  for (const { key, file, line, why } of found.unmodelled) add(file || files[0][0], line, "wrong", `${key}: ${why}`);
  for (const { file, line, error } of found.refused) add(file, line, "wrong", error.length > LONGEST_NOTE ? `${error.slice(0, LONGEST_NOTE)} …` : error);
  for (const words of found.faults) { const [, file, line, rest] = /^(.*?):(\d+): (.*)$/s.exec(words) ?? []; if (file) add(file, Number(line), "wrong", rest); }
  const parts = [element("h2", { textContent: "Line by line", className: "fit-title" })];
  for (const [name, text] of files) {
    const all = text.length > 200_000 ? [] : text.split("\n").slice(0, 5000), near = new Set();
    all.forEach((_, i) => { if (all.length <= MOST || notes.has(`${name}\n${i + 1}`)) for (let k = i - AROUND; k <= i + AROUND; k++) near.add(k); });
    const rows = all.flatMap((words, i) => near.has(i) && (words.trim() || i < all.length - 1) ? [row(i + 1, words, notes.get(`${name}\n${i + 1}`) ?? [], `${name} ${i + 1}`, said => mend.line(name, i + 1, said))] : []);
    if (rows.length) parts.push(element("div", { className: "fit-table", tabIndex: 0, role: "region", ariaLabel: `${name}, line by line` }, element("table", { className: "fit-text" }, element("caption", { textContent: name }), element("tbody", {}, ...rows))));
  }
  const assumed = found.assumed.map(({ name, value, why }, at) => {
    const said = String(value), open = found.open[at];
    const shown = open ? [`${name} `, typed(said, `${name}, which is assumed`, `assumed ${name}`, each => mend.assumed(name, each))] : [`${name} ${said}`];
    return element("li", {}, element("b", {}, ...shown), `: ${why}`);
  });
  if (assumed.length) parts.push(element("h3", { textContent: "Assumed, where no line says" }), element("ul", { className: "fit-assumed" }, ...assumed));
  const elsewhere = found.ignored.filter(({ line }) => !line);
  if (elsewhere.length) parts.push(element("h3", { textContent: "Ignored" }), element("ul", {}, ...elsewhere.map(({ key, value, why }) => element("li", { textContent: `${key} ${value}: ${why}` }))));
  return parts;
}
const SIGNS = { read: "→", ignored: "×", wrong: "!" };
function row(number, words, notes, place, changed) {
  const said = notes.map(([kind, each]) => element("span", { className: `fit-${kind}`, textContent: `${SIGNS[kind]} ${each}` }));
  const text = notes.length ? typed(words, `Line ${number}`, place, changed) : element("code", { textContent: words });
  return element("tr", {}, element("td", { textContent: number }), element("td", {}, text), element("td", {}, ...said));
}

// A text that can be corrected where it stands: Enter or leaving it takes what it now says, Escape what it said. ``place``
// is the same in the next answer, so that the hand that corrects it stays where it is.
function typed(words, name, place, changed) {
  const made = element("code", { textContent: words, className: "fit-typed", contentEditable: "true", spellcheck: false, tabIndex: 0, role: "textbox", ariaLabel: `${name}: correct it here` });
  made.dataset.place = place;
  const take = () => {
    const said = made.textContent.replace(/[\r\n]+/g, " ");
    if (said === words) return;
    words = said;
    changed(said);
  };
  made.addEventListener("keydown", event => {
    if (event.key === "Escape") made.textContent = words;
    if (event.key === "Enter") take();
    if (event.key === "Enter" || event.key === "Escape") event.preventDefault();
  });
  made.addEventListener("blur", () => "held" in made.dataset || take());
  return made;
}

// Where the reader's hand is in an answer that another one replaces, and what is half typed there.
export function held(within) {
  const made = document.activeElement, place = within.contains(made) && made.dataset.place, at = getSelection();
  if (!place) return () => {};
  made.dataset.held = "";  // that it goes is no leaving of it
  const text = made.textContent, caret = made.contains(at.focusNode) ? at.focusOffset : 0;
  return () => {
    const same = [...within.querySelectorAll("[data-place]")].find(each => each.dataset.place === place) ?? within.querySelector("[data-said]");
    same.focus({ preventScroll: true });
    if (!same.isContentEditable) return;
    same.textContent = text;
    if (same.firstChild) at.collapse(same.firstChild, Math.min(caret, text.length));
  };
}
