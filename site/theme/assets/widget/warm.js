// A browser runs a script slowly until it has run often enough to be optimized, and makes room for results when it first meets them. A
// figure with much to compute does so while its reader still reads: for neighbours of its state, so that the first drag is as smooth as
// the tenth. Then it paints what is there a few times more.
const HEAVY_MS = 10, TIMES = 24, LEAST = 16, PAINTS = 8;
const idle = () => new Promise(resolve => (window.requestIdleCallback ?? setTimeout)(resolve));

export async function warmUp(view) {
  const slider = view.controls?.find(({ name, grid }) => grid && view.$(`[data-control="${name}"]`)?.checkVisibility?.());
  if (!slider || !view.values) return;    // it has none, or could not be drawn
  const { name, grid } = slider, here = grid.indexOf(view.values[name]);
  const isLeft = () => !view.document || view.moved || view.asksPython();
  let isHeavy = false;
  for (let i = 1, took = Infinity; i <= TIMES && (took > HEAVY_MS || (isHeavy && i <= LEAST)); i++) {
    await idle();
    if (isLeft()) return;
    const began = performance.now();
    try { view.compute({ ...view.values, [name]: grid[Math.abs(here - i) % grid.length] }); } catch { return; }
    took = performance.now() - began;
    isHeavy ||= took > HEAVY_MS;
  }
  for (let i = 0; i < PAINTS && isHeavy; i++) {
    await idle();
    if (isLeft()) return;
    view.repaint();
  }
}
