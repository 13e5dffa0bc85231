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
  spareLooks(glyph);
  spareRows(view("CDSView"));
  spareLayout(view("Plot"), renderer);
  sparePatterns(Bokeh.require("core/visuals/hatch").HatchVector.prototype);
  const { TextBox } = Bokeh.require("core/graphics");
  spareLabels(view("Text"), TextBox);
  spareTexts(view("Text"), TextBox.prototype);
  spareBoxes(Bokeh.require("models/glyphs/lrtb").LRTBView.prototype);
  spareWedges(view("AnnularWedge"));
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

// A change of data tells a glyph all of its look anew. What is no column stays as it is, as long as the marks are as many. Each
// value is kept as a property that another glyph could inherit; here none does, so it is just kept.
function spareLooks(glyph) {
  const { _iter_visuals: looks } = glyph;
  glyph._iter_visuals = function () { return this.looks ??= [...looks.call(this)]; };
  glyph._define_attr = function (name, value) { this[name] = value; };
  glyph.set_visuals = function (source, indices) {
    this.worn ??= new Map();
    for (const property of this._iter_visuals()) {
      const look = property.get_value(), worn = this.worn.get(property);
      if (!("field" in look) && worn?.look === look && worn.count === indices.count) continue;
      this._define_attr(property.attr, property.uniform(source).select(indices));
      this.worn.set(property, { look, count: indices.count });
    }
    for (const visual of this.visuals) visual.update();
  };
}

// A glyph that shows all rows still shows all when their values change.
function spareRows(view) {
  const compute = view.compute_indices;
  view.compute_indices = function () {
    const count = this.parent.data_source.get_value().get_length() ?? 1;
    if (this.model.filter.type !== "AllIndices" || this.count !== count) compute.call(this);
    this.count = count;
  };
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

// A text without a letter is left out, and one that is as it was is not made anew.
function spareLabels(texts, TextBox) {
  texts._build_labels = function (words) {
    const known = this.labels ?? [];
    return Promise.resolve(Array.from(words, (word, i) =>
      word === "" ? null : known[i]?.text === word ? known[i] : new TextBox({ text: word })));
  };
}

// Each text is measured at each change and at each paint, told its look anew, and gets an outline without a colour. Here it is
// measured when it is made, and one of a single line without a background is just drawn where it stands.
function spareTexts(texts, box) {
  const { _size: measure } = box, { _paint: paint } = texts;
  box._size = function () {
    if (this.measured?.font !== this.font) {
      const size = measure.call(this);
      this.measured = { font: this.font, size, ascent: this._text_line(size.metrics).ascent };
    }
    return this.measured.size;
  };
  texts._paint = function (ctx, indices, data) {
    if (!isPlain(this)) return paint.call(this, ctx, indices, data);
    Object.assign(ctx, { textAlign: "left", textBaseline: "alphabetic" });
    let font = null;
    for (const i of indices) {
      const label = this.labels[i], x = this.sx[i] + this.x_offset.get(i), y = this.sy[i] + this.y_offset.get(i);
      if (!label?.measured || !isFinite(x + y) || !this.visuals.text.v_doit(i)) continue;
      const anchor = this.anchor_.get(i);
      if (font !== label.font) ctx.font = font = label.font;    // takes long, even if it is the same
      ctx.fillStyle = label.color;
      ctx.fillText(label.text, x - anchor.x * this.swidth[i], y - anchor.y * this.sheight[i] + label.measured.ascent);
    }
  };
}

const isZero = uniform => uniform.is_Scalar() && uniform.value === 0;

function isPlain({ visuals: { text, background_fill, background_hatch, border_line }, angle, labels }) {
  return isZero(angle) && isZero(text.text_outline_color) && !labels.some(label => label?.text.includes("\n"))
    && ![background_fill, background_hatch, border_line].some(visual => visual.doit);
}

// Boxes without a visible colour are left out, and those without width or height but for their outline, and those to the left of
// the frame, where they wait until they are needed. None has round corners.
function spareBoxes(boxes) {
  boxes._paint = function (ctx, indices) {
    const { sleft, sright, stop, sbottom } = this, { fill, hatch, line } = this.visuals;
    const least = this.renderer.plot_view.frame.bbox.left - WIDEST_LINE;
    for (const i of indices) {
      const left = sleft[i], top = stop[i], width = sright[i] - left, height = sbottom[i] - top;
      if (!isFinite(left + top + width + height) || Math.max(left, sright[i]) <= least) continue;
      const isInked = width && height && (fill.v_doit(i) || hatch.v_doit(i)), isOutlined = line.v_doit(i);
      if (!isInked && !isOutlined) continue;
      ctx.beginPath();
      ctx.rect(left, top, width, height);
      if (isInked) {
        fill.apply(ctx, i);
        hatch.apply(ctx, i);
      }
      if (isOutlined) line.apply(ctx, i);
    }
  };
}

// So are parts of rings without a visible colour.
function spareWedges(wedges) {
  const paint = wedges._paint;
  wedges._paint = function (ctx, indices, data) {
    const { fill, hatch, line } = this.visuals;
    paint.call(this, ctx, indices.filter(i => fill.v_doit(i) || hatch.v_doit(i) || line.v_doit(i)), data);
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
