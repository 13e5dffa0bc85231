// Notes each text that a figure paints: its words, where its ink lies, how much of it the frame or the canvas leaves, and how far
// lines and small marks go through it. A page may be asked for that again and again.
window.textsIn ?? (() => {
  const proto = CanvasRenderingContext2D.prototype;
  let kept = null;  // a context -> what may be painted on, what it was before each save(), the path that is being made
  let noted = null, drawn = null, order = 0;  // texts; lines, marks and grounds; when each was painted

  const everywhere = () => ({ left: -Infinity, top: -Infinity, right: Infinity, bottom: Infinity });
  const state = ctx => kept.get(ctx) ?? kept.set(ctx, { clip: everywhere(), saved: [], path: [], lines: [] }).get(ctx);
  const moved = (ctx, x, y) => {
    const { a, b, c, d, e, f } = ctx.getTransform();
    return [(a * x + c * y + e) / devicePixelRatio, (b * x + d * y + f) / devicePixelRatio];
  };

  const before = (name, note) => {
    const plain = proto[name];
    proto[name] = function (...args) {
      if (noted) note(this, ...args);
      return plain.apply(this, args);
    };
  };
  before("save", ctx => { const { saved, clip } = state(ctx); saved.push(clip); });
  before("restore", ctx => { const own = state(ctx); own.clip = own.saved.pop() ?? everywhere(); });
  before("beginPath", ctx => { Object.assign(state(ctx), { path: [], lines: [] }); });
  before("rect", (ctx, x, y, w, h) => {
    const own = state(ctx);
    own.path.push(moved(ctx, x, y), moved(ctx, x + w, y + h));
    own.lines.push([[x, y], [x + w, y], [x + w, y + h], [x, y + h], [x, y]].map(([px, py]) => moved(ctx, px, py)));
  });
  before("moveTo", (ctx, x, y) => { state(ctx).lines.push([moved(ctx, x, y)]); });
  before("lineTo", (ctx, x, y) => { state(ctx).lines.at(-1)?.push(moved(ctx, x, y)); });
  before("closePath", ctx => { const line = state(ctx).lines.at(-1); if (line) line.push(line[0]); });
  before("arc", (ctx, x, y, r) => {
    const turns = [...Array(13).keys()].map(i => i * Math.PI / 6);
    state(ctx).lines.push(turns.map(turn => moved(ctx, x + r * Math.cos(turn), y + r * Math.sin(turn))));
  });
  const visible = style => typeof style === "string" && !/, ?0\)$|transparent|00$/.test(style.length === 9 || style.startsWith("rgba") ? style : "");
  const note = (ctx, what, style) => {
    const { lines, clip } = state(ctx);
    if (!lines.length || !ctx.globalAlpha) return;
    drawn.push({ what, style: String(style), lines, clip, when: order++ });
  };
  before("stroke", ctx => { if (ctx.lineWidth && visible(ctx.strokeStyle)) note(ctx, "line", ctx.strokeStyle); });
  before("fill", ctx => { if (visible(ctx.fillStyle)) note(ctx, "ground", ctx.fillStyle); });
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
    if (!text.trim() || !ctx.globalAlpha) return;
    const { actualBoundingBoxLeft: l, actualBoundingBoxRight: r, actualBoundingBoxAscent: t, actualBoundingBoxDescent: b } = ctx.measureText(text);
    const corners = [[x - l, y - t], [x + r, y - t], [x + r, y + b], [x - l, y + b]].map(([px, py]) => moved(ctx, px, py));
    const { clip } = state(ctx), { width, height } = ctx.canvas;
    const seen = [
      Math.max(clip.left, 0), Math.max(clip.top, 0),
      Math.min(clip.right, width / devicePixelRatio), Math.min(clip.bottom, height / devicePixelRatio),
    ];
    noted.push({ text, corners, seen, when: order++ });
  });

  // The part of a line's stretch within a box, in pixels (Liang and Barsky).
  const within = ([x0, y0], [x1, y1], { left, top, right, bottom }) => {
    let from = 0, to = 1;
    for (const [step, room] of [[x0 - x1, x0 - left], [x1 - x0, right - x0], [y0 - y1, y0 - top], [y1 - y0, bottom - y0]]) {
      if (!step) { if (room < 0) return 0; continue; }
      if (step < 0) from = Math.max(from, room / step); else to = Math.min(to, room / step);
    }
    return to > from ? (to - from) * Math.hypot(x1 - x0, y1 - y0) : 0;
  };
  const around = points => {
    const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
    return { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
  };
  const holds = (outer, inner) => outer.left <= inner.left && outer.top <= inner.top && outer.right >= inner.right && outer.bottom >= inner.bottom;

  // How many pixels of lines and of marks' edges are seen in the middle of a text. A ground that was painted under the words hides what is older.
  function through({ corners, when }) {
    const box = around(corners), inset = 2;
    const middle = { left: box.left + inset, right: box.right - inset, top: box.top + inset, bottom: box.bottom - inset };
    if (middle.left >= middle.right || middle.top >= middle.bottom) return [];
    const grounds = drawn.filter(each => each.what === "ground" && each.when < when && each.lines.length === 1 && holds(around(each.lines[0]), middle));
    const since = Math.max(-1, ...grounds.map(each => each.when));
    return drawn.filter(each => each.what === "line" && each.when > since).map(({ style, lines, clip }) => {
      const seen = { left: Math.max(middle.left, clip.left), right: Math.min(middle.right, clip.right), top: Math.max(middle.top, clip.top), bottom: Math.min(middle.bottom, clip.bottom) };
      if (seen.left >= seen.right || seen.top >= seen.bottom) return null;
      const length = lines.flatMap(points => points.slice(1).map((point, i) => within(points[i], point, seen))).reduce((a, b) => a + b, 0);
      return length ? { style, length } : null;
    }).filter(each => each);
  }

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

  // What the picture says in each of these states, and, where that is asked, what passes through its texts.
  window.textsIn = async (states, struck) => {
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
      [kept, noted, drawn, order] = [new WeakMap(), [], [], 0];
      view.plot.request_repaint();  // all of it, and at once
      view.plot.repaint();
      found.push(noted.map(each => ({ ...each, through: struck ? through(each) : [] })));
      [kept, noted, drawn] = [null, null, null];
    }
    return found;
  };

  window.resized = async () => {
    if (!view) await find();
    for (let i = 0; i < 4; i++) await frame();
  };
})();
