// What a component's picture does in the browser (panel.py): it fits the width that it has, moves its axes once a hand rests,
// and takes the colours of the ground that it lies on. Behind layout.js and theme.js in one callback (scripts.py).

const RESTS_MS = 200;

// Whether what lies behind a place is dark: an app's theme, a template, Jupyter, whoever has painted it.
function liesOnDark(node) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  for (; node; node = node.host ?? node.parentNode) {
    if (!(node instanceof Element)) continue;
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = getComputedStyle(node).backgroundColor;       // in any of CSS's ways to write it
    pen.fillRect(0, 0, 1, 1);
    const [red, green, blue, opaque] = pen.getImageData(0, 0, 1, 1).data;
    if (opaque > 127) return red + green + blue < 1.5 * 255;
  }
  return false;
}

// A function to call whenever the picture's size, or where its axes should start and end, has changed.
function fitted(plot, asked) {
  const drawing = { roots: () => [plot] }, fit = fitting(drawing, plot);
  let theme = "light", shown = null, settling = 0;
  const settle = () => {
    for (const name of asked.columns()) {
      const range = allModels(drawing).find(model => model.name === name);
      const [start, end] = inFrame(range, ...asked.get_array(name));
      retick(plot, name, start, end);
      range.setv({ start, end }, HERE);
    }
  };
  const inFonts = async views => {         // the first texts were painted, and measured, in another
    await Promise.allSettled([...document.fonts].filter(face => /Course (Sans|Mono)/.test(face.family)).map(face => face.load()));
    for (const model of allModels(drawing)) if (model.properties.data && model !== asked) model.change.emit();
    for (const view of views) view.request_layout();
  };
  return found => {
    const views = [...found];
    if (!shown) inFonts(views);
    fit(plot.outer_width, plot.outer_height);
    if (shown !== asked.data) {
      clearTimeout(settling);
      if (shown) settling = setTimeout(settle, RESTS_MS);
      else settle();
      shown = asked.data;
    }
    const now = views.some(view => liesOnDark(view.el)) ? "dark" : "light";
    restyle(drawing, theme, now);
    theme = now;
  };
}
