// Figures are built in the light theme's colours; here each token's colour is swapped for the other theme's.
import { TOKENS } from "../widgets/shared.js";
import { allModels } from "./layout.js";

export const current = () => document.body.dataset.mdColorScheme === "slate" ? "dark" : "light";

function mapping(from, to) {
  return new Map(Object.values(TOKENS).map(token => [token[from].toLowerCase(), token[to]]));
}

// The figure's JSON text in a theme, before it is drawn for the first time.
export function inTheme(json, theme) {
  if (theme === "light") return json;
  const swap = mapping("light", theme);
  return json.replace(/#[0-9a-f]{6}\b/gi, hex => swap.get(hex.toLowerCase()) ?? hex);
}

const swapped = (value, swap) => {
  if (typeof value === "string") return swap.get(value.toLowerCase()) ?? value;
  if (Array.isArray(value) && typeof value[0] === "string") {
    const out = value.map(item => swapped(item, swap));
    return out.some((item, i) => item !== value[i]) ? out : value;
  }
  if (value && typeof value === "object" && Object.getPrototypeOf(value) === Object.prototype && typeof value.value === "string") {
    const inner = swapped(value.value, swap);
    return inner === value.value ? value : { ...value, value: inner };
  }
  return value;
};

// Restyle a drawn document in place; its data and state stay.
export function restyle(doc, from, to) {
  if (from === to) return;
  const swap = mapping(from, to);
  for (const model of allModels(doc)) {
    const changes = {};
    for (const [name, value] of Object.entries(model.attributes)) {
      if (name === "data") continue;
      const next = swapped(value, swap);
      if (next !== value) changes[name] = next;
    }
    if (Object.keys(changes).length) model.setv(changes);
  }
}
