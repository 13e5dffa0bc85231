// A puzzle's editor comes when a reader turns to it, or has left code here: until then a page loads no more than this.
function bind() {
  for (const puzzle of document.querySelectorAll("[data-puzzle]:not([data-ready])")) {
    puzzle.dataset.ready = "";
    const wake = event => puzzle.dataset.ready || import("../puzzle/editor.js").then(({ bindEditor }) => bindEditor(puzzle, event));
    for (const way of ["focusin", "click"]) puzzle.addEventListener(way, wake, { once: true });
    puzzle.addEventListener("keydown", event => {  // pressed before the editor has come
      if (puzzle.dataset.ready !== "editor" && event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); wake(event); }
    });
    if (puzzle.contains(document.activeElement) || location.search.includes(puzzle.id) || localStorage.getItem(`course.puzzle.${puzzle.dataset.puzzle}`)) wake();
  }
}

document$.subscribe(bind);
