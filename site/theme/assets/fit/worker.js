// Beside the page: reads the files and estimates, the verdict first, then what takes longer. A newer request ends an older one between two steps.
import { modules } from "./engine.js";
import { $dict, $tuple, plain } from "./python.js";

const STEPS = [[], ["reach"], ["reach", "changes"], ["reach", "changes", "best"]];
const { $answer: answer, $corrected: corrected } = modules["engine.launch.fit_page"];
const REST_MS = 350;  // before what takes longer than the verdict: whoever is still typing gets the next verdict first
const pause = ms => new Promise(resolve => setTimeout(resolve, ms));
let newest = 0;

self.onmessage = async ({ data: { id, files, gpu, gpus, own, correct } }) => {
  if (correct) {  // an assumed value, written into the files
    try {
      return postMessage({ id, files: plain(corrected(files, BigInt(gpus), correct.name, correct.value)) });
    } catch (error) {
      return postMessage({ id, failed: String(error?.message ?? error) });
    }
  }
  newest = id;
  for (const [step, also] of STEPS.entries()) {
    await pause(step === 1 ? REST_MS : 0);
    if (id !== newest) return;
    try {
      const found = answer(files, gpu, BigInt(gpus), $dict(Object.entries(own)), $tuple(also));
      postMessage({ id, found: plain(found), done: step === STEPS.length - 1 });
    } catch (error) {
      return postMessage({ id, failed: String(error?.message ?? error) });
    }
  }
};
postMessage({ ready: true });
