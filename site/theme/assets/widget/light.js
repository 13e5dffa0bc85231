// Lights some of a figure's marks: all others fade until it goes out. A light is named by the widget (`lights`), or it is a part.

const FADED = 0.14;
const FADED_TEXT = 0.35;  // so that a row can still be told by its name
const dimmed = new WeakMap();  // view -> [glyph, what it had] of those that are faded

const lit = ({ name, data_source }, marks) => marks.includes(name) || marks.includes(data_source?.name);

export function light(view, name) {
  put(view, name);
  view.element.dataset.lit = name;
}

// What a tour has lit comes back when a phrase's light goes out.
export function unlight(view) {
  if (view.stays) return light(view, view.stays);
  restore(view);
  delete view.element.dataset.lit;
}

function put(view, name) {
  restore(view);
  const marks = view.lights[name] ?? [name], fades = new Fades();
  const others = view.plot.model.renderers.filter(drawn => drawn.glyph && !lit(drawn, marks));
  dimmed.set(view, others.map(({ glyph }) => {
    const changes = fades.of(glyph);
    const had = Object.fromEntries(Object.keys(changes).map(key => [key, glyph[key]]));
    glyph.setv(changes);
    return [glyph, had];
  }));
}

function restore(view) {
  for (const [glyph, had] of dimmed.get(view) ?? []) glyph.setv(had);
  dimmed.delete(view);
}

// How strong a mark is may stand in a column, so it is faded by Bokeh's own way to map a column.
class Fades {
  constructor() {
    const { LinearInterpolator } = window.Bokeh.require("models/transforms/linear_interpolator");
    this.make = least => new LinearInterpolator({ x: [0, 1], y: [0, least], clip: false });
    this.made = new Map();
  }

  of(glyph) {
    const least = glyph.type === "Text" ? FADED_TEXT : FADED;
    if (!this.made.has(least)) this.made.set(least, this.make(least));
    return Object.fromEntries(Object.keys(glyph.attributes).filter(key => key.endsWith("_alpha"))
      .map(key => [key, faded(glyph[key], least, this.made.get(least))]));
  }
}

function faded(strength, least, transform) {
  if (typeof strength === "number") return strength * least;
  if (strength?.field) return { field: strength.field, transform };
  return { value: (strength?.value ?? 1) * least };
}
