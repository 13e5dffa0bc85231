// Work that BokehJS does at every change and that no figure of the course needs. Each patch below leaves out one kind of it, and
// one mends a fault. They reach into Bokeh's private parts, so each first looks for all that it names: where something is missing
// it is left out, the console says so, and Bokeh does its own work. docs/bokeh.md says what each is worth and how to upgrade.
const RENDERER = ["models/renderers/glyph_renderer", "GlyphRendererView"];
const GLYPH = ["models/glyphs/glyph", "GlyphView"];
const HATCH = ["core/visuals/hatch", "HatchVector"];

// Each patch by its name: the classes that it changes, with the members that must be there, and what it does with their prototypes.
export const PATCHES = {
  copies: { patch: skipCopies, needs: { renderer: [...RENDERER, "build_glyph_view", "children_views"], glyph: GLYPH } },
  elements: { patch: skipElements, needs: { renderer: [...RENDERER, "_update_stylesheets", "update_position"] } },
  sheets: { patch: skipSheets, needs: { sheet: ["core/dom", "InlineStyleSheet", "_update", "css"] } },
  styles: { patch: skipStyles, needs: { visual: ["core/visuals/visual", "VisualProperties", "_get_css_value"] } },
  hidden: { patch: skipHidden, needs: { renderer: [...RENDERER, "update_data", "connect_signals"] } },
  lengths: { patch: skipLengths, needs: { source: ["models/sources/columnar_data_source", "ColumnarDataSource", "get_length"] } },
  points: { patch: skipPoints, needs: { marker: ["models/glyphs/marker", "MarkerView", "_mask_data"] } },
  index: { patch: skipIndex, needs: { glyph: [...GLYPH, "index_data", "index"] } },
  ranges: { patch: skipRanges, needs: { ranges: ["models/plots/range_manager", "RangeManager", "_update_dataranges"] } },
  boxes: { patch: skipBoxes, needs: { boxes: ["models/glyphs/lrtb", "LRTBView", "_paint"] } },
  patterns: { patch: skipPatterns, needs: { hatch: [...HATCH, "update", "pattern"] } },
  labels: { patch: skipLabels, needs: { texts: ["models/glyphs/text", "TextView", "_build_labels"] } },
  clearing: { patch: clearWhole, needs: { layer: ["core/util/canvas", "CanvasLayer", "clear", "ctx"] } },
};

// Takes each patch that fits this Bokeh; <html data-skips> names them. A test names in `leaveToBokeh` those that it does without.
export function skipWork(Bokeh, without = window.leaveToBokeh ?? []) {
  const taken = new Set(Object.keys(PATCHES).filter(name => !without.includes(name)));
  const say = () => { document.documentElement.dataset.skips = [...taken].join(" "); };
  for (const name of [...taken]) {
    const leave = error => {
      if (taken.delete(name)) console.info(`Bokeh ${Bokeh.version} does without the patch “${name}”: ${error.message}`);
      say();
    };
    take(Bokeh, name, leave);
  }
  say();
}

// A patch gets `leave` for what shows itself only when a figure is drawn.
function take(Bokeh, name, leave) {
  const { patch, needs } = PATCHES[name];
  try {
    patch(Object.fromEntries(Object.entries(needs).map(([key, need]) => [key, found(Bokeh, ...need)])), leave);
  } catch (error) {
    leave(error);
  }
}

function found(Bokeh, module, name, ...members) {
  const { prototype } = Bokeh.require(module)[name] ?? {};
  if (!prototype) throw new Error(`${module} has no ${name}`);
  const missing = members.find(member => !(member in prototype));
  if (missing) throw new Error(`${name} has no ${missing}`);
  return prototype;
}

// -- a change of data ---------------------------------------------------------------------------------------------------

// Bokeh keeps each glyph five times: as it is, selected, not selected, muted and thinned out, and works out all five. Nothing here
// is ever selected, muted or thinned out, so the other four are views that do nothing.
function skipCopies({ renderer, glyph }) {
  class Idle {
    constructor(model) { this.model = model; }
  }
  for (let from = glyph; from !== Object.prototype; from = Object.getPrototypeOf(from)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(from))) {
      if (typeof value === "function" && name !== "constructor") Idle.prototype[name] = () => {};
    }
  }
  const { build_glyph_view, children_views } = renderer;
  renderer.build_glyph_view = async function (model) {
    return this.glyph ? new Idle(model) : build_glyph_view.call(this, model);
  };
  renderer.children_views = function () {
    return children_views.call(this).filter(view => !(view instanceof Idle));
  };
}

// A glyph that is for another width than the picture's follows each change like any other. Here it does so once it is shown.
function skipHidden({ renderer }) {
  const { update_data, connect_signals } = renderer;
  renderer.update_data = async function (indices) {
    this.isLate = !this.model.visible;
    if (!this.isLate) await update_data.call(this, indices);
  };
  renderer.connect_signals = function () {
    connect_signals.call(this);
    this.connect(this.model.properties.visible.change, () => { if (this.isLate) this.update_data(); });
  };
}

