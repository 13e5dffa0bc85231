// Bokeh keeps every glyph five times: as it is, selected, not selected, muted, thinned out. Each change of its data is worked out
// for all five. No figure here selects, mutes or thins out, so the other four stay idle.
const STEPS = ["set_data", "set_visuals", "after_visuals", "map_data"];

export function restSpareGlyphs(Bokeh) {
  const { prototype } = Bokeh.Models.get("GlyphRenderer").prototype.default_view;
  const build = prototype.build_glyph_view;
  prototype.build_glyph_view = async function (glyph) {
    const view = await build.call(this, glyph);
    if (glyph !== this.model.glyph) for (const step of STEPS) view[step] = () => {};
    return view;
  };
}
