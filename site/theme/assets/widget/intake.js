// A file of the reader's, pasted or dropped, becomes a widget's controls. It is parsed as JSON and stays in this browser.

const number = (value, words) => typeof value === "boolean" || typeof value === "number" ? +value
  : typeof value === "string" && words.includes(value) ? words.indexOf(value) : NaN;

// The controls' values, or words about what is wrong with the text.
export function read(intake, program, text) {
  let file;
  try { file = JSON.parse(text); } catch { return { refused: intake.not_json }; }
  if (!file || typeof file !== "object" || Array.isArray(file)) return { refused: intake.not_an_object };
  const inner = file[intake.inner];
  if (inner && typeof inner === "object" && !Array.isArray(inner)) file = { ...file, ...inner };
  const { fields, missing } = program(intake.keys.map(key => Object.hasOwn(file, key) ? number(file[key], intake.words) : NaN));
  if (missing >= 0) return { refused: intake.complaints[missing] };
  return { values: Object.fromEntries(intake.controls.map((name, i) => [name, fields[i]])) };
}

function outOfBounds(controls, values) {
  for (const { name, label, low, high, whole } of controls) {
    const value = values[name];
    if (value === undefined || low === undefined) continue;
    if (!(value >= low && value <= high) || (whole && !Number.isInteger(value))) {
      return `It gives ${label.toLowerCase()} as ${value}: the planner takes ${low} to ${high}.`;
    }
  }
  return "";
}

export function bindIntake(view) {
  const box = view.$("[data-intake]"), { intake } = view;
  if (!box || !intake) return;
  const place = box.querySelector("textarea"), said = box.querySelector("[data-said]");
  const take = text => {
    if (!text.trim()) { said.textContent = ""; return; }
    const found = read(intake, view.readFile, text);
    const refused = found.refused ?? outOfBounds(view.controls, found.values);
    said.textContent = refused || "Read: the fields of your own model hold it now.";
    said.classList.toggle("over", !!refused);
    if (!refused) view.set({ ...found.values, ...intake.sets }, true);
  };
  const file = async given => {
    if (!given) return;
    place.value = given.size > 1e6 ? "" : await given.text();
    if (given.size > 1e6) said.textContent = "A config.json has a few kilobytes; this file is another one.";
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
