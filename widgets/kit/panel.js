// What a component's picture does in the browser (panel.py): it fits the width that it has, moves its axes once a hand rests,
// and takes the colours of the ground that it lies on, also when a notebook changes its theme. Behind layout.js and theme.js in
// one callback (scripts.py).

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

// Calls back once a page's theme may have changed, until it answers that there is nothing left to colour. A theme is a class,
// a style or an attribute of the whole page; its colours may take a moment to come.
function whenThemed(colour) {
  const watching = new MutationObserver(() => {
    if (!colour()) watching.disconnect();
    else setTimeout(colour, RESTS_MS);
  });
  for (const whole of [document.documentElement, document.body]) watching.observe(whole, { attributes: true });
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
      range.setv({ start, end });
    }
  };
  const inFonts = async views => {         // the first texts were painted, and measured, in another
    await Promise.allSettled([...document.fonts].filter(face => /Course (Sans|Mono)/.test(face.family)).map(face => face.load()));
    for (const model of allModels(drawing)) if (model.properties.data && model !== asked) model.change.emit();
    for (const view of views) view.request_layout();
  };
  const coloured = views => {
    const seen = views.filter(view => view.el.isConnected);      // a notebook takes cells out that are scrolled away
    const now = !seen.length ? theme : seen.some(view => liesOnDark(view.el)) ? "dark" : "light";
    restyle(drawing, theme, now);
    theme = now;
    return views.length > 0;
  };
  return index => {
    const views = [...index.find(plot)];
    if (!shown) {
      inFonts(views);
      whenThemed(() => coloured([...index.find(plot)]));
    }
    fit(plot.outer_width, plot.outer_height);
    if (shown !== asked.data) {
      clearTimeout(settling);
      if (shown) settling = setTimeout(settle, RESTS_MS);
      else settle();
      shown = asked.data;
    }
    coloured(views);
  };
}
