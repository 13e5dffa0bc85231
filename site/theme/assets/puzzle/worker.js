// After Brython in its worker: closes what leads out of Python, takes the puzzle's own lines, then code to judge, and gives JSON. Each
// message carries the secret that came with the puzzle, before any of the reader's code: without it the page believes none.
{
  const python = self.__BRYTHON__ ?? __BRYTHON__, builtins = python.builtins;
  const post = self.postMessage.bind(self), text = String, call = python.$call;
  let judge = null, secret = null;

  // A puzzle imports math; of what else Brython brings, some modules are JavaScript.
  const IMPORTED = "math";
  for (const way of ["import", "$import_from", "$__import__", "lazy_import", "$__lazy_import__"]) {
    const whole = python[way];
    if (typeof whole !== "function") continue;
    python[way] = function (name, ...more) {
      if (name !== IMPORTED) python.RAISE(builtins.ImportError, "a puzzle imports math");
      return whole.call(this, name, ...more);
    };
  }
  for (const name of Object.keys(python.imported)) if (/^_?(browser|javascript|interpreter|webworker)/.test(name)) delete python.imported[name];
  for (const name of ["postMessage", "importScripts", "close"]) Object.defineProperty(self, name, { value: undefined });

  self.onmessage = ({ data: { puzzle, code, task, secret: given } }) => {
    if (puzzle !== undefined) {
      secret = given;
      judge = python.$getattr(python.runPythonSource(puzzle, { id: "judge" }), "answer");
      return post({ ready: true, secret });
    }
    try {
      post({ answer: text(call(judge, code, task)), secret });
    } catch {  // a fault of Brython's own, of which there is no more to say
      post({ failed: true, secret });
    }
  };
}
