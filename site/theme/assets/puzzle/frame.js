// In the frame of opaque origin: starts a worker from the texts that the page hands in, and passes messages on.
let worker = null;
addEventListener("message", ({ source, data }) => {
  if (source !== parent) return;
  if (!data.texts) return worker?.postMessage(data);
  worker = new Worker(URL.createObjectURL(new Blob(data.texts, { type: "text/javascript" })));
  worker.onmessage = ({ data: said }) => parent.postMessage(said, "*");
  worker.onerror = () => parent.postMessage({ failed: true }, "*");
  worker.postMessage({ puzzle: data.puzzle });
});
parent.postMessage({ open: true }, "*");
