// What the compiled widgets stand on: loops over Float64Arrays and the text of numbers.
// The scales come from engine/units.py; a browser test holds every text here against Python's.
import { FAMILIES, ONE, PREFIX, TYPED, UNITS } from "../widgets/shared.js";

export function vec(n, f) {
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) out[i] = f(i);
  return out;
}

export function rowwise(n, step) {
  for (let i = 0; i < n; i++) step(i);
}

export function join(pieces) {
  const flat = [];
  for (const piece of pieces) {
    if (typeof piece === "object") for (const value of piece) flat.push(+value);
    else flat.push(+piece);
  }
  return Float64Array.from(flat);
}

export const gather = (source, index) => vec(index.length, i => source[index[i]]);

const FOLDS = {
  sum: [0, (a, b) => a + b], prod: [1, (a, b) => a * b], max: [-Infinity, Math.max], min: [Infinity, Math.min],
};

export function reduce(how, values, width) {
  return vec(values.length / width, row => {
    const start = row * width;
    if (how === "argmax" || how === "argmin") {
      let best = 0;
      for (let i = 1; i < width; i++) {
        if (how === "argmax" ? values[start + i] > values[start + best] : values[start + i] < values[start + best]) best = i;
      }
      return best;
    }
    const [first, fold] = FOLDS[how];
    let total = first;
    for (let i = 0; i < width; i++) total = fold(total, values[start + i]);
    return total;
  });
}

export function cumsum(values, width) {
  const out = new Float64Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = values[i] + (i % width ? out[i - 1] : 0);
  return out;
}

// A column of an algorithm's numbers, as long as it may be at most; written over what the same call gave before.
export function padded(values, length, columns, name) {
  if (values.length > length) throw new Error(`an algorithm gave ${values.length} numbers where ${length} are allowed`);
  const out = columns[name] ??= new Float64Array(length);
  out.set(values);
  return out.fill(NaN, values.length);
}

// The place of the first number of an ascending list that is not below the value; its length where there is none.
export function bisect_left(ascending, value) {
  let low = 0, high = ascending.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ascending[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

// Copies of columns, without the rows at the end that some column has no number for.
export function rows(columns) {
  const lists = Object.values(columns).filter(column => typeof column === "object");
  const numbers = lists.filter(ArrayBuffer.isView);
  let n = Math.min(...lists.map(column => column.length));
  while (n && numbers.some(column => Number.isNaN(column[n - 1]))) n--;
  const cut = column => typeof column === "object" ? column.slice(0, n) : column;
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, cut(column)]));
}

// The checksum of zlib: whether bytes arrived as they were sent.
export function adler32(bytes) {
  let a = 1, b = 0;
  for (let i = 0; i < bytes.length;) {
    for (const end = Math.min(i + 3800, bytes.length); i < end; i++) b += a += bytes[i];  // so many never overflow 32 bits
    a %= 65521;
    b %= 65521;
  }
  return b * 65536 + a;
}

// A function that keeps its last answer, for a long search that most moves of a slider do not change.
export function remembered(compute) {
  const equal = (a, b) => a === b || (typeof a === "object" && a.length === b.length && a.every((value, i) => Object.is(value, b[i])));
  let last = null, answer = null;
  return (...args) => {
    if (!last || !args.every((arg, i) => equal(arg, last[i]))) {
      answer = compute(...args);
      last = args.map(arg => typeof arg === "object" ? arg.slice() : arg);    // columns are written over
    }
    return answer;
  };
}

// A text for each row; none where there is no number.
export const each = (values, write) => Array.from(values, value => Number.isNaN(value) ? "" : write(value));

// The index of the stop nearest to a value: the row of a table.
export function stop(value, grid) {
  let best = 0;
  for (let i = 1; i < grid.length; i++) if (Math.abs(grid[i] - value) < Math.abs(grid[best] - value)) best = i;
  return best;
}

export function mod(a, b) {
  const rest = a % b;
  return rest && (rest < 0) !== (b < 0) ? rest + b : rest;
}

export const square = a => a * a;

export function rint(value) {
  const low = Math.floor(value), rest = value - low;
  return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
}

const rounded = (value, digits) => Number(value.toExponential(digits - 1));

export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const near = rounded(value, digits);
  if (near === 0) return "0";
  if (Math.abs(near) >= 1e15) return near.toExponential().replace("e+", "e");
  if (Math.abs(near) >= 1000) {
    return String(Math.floor(value + 0.5)).replace(/\B(?=(\d{3})+$)/g, ",").replace("-", "−");
  }
  if (Math.abs(near) < 1e-3) return value > 0 ? "under 0.001" : "about −0";
  const text = near.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(near)))));
  return (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text).replace("-", "−");
}

// A number that may be tiny or huge: with its power of ten where that is far from 0.
export function real(value, digits = 3) {
  const near = rounded(value, digits), size = Math.abs(near);
  if (!Number.isFinite(value) || size === 0 || (size >= 1e-3 && size < 1e6)) return number(value, digits);
  return near.toExponential().replace("e+", "e").replace(/-/g, "−");
}

const counted = (amount, text) => amount + (amount === "1" ? ONE[text] ?? text : text);

export function human(value, family, digits = 3) {
  if (family === "real") return real(value, digits);
  let [scale, text] = FAMILIES[family][0];
  for (const step of FAMILIES[family]) if (Math.abs(rounded(value / step[0], digits)) >= 1) [scale, text] = step;
  if (value === 0 && family === "seconds") [scale, text] = [1, " s"];
  return (PREFIX[family] ?? "") + counted(number(value / scale, digits), text);
}

// A whole number in digits alone, as other programs read it.
export const plain = value => String(Math.floor(value + 0.5));

export function in_unit(value, unit, digits = 3) {
  const [scale, text] = UNITS[unit];
  return (unit.includes("$") ? "$" : "") + counted(number(value / scale, digits), text);
}

// A typed quantity, read with the tables and the pattern of engine/typed.py: "70B", "1.12 TB", "3 x 10^9", "40 %".
const quantity = new RegExp(`^(?:${TYPED.quantity})$`);
const superscripts = new RegExp(TYPED.superscripts, "g"), group = new RegExp(TYPED.group, "g");

// The amount, the unit behind it and a "$" before it; null where there is no number in front.
export function split(text) {
  if (text.length > TYPED.longest) return null;
  const plain = text.replace(/−/g, "-").replace(superscripts, power => `^${Array.from(power, digit => TYPED.superscript[digit]).join("")}`);
  const [, dollar, sign, base, power, whole, exponent, ofTen, unit] = quantity.exec(plain) ?? [];
  if (unit === undefined) return null;
  const amount = base === "2" ? 2 ** Number(power)
    : Number(base ? `1e${power}` : `${whole.replace(group, "")}e${exponent ?? ofTen ?? 0}`);
  return Number.isFinite(amount) ? { amount: sign === "-" ? -amount : amount, unit, dollar } : null;
}

// What one of a unit is; null for what the family does not take, or what could be two things ("Gb": bits to some).
export function scaleOf(unit, family) {
  const words = TYPED.words[family];
  if (Object.hasOwn(words, unit)) return words[unit];
  const same = Object.keys(words).find(word => word.toLowerCase() === unit.toLowerCase());
  return same === undefined ? null : words[same];
}

export function parse(text, family) {
  const found = split(text);
  if (!found || (found.dollar && family !== "dollars")) return null;
  const scale = scaleOf(found.unit, family);
  return scale === null || !Number.isFinite(found.amount * scale) ? null : found.amount * scale;
}
