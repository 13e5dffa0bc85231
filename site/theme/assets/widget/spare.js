// What Bokeh works out at each change though no figure here needs it.
const STEPS = ["set_data", "set_visuals", "after_visuals", "map_data"];

export function spareBokeh(Bokeh) {
  spareGlyphs(Bokeh.Models.get("GlyphRenderer").prototype.default_view.prototype);
  spareStyles(Bokeh.require("core/visuals/visual").VisualProperties.prototype);
}

// Every glyph is kept five times: as it is, selected, not selected, muted, thinned out. Nothing here is selected, muted or
// thinned out, so these four stay idle.
function spareGlyphs(renderer) {
  const build = renderer.build_glyph_view;
  renderer.build_glyph_view = async function (glyph) {
    const view = await build.call(this, glyph);
    if (glyph !== this.model.glyph) for (const step of STEPS) view[step] = () => {};
    return view;
  };
}

// The page's style sheets could change each colour and width of a figure (--bk-…), so each is asked for at each paint, which
// makes the browser work out the styles of the page in the middle of it. Here they change none.
function spareStyles(visual) {
  visual._get_css_value = () => "";
}
