// The page that plans a deployment brings its own scripts.
document$.subscribe(() => {
  const place = document.querySelector("[data-deploy]:not([data-ready])");
  if (place) import("../deploy/page.js").then(({ bind }) => bind(place));
});
