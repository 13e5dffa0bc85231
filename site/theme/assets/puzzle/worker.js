// After Brython in its worker: takes the puzzle's own lines, then code to judge, and gives JSON.
{
  const python = self.__BRYTHON__ ?? __BRYTHON__;
  let judge = null;
  self.onmessage = ({ data: { puzzle, code, task } }) => {
    if (puzzle !== undefined) {
      judge = python.$getattr(python.runPythonSource(puzzle, { id: "judge" }), "answer");
      return postMessage({ ready: true });
    }
    try {
      postMessage({ answer: String(python.$call(judge, code, task)) });
    } catch {  // a fault of Brython's own, of which there is no more to say
      postMessage({ failed: true });
    }
  };
}
