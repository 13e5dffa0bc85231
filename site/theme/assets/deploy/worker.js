// Beside the page: one step of an answer after the other. A newer request ends an older one between two steps.
import { modules } from "./engine.js";
import { $dict, plain } from "../fit/python.js";

const ways = modules["engine.launch.deploy_page"];
const pause = () => new Promise(resolve => setTimeout(resolve));
let newest = 0;

self.onmessage = async ({ data: { id, steps, asked } }) => {
  newest = id;
  for (const step of steps) {
    await pause();
    if (id !== newest) return;
    const began = performance.now();
    try {
      const found = plain(ways[`$${step}`]($dict(Object.entries(asked))));
      postMessage({ id, step, found, took: performance.now() - began });
      if (found.refused) return;
    } catch (error) {
      return postMessage({ id, step, failed: String(error?.message ?? error) });
    }
  }
};
