// Loads the page again when it, or a script or style that all pages share, was built anew: make dev alone.
const told = new URL(import.meta.url).searchParams;
const root = new URL("../", import.meta.url);
let since = told.get("since");

function concerns(name) {
  const page = location.pathname.slice(root.pathname.length);
  return name === page || name === `${page}index.html` || name.startsWith("assets/");
}

function listen() {
  const address = new URL(`live/changes?since=${since}`, root);
  address.protocol = address.protocol.replace("http", "ws");
  const socket = new WebSocket(address);
  socket.onmessage = ({ data }) => {
    const said = JSON.parse(data);
    since = said.since;
    if (said.server !== told.get("server") || said.changed.some(concerns)) location.reload();
  };
  socket.onclose = () => setTimeout(listen, 200);
}

listen();
