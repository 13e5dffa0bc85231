// The page that checks launches brings its own scripts.
document$.subscribe(() => {
  const place = document.querySelector("[data-fit]:not([data-ready])");
  if (place) import("../fit/page.js").then(({ bind }) => bind(place));
});
