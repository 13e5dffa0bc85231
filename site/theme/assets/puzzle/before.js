// Runs before Brython in its worker, which has an opaque origin: an address that can be read, and no way out of here.
Object.defineProperty(self, "location", { value: { href: "https://puzzle.invalid/", origin: "https://puzzle.invalid", pathname: "/", search: "" } });
for (const way of ["XMLHttpRequest", "fetch", "WebSocket", "EventSource", "importScripts", "indexedDB", "caches", "BroadcastChannel"]) {
  if (way !== "importScripts") Object.defineProperty(self, way, { value: undefined });
}
// Brython's own stand-in for older browsers takes its arguments the wrong way round.
Set.prototype.difference ??= function (other) { return new Set([...this].filter(each => !other.has(each))); };
for (const say of ["log", "info", "debug", "warn", "error"]) console[say] = () => {};  // its notes to its developers
