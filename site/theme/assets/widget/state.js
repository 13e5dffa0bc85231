// The state of a page's widgets in its address: ?memory_stack.size=405e9&roofline.gpu=b200 (changed controls only).

const prefix = slug => `${slug}.`;

export function fromAddress(slug, search = location.search) {
  const found = Object.create(null);  // any name may stand in an address, "__proto__" too
  for (const [key, value] of new URLSearchParams(search)) {
    if (key.startsWith(prefix(slug))) found[key.slice(slug.length + 1)] = value;
  }
  return found;
}

// The page's address with one widget's part of it replaced.
export function addressWith(slug, changed, url = location.href) {
  const address = new URL(url);
  for (const key of [...address.searchParams.keys()]) if (key.startsWith(prefix(slug))) address.searchParams.delete(key);
  for (const [name, value] of Object.entries(changed)) address.searchParams.set(prefix(slug) + name, value);
  return address.href;
}

const pending = new Map();
let timer = 0;

// Browsers limit how often an address may change, so a drag writes it once it rests.
export function remember(slug, changed) {
  pending.set(slug, changed);
  clearTimeout(timer);
  timer = setTimeout(flush, 250);
}

function flush() {
  let address = location.href;
  for (const [slug, changed] of pending) address = addressWith(slug, changed, address);
  pending.clear();
  if (address === location.href) return;
  try {
    history.replaceState(history.state, "", address);
  } catch { /* some browsers stop a page that does it a hundred times in half a minute: the next rest writes it */ }
}

export function forget() {
  clearTimeout(timer);
  pending.clear();
}

// Small things kept in this browser alone; a browser that forbids it loses nothing else. Who counts them is told of each.
export const kept = {
  get(key) { try { return localStorage.getItem(`course.${key}`); } catch { return null; } },
  set(key, value) {
    try { localStorage.setItem(`course.${key}`, value); } catch { /* private mode */ }
    dispatchEvent(new Event("course-kept"));
  },
};
