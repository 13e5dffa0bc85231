// Marks on a figure's own axis: where the reader expects the answer, and where it is.

const LAYER = "guess-marks";

// A layer over the picture whose children lie at places of an axis, and stay there while the picture changes.
class Layer {
  constructor(view, axis) {
    this.view = view;
    this.axis = axis;
    this.place = view.$("[data-plot]");
    this.element = Object.assign(document.createElement("div"), { className: LAYER });
    this.marks = new Map();  // element -> where it lies on the axis
  }

  // The figure is drawn: from now on the marks go along with it.
  show() {
    this.place.append(this.element);
    const range = this.frame()[`${this.axis}_range`];
    range.change?.connect(() => this.settle());
    this.watch ??= new ResizeObserver(() => this.settle());
    this.watch.disconnect();
    this.watch.observe(this.place);
    this.settle();
  }

  frame() {
    return this.view.plot.frame;
  }

  // Bokeh lays a changed picture out before it paints it: the frame is where it will be one picture later.
  settle() {
    this.put();
    requestAnimationFrame(() => requestAnimationFrame(() => this.put()));
  }

  put() {
    if (!this.view.plot || !this.element.isConnected) return;
    const { bbox } = this.frame(), around = this.place.getBoundingClientRect(), own = this.view.plot.el.getBoundingClientRect();
    Object.assign(this.element.style, {
      left: `${own.left - around.left + bbox.left}px`, top: `${own.top - around.top + bbox.top}px`,
      width: `${bbox.width}px`, height: `${bbox.height}px`,
    });
    for (const [mark, at] of this.marks) if (at !== null) this.lay(mark, this.share(at));
  }

  // Past an end of the axis a mark lies at this end, and points on.
  lay(mark, share) {
    const kept = Math.min(1, Math.max(0, share));
    mark.dataset.past = share < -0.001 ? "start" : share > 1.001 ? "end" : "";
    mark.style[this.axis === "x" ? "left" : "bottom"] = `${100 * kept}%`;
    mark.classList.toggle("beyond-middle", kept > 0.6);
  }

  // Of the frame's width or height, from its origin: 0 … 1.
  share(at) {
    const { bbox, x_scale, y_scale } = this.frame();
    return this.axis === "x" ? (x_scale.compute(at) - bbox.left) / bbox.width : (bbox.bottom - y_scale.compute(at)) / bbox.height;
  }

  at(share) {
    const { bbox, x_scale, y_scale } = this.frame();
    return this.axis === "x" ? x_scale.invert(bbox.left + share * bbox.width) : y_scale.invert(bbox.bottom - share * bbox.height);
  }

  mark(kind, text, at) {
    const mark = Object.assign(document.createElement("div"), { className: `guess-mark ${kind}` });
    mark.dataset.axis = this.axis;
    mark.append(Object.assign(document.createElement("span"), { textContent: text }));
    this.element.append(mark);
    this.marks.set(mark, at);
    return mark;
  }

  end() {
    this.watch?.disconnect();
    this.element.remove();
  }
}

// After the answer: the reader's place beside the true one, as long as the figure is in the state that was asked about.
export async function drawMarks(view, { axis, per, truth, shown }, guess) {
  if (!axis) return;
  await whenDrawn(view);
  const layer = new Layer(view, axis), atHome = () => { layer.element.hidden = Object.keys(view.changedFromHome()).length > 0; };
  layer.element.setAttribute("aria-hidden", "true");  // the reply says it
  if (guess !== null) layer.mark("yours", "you", guess / per);
  layer.mark("true", shown, truth / per);
  layer.show();
  atHome();
  view.element.addEventListener("widget-shown", () => { atHome(); layer.settle(); });
}

// After the answer: the figure stands in the state that was asked about, if the reader has just answered and nobody has moved it;
// and while it stands there, the readout that says the truth has the reader's own number beside it. Resolves to whether it was set.
export async function showWhereSeen(view, { readout, state }, said, answered) {
  await whenDrawn(view);
  const asked = view.valuesOf(state), place = view.$(`[data-readout="${readout}"]`);
  const isMoved = from => Object.keys(view.changedFrom(from)).length > 0;
  const yours = Object.assign(document.createElement("dd"), { className: "said-of-it", textContent: said });
  if (said) place.after(yours);
  const settle = () => {
    yours.hidden = isMoved(asked);
    place.parentElement.classList.toggle("asked-about", !yours.hidden);
  };
  view.element.addEventListener("widget-shown", settle);
  const goes = answered && !isMoved(view.home) && isMoved(asked);
  if (goes) view.set(asked, true, true);
  settle();
  return goes;
}

// Before the answer: a sheet over the picture's inside, and on it a mark that a finger or the slider moves along the axis.
export function placeGuess(view, { axis }, input) {
  const layer = new Layer(view, axis), last = Number(input.max), mark = layer.mark("yours", "you", null);
  layer.element.classList.add("widget-sheet");
  layer.element.setAttribute("aria-hidden", "true");  // the slider says it
  let moved = () => {}, drawn = false, touched = false;
  const put = () => {
    layer.lay(mark, input.valueAsNumber / last);
    moved();
  };
  const point = event => {
    const box = layer.element.getBoundingClientRect();
    const share = axis === "x" ? (event.clientX - box.left) / box.width : (box.bottom - event.clientY) / box.height;
    input.value = Math.round(last * share);
    touched = true;
    put();
  };
  layer.element.addEventListener("pointerdown", event => { layer.element.setPointerCapture(event.pointerId); point(event); });
  layer.element.addEventListener("pointermove", event => { if (layer.element.hasPointerCapture(event.pointerId)) point(event); });
  input.addEventListener("input", () => {
    touched = true;
    put();
  });
  view.element.addEventListener("uncovered", () => {
    layer.end();
    for (const part of layer.place.children) part.inert = false;
    delete view.element.dataset.sheet;
  });
  whenDrawn(view).then(() => {
    drawn = true;
    input.disabled = false;
    if (view.element.dataset.covered !== undefined) {  // an open figure needs no sheet: its own picture shows the axis
      for (const part of layer.place.children) part.inert = true;
      layer.show();
      view.element.dataset.sheet = axis;
    }
    put();
  });
  return { at: () => drawn ? layer.at(input.valueAsNumber / last) : null, isTouched: () => touched, onMove: told => { moved = told; } };
}

// The first state has been drawn.
function whenDrawn(view) {
  return new Promise(resolve => {
    if (view.plot) return resolve();
    view.element.addEventListener("widget-shown", () => resolve(), { once: true });
  });
}
