// What a person types, read as a quantity, with the tables and patterns of engine/base/typed.py, which says what is taken:
//
//   parse("96.6 Gbit/s", "GB/s").value  // 12.075e9, in SI
//   parse("80", "GB").value             // 80e9: a number alone is in the unit that was asked for
//   parse("7 bananas", "GB")            // { value: null, refused: "“bananas” is no unit that is known here; this needs …" }
//
// The unit is a name ("GB", "days", "%") or a family ("bytes", "count"); the words of a label may stand behind a number that
// counts. A reading has the names of Python's Reading: value, half, digits, bare, refused. `fitting` takes, of the ways
// in which a text can be meant, the first that the caller accepts.
import { TYPED } from "../widgets/shared.js";

const { SPACE, EMPTY, GROUP, NO_NUMBER, QUANTITY, COMPOUND, TERM, SUPERSCRIPTS, ANOTHER, COMMA, BROKEN, WORD, PHRASE } = TYPED.patterns;
const { words: WORDS, kinds: KINDS, refused: REFUSED, counted: COUNTED, longest: LONGEST } = TYPED;
const MEASURED = Object.keys(KINDS).filter(family => !(family in COUNTED));
const whole = pattern => new RegExp(`^(?:${pattern})$`);
const every = pattern => new RegExp(pattern, "g");
const [empty, noNumber, quantity, compound, phrase] = [EMPTY, NO_NUMBER, QUANTITY, COMPOUND, PHRASE].map(whole);
const [another, comma, broken] = [ANOTHER, COMMA, BROKEN].map(pattern => new RegExp(pattern));
const NONE = { value: null, half: 0, digits: 0, bare: false, refused: "" };

const refusal = (why, family, fill = {}) => ({ ...NONE,
  refused: REFUSED[why].replace(/\{(\w+)\}/g, (_, name) => ({ asked: KINDS[family], longest: LONGEST, ...fill })[name]) });

const letters = text => Array.from(text);
const singular = word => word.length > 2 && word.endsWith("s") ? word.slice(0, -1) : word;

// What one may be in another case; a big B stays one: "KB/S" is bytes, "gb/s" could be bits.
function meanings(unit, family) {
  const same = Object.entries(WORDS[family]).filter(([word]) => word.toLowerCase() === unit.toLowerCase());
  const big = unit.includes("B") ? same.filter(([word]) => word.includes("B")) : [];
  return new Set((big.length ? big : same).map(([, scale]) => scale));
}

// What one of a unit is; null for what the family does not take, or what could be two things.
export function scaleOf(unit, family) {
  if (Object.hasOwn(WORDS[family], unit)) return WORDS[family][unit];
  const found = [...meanings(unit, family)].filter(scale => scale !== null);
  return found.length === 1 ? found[0] : null;
}

export function parse(text, unit, label = "") {
  if (!Object.hasOwn(TYPED.families, unit)) throw new RangeError(`no unit: ${unit}`);
  return read(text, TYPED.families[unit], TYPED.alone[unit], label);
}

export function read(text, family, scale, label = "") {
  const refused = (why, fill) => refusal(why, family, fill);
  if (text.length > 2 * LONGEST || letters(text).length > LONGEST) return refused("long");
  if (empty.test(text)) return refused("empty");
  const plain = text.replace(/−/g, "-").replace(every(SUPERSCRIPTS), power => `^${letters(power).map(digit => TYPED.superscript[digit]).join("")}`);
  const sum = family === "seconds" && sumOf(plain);
  if (sum) return sum;
  const found = quantity.exec(plain);
  if (!found) {
    const named = noNumber.exec(plain);
    return named ? refused("nan", { unit: named[1] }) : refused("none");
  }
  const [, before, dollar, sign, coded, base, power, top, bottom, number, e, ten, behind] = found.map(group => group ?? "");
  const unit = behind.replace(every(`${SPACE}+`), " ");
  if (before && sign) return refused("none");
  if (dollar && family !== "dollars") return refused("other", { kind: KINDS.dollars });
  if (top && decimal(bottom, 0) === 0) return refused("zero");
  if (coded && family !== "count" && family !== "real") return refused("none");
  const named = unitOf(unit, family, label);
  if (typeof named === "string") {
    const [letter, , ...rest] = letters(unit), tail = rest.join("");
    return refused(Object.hasOwn(KINDS, named) ? "other" : named, { kind: KINDS[named], unit: letters(unit).slice(0, 20).join(""),
      upper: `${letter.toUpperCase()}B${tail}`, bits: `${letter.toUpperCase()}bit${tail}` });
  }
  const bare = !unit, one = bare && (dollar || (top && family === "percent")) ? 1 : named ?? scale;  // 1/8 is a share, whatever was asked
  const places = placesOf(number), exponent = Number(e || ten || 0);
  const value = coded ? Number(coded) * one
    : base === "2" ? 2 ** Number(power) * one
    : base ? scaled("1", Number(power), one)
    : top ? decimal(top, 0) / decimal(bottom, 0) * one
    : scaled(number, exponent, one);
  if (!Number.isFinite(value)) return refused("large");
  return { ...NONE, value: [before, sign].includes("-") ? -value : value, bare, half: number ? scaled("5", exponent - places - 1, one) : 0,
    digits: number.replace(/[^0-9]/g, "").replace(/^0+/, "").length };
}

