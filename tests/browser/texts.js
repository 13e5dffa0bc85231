// Notes each text that a figure paints: its words, where its ink lies, and how much of it the frame or the canvas leaves.
// It has to be there before a figure is drawn.
(() => {
  const proto = CanvasRenderingContext2D.prototype;
  const kept = new WeakMap();  // a context -> what may be painted on, what it was before each save(), the path that is being made
  let noted = null;

  const everywhere = () => ({ left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity });
  const state = ctx => kept.get(ctx) ?? kept.set(ctx, { clip: everywhere(), saved: [], path: [] }).get(ctx);
  const moved = (ctx, x, y) => {
    const { a, b, c, d, e, f } = ctx.getTransform();
    return [(a * x + c * y + e) / devicePixelRatio, (b * x + d * y + f) / devicePixelRatio];
  };

  const before = (name, note) => {
    const plain = proto[name];
    proto[name] = function (...args) {
      note(this, ...args);
      return plain.apply(this, args);
    };
  };
  before("save", ctx => { const { saved, clip } = state(ctx); saved.push(clip); });
  before("restore", ctx => { const own = state(ctx); own.clip = own.saved.pop() ?? everywhere(); });
  before("beginPath", ctx => { state(ctx).path = []; });
  before("rect", (ctx, x, y, w, h) => { state(ctx).path.push(moved(ctx, x, y), moved(ctx, x + w, y + h)); });
  before("clip", ctx => {
    const own = state(ctx), { clip, path } = own;
    if (!path.length) return;  // not a box: no figure's texts are cut to another shape
    const xs = path.map(([x]) => x), ys = path.map(([, y]) => y);
    own.clip = {
      left: Math.max(clip.left, Math.min(...xs)), right: Math.min(clip.right, Math.max(...xs)),
      top: Math.max(clip.top, Math.min(...ys)), bottom: Math.min(clip.bottom, Math.max(...ys)),
    };
  });
  before("fillText", (ctx, text, x, y) => {
    if (!noted || !text.trim() || !ctx.globalAlpha) return;
    const { actualBoundingBoxLeft: l, actualBoundingBoxRight: r, actualBoundingBoxAscent: t, actualBoundingBoxDescent: b } = ctx.measureText(text);
    const corners = [[x - l, y - t], [x + r, y - t], [x + r, y + b], [x - l, y + b]].map(([px, py]) => moved(ctx, px, py));
    const { clip } = state(ctx), { width, height } = ctx.canvas;
    const seen = [
      Math.max(clip.left, 0), Math.max(clip.top, 0),
      Math.min(clip.right, width / devicePixelRatio), Math.min(clip.bottom, height / devicePixelRatio),
    ];
    noted.push({ text, corners, seen });
  });

  const frame = () => new Promise(done => requestAnimationFrame(done));
  const turn = () => new Promise(done => setTimeout(done));
  let view = null;

  // The widget of this page, once it lives; and its own script's hands are not needed for what follows.
  async function find() {
    const { View } = await import(new URL("../assets/widget/view.js", location));
    const { set } = View.prototype;
    View.prototype.set = function (...args) { view = this; return set.apply(this, args); };
    document.querySelector("figure.widget").dispatchEvent(new CustomEvent("widget-set", { detail: {} }));
    View.prototype.set = set;
  }

  // What the picture says in each of these states.
  window.textsIn = async states => {
    if (!view) await find();
    await document.fonts.ready;
    const found = [];
    for (const values of states) {
      Object.assign(view.values, values);
      view.show(view.compute(view.values));
      view.settle(true);
      await turn();
      await turn();
      view.plot.repaint();
      await turn();
      noted = [];
      view.plot.request_repaint();  // all of it, and at once
      view.plot.repaint();
      found.push(noted);
      noted = null;
    }
    return found;
  };

  window.resized = async () => {
    if (!view) await find();
    for (let i = 0; i < 4; i++) await frame();
  };
})();
