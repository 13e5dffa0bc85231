// The headline above a picture changes with every move. It keeps the most lines that it has needed at its width, so that the
// picture under the reader's hand moves at most once.
export function keepHeight(line) {
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) {
      width = contentRect.width;
      line.style.minHeight = line.style.minHeight ? "" : `${contentRect.height}px`;
    } else if (contentRect.height > parseFloat(line.style.minHeight || 0)) line.style.minHeight = `${contentRect.height}px`;
  }).observe(line);
}
