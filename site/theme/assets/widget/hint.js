// What a mark says under the pointer, or under a finger: the words are made when they are first asked for in a state.

const MARGIN = 24;  // pixels around a point in which it counts as meant

export function bindHints(view) {
  if (!view.hinted.length) return;
  const place = view.$("[data-plot]");
  const note = document.createElement("div");
  note.className = "widget-hint";
  note.hidden = true;
  place.append(note);
  let of = null, texts = null;
  const said = (part, row) => {
    if (of !== view.shown) [of, texts] = [view.shown, view.hints(view.values)];
    return texts[part][row];
  };
  const move = event => {
    const at = spot(view, event);
    const found = at && view.hinted.map(part => [part, rowAt(view, part, at)]).findLast(([, row]) => row >= 0);
    note.hidden = !found;
    if (found) put(note, place, said(...found), event);
  };
  place.addEventListener("pointermove", move);
  place.addEventListener("pointerdown", move);
  for (const leaving of ["pointerleave", "pointercancel"]) place.addEventListener(leaving, () => { note.hidden = true; });
}

// The pointer in the picture's own coordinates; null outside the frame.
function spot(view, event) {
  const { frame, el } = view.plot, box = el.getBoundingClientRect();
  const sx = event.clientX - box.left, sy = event.clientY - box.top;
  if (!frame.bbox.contains(sx, sy)) return null;
  return { sx, sy, frame };
}

const SIDES = ["left", "right", "bottom", "top"];

// The marks of a part: [{sides or x and y, one number a row each, scales}]. Columns of these names say where its rows are;
// where a part has none, what its glyphs are drawn with does.
function marks(view, part, frame) {
  const columns = view.drawn[part], renderers = view.plot.model.renderers.filter(each => each.data_source?.name === part);
  const scales = drawn => ({ across: frame.x_scales.get(drawn?.x_range_name) ?? frame.x_scale,
                             upwards: frame.y_scales.get(drawn?.y_range_name) ?? frame.y_scale });
  for (const names of [SIDES, ["x", "y"]]) if (names.every(name => columns[name])) return [{ ...columns, ...scales(renderers[0]) }];
  const rows = Math.max(...Object.values(columns).map(column => column.length));
  const given = spec => spec?.field ? columns[spec.field] : Array(rows).fill(spec?.value);
  return renderers.filter(drawn => drawn.glyph.type !== "Text").flatMap(drawn => {
    const names = [SIDES, ["left", "right", "y", "height"], ["x", "y"]].find(all => all.every(name => drawn.glyph[name] !== undefined));
    if (!names) return [];
    const mark = Object.fromEntries(names.map(name => [name, given(drawn.glyph[name])]));
    if (mark.height) for (const [side, way] of [["bottom", -1], ["top", 1]]) mark[side] = mark.y.map((y, i) => y + way * mark.height[i] / 2);
    return [{ ...mark, ...scales(drawn) }];
  });
}

// The uppermost mark under the pointer: the last of those that hold it, or the nearest of points.
function rowAt(view, part, { sx, sy, frame }) {
  let best = -1, least = MARGIN;
  for (const { left, right, bottom, top, x: xs, y: ys, across, upwards } of marks(view, part, frame)) {
    const x = across.invert(sx), y = upwards.invert(sy);
    if (left) {
      for (let i = left.length - 1; i >= 0; i--) if (left[i] <= x && x <= right[i] && bottom[i] <= y && y <= top[i]) return i;
      continue;
    }
    for (let i = 0; i < xs.length; i++) {
      const far = Math.hypot(sx - across.compute(xs[i]), sy - upwards.compute(ys[i]));
      if (far < least) [best, least] = [i, far];
    }
  }
  return best;
}

// Beside the pointer, inside the picture, never under a finger.
function put(note, place, text, event) {
  if (note.textContent !== text) note.textContent = text;
  const box = place.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
  note.style.left = `${Math.max(0, Math.min(x + 14, box.width - note.offsetWidth))}px`;
  note.style.top = `${y - note.offsetHeight - 12 < 0 ? y + 20 : y - note.offsetHeight - 12}px`;
}
