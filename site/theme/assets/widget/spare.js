// What Bokeh works out though no figure here needs it, and one thing that it leaves undone.
const LOOK = ["hatch_pattern", "hatch_color", "hatch_alpha", "hatch_scale", "hatch_weight"];
const WIDEST_LINE = 20;  // pixels

export function spareBokeh(Bokeh) {
  const view = model => Bokeh.Models.get(model).prototype.default_view.prototype;
  const renderer = view("GlyphRenderer"), glyph = Bokeh.require("models/glyphs/glyph").GlyphView.prototype;
  const { Indices } = Bokeh.require("core/types");
  spareGlyphs(renderer);
  spareRepeats(renderer);
  spareSheets(renderer, Bokeh.require("core/dom").InlineStyleSheet.prototype);
  spareStyles(Bokeh.require("core/visuals/visual").VisualProperties.prototype);
  spareSearch(renderer, glyph, Bokeh.require("models/plots/range_manager").RangeManager.prototype, Indices);
  spareCopies(Indices.prototype);
  spareLayout(view("Plot"), renderer);
  sparePatterns(Bokeh.require("core/visuals/hatch").HatchVector.prototype);
  spareTexts(view("Text"));
  spareBoxes(Bokeh.require("models/glyphs/lrtb").LRTBView.prototype);
  spareFonts(view("Plot"));
  clearWhole(Bokeh.require("core/util/canvas").CanvasLayer.prototype);
}

// A glyph is kept five times: as it is, selected, not selected, muted, thinned out. Nothing here is ever selected, muted or
// thinned out, so something idle stands for these four.
class Idle {
  constructor(model) {
    this.model = model;
  }
}
for (const step of ["set_base", "set_data", "set_visuals", "after_visuals", "after_lazy_visuals", "map_data", "remove"]) {
  Idle.prototype[step] = () => {};
}

function spareGlyphs(renderer) {
  const { build_glyph_view, children_views } = renderer;
  renderer.build_glyph_view = async function (glyph) {
    return this.glyph ? new Idle(this.glyph.model) : build_glyph_view.call(this, glyph);
  };
  renderer.children_views = function () {
    return children_views.call(this).filter(view => !(view instanceof Idle));
  };
}

// A change of data with more rows or fewer is told to a glyph two times over. It follows once, when all is told; a glyph that is
// not shown at this width follows when it is.
function spareRepeats(renderer) {
  const { update_data, connect_signals } = renderer;
  renderer.update_data = function () {
    this.told ??= Promise.resolve().then(() => {
      this.told = null;
      this.late = !this.model.visible;
      return this.late ? null : update_data.call(this);
    });
    return this.told;
  };
  renderer.connect_signals = function () {
    connect_signals.call(this);
    this.connect(this.model.properties.visible.change, () => this.late ? this.update_data() : null);
  };
}

// Every glyph has an element, too, which is moved to where its marks are by a style sheet written anew at each paint; the next
// text that is drawn then waits for the browser to work out the styles of the page. Nothing looks at these elements, so they
// rest, and a sheet is written only when it changes.
function spareSheets(renderer, sheet) {
  renderer.update_position = function () { this.position.replace(":host { display: none; }"); };
  const update = sheet._update;
  sheet._update = function (css) { if (this.css !== css) update.call(this, css); };
}

// The page's style sheets could change each colour and width of a figure (--bk-…), so each is asked for at each paint, which
// makes the browser work out the styles of the page in the middle of it. Here they change none.
function spareStyles(visual) {
  visual._get_css_value = () => "";
}

// An index of where the marks are says which lie outside of the frame, and how far an axis should reach. The frame cuts off what
// is outside of it, and the widgets say themselves how far their axes reach.
function spareSearch(renderer, glyph, ranges, Indices) {
  glyph.index_data = () => {};
  renderer._update_masked_indices = function () { return Indices.all_set(this.all_indices.count); };
  ranges._update_dataranges = () => {};
}

// A glyph takes of each column the rows that are its own: mostly all, and then the column itself does.
function spareCopies(indices) {
  const { select } = indices;
  indices.select = function (column) { return this.count === column.length ? column : select.call(this, column); };
}

// Before each paint the axes' texts are measured, for a longer one needs room. While only data has changed they are as they were.
function spareLayout(plot, renderer) {
  const measure = plot._invalidate_layout_if_needed;
  plot._invalidate_layout_if_needed = function () {
    const changed = [...this._invalidated_painters];
    if (this._needs_layout || this._invalidate_all || !changed.every(view => renderer.isPrototypeOf(view))) measure.call(this);
  };
}

// A pattern is drawn anew when the data changes, and taken up by each mark anew. Here it is all marks' and drawn once.
function sparePatterns(hatch) {
  const { update, pattern } = hatch;
  hatch.update = function () {
    const look = [devicePixelRatio, ...LOOK.map(name => this[name].value)].join();
    if (this.look === look) return;
    update.call(this);
    Object.assign(this, { look, taken: null });
  };
  hatch.pattern = function (ctx, i) { return this.taken ??= pattern.call(this, ctx, i); };
}

// A text without a letter is left out. For the others their font is set beforehand: each sets it again, which takes long when it
// is another than before.
function spareTexts(texts) {
  const { _build_labels: build, _paint: paint } = texts;
  texts._build_labels = function (words) { return build.call(this, Array.from(words, word => word === "" ? null : word)); };
  texts._paint = function (ctx, indices, data) {
    ctx.font = this.labels.find(label => label)?.font ?? ctx.font;
    paint.call(this, ctx, indices, data);
  };
}

// Boxes without a visible colour are left out, and those to the left of the frame, where they wait until they are needed.
function spareBoxes(boxes) {
  const paint = boxes._paint;
  boxes._paint = function (ctx, indices, data) {
    const { fill, hatch, line } = this.visuals, least = this.renderer.plot_view.frame.bbox.left - WIDEST_LINE;
    const seen = i => Math.max(this.sleft[i], this.sright[i]) > least && (fill.v_doit(i) || hatch.v_doit(i) || line.v_doit(i));
    paint.call(this, ctx, indices.filter(seen), data);
  };
}

// No text here depends on the size of the text around its figure: all have theirs in pixels. It is asked for with each tick.
function spareFonts(plot) {
  Object.defineProperty(plot, "base_font_size", { get: () => 13 });
}

// Half a pixel off, Bokeh never quite clears the first column of what was drawn before.
function clearWhole(layer) {
  layer.clear = function () {
    const { width, height } = this.canvas;
    this.undo_transform(ctx => ctx.clearRect(0, 0, width, height));
  };
}