const decimal = (written, exponent) => Number(`${written.replace(every(GROUP), "")}e${exponent}`);

// A decimal number times the value of one; where that is a power of ten only the point moves: 12.3k is 12,300, and no bit beside.
function scaled(written, exponent, one) {
  const ten = Math.round(Math.log10(one));
  return Number(`1e${ten}`) === one ? decimal(written, exponent + ten) : decimal(written, exponent) * one;
}

const placesOf = written => (written.split(".")[1] ?? "").length;

// "3 days 4 h": a sum of times, from the longest unit to the shortest.
function sumOf(text) {
  if (!compound.test(text)) return null;
  let total = 0, before = Infinity, half = 0;
  for (const [, amount, unit] of text.matchAll(every(TERM))) {
    const one = scaleOf(unit, "seconds");
    if (one === null || one >= before) return null;
    total += scaled(amount, 0, one);
    before = one;
    half = scaled("5", -placesOf(amount) - 1, one);
  }
  return { ...NONE, value: total, half };
}

// What one of a unit is, null where there is none, or the name of what is wrong: a key of REFUSED, or the family that it is of.
function unitOf(unit, family, label) {
  if (!unit) return null;
  const own = scaleOf(unit, family);
  if (own !== null) return own;
  if (meanings(unit, family).size > 1 || Object.hasOwn(WORDS[family], unit)) return TYPED.bits.includes(family) ? "either" : "unknown";
  if (comma.test(unit)) return "comma";
  if (another.test(unit)) return "two";
  if (broken.test(unit)) return "none";
  const counted = family in COUNTED ? nounOf(unit, family, label) : null;
  if (counted !== null) return counted;
  return Object.keys(KINDS).find(kind => scaleOf(unit, kind)) ?? (family in COUNTED && phrase.test(unit) ? "noun" : "unknown");
}

// What one is, of "k tokens" or of "GPUs": the words of the question and those that the course counts; null where it is another thing.
function nounOf(unit, family, label) {
  if (!phrase.test(unit) || MEASURED.some(kind => scaleOf(unit, kind))) return null;
  const wordsOf = text => text.match(every(WORD)) ?? [];
  const known = new Set([...wordsOf(label.toLowerCase()), ...COUNTED[family]].map(singular));
  const timed = known.has("second") ? ["s", "sec", "second"] : [];
  const gap = unit.indexOf(" "), first = gap < 0 ? unit : unit.slice(0, gap), rest = gap < 0 ? "" : unit.slice(gap + 1);
  const scale = rest && Object.hasOwn(TYPED.counts, first) ? TYPED.counts[first] : null;
  const nouns = wordsOf(scale ? rest : unit).map(word => word.toLowerCase()).filter(word => !TYPED.fillers.includes(word));
  return nouns.length && nouns.every(word => known.has(singular(word)) || timed.includes(word)) ? scale ?? 1 : null;
}

// What one is, of the unit in a text that the course has printed: 1e9 for "80 GB", 1e3 for "8.19k tokens".
export function scaleBehind(text, family) {
  const unit = quantity.exec(text.replace(/−/g, "-"))?.at(-1);
  return unit === undefined ? null : scaleOf(unit, family);
}

// Families in which a number alone is a number of single things.
export const isCounted = family => family in COUNTED || family === "dollars";

// An answer, to an exercise or a prediction. Where per cent are asked, a number alone that is below 1 is a share: 0.1 is 10 %.
export function readAnswer(text, family, scale, label = "") {
  const found = read(text, family, scale, label);
  return family === "percent" && found.bare && Math.abs(found.value) < scale ? read(text, family, 1, label) : found;
}

// Of all the ways in which a text can be meant, the first that is accepted; else the first of all, or what was refused. A number
// alone is in the unit that was asked for, or in one of the `others`, in their order; where per cent are asked it may be a share.
export function fitting(text, { family, scale, label = "", others = [] }, accepts, reads = read) {
  const first = reads(text, family, scale, label);
  if (!first.bare || accepts(first)) return first;
  const scales = family === "percent" ? [...others, scale, 1] : others;
  return scales.map(other => read(text, family, other, label)).find(accepts) ?? first;
}

// What is longer than any number is cut in the field itself; the words that say so, or "".
export function cut(input, family) {
  if (input.value.length <= LONGEST) return "";
  input.value = input.value.slice(0, LONGEST);
  return REFUSED.long.replace("{longest}", LONGEST).replace("{asked}", KINDS[family]);
}
