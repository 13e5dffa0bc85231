// What others leave behind when instant navigation takes a page away, and how it is let go of.

// Material keeps subscriptions of the pages it has left, and by them their elements: with one of these a whole lesson. Taken
// apart, each keeps but itself.
let components = [];

function takeApart() {
  for (const component of components) {
    if (!component.isConnected) for (const inner of component.querySelectorAll("*")) inner.remove();
  }
  components = [...document.querySelectorAll("[data-md-component]")];
}

// Every plot of Bokeh's listens to the visual viewport and never stops.
let leaving = new AbortController();

export function boundToThePage(target) {
  if (!target) return;
  const add = target.addEventListener.bind(target);
  target.addEventListener = (type, listener) => add(type, listener, { signal: leaving.signal });
}

export function letGoOfThePage() {
  leaving.abort();
  leaving = new AbortController();
  takeApart();
}