// Each property of each glyph asks its data source for the number of rows, which compares the lengths of all its columns.
function skipLengths({ source }) {
  const { get_length } = source, known = new WeakMap();
  source.get_length = function (soft) {
    if (!known.has(this.data)) known.set(this.data, get_length.call(this, soft));
    return known.get(this.data);
  };
}

// At each change and at each paint points ask the index, which then has to be made, which of them are in the frame. Here all of
// them are painted; what lies beyond the frame is cut off anyway.
function skipPoints({ marker }) {
  delete marker._mask_data;
}

// After each change of data a glyph makes an index of where its marks are. It is made here when somebody asks for it, and with the
// patches `elements`, `ranges` and `points` hardly anybody does.
function skipIndex({ glyph }) {
  const { index_data } = glyph, { get } = Object.getOwnPropertyDescriptor(glyph, "index");
  glyph.index_data = function () { this.isIndexed = false; };
  Object.defineProperty(glyph, "index", {
    configurable: true,
    get() {
      if (this.isIndexed === false) {
        this.isIndexed = true;
        index_data.call(this);
      }
      return get.call(this);
    },
  });
}

// A pattern is painted on a canvas of its own after each change of data, and each mark takes it up anew. Where all marks of a glyph
// have the same, it is painted once for each look.
const LOOK = ["hatch_pattern", "hatch_color", "hatch_alpha", "hatch_scale", "hatch_weight"];

function skipPatterns({ hatch }) {
  const { update, pattern } = hatch;
  hatch.update = function () {
    const isShared = LOOK.every(name => this[name]?.is_Scalar?.());
    const look = isShared ? [devicePixelRatio, ...LOOK.map(name => this[name].value)].join() : null;
    if (look && look === this.look) return;
    update.call(this);
    Object.assign(this, { look, shared: null });
  };
  hatch.pattern = function (ctx, i) {
    if (!this.look) return pattern.call(this, ctx, i);
    return this.shared ??= pattern.call(this, ctx, i);
  };
}

// An empty text is measured and painted like any other. Here there is no label for it.
function skipLabels({ texts }) {
  const build = texts._build_labels;
  texts._build_labels = async function (words) {
    const labels = await build.call(this, words);
    return Array.from(words, (word, i) => word === "" ? null : labels[i]);
  };
}

// -- a paint ------------------------------------------------------------------------------------------------------------

// Each glyph has an HTML element, too, with six style sheets, which Bokeh moves to where the marks are. Nothing is in it, so here it
// is not shown, and nothing about it is written.
function skipElements({ renderer }) {
  renderer._update_stylesheets = function () { this.el.style.display = "none"; };
  renderer.update_position = () => {};
}

// The elements of axes and titles are moved by style sheets that are written at each paint; after that the browser works out the
// styles of the page anew. A sheet that says what it said before is not written again.
function skipSheets({ sheet }) {
  const update = sheet._update;
  sheet._update = function (css) { if (this.css !== css) update.call(this, css); };
}

// A page's style sheets may set each colour and width of a figure (--bk-…), so Bokeh asks the browser for each of them at each
// paint. The course's sheets set none.
function skipStyles({ visual }) {
  visual._get_css_value = () => "";
}

// Before a paint Bokeh asks each glyph how far its marks reach, for axes that follow them (DataRange1d). A widget says itself how
// far its axes reach.
function skipRanges({ ranges }) {
  ranges._update_dataranges = () => {};
}

// Painted like all others are boxes without a visible colour, boxes without an outline that are no wider or higher than nothing, and
// boxes left of the frame, where a widget keeps what it has no use for yet. Here they are left out.
const WIDEST_LINE = 20;  // pixels

function skipBoxes({ boxes }, leave) {
  const paint = boxes._paint;
  let seen = seenBoxes;
  boxes._paint = function (ctx, indices, data) {
    try {
      indices = seen(this, indices);
    } catch (error) {
      leave(error);
      seen = (_, all) => all;
    }
    paint.call(this, ctx, indices, data);
  };
}

function seenBoxes({ sleft, sright, stop, sbottom, visuals: { fill, hatch, line }, renderer }, indices) {
  const least = renderer.plot_view.frame.bbox.left - WIDEST_LINE;
  return indices.filter(i => !(sleft[i] <= least && sright[i] <= least)
    && (line.v_doit(i) || (sleft[i] !== sright[i] && stop[i] !== sbottom[i] && (fill.v_doit(i) || hatch.v_doit(i)))));
}

// -- a fault ------------------------------------------------------------------------------------------------------------

// Everything is painted half a pixel off, and so is what clears it: the first column and row of pixels keep half of what they had.
function clearWhole({ layer }) {
  layer.clear = function () {
    const { ctx } = this;
    ctx.save();
    ctx.resetTransform();
    ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
    ctx.restore();
  };
}
