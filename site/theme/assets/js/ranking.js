// Which rows of the page of symptoms a reader's words speak of, the likeliest first. All of it runs in the page; a test holds many
// real questions against it. Words are compared by their stems; ways of saying one thing count as one (`alike`, from
// course/symptoms.yml); a rare word tells more than a common one, and a piece of an error message, found whole, most.

const WEIGHTS = { lines: 3, words: 2.5, see: 2, means: 1, tell: 1 };
const TELLING = /error|exception|watchdog|warn|timeout|timed out|overflow|assert|nan\b|killed|failed/i;  // lines of a log that say why
const BACKGROUND = 0.25;  // what a word counts on any other line of a long paste
const PHRASE = 1.5;       // what a whole piece of an error message counts, beside its words
const LONG = 3;           // words from which on a line is such a piece; the name of a function alone is not
const SHARE = 0.6;        // of a score that a row keeps if it speaks of next to nothing else that was asked
const WEAK = 0.6;         // of the best score: less is no result
const LEAST = 2.2;        // a score below which nothing was recognised
const MOST = 6;           // rows that are shown

const ENDINGS = [[/(?<=..)ies$/, "y"], [/(?<=ss)es$/, ""], [/(?<=(?:sh|ch|x))es$/, ""], [/(?<=[a-z]{2}[^su])s$/, ""], [/(?<=[a-z]{3})ing$/, ""], [/(?<=[a-z]{3})ed$/, ""],
  [/(?<=[a-z]{4})ly$/, ""], [/(?<=[a-z]{3})e$/, ""], [/([bdfgmnprt])\1$/, "$1"]];
export const stem = word => word.length < 4 ? word : ENDINGS.reduce((left, [ending, by]) => left.replace(ending, by), word);

// Words that tell nothing.
export const IDLE = new Set(("a about again after all also although am an and any are as at be because been before but by can cannot could did do does doing done down "
  + "even ever every for from get gets getting give given go got had has have having he her here how i if in into is it its just keep keeps let "
  + "like make makes many me more most much my no not now of off often on once one only or other our out over own per please problem question same "
  + "seem seems she should since so some still such than that the their them then there these they thing this those through to too "
  + "try trying under until up us use used using very want was we well were what when where which while who why will with without would yet you "
  + "your help hello hi thanks issue error runtime file line call last most recent traceback py so cc cpp lib info").split(" ").map(stem));

const ROUGHLY = new Set(["about", "almost", "approximately", "around", "maybe", "nearly", "only", "roughly"]);  // before a number

// Of a path its last part, of an address nothing; anything else as it is. No pattern here tries many ways to part a long text.
const fileOf = token => token.includes("://") ? " " : /^["'(]*[/~.]+[/\w]/.test(token) ? token.slice(token.lastIndexOf("/") + 1) : token;

// The words of a text in their order, as stems; # is any number. Paths, addresses of memory and identifiers say nothing.
function wordsOf(text) {
  const plain = text.split(/\s+/).map(fileOf).join(" ")
    .replace(/0x[0-9a-f]+/gi, " ")
    .replace(/\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b/gi, match => /^\d+$/.test(match) ? " 1 " : " ")
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase();
  return (plain.match(/[a-z]+[0-9]*[a-z]*|\d+(?:[.,]\d+)*/g) ?? []).filter(word => !ROUGHLY.has(word)).map(word => /^\d/.test(word) ? "#" : stem(word));
}

// Ways of saying one thing -> the name of the thing, by the first word of each.
function phrasebook(alike) {
  const book = new Map();
  for (const ways of alike) {
    for (const way of ways) {
      const words = wordsOf(way.replaceAll("<n>", "1"));
      if (!book.has(words[0])) book.set(words[0], []);
      book.get(words[0]).push([words, `=${ways[0].split(" ")[0]}`]);
    }
  }
  for (const entries of book.values()) entries.sort(([a], [b]) => b.length - a.length);
  return book;
}

// The telling words of a text, and the things that it names.
function termsOf(words, book) {
  const terms = new Set();
  for (let at = 0; at < words.length;) {
    const entries = (book.get(words[at]) ?? []).filter(([way]) => way.every((word, i) => word === words[at + i]));
    for (const [, thing] of entries) terms.add(thing);
    const length = entries.length ? entries[0][0].length : 1;
    if (entries.length) { at += length; continue; }  // the thing stands for its words: they would count twice, and a rare spelling most
    for (const word of words.slice(at, at + length)) if (word !== "#" && !IDLE.has(word) && word.length > 1) terms.add(word);
    at += length;
  }
  return terms;
}

const spoken = words => ` ${words.join(" ")} `;

// rows: [{ see, means, tell, words, lines: [...] }]; what `rank` needs of them, made once.
export function index(rows, alike) {
  const book = phrasebook(alike);
  const entries = rows.map(row => {
    const weights = new Map();
    for (const [name, weight] of Object.entries(WEIGHTS)) {
      for (const text of [row[name]].flat()) {
        for (const term of termsOf(wordsOf(text), book)) weights.set(term, Math.max(weight, weights.get(term) ?? 0));
      }
    }
    const phrases = row.lines.map(wordsOf).filter(words => words.length >= LONG).map(words => ({ terms: termsOf(words, book), said: spoken(words) }));
    return { weights, phrases };
  });
  const held = new Map();
  for (const { weights } of entries) for (const term of weights.keys()) held.set(term, (held.get(term) ?? 0) + 1);
  const rarity = term => held.has(term) ? Math.log(1 + rows.length / held.get(term)) : 0;
  return { book, entries, rarity };
}

// Term -> what it counts: on the lines of a long paste that say why something failed, in full.
function asked(text, book) {
  const lines = text.split(/\n/).filter(line => line.trim()), long = lines.length > 3, terms = new Map();
  lines.forEach((line, at) => {
    const weight = !long || TELLING.test(line) || at >= lines.length - 2 ? 1 : BACKGROUND;
    for (const term of termsOf(wordsOf(line), book)) terms.set(term, Math.max(weight, terms.get(term) ?? 0));
  });
  return terms;
}

// [{ at, score }] of the rows that the text speaks of, the likeliest first; at most so many.
export function rank(text, { book, entries, rarity }, most = MOST) {
  const terms = asked(text, book), said = spoken(wordsOf(text));
  const whole = [...terms].reduce((sum, [term, weight]) => sum + weight * rarity(term), 0);
  const found = entries.map(({ weights, phrases }, at) => {
    let score = 0, covered = 0;
    for (const [term, weight] of terms) {
      if (!weights.has(term)) continue;
      score += weight * weights.get(term) * rarity(term);
      covered += weight * rarity(term);
    }
    score *= SHARE + (1 - SHARE) * covered / (whole || 1);  // one rare word does not outweigh all the others
    for (const phrase of phrases) {
      if (said.includes(phrase.said)) for (const term of phrase.terms) score += PHRASE * WEIGHTS.lines * rarity(term);
    }
    return { at, score };
  }).sort((a, b) => b.score - a.score || a.at - b.at);
  const best = found.length ? found[0].score : 0;
  return best < LEAST ? [] : found.filter(({ score }) => score >= WEAK * best).slice(0, most);
}
