// The compiler's other half: what the code that it writes calls. Loops over Float64Arrays, what numpy and Python
// do otherwise than JavaScript, and the text of numbers. Built sites have it as assets/widget/numbers.js.
// The scales come from engine/base/units.py; a browser test holds every text here against Python's.
import { BEFORE_UNIT, FAMILIES, LARGEST_SHARE, LEAST_FACTOR, MANY, ONE, POWERS, PREFIX, UNITS } from "../widgets/shared.js";

export function vec(n, f) {
  const out = new Float64Array(n);
  for (let i = 0; i < n; i++) out[i] = f(i);
  return out;
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
      for (let i = 1; i < width && values[start + best] === values[start + best]; i++) {   // the first NaN is both
        const value = values[start + i], most = values[start + best];
        if (value !== value || (how === "argmax" ? value > most : value < most)) best = i;
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
  for (let i = 0; i < out.length; i++) out[i] = i % width ? out[i - 1] + values[i] : values[i];
  return out;
}

// A column among those of a call: the one of the call before, to be written over.
export const own = (columns, name, length) => columns[name] ??= new Float64Array(length);

// A column of an algorithm's numbers, as long as it may be at most.
export function padded(values, length, columns, name) {
  if (values.length > length) throw new Error(`an algorithm gave ${values.length} numbers where ${length} are allowed`);
  const out = own(columns, name, length);
  out.set(values);
  return out.fill(NaN, values.length);
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

// A function that keeps its last answer, for a long search that most moves of a slider do not change. It writes over the columns of
// that answer.
export function remembered(search) {
  const found = {};
  let last = null;
  const same = (arg, i) => arg === last[i] || Object.is(arg, last[i]) || (typeof arg === "object" && alike(arg, last[i]));
  return (...args) => {
    if (last?.every((_, i) => same(args[i], i))) return found;
    const kept = last;
    last = null;    // if the search throws, nothing counts as known
    search(found, ...args);
    last = args.map((arg, i) => typeof arg === "object" ? copied(arg, kept?.[i]) : arg);    // columns are written over
    return found;
  };
}

// What a part of a search computes once for each row and each entry of a loop: it is kept when it is computed, and put back when
// the entry comes again in the same row. `share` is where the part leaves it.
export function once(share, entries) {
  const of = new Float64Array(entries), known = Array.from(of, () => new Float64Array(share.length));
  return {
    keep(row, i) {
      known[i].set(share);
      of[i] = row;
    },
    putBack(row, i) {
      if (of[i] === row) share.set(known[i]);
      return of[i] === row;
    },
  };
}

function alike(a, b) {
  for (let i = 0; i < a.length; i++) if (!Object.is(a[i], b[i])) return false;
  return a.length === b.length;
}

function copied(column, before) {
  const copy = before?.length === column.length ? before : new Float64Array(column.length);
  copy.set(column);
  return copy;
}

// A text for each row; none where there is no number.
export function each(values, write) {
  const out = new Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = Number.isNaN(values[i]) ? "" : write(values[i], i);
  return out;
}

// The index of the stop nearest to a value: the row of a table.
export function stop(value, grid) {
  let best = 0;
  for (let i = 1; i < grid.length; i++) if (Math.abs(grid[i] - value) < Math.abs(grid[best] - value)) best = i;
  return best;
}

// The entry of a table at an index, as numpy finds it: from the end below 0, an error out of range. A row that is
// padded with NaN has no entry.
export function entry(table, index) {
  if (index !== index) return NaN;
  const whole = Math.trunc(index), found = table[whole < 0 ? whole + table.length : whole];
  if (found === undefined) throw new RangeError(`index ${index} is out of range for ${table.length} entries`);
  return found;
}

export const word = (texts, index) => index !== index ? "" : entry(texts, index);

// Of a text for all rows, or of a column of them: that of a row.
export const of_row = (text, row) => typeof text === "string" ? text : text[row];

// numpy's and Python's: the sign of what is left over is that of b, of a zero too.
export function mod(a, b) {
  const rest = a % b;
  if (rest) return (rest < 0) !== (b < 0) ? rest + b : rest;
  return rest !== rest ? rest : b < 0 ? -0 : 0;
}

// The whole part of a/b without its rounding: 1 // 0.1 is 9, though 1 / 0.1 is 10.
export function floordiv(a, b) {
  if (b === 0 || b !== b) return a / b;
  const rest = a % b, whole = (a - rest) / b - (rest && (rest < 0) !== (b < 0) ? 1 : 0);
  if (!whole) return whole !== whole ? whole : a / b < 0 || Object.is(a / b, -0) ? -0 : 0;
  const low = Math.floor(whole);
  return whole - low > 0.5 ? low + 1 : low;
}

// As C has it: 1 to any power is 1, and so is −1 to an infinite one.
export const power = (a, b) => a == 1 || (a == -1 && (b === Infinity || b === -Infinity)) ? 1 : Math.pow(a, b);

export const square = a => a * a;

export const sign = a => Math.sign(a) + 0;    // of −0 it is 0

export function rint(value) {
  const low = Math.floor(value), rest = value - low;
  const near = rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
  return near || !Number.isFinite(value) ? near : value < 0 || Object.is(value, -0) ? -0 : 0;
}

// -- what Python does in a program: where it raises, these throw, and the page shows that it could not compute ---

const MOST_WHOLE = 2 ** 53;

function fault(words) {
  throw new RangeError(words);
}

// A sum or product of whole numbers: Python's grow without end, a double is exact up to here.
export const py_whole = a => a < MOST_WHOLE && a > -MOST_WHOLE ? a : fault(`the whole number ${a} is past 2^53`);

const finite = a => Number.isFinite(+a) ? +a : fault(`${a} is no whole number`);

export const py_int = a => py_whole(Math.trunc(finite(a))) + 0;
export const py_floor = a => py_whole(Math.floor(finite(a))) + 0;
export const py_ceil = a => py_whole(Math.ceil(finite(a))) + 0;
export const py_round = a => py_whole(rint(finite(a))) + 0;

// The mean of a column; and what a function gives for each place of some columns.
export const mean_of = column => { let sum = 0; for (let i = 0; i < column.length; i++) sum += column[i]; return sum / column.length; };
export function for_each(columns, way) {
  const found = new Array(columns[0].length);
  for (let i = 0; i < found.length; i++) found[i] = way(i, columns);
  return found;
}

export const py_divided = (a, b) => b == 0 ? fault("division by zero") : a / b;
export const py_remainder = (a, b) => b == 0 ? fault("remainder of a division by zero") : mod(a, b);
export const py_floordivided = (a, b) => b == 0 ? fault("division by zero") : floordiv(a, b);

// A power of whole numbers, exact.
export function py_whole_power(a, b) {
  if (b < 0) fault(`the whole number ${a} to the power ${b}: write a float`);
  let power = 1;
  for (let rest = b, base = a; rest > 0; rest = Math.floor(rest / 2)) {
    if (rest % 2) power = py_whole(power * base);
    if (rest > 1) base = base * base;
  }
  return power;
}

export function py_power(a, b) {
  if (a == 0 && b < 0) fault("0 to a negative power");
  if (a < 0 && Number.isFinite(a) && Number.isFinite(b) && b % 1) fault(`the negative number ${a} to the power ${b} is complex`);
  const found = power(a, b);
  return Number.isFinite(a) && Number.isFinite(b) && !Number.isFinite(found) ? fault(`${a} to the power ${b} is too large`) : found;
}

export const py_sqrt = a => a < 0 ? fault(`the square root of ${a}`) : Math.sqrt(a);
export const py_log = (log, a) => a <= 0 ? fault(`the logarithm of ${a}`) : log(a);
export const py_wave = (wave, a) => a === Infinity || a === -Infinity ? fault(`a wave at ${a}`) : wave(a);

export function py_exp(a) {
  const found = Math.exp(a);
  return found === Infinity && a !== Infinity ? fault(`e to the power ${a} is too large`) : found;
}

// The first of equal ones, and of two that cannot be compared.
export const py_least = (a, b) => b < a ? b : a;
export const py_most = (a, b) => b > a ? b : a;

const chosen = choose => list => {
  if (!list.length) fault("the least or most of no numbers");
  let found = list[0];
  for (let i = 1; i < list.length; i++) found = choose(found, list[i]);
  return found;
};
export const py_least_of = chosen(py_least), py_most_of = chosen(py_most);

// Where in a list an index is, from the end below 0.
export function py_place(index, length) {
  const place = index < 0 ? index + length : index;
  return place >= 0 && place < length ? place : fault(`index ${index} is out of range for a list of ${length}`);
}

export const py_item = (list, index) => list[py_place(index, list.length)];
export const py_pop = list => list.length ? list.pop() : fault("pop from an empty list");
export const py_pop_at = (list, index) => list.splice(py_place(index, list.length), 1)[0];
export const py_insert = (list, index, value) => void list.splice(index, 0, value);

export function py_remove(list, value) {
  const place = list.findIndex(each => each == value);
  list.splice(place < 0 ? fault(`${value} is not in the list`) : place, 1);
}

// How long a list is made. It is made where it is asked for: V8 learns of each place what its lists will hold.
export const py_count = count => Math.max(0, py_int(count));

export const py_unpacked = (list, count) => list.length === count ? list : fault(`${list.length} values for ${count} names`);

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

const rounded = (value, digits) => Number(value.toExponential(digits - 1));

export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  const near = rounded(value, digits);
  if (near === 0) return "0";
  if (Math.abs(near) >= 1e15) return powerOfTen(near);
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
  if (!Number.isFinite(value) || size === 0 || (size >= 1e-3 && size < 1e6) || isRoundInBinary(value)) return number(value, digits);
  return powerOfTen(near);
}

function powerOfTen(near) {
  const [digits, exponent] = near.toExponential().split("e");
  const times = { 1: "", "-1": "−" }[digits] ?? `${digits.replace("-", "−")}·`;
  return `${times}10${exponent.replace(/[0-9+-]/g, sign => POWERS[sign])}`;
}

// A power of two, or a few of one: such a number is known by all its digits.
function isRoundInBinary(value) {
  const size = Math.abs(value);
  return size >= 2 ** 10 && size <= 2 ** 24 && size % 1 === 0 && size / (size & -size) < (size <= 2 ** 20 ? 16 : 2);
}

// The sign of a currency, before the first digit: "−$3", "under $0.001".
const priced = (text, sign) => sign ? text.replace(/[0-9]/, digit => sign + digit) : text;

const counted = (amount, text) => amount + (amount === "1" ? ONE[text] ?? text : text);

export function human(value, family, digits = 3) {
  if (family === "real") return real(value, digits);
  const size = Math.abs(rounded(value, digits));
  if (family === "times" && size && size < LEAST_FACTOR) family = "percent";
  else if (family === "percent" && size >= LARGEST_SHARE) family = "times";
  let [scale, text] = FAMILIES[family][0];
  if (family === "tokens" && isRoundInBinary(value)) return number(value) + text;
  if (family === "times" && size >= MANY && Number.isFinite(value)) return powerOfTen(rounded(value, digits)) + text;
  for (const step of FAMILIES[family]) if (Math.abs(rounded(value / step[0], digits)) >= 1) [scale, text] = step;
  if (value === 0 && family === "seconds") [scale, text] = [1, " s"];
  return priced(counted(number(value / scale, digits), text), PREFIX[family] ?? "");
}

// A whole number in digits alone, as other programs read it.
export const plain = value => String(Math.floor(value + 0.5));

export function in_unit(value, unit, digits = 3) {
  const [scale, text] = UNITS[unit];
  return priced(counted(number(value / scale, digits), text), unit.includes("$") ? "$" : "");
}

const beforeUnit = new RegExp(BEFORE_UNIT, "g");

// The text as a page shows it: no line ends between a number and its unit.
export const unbroken = text => text.replace(beforeUnit, "$1\u00a0");
