// The field of the page of symptoms: a description, or an error message pasted whole, brings the likeliest rows to the top. Nothing
// that is typed leaves the page.
import { index, rank } from "./ranking.js";

const PAUSE_MS = 120;  // after the last key, so that what is announced is not a stutter

function rowOf(article) {
  const said = name => article.querySelector(`.symptom-${name}`).textContent;
  return { see: said("see"), means: said("means"), tell: said("tell"), words: article.dataset.words, lines: JSON.parse(article.dataset.lines) };
}

function bind() {
  const find = document.querySelector("[data-symptoms-find]");
  if (!find || find.dataset.bound) return;
  find.dataset.bound = "yes";
  const field = find.querySelector("textarea"), said = find.querySelector("[data-symptoms-said]"), longest = Number(find.dataset.longest);
  const found = document.querySelector("[data-symptoms-found]"), groups = [...document.querySelectorAll("[data-symptoms-group]")];
  const articles = groups.flatMap(group => [...group.querySelectorAll(".symptom")]), homes = articles.map(article => article.parentElement);
  const known = index(articles.map(rowOf), JSON.parse(find.dataset.alike));

  const show = results => {
    articles.forEach((article, at) => homes[at].append(article));  // in their order again
    found.append(...results.map(({ at }) => articles[at]));
    found.hidden = !results.length;
    for (const group of groups) group.hidden = results.length > 0;
  };
  const words = (text, results, wasCut) => {
    const cut = wasCut ? `That was long: only its last ${longest.toLocaleString("en")} characters are read. ` : "";
    if (!text) return "";
    if (!results.length) return `${cut}No row speaks of this. Say it in other words, or look below under what you know.`;
    return `${cut}${results.length === 1 ? "One row" : `${results.length} rows, the likeliest first`}, of ${articles.length}.`;
  };
  const look = wasCut => {
    const text = field.value.trim(), results = text ? rank(text, known) : [];
    show(results);
    said.textContent = words(text, results, wasCut);
  };
  let waiting = 0;
  field.addEventListener("input", () => {
    const wasCut = field.value.length > longest;
    if (wasCut) field.value = field.value.slice(-longest);
    clearTimeout(waiting);
    waiting = setTimeout(look, PAUSE_MS, wasCut);
  });
  field.addEventListener("keydown", event => {
    if (event.key !== "Escape" || !field.value) return;
    field.value = "";
    look(false);
  });
  addEventListener("hashchange", () => {  // a link to a row or a group that the results hide
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("[data-symptoms-group][hidden]")) return;
    field.value = "";
    look(false);
    target.scrollIntoView();
  });
  if (field.value.trim()) look(false);  // what the browser has kept over a reload
}

document$.subscribe(bind);
