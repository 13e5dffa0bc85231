// A file of the reader's, pasted or dropped, becomes a widget's controls. It is parsed as JSON and stays in this browser. What
// may stand in it, and the words about what may not, are config_json.py's; a test holds the two readers against each other.

import { faultIn } from "./fault.js";

// A value as the file has it, cut where it is long; one nested deeper than any model's file is not spelled out.
function written(value, shown) {
  try {
    return (typeof value === "number" ? String(value) : JSON.stringify(value)).slice(0, shown);
  } catch { return "something nested very deeply"; }
}

function place(text) {
  try {
    const [line, column] = faultIn(text);
    return `: line ${line}, column ${column}`;
  } catch { return ""; }  // nested deeper than any model's file
}

// A value of the file as a number; NaN where it is not given, undefined where it may not be this.
function numberOf(value, { kind, least, most, names }, words) {
  if (value === null || value === undefined) return NaN;
  if (kind === "text" && typeof value === "string") return words.includes(value) ? words.indexOf(value) : NaN;
  if (kind === "flag" && typeof value === "boolean") return +value;
  if (kind === "layers" && Array.isArray(value) && value.every(one => names.includes(one))) return value.filter(one => one === names[0]).length;
  if (kind === "pattern" && typeof value === "string" && /^L+G$/.test(value)) return value.length;
  if ((kind === "number" || kind === "pattern") && Number.isInteger(value) && value >= least && value <= most) return value;
  return undefined;
}

// The first key that may change what layers are made of, and that nobody here reads: config_layers.unread.
function unreadIn(file, { holds, not_holds, parts, known, harmless_at }) {
  return Object.entries(file).find(([key, value]) => {
    const empty = !value || typeof value === "string" || typeof value === "object" && Object.keys(value).length === 0;
    const shapes = holds.some(part => key.includes(part)) && !not_holds.some(part => key.includes(part));
    const part = !empty && typeof value === "object" && !Array.isArray(value) && key.endsWith("_config") && !parts.includes(key);
    return !empty && (shapes || part) && !known.includes(key) && value !== harmless_at[key];
  })?.[0];
}

// The controls' values, or words about what is wrong with the text.
export function read(intake, program, text) {
  const refused = said => ({ refused: said });
  if (text.length > intake.longest) return refused(intake.too_long);
  let file;
  try { file = JSON.parse(text); } catch { return refused(`${intake.not_json}${place(text)}.`); }
  if (!file || typeof file !== "object" || Array.isArray(file)) return refused(intake.not_an_object);
  const inner = file[intake.inner] ?? {};
  if (typeof inner !== "object" || Array.isArray(inner)) return refused(`${intake.inner} must be an object in braces, got ${written(inner, intake.shown)}.`);
  const tied = file.tie_word_embeddings ?? inner.tie_word_embeddings;
  file = { ...file, ...inner, ...(tied === undefined ? {} : { tie_word_embeddings: tied }) };
  const given = [];
  for (const [i, key] of intake.keys.entries()) {
    const value = Object.hasOwn(file, key) ? file[key] : null, rule = intake.rules[i];
    given.push(numberOf(value, rule, intake.words));
    if (given[i] === undefined) return refused(`${key} must be ${rule.allowed}, got ${written(value, intake.shown)}.`);
  }
  const layers = intake.lengths.of.map(place => given[place]).find(value => !Number.isNaN(value));
  const listed = file[intake.lengths.list];
  if (layers && Array.isArray(listed) && listed.length !== layers) {
    return refused(intake.lengths.said.replace("{layers}", layers).replace("{given}", listed.length));
  }
  const unread = unreadIn(file, intake.unread);
  if (unread !== undefined) return refused(intake.unread.said.replace("{key}", [...unread].slice(0, 60).join("")));
  const { fields, wrong } = program(given);
  const values = Object.fromEntries(intake.controls.map((name, place) => [name, fields[place]]));
  if (wrong >= 0) return refused(intake.complaints[wrong].replace(/\{(\w+)\}/g, (_, name) => values[name]));
  for (const [name, [least, most]] of Object.entries(intake.bounds)) {
    if (!(values[name] >= least && values[name] <= most)) {
      return refused(`It gives ${name.replaceAll("_", " ")} as ${values[name]}, where ${least} to ${most} is allowed.`);
    }
  }
  return { values };
}

// What the figure still shows: the names of the options chosen in the controls that a file would set.
function stillShown(view) {
  const chosen = view.controls.filter(control => control.kind === "choice" && control.name in view.intake.sets)
    .map(control => view.element.querySelector(`[data-control="${control.name}"] select`).selectedOptions[0].textContent.trim());
  return ` The figure still shows what it did before: ${chosen.join(", ")}.`;
}

export function bindIntake(view) {
  const box = view.$("[data-intake]"), { intake } = view;
  if (!box || !intake) return;
  const place = box.querySelector("textarea"), said = box.querySelector("[data-said]");
  const say = (words, refused) => {
    said.textContent = refused ? words + stillShown(view) : words;
    said.classList.toggle("over", refused);
  };
  const take = text => {
    if (!text.trim()) return say("", false);
    const { values, refused } = read(intake, view.readFile, text);
    say(refused ?? "Read: the fields of your own model hold it now.", !!refused);
    if (!refused) view.set({ ...values, ...intake.sets }, true);
  };
  const file = async given => {
    if (!given) return;
    place.value = given.size > intake.longest ? "" : await given.text().catch(() => "");
    if (given.size > intake.longest) say(intake.too_long, true);
    else take(place.value);
  };
  place.addEventListener("input", () => take(place.value));
  box.querySelector("input[type=file]").addEventListener("change", event => file(event.target.files[0]));
  box.addEventListener("dragover", event => event.preventDefault());
  box.addEventListener("drop", event => {
    event.preventDefault();
    if (event.dataTransfer.files.length) file(event.dataTransfer.files[0]);
    else { place.value = event.dataTransfer.getData("text"); take(place.value); }
  });
}
