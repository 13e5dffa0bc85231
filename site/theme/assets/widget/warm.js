// A browser runs a script slowly until it has run often enough to be optimized. A figure with much to compute does so while its reader
// still reads: for neighbours of its state, a few times, so that the first drag is as smooth as the tenth.
const HEAVY_MS = 10, TIMES = 24;
const idle = () => new Promise(resolve => (window.requestIdleCallback ?? setTimeout)(resolve));

export async function warmUp(view) {
  const slider = view.controls?.find(({ name, grid }) => grid && view.$(`[data-control="${name}"]`)?.checkVisibility?.());
  if (!slider || !view.values) return;    // it has none, or could not be drawn
  const { name, grid } = slider, here = grid.indexOf(view.values[name]);
  for (let i = 1, took = Infinity; i <= TIMES && took > HEAVY_MS; i++) {
    await idle();
    if (!view.document || view.moved || view.asksPython()) return;
    const began = performance.now();
    try { view.compute({ ...view.values, [name]: grid[Math.abs(here - i) % grid.length] }); } catch { return; }
    took = performance.now() - began;
  }
}
