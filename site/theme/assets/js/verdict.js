// What is said about a typed answer. It never says the number before it was found: it says what kind of slip this looks like.
import { number, scaleOf, split } from "../widget/numbers.js";

const KINDS = {
  bytes: "an amount of data", bytes_binary: "an amount of data", seconds: "a time", bytes_per_s: "a bandwidth", flops: "a number of FLOPs",
  flops_per_s: "a rate of arithmetic", flops_per_byte: "an intensity", percent: "a share", times: "a factor", dollars: "an amount of money",
  watts: "a power", tokens: "a number of tokens", params: "a number of parameters", count: "a number", real: "a number",
};
const COUNTED = ["count", "real", "params", "tokens", "times"];
const ANY_NOUN = ["count", "real"];  // "6 GPUs", "55 users": whatever is counted
const NOUN = /^\p{L}[\p{L}\p{N} ./-]+$/u;
const BYTES = ["bytes", "bytes_binary", "bytes_per_s"];

const prefixes = family => family === "seconds" ? "ms, µs" : [...COUNTED, "dollars"].includes(family) ? "k, M, B, T" : "k, M, G, T";

// Slips that have a name: the factors they make, the families they occur in (none: all), and what to look at.
const SLIPS = [
  { by: [1e3, 1e6, 1e9], words: (by, family) => `Off by a factor of ${number(by)}: look at the prefix of your unit (${prefixes(family)}).` },
  { by: [100], words: () => "Off by a factor of 100: a share, or a percentage?" },
  { by: [60, 3600, 24, 86400], in: ["seconds"], words: by => `Off by a factor of ${number(by)}: seconds, minutes, hours or days?` },
  { by: [1024 ** 3 / 1e9, 1024 ** 4 / 1e12, 1024 ** 2 / 1e6], in: BYTES, near: 0.002, words: () => "Near: is yours binary (GiB) where decimal is asked (GB), or the other way round?" },
  { by: [8], in: BYTES, words: () => "Off by a factor of 8: bits, or bytes?" },
  { by: [8], words: () => "Off by a factor of 8: bits for bytes, or one GPU where a node of eight is meant?" },
  { by: [2], words: () => "Off by a factor of 2: two bytes a value, both directions of a wire, there and back?" },
  { by: [3, 1.5], in: ["flops", "seconds", "tokens", "count"], near: 0.005, words: () => "Off as a forward pass is from a whole step: two FLOPs a parameter and token, four, or six?" },
];

const EXACT = 1e-6;
const CLOSE = 0.25, CLOSE_TO_EXACT = 0.05;  // nothing farther off is close, however wide the tolerance
const TRAPPED = 0.03;                       // a known wrong way, with its own rounding
const near = (ratio, factor, within) => Math.abs(ratio / factor - 1) <= within;

// What was typed as a value in SI, or { said } about why it is none.
export function read(text, { family, scale, label = "" }) {
  const typed = split(text);
  if (!text.trim()) return { said: `Type ${KINDS[family]} first.` };
  if (!typed || /^[,.'0-9]/.test(typed.unit)) return { said: "No number that can be read here. Write digits, a point for decimals, and the unit behind them: 1.5 TB, 2e9, 40 %." };
  const { amount, unit, dollar } = typed;
  if (dollar && family !== "dollars") return { said: `That is an amount of money; asked is ${KINDS[family]}.` };
  if (!unit) return { value: amount * (dollar ? 1 : scale) };
  const own = scaleOf(unit, family);
  if (own !== null) return { value: amount * own };
  const counted = COUNTED.includes(family) ? inWords(unit, family, label.toLowerCase()) : null;
  if (counted !== null) return { value: amount * (counted || scale) };
  const other = Object.keys(KINDS).find(kind => scaleOf(unit, kind) !== null);
  if (ANY_NOUN.includes(family) && COUNTED.includes(other)) return { value: amount * scaleOf(unit, other) };
  if (ANY_NOUN.includes(family) && !other && NOUN.test(unit)) return { value: amount * leading(unit, scale) };
  if (/^[KMGTPE]b/.test(unit) && BYTES.includes(family)) return { said: `“${unit}” is bits to some and bytes to others: write GB for bytes, Gbit for bits.` };
  if (other) return { said: `That is ${KINDS[other]}; asked is ${KINDS[family]}.` };
  return { said: `“${unit.slice(0, 20)}” is no unit that is known here; asked is ${KINDS[family]}.` };
}

// "3 H100s", "48k tokens", "4 x": what is counted may be named as the question names it. 0 stands for nothing but the name.
function inWords(unit, family, label) {
  const words = unit.toLowerCase().split(" "), noun = words.pop().replace(/s$/, "");
  if (noun.length > 1 && label.includes(noun)) return words.length ? scaleOf(words.join(" "), family) : 0;
  return scaleOf(unit, "times");
}

// What one is, of "k tokens" or of "GPUs": the word in front may be a scale.
function leading(unit, scale) {
  const [first, ...rest] = unit.split(" ");
  return rest.length && scaleOf(first, "count") || scale;
}

// { right, counts, said }: whether it is right, whether it was a try at all, and the words.
export function judge(text, asked) {
  const { value, said } = read(text, asked);
  if (value === undefined) return { right: false, counts: false, said };
  const { expected, within, side, shown, trap, hint } = asked;
  const beyond = side && (side === "below" ? value > expected : value < expected);  // one more does not fit, one fewer is not enough
  const allowed = beyond ? EXACT : within || EXACT;
  if (Math.abs(value - expected) <= allowed * Math.abs(expected)) return { right: true, counts: true, said: `Right: ${shown}.${apart(value, expected)}` };
  if (hint && near(value, trap, TRAPPED)) return { right: false, counts: true, said: hint };
  return { right: false, counts: true, said: slip(value, expected, within, asked.family) ?? distance(value, expected, within, side, beyond) };
}

function apart(value, expected) {
  const off = Math.abs(value / expected - 1);
  return off > 0.0005 ? ` Yours is ${number(100 * off, 2)} % ${value > expected ? "above" : "below"}.` : "";
}

function slip(value, expected, within, family) {
  const ratio = value / expected;
  if (ratio < 0) return "Look at the sign.";
  for (const { by, words, near: tight, in: families } of within ? SLIPS : SLIPS.slice(0, 1)) {  // a small whole number has no slips
    if (families && !families.includes(family)) continue;
    const found = by.find(factor => [factor, 1 / factor].some(each => near(ratio, each, tight ?? Math.max(within, 0.02))));
    if (found) return words(found, family);
  }
  return null;
}

function distance(value, expected, within, one, beyond) {
  const side = value > expected ? "high" : "low", ratio = Math.abs(value / expected);
  if ((!within || one) && Number.isInteger(expected) && (Math.ceil(value) === expected || Math.floor(value) === expected)) {
    return "Nearly: asked is a whole number. Which way must this one be rounded?";
  }
  if (near(ratio, 1, within ? Math.min(2 * within, CLOSE) : CLOSE_TO_EXACT)) {
    if (!within) return `Close, a little too ${side}; but this one is asked exactly.`;
    if (beyond) return `Close, a little too ${side}: ${one === "below" ? "so many no longer fit" : "so few are not enough"}.`;
    return `Close, a little too ${side}: asked is within ${number(100 * within)} %. Something rounded early, or a small term left out?`;
  }
  if (ratio > 10 || ratio < 0.1) return `Too ${side}, by more than a factor of ten.`;
  return within ? `Too ${side}, by more than rounding explains.` : `Too ${side}.`;
}
