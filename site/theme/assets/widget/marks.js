// Where the marks of a part are, on the scales that they are drawn on.

const SIDES = ["left", "right", "bottom", "top"];

// The marks of a part: [{sides or x and y, one number a row each, scales}]. Columns of these names say where its rows are;
// where a part has none, what its glyphs are drawn with does. A part whose glyphs are all for another width has no marks.
export function marks(view, part, frame) {
  const columns = view.drawn[part], all = view.plot.model.renderers.filter(each => each.data_source?.name === part);
  const renderers = all.filter(each => each.visible);
  if (all.length && !renderers.length) return [];
  for (const names of [SIDES, ["x", "y"]]) if (names.every(name => columns[name])) return [{ ...columns, ...scales(renderers[0], frame) }];
  const rows = Math.max(...Object.values(columns).map(column => column.length));
  const given = spec => spec?.field ? columns[spec.field] : Array(rows).fill(spec?.value);
  return renderers.filter(drawn => drawn.glyph.type !== "Text").flatMap(drawn => {
    const names = [SIDES, ["left", "right", "y", "height"], ["x", "y"]].find(all => all.every(name => drawn.glyph[name] !== undefined));
    if (!names) return [];
    const mark = Object.fromEntries(names.map(name => [name, given(drawn.glyph[name])]));
    if (mark.height) for (const [side, way] of [["bottom", -1], ["top", 1]]) mark[side] = mark.y.map((y, i) => y + way * mark.height[i] / 2);
    return [{ ...mark, ...scales(drawn, frame) }];
  });
}

const scales = (drawn, frame) => ({
  across: frame.x_scales.get(drawn?.x_range_name) ?? frame.x_scale,
  upwards: frame.y_scales.get(drawn?.y_range_name) ?? frame.y_scale,
});

// The scales that a part is drawn on.
export function scalesOf(view, part, frame) {
  return scales(view.plot.model.renderers.find(each => each.visible && each.data_source?.name === part), frame);
}
