/* The pictures of the book and of slides on paper. Each widget draws itself once, on its own page in a hidden frame, and stays as a drawing: those near the
   view as one scrolls, all of them before printing. */
(() => {
  "use strict";

  const WIDTH_PX = 800;        // of the frame, where the window has that: a little wider than paper, wide enough for every label
  const SHARPNESS = 2;         // of its pixels, whatever the screen's
  const PATIENCE_MS = 60_000;  // a busy machine may take its time
  const AT_ONCE = 2;

  const until = async (ready) => {
    const end = performance.now() + PATIENCE_MS;
    while (!ready()) {
      if (performance.now() > end) throw new Error("it took too long");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };

  async function frameAt(address) {
    const frame = Object.assign(document.createElement("iframe"), { src: address, title: "a figure being drawn", className: "book-frame" });
    frame.style.width = `${WIDTH_PX}px`;
    document.body.append(frame);
    await new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
    return frame;
  }

  // As a bitmap: a hatch in SVG would be printed as one bitmap for each of its shapes, which takes ten times the room.
  async function pictureIn(frame) {
    const page = frame.contentDocument;
    Object.defineProperty(frame.contentWindow, "devicePixelRatio", { value: SHARPNESS });
    page.body.dataset.mdColorScheme = "default";  // paper is light
    await until(() => page.querySelector("figure.widget")?.dataset.state === "live");
    const { canvas } = [...frame.contentWindow.Bokeh.index.roots][0].export("png");
    return Object.assign(new Image(canvas.width / SHARPNESS, canvas.height / SHARPNESS), { src: canvas.toDataURL() });
  }

  async function draw(figure) {
    const place = figure.querySelector(".still-picture");
    const frame = await frameAt(new URL(`../${figure.dataset.still}`, location));
    try {
      const picture = await pictureIn(frame);
      picture.alt = figure.querySelector(".still-title").textContent;
      await picture.decode();
      place.replaceChildren(picture);
      place.style.minHeight = "";
      figure.dataset.drawn = "";
    } finally {
      frame.remove();
    }
  }

  const figures = [...document.querySelectorAll("[data-still]")];
  const begun = new Map();     // figure -> the promise of its picture
  const waiting = [];
  let busy = 0;

  function work() {
    while (busy < AT_ONCE && waiting.length) {
      const { figure, resolve } = waiting.shift();
      busy += 1;
      draw(figure).catch((error) => { figure.querySelector(".still-picture").textContent = `This picture could not be drawn: ${error.message}.`; })
        .finally(() => { busy -= 1; resolve(); work(); });
    }
  }

  function wanted(figure) {
    if (!begun.has(figure)) begun.set(figure, new Promise((resolve) => waiting.push({ figure, resolve })));
    work();
    return begun.get(figure);
  }

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); wanted(entry.target); }
  }, { rootMargin: "600px 0px" });
  figures.forEach((figure) => near.observe(figure));

  const button = document.querySelector("[data-print]"), said = document.querySelector("[data-print-said]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    let done = 0;
    const tell = () => { said.textContent = `Drawing figure ${Math.min(done + 1, figures.length)} of ${figures.length} …`; };
    tell();
    await Promise.all(figures.map((figure) => wanted(figure).then(() => { done += 1; tell(); })));
    said.textContent = "";
    button.disabled = false;
    document.body.dataset.stills = "drawn";
    window.print();
  });
})();
