// Runs before Brython in its worker, which has an opaque origin: an address that can be read, and no way out of here.
Object.defineProperty(self, "location", { value: { href: "https://puzzle.invalid/", origin: "https://puzzle.invalid", pathname: "/", search: "" } });
const WAYS = ["XMLHttpRequest", "fetch", "WebSocket", "WebSocketStream", "WebTransport", "EventSource", "RTCPeerConnection", "Worker", "SharedWorker", "indexedDB", "caches", "BroadcastChannel"];
for (const way of WAYS) Object.defineProperty(self, way, { value: undefined });  // importScripts goes after Brython, which looks for it
// Brython's own stand-in for older browsers takes its arguments the wrong way round.
Set.prototype.difference ??= function (other) { return new Set([...this].filter(each => !other.has(each))); };
for (const say of ["log", "info", "debug", "warn", "error"]) console[say] = () => {};  // its notes to its developers
