// What Python's own types, operators and functions do, for the text that translate.py writes: a float is a number, an int a
// BigInt, a list an Array, None null. Methods stand under their name with a dollar before it.

// -- classes --------------------------------------------------------------------------------------------------------------
export class $Thing {}
const FIELDS = Symbol("fields"), KEY = Symbol("key");
let identities = 0;
const identity = new WeakMap();

const define = (where, methods) => {
  for (const [name, way] of Object.entries(methods)) Object.defineProperty(where, `$${name}`, { value: way, writable: true, configurable: true });
};
export const $f = (way, names, keywords = false) => { way.$p = [names, keywords]; return way; };
const named = (way, ...names) => $f(way, names);

// A class that is called without `new`, with what stands on it.
export function $class(kind, name, fields, annotations, parameters, signatures) {
  const made = (...given) => new kind(...given);
  kind.$made = made;
  made.$class = kind;
  made.$__name__ = name;
  made.$p = [parameters[0], parameters[1] ?? false];
  made.$__annotations__ = $dict(Object.entries(annotations));
  made[FIELDS] = fields;
  if (fields.length) kind.prototype[FIELDS] = fields.map(each => `$${each}`);
  for (const each of Object.getOwnPropertyNames(kind)) if (each[0] === "$" && each !== "$made") made[each] = kind[each];
  for (const [method, p] of Object.entries(signatures)) {
    const way = Object.getOwnPropertyDescriptor(kind.prototype, `$${method}`)?.value ?? made[`$${method}`];
    if (way) way.$p = p;
  }
  const init = kind.prototype.$__init__;
  if (init && !fields.length) {
    const plain = (...given) => { const one = new kind(); one.$__init__(...given); return one; };
    return Object.assign(plain, made, { $class: kind }), kind.$made = plain;
  }
  return made;
}
export function $named(kind, name, fields, ...rest) {
  const made = $class(kind, name, fields, ...rest);
  $attribute(made, "$_fields", $tuple(fields));
  return made;
}
export function $attribute(made, name, value) {
  made[name] = value;
  made.$class.prototype[name] = value;
}
export const $setattr = (one, name, value) => { one[`$${name}`] = value; return null; };
export function $bound(whose, name) {
  const found = whose[name];
  if (found === undefined) throw $py_AttributeError(`no attribute ${name.slice(1)}`);
  return typeof found === "function" && !Object.hasOwn(whose, name) ? $f((...given) => found.apply(whose, given), ...(found.$p ?? [[]])) : found;
}

// -- errors ---------------------------------------------------------------------------------------------------------------
class PyException extends Error {
  constructor(...given) { super(given.length ? $py_str(given[0]) : ""); this.$args = given; }
}
const error = (name, base) => {
  const kind = { [name]: class extends base { $__str__() { return this.message; } } }[name];
  return $class(kind, name, [], {}, [[]], {});
};
export const $modules = Object.create(null);
// A module by its name, with what it offers; and more of one that is there.
export const $module = (name, names) => ($modules[name] = Object.assign(Object.create(null), { $__name__: name }, names));

export const $more = (name, names) => Object.assign($modules[name], names);

// -- tuples, dictionaries, sets ---------------------------------------------------------------------------------------------
export class $Tuple {
  constructor(items) { this.items = items; }
  all() { return this.items; }
  [Symbol.iterator]() { return this.items[Symbol.iterator](); }
}
export class $Named extends $Tuple {
  constructor() { super(null); }
  all() { return this[FIELDS].map(each => this[each]); }
  [Symbol.iterator]() { return this.all()[Symbol.iterator](); }
  $_asdict() { return $dict(this[FIELDS].map(each => [each.slice(1), this[each]])); }
  $_replace(changes) { return $replaced(this, changes); }
}
$Named.prototype.$_replace.$p = [[], true];
export const $tuple = items => new $Tuple(Array.isArray(items) ? items : [...items]);

export function $key(value) {
  switch (typeof value) {
    case "string": return value.charCodeAt(0) === 0 ? `\0s${value}` : value;
    case "number": return value;
    case "boolean": return Number(value);
    case "bigint": return Number.isSafeInteger(Number(value)) ? Number(value) : value;
    case "object": return value === null ? "\0None" : whole(value);
  }
  return value;
}
function part(value) {
  if (typeof value === "string") return `s${value.length}:${value}`;
  const key = $key(value);
  if (typeof key === "function" || (typeof key === "object" && key !== null)) {
    if (!identity.has(key)) identity.set(key, ++identities);
    return `o${identity.get(key)}`;
  }
  return typeof key === "string" ? key : `n${key}`;
}
function whole(value) {
  if (value instanceof $Tuple) return `\0t(${value.all().map(part).join(",")})`;
  if (Array.isArray(value) || value instanceof $Dict || value instanceof $Set) throw $py_TypeError("unhashable type");
  if (value.unhashable) throw $py_TypeError("unhashable type");
  if (value[FIELDS]) return value[KEY] ??= `\0d${part(value.constructor)}(${value[FIELDS].map(each => part(value[each])).join(",")})`;
  return value;
}
export class $Dict {
  constructor() { this.map = new Map(); }
  set(key, value) {
    const at = $key(key), pair = this.map.get(at);
    if (pair) pair[1] = value; else this.map.set(at, [key, value]);
  }
  find(key) { return this.map.get($key(key)); }
  *[Symbol.iterator]() { for (const [key] of this.map.values()) yield key; }
}
export function $dict(pairs = []) {
  const found = new $Dict();
  for (const [key, value] of pairs) found.set(key, value);
  return found;
}
export class $Set {
  constructor(items = []) { this.map = new Map(); for (const item of items) this.$add(item); }
  $add(item) { const key = $key(item); if (!this.map.has(key)) this.map.set(key, item); return null; }
  has(item) { return this.map.has($key(item)); }
  [Symbol.iterator]() { return this.map.values(); }
}

// -- what is true, equal, less ------------------------------------------------------------------------------------------------
export function $true(value) {
  switch (typeof value) {
    case "boolean": return value;
    case "number": return value !== 0;
    case "bigint": return value !== 0n;
    case "string": return value !== "";
    case "object":
      if (value === null) return false;
      if (Array.isArray(value)) return value.length > 0;
      if (value instanceof $Named) return true;
      if (value instanceof $Tuple) return value.items.length > 0;
      if (value instanceof $Dict || value instanceof $Set) return value.map.size > 0;
      if (value.truth) return value.truth();
  }
  if (value === undefined) throw $py_AttributeError("a value that is not there");
  return true;
}
const SIMPLE = { number: 1, bigint: 1, boolean: 1 };
const row = value => value instanceof $Tuple ? value.all() : value;
function same(a, b) {
  if (a === b) return true;
  if (typeof a in SIMPLE && typeof b in SIMPLE) return a == b;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (a instanceof $Tuple ? b instanceof $Tuple : Array.isArray(a) && Array.isArray(b)) {
    const x = row(a), y = row(b);
    return x.length === y.length && x.every((each, i) => same(each, y[i]));
  }
  if (a instanceof $Dict && b instanceof $Dict) return a.map.size === b.map.size && [...a.map].every(([k, [, v]]) => b.map.has(k) && same(v, b.map.get(k)[1]));
  if (a instanceof $Set && b instanceof $Set) return a.map.size === b.map.size && [...a.map.keys()].every(k => b.map.has(k));
  return a.constructor === b.constructor && Boolean(a[FIELDS]) && a[FIELDS].every(each => same(a[each], b[each]));
}
let arrays = null;                          // what knows arrays, where something does: numpy.js
export const $withArrays = way => { arrays = way; };
const isArray = value => typeof value === "object" && value !== null && value.unhashable === true;
export const $eq = (a, b) => typeof a === "number" && typeof b === "number" ? a === b : arrays && (isArray(a) || isArray(b)) ? arrays("eq", a, b) : same(a, b);
export const $ne = (a, b) => arrays && (isArray(a) || isArray(b)) ? arrays("ne", a, b) : !same(a, b);
function less(a, b) {
  if (a instanceof $Tuple || Array.isArray(a)) {
    const x = row(a), y = row(b);
    for (let i = 0; i < x.length && i < y.length; i++) if (!same(x[i], y[i])) return less(x[i], y[i]);
    return x.length < y.length;
  }
  if (a instanceof $Set) return a.map.size < b.map.size && [...a].every(each => b.has(each));
  if ((typeof a === "string") !== (typeof b === "string") || a === null || b === null || typeof a === "object") throw $py_TypeError("'<' not supported");
  return a < b;
}
const compare = (name, way) => (a, b) => typeof a === "number" && typeof b === "number" ? way(a, b) : arrays && (isArray(a) || isArray(b)) ? arrays(name, a, b) : null;
const lt = compare("lt", (a, b) => a < b), le = compare("le", (a, b) => a <= b), gt = compare("gt", (a, b) => a > b), ge = compare("ge", (a, b) => a >= b);
export const $lt = (a, b) => lt(a, b) ?? less(a, b);
export const $gt = (a, b) => gt(a, b) ?? less(b, a);
export const $le = (a, b) => le(a, b) ?? (a instanceof $Set ? [...a].every(each => b.has(each)) : less(a, b) || same(a, b));
export const $ge = (a, b) => ge(a, b) ?? (a instanceof $Set ? [...b].every(each => a.has(each)) : less(b, a) || same(a, b));
export function $in(item, where) {
  if (typeof where === "string") return where.includes(item);
  if (where instanceof $Dict) return where.find(item) !== undefined;
  if (where instanceof $Set) return where.has(item);
  if (where instanceof $Tuple || Array.isArray(where)) return row(where).some(each => same(each, item));
  for (const each of where) if (same(each, item)) return true;
  return false;
}
export const $notin = (item, where) => !$in(item, where);

// -- arithmetic ---------------------------------------------------------------------------------------------------------------
const counted = value => typeof value === "boolean" ? BigInt(value) : value;
function slowly(name, a, b, whole, real) {
  if (arrays && (isArray(a) || isArray(b))) return arrays(name, a, b);
  if (name === "div" && a?.$__truediv__) return a.$__truediv__(b);
  a = counted(a);
  b = counted(b);
  if (typeof a === "bigint" && typeof b === "bigint") return whole(a, b);
  if ((typeof a === "bigint" || typeof a === "number") && (typeof b === "bigint" || typeof b === "number")) return real(Number(a), Number(b));
  throw $py_TypeError(`unsupported operand types for ${name}`);
}
const noZero = (b, words = "division by zero") => { if (b == 0) throw $py_ZeroDivisionError(words); return b; };
export function $add(a, b) {
  if (typeof a === "number" && typeof b === "number") return a + b;
  if (typeof a === "string" && typeof b === "string") return a + b;
  if (Array.isArray(a) && Array.isArray(b)) return [...a, ...b];
  if (a instanceof $Tuple && b instanceof $Tuple) return $tuple([...a.all(), ...b.all()]);
  return slowly("add", a, b, (x, y) => x + y, (x, y) => x + y);
}
export const $sub = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : a instanceof $Set ? new $Set([...a].filter(each => !b.has(each))) : slowly("sub", a, b, (x, y) => x - y, (x, y) => x - y);
const repeated = (a, n) => typeof a === "string" ? a.repeat(Math.max(0, Number(n))) : Array.isArray(a) ? Array.from({ length: Math.max(0, Number(n)) }, () => a).flat() : $tuple(repeated([...a.all()], n));
const repeats = value => typeof value === "string" || Array.isArray(value) || value instanceof $Tuple;
export function $mul(a, b) {
  if (typeof a === "number" && typeof b === "number") return a * b;
  if (repeats(a)) return repeated(a, counted(b));
  if (repeats(b)) return repeated(b, counted(a));
  return slowly("mul", a, b, (x, y) => x * y, (x, y) => x * y);
}
export const $div = (a, b) => typeof a === "number" && typeof b === "number" && b !== 0 ? a / b : slowly("div", a, b, (x, y) => Number(x) / Number(noZero(y)), (x, y) => x / noZero(y));
const signed = (zero, sign) => sign < 0 || Object.is(sign, -0) ? -zero : zero;
const realMod = (x, y) => { const r = x % noZero(y); return r === 0 ? signed(0, y) : (r < 0) !== (y < 0) ? r + y : r; };
function realFloordiv(x, y) {
  const rest = x % noZero(y), quotient = (x - rest) / y - (rest !== 0 && (rest < 0) !== (y < 0) ? 1 : 0), low = Math.floor(quotient);
  return quotient === 0 ? signed(0, x / y) : quotient - low > 0.5 ? low + 1 : low;
}
const wholeMod = (x, y) => { const r = x % noZero(y); return r !== 0n && (r < 0n) !== (y < 0n) ? r + y : r; };
export const $mod = (a, b) => slowly("mod", a, b, wholeMod, realMod);
export const $floordiv = (a, b) => slowly("floordiv", a, b, (x, y) => (x - wholeMod(x, y)) / y, realFloordiv);
function realPow(x, y) {
  if (x === 0 && y < 0) throw $py_ZeroDivisionError("0.0 cannot be raised to a negative power");
  const found = x === 1 ? 1 : Math.pow(x, y);
  if (!Number.isFinite(found) && Number.isFinite(x) && Number.isFinite(y)) throw $py_OverflowError("Result too large");
  return found;
}
export const $pow = (a, b) => typeof a === "number" && typeof b === "number" ? realPow(a, b) : slowly("pow", a, b, (x, y) => y >= 0n ? x ** y : realPow(Number(x), Number(y)), realPow);
export function $and(a, b) {
  if (typeof a === "boolean" && typeof b === "boolean") return a && b;
  if (a instanceof $Set || b instanceof $Set) { const other = b instanceof $Set ? b : new $Set(b); return new $Set([...a].filter(each => other.has(each))); }
  return slowly("and", a, b, (x, y) => x & y);
}
export function $or(a, b) {
  if (typeof a === "boolean" && typeof b === "boolean") return a || b;
  if (a instanceof $Set) return new $Set([...a, ...b]);
  if (a instanceof $Dict) return $dict([...a.map.values(), ...b.map.values()]);
  if (typeof a === "function") return $tuple([a, b]);       // str | None
  return slowly("or", a, b, (x, y) => x | y);
}
export function $iadd(a, b) {
  if (!Array.isArray(a)) return $add(a, b);
  for (const each of [...b]) a.push(each);
  return a;
}
export function $ior(a, b) {
  if (a instanceof $Dict) { for (const [key, value] of b.map.values()) a.set(key, value); return a; }
  if (a instanceof $Set) { for (const each of [...b]) a.$add(each); return a; }
  return $or(a, b);
}
export const $matmul = (a, b) => arrays("matmul", a, b);
export const $neg = a => isArray(a) ? arrays("sub", 0, a) : -counted(a);
export const $invert = a => isArray(a) ? arrays("invert", a, a) : ~counted(a);

// -- items and slices -----------------------------------------------------------------------------------------------------------
class Cut { constructor(low, high, step) { Object.assign(this, { low, high, step }); } }
export const $cut = (low, high, step) => new Cut(low, high, step);
function place(index, length) {
  if (typeof index !== "bigint" && typeof index !== "boolean") throw $py_TypeError("indices must be integers");
  const at = Number(index) < 0 ? Number(index) + length : Number(index);
  if (at < 0 || at >= length) throw $py_IndexError("index out of range");
  return at;
}
export function $item(of, key) {
  if (of instanceof $Dict) {
    const found = of.find(key);
    if (found === undefined) throw $py_KeyError(key);
    return found[1];
  }
  if (Array.isArray(of) || typeof of === "string") return of[place(key, of.length)];
  if (of instanceof $Tuple) { const all = of.all(); return all[place(key, all.length)]; }
  return of.$__getitem__(key);
}
export function $setitem(of, key, value) {
  if (of instanceof $Dict) of.set(key, value);
  else if (Array.isArray(of)) of[place(key, of.length)] = value;
  else of.$__setitem__(key, value);
}
export function $slice(of, low, high, step) {
  if (isArray(of)) return of.$__getitem__(new Cut(low, high, step));
  const all = of instanceof $Tuple ? of.all() : of;
  const by = step === null ? 1 : Number(step);
  let found;
  if (by === 1) found = all.slice(low === null ? 0 : Number(low), high === null ? all.length : Number(high));
  else {
    const n = all.length, within = (value, least, most) => Math.min(most, Math.max(least, value < 0 ? value + n : value)), each = [];
    let at = low === null ? (by > 0 ? 0 : n - 1) : within(Number(low), by > 0 ? 0 : -1, by > 0 ? n : n - 1);
    const end = high === null ? (by > 0 ? n : -1) : within(Number(high), by > 0 ? 0 : -1, by > 0 ? n : n - 1);
    for (; by > 0 ? at < end : at > end; at += by) each.push(all[at]);
    found = typeof all === "string" ? each.join("") : each;
  }
  return of instanceof $Tuple ? $tuple(found) : found;
}

// -- calls with keywords --------------------------------------------------------------------------------------------------------
export const $names = names => Object.fromEntries([...names.map.values()]);
function arranged(way, given, names) {
  if (!way?.$p) throw $py_TypeError(`${way?.name ?? "this"} takes no keywords`);
  const [known, more] = way.$p, found = [...given];
  let rest = null;
  for (const [name, value] of Object.entries(names)) {
    const at = known.indexOf(name);
    if (at >= 0) {
      if (at < given.length) throw $py_TypeError(`got multiple values for argument '${name}'`);
      found[at] = value;
    } else if (more) (rest ??= $dict()).set(name, value);
    else throw $py_TypeError(`got an unexpected keyword argument '${name}'`);
  }
  if (more) found[known.length] = rest ?? $dict();
  return Array.from(found);
}
export function $kw(way, given, names) {
  if (way.keywords) return way(...given, Object.assign(new Options(), { key: names.key ?? null, otherwise: names.default }));  // max and min
  return way(...arranged(way, given, names));
}
export const $kwm = (whose, name, given, names) => whose[name].apply(whose, arranged(whose[name], given, names));
export const $replaced = (one, changes) => one.constructor.$made(...one.constructor.$made.$p[0].map(name => changes.find(name)?.[1] ?? (changes.find(name) ? null : one[`$${name}`])));

// -- errors, continued ------------------------------------------------------------------------------------------------------------
export const $py_Exception = $class(PyException, "Exception", [], {}, [[]], {});
PyException.prototype.$__str__ = function () { return this.message; };
export const $py_ValueError = error("ValueError", PyException);
export const $py_TypeError = error("TypeError", PyException);
export const $py_ArithmeticError = error("ArithmeticError", PyException);
export const $py_AttributeError = error("AttributeError", PyException);
export const $py_ZeroDivisionError = error("ZeroDivisionError", $py_ArithmeticError.$class);
export const $py_OverflowError = error("OverflowError", $py_ArithmeticError.$class);
export const $py_KeyError = error("KeyError", PyException);
export const $py_IndexError = error("IndexError", PyException);
export const $py_OSError = error("OSError", PyException);
export const $py_RecursionError = error("RecursionError", PyException);
export const $py_StopIteration = error("StopIteration", PyException);
export const $py_UnicodeDecodeError = error("UnicodeDecodeError", $py_ValueError.$class);
export function $caught(given) {
  if (given instanceof PyException) return given;
  if (given instanceof RangeError && /stack|recursion/i.test(given.message)) return $py_RecursionError("maximum recursion depth exceeded");
  return given;
}

// -- numbers as text ----------------------------------------------------------------------------------------------------------------
function realText(value) {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits, power] = value.toExponential().split("e"), exponent = Number(power);
  if (exponent < -4 || exponent >= 16) return `${digits}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
  if (exponent >= 0) { const text = BigInt(Math.abs(Math.trunc(value))).toString(), whole = String(value); return whole.includes(".") ? whole : `${value < 0 ? "-" : ""}${text}.0`; }
  return value.toFixed(Math.max(0, digits.replace("-", "").replace(".", "").length - 1 - exponent));
}
// Digits of the exact value, a tie to the even one.
function rounded(text, digits) {
  const [before, after] = text.split("."), kept = before + after.slice(0, digits), rest = after.slice(digits);
  const up = rest[0] > "5" || (rest[0] === "5" && (/[1-9]/.test(rest.slice(1)) || Number(kept.at(-1)) % 2 === 1));
  const found = (BigInt(kept) + (up ? 1n : 0n)).toString().padStart(kept.length, "0");
  return digits ? `${found.slice(0, found.length - digits)}.${found.slice(found.length - digits)}` : found;
}
const minus = value => value < 0 || Object.is(value, -0) ? "-" : "";
function fixed(value, digits) {
  const size = Math.abs(value), text = size >= 1e21 ? `${BigInt(size)}.${"0".repeat(digits + 1)}` : size.toFixed(100);
  return minus(value) + rounded(text, digits);
}
function scientific(value, digits) {
  const size = Math.abs(value), [mantissa, power] = size.toExponential(100).split("e");
  let text = rounded(mantissa, digits), exponent = Number(power);
  if (/^10/.test(text)) { text = digits ? `1.${"0".repeat(digits)}` : "1"; exponent++; }
  return `${minus(value)}${text}e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}
function general(value, digits) {
  digits ||= 1;
  const text = scientific(value, digits - 1), exponent = Number(text.split("e")[1]);
  const trim = each => each.includes(".") ? each.replace(/\.?0+$/, "") : each;
  if (exponent < -4 || exponent >= digits) { const [mantissa, power] = text.split("e"); return `${trim(mantissa)}e${power}`; }
  return trim(fixed(value, digits - 1 - exponent));
}
const grouped = text => text.replace(/^(-?)(\d+)/, (_, sign, whole) => sign + whole.replace(/\B(?=(\d{3})+$)/g, ","));
const SPEC = /^(?:(.)?([<>^=]))?([+\- ])?(0)?(\d+)?(,)?(?:\.(\d+))?([a-zA-Z%])?$/s;
export function $format(value, spec) {
  if (spec === "") return $py_str(value);
  const parts = SPEC.exec(spec);
  if (!parts) throw $py_ValueError(`Invalid format specifier ${spec}`);
  const [, fill = " ", align, sign, , width, comma, precision, kind] = parts;
  const number = typeof counted(value) === "bigint" || typeof value === "number";
  let text;
  if (typeof value === "string" || !number) {
    if (kind && kind !== "s") throw $py_ValueError(`Unknown format code '${kind}'`);
    text = $py_str(value);
    if (precision !== undefined) text = text.slice(0, Number(precision));
  } else if (kind === "d" || (!kind && typeof value !== "number")) text = String(counted(value));
  else {
    const real = Number(value), digits = precision === undefined ? 6 : Number(precision);
    if (!Number.isFinite(real)) text = realText(real) + (kind === "%" ? "%" : "");
    else if (kind === "f") text = fixed(real, digits);
    else if (kind === "e") text = scientific(real, digits);
    else if (kind === "%") text = `${fixed(real * 100, digits)}%`;
    else if (kind === "g") text = general(real, digits);
    else text = precision === undefined ? realText(real) : general(real, digits);
  }
  if (comma) text = grouped(text);
  if (number && sign === "+" && text[0] !== "-") text = `+${text}`;
  const missing = Number(width ?? 0) - text.length;
  if (missing <= 0) return text;
  const way = align ?? (number ? ">" : "<");
  if (way === "<") return text + fill.repeat(missing);
  if (way === "^") return fill.repeat(missing >> 1) + text + fill.repeat(missing - (missing >> 1));
  return fill.repeat(missing) + text;
}

// -- functions that Python has without an import -------------------------------------------------------------------------------------
// What cannot be printed, as Python's repr writes it: controls, marks of direction, lone surrogates, spaces but the plain one.
const escaped = code => code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
export function $py_repr(value) {
  if (typeof value === "string") {
    const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
    const inside = value.replace(/[\\\p{C}\p{Z}]/gu, c => c === " " ? c : ({ "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" })[c] ?? escaped(c.codePointAt(0)));
    return quote + (quote === "'" ? inside.replaceAll("'", "\\'") : inside) + quote;
  }
  if (typeof value === "number") return realText(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value === null) return "None";
  if (Array.isArray(value)) return `[${value.map($py_repr).join(", ")}]`;
  if (value instanceof $Dict) return `{${[...value.map.values()].map(([k, v]) => `${$py_repr(k)}: ${$py_repr(v)}`).join(", ")}}`;
  if (value instanceof $Set) return value.map.size ? `{${[...value].map($py_repr).join(", ")}}` : "set()";
  if (value[FIELDS]) return `${value.constructor.$made.$__name__}(${value[FIELDS].map(each => `${each.slice(1)}=${$py_repr(value[each])}`).join(", ")})`;
  if (value instanceof $Tuple) return value.items.length === 1 ? `(${$py_repr(value.items[0])},)` : `(${value.items.map($py_repr).join(", ")})`;
  if (value instanceof PyException) return `${value.constructor.$made.$__name__}(${value.$args.map($py_repr).join(", ")})`;
  return value.$__repr__?.() ?? String(value);
}
export const $py_str = (value = "") => typeof value === "string" ? value : typeof value === "object" && value?.$__str__ ? value.$__str__() : $py_repr(value);
export const $py_len = of => BigInt(typeof of === "string" || Array.isArray(of) ? of.length : of instanceof $Tuple ? of.all().length : of.map ? of.map.size : Number(of.$__len__()));
export function $py_float(value = 0) {
  if (typeof value === "number") return value;
  if (typeof value === "bigint" || typeof value === "boolean") return Number(value);
  if (typeof value !== "string") { if (value?.$__float__) return value.$__float__(); throw $py_TypeError("float() argument must be a string or a real number"); }
  const text = $strip(value).toLowerCase();
  if (/^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+(_\d+)*)(e[+-]?\d+(_\d+)*)?$/.test(text)) return Number(text.replaceAll("_", ""));
  const [, sign, word] = /^([+-]?)(inf|infinity|nan)$/.exec(text) ?? [];
  if (word) return word === "nan" ? NaN : sign === "-" ? -Infinity : Infinity;
  throw $py_ValueError(`could not convert string to float: ${$py_repr(value)}`);
}
export function $py_int(value = 0n) {
  if (typeof value === "bigint") return value;
  if (typeof value === "boolean") return BigInt(value);
  if (typeof value === "number") {
    if (Number.isNaN(value)) throw $py_ValueError("cannot convert float NaN to integer");
    if (!Number.isFinite(value)) throw $py_OverflowError("cannot convert float infinity to integer");
    return BigInt(Math.trunc(value));
  }
  if (typeof value !== "string") { if (value?.$__float__) return $py_int(value.$__float__()); throw $py_TypeError("int() argument must be a string or a real number"); }
  const text = $strip(value);
  if (!/^[+-]?\d+(_\d+)*$/.test(text)) throw $py_ValueError(`invalid literal for int() with base 10: ${$py_repr(value)}`);
  return BigInt(text.replaceAll("_", "").replace("+", ""));
}
export const $py_bool = (value = false) => $true(value);
export const $py_list = (of = []) => [...of];
export const $py_tuple = (of = []) => $tuple([...of]);
export const $py_set = (of = []) => new $Set(of);
export const $py_frozenset = $py_set;
export const $py_dict = named((of, more) => { const found = $dict(of instanceof $Dict ? of.map.values() : of ?? []); return more ? $ior(found, more) : found; });
$py_dict.$p = [["of"], true];
export const $py_object = {};
const PREDICATES = new Map([
  [$py_float, v => typeof v === "number"], [$py_int, v => typeof v === "bigint" || typeof v === "boolean"], [$py_str, v => typeof v === "string"],
  [$py_bool, v => typeof v === "boolean"], [$py_list, Array.isArray], [$py_tuple, v => v instanceof $Tuple], [$py_dict, v => v instanceof $Dict],
  [$py_set, v => v instanceof $Set],
]);
export function $py_isinstance(value, kind) {
  if (kind instanceof $Tuple) return kind.items.some(each => $py_isinstance(value, each));
  const way = PREDICATES.get(kind);
  if (way) return way(value);
  if (kind === $py_Exception && value instanceof Error && !(value instanceof PyException)) return false;
  return Boolean(kind?.$class) && value instanceof kind.$class;
}
export function $py_type(value) {
  for (const [kind, way] of PREDICATES) if (kind !== $py_int ? way(value) : typeof value === "bigint") return value instanceof $Named ? value.constructor.$made : kind;
  return value?.constructor?.$made ?? { $__name__: value === null ? "NoneType" : typeof value };
}
for (const [name, kind] of Object.entries({ float: $py_float, int: $py_int, str: $py_str, bool: $py_bool, list: $py_list, tuple: $py_tuple, dict: $py_dict, set: $py_set })) kind.$__name__ = name;
export const $py_abs = a => isArray(a) ? arrays("abs", a, a) : typeof a === "bigint" ? (a < 0n ? -a : a) : Math.abs(a);
export const $py_all = of => { for (const each of of) if (!$true(each)) return false; return true; };
export const $py_any = of => { for (const each of of) if ($true(each)) return true; return false; };
export const $py_sum = named((of, start = 0n) => { let found = start; for (const each of of) found = $add(found, each); return found; }, "of", "start");
export const $py_enumerate = named((of, start = 0n) => { let at = start; return Array.from(of, each => $tuple([at++, each])); }, "of", "start");
export const $py_zip = $f((...several) => { const rows = several.map(each => [...each]); return Array.from({ length: Math.min(...rows.map(each => each.length)) }, (_, i) => $tuple(rows.map(each => each[i]))); }, [], true);
export const $py_map = (way, ...several) => several.length === 1 ? Array.from(several[0], each => way(each)) : [...$py_zip(...several)].map(each => way(...each));
export function $py_range(a, b, step = 1n) {
  const [low, high] = b === undefined ? [0n, a] : [a, b], found = [];
  for (let at = low; step > 0n ? at < high : at > high; at += step) found.push(at);
  return found;
}
const sorter = (key, reverse) => {
  const order = ([a], [b]) => $true($lt(a, b)) ? -1 : $true($lt(b, a)) ? 1 : 0;
  return of => { const rows = Array.from(of, each => [key ? key(each) : each, each]); if (reverse) rows.reverse(); rows.sort(order); if (reverse) rows.reverse(); return rows.map(([, each]) => each); };
};
export const $py_sorted = named((of, key = null, reverse = false) => sorter(key, reverse)(of), "of", "key", "reverse");
export const $py_reversed = of => [...of].reverse();
const most = (sign) => (...given) => {
  let key = null, otherwise;
  if (given.at(-1) instanceof Options) ({ key = null, otherwise } = given.pop());
  const of = given.length === 1 ? [...given[0]] : given;
  if (!of.length) { if (otherwise !== undefined) return otherwise; throw $py_ValueError("arg is an empty sequence"); }
  let best = of[0], value = key ? key(best) : best;
  for (let i = 1; i < of.length; i++) { const each = key ? key(of[i]) : of[i]; if ($true(sign > 0 ? $gt(each, value) : $lt(each, value))) { best = of[i]; value = each; } }
  return best;
};
class Options {}
const optional = way => Object.assign(way, { keywords: true });
export const $py_max = optional(most(1));
export const $py_min = optional(most(-1));
export const $py_next = (of, otherwise) => { const { value, done } = of.next ? of.next() : of[Symbol.iterator]().next(); if (!done) return value; if (otherwise !== undefined) return otherwise; throw $py_StopIteration(); };
export const $py_iter = of => of[Symbol.iterator]();
export function $py_round(value, digits) {
  if (typeof value === "bigint") return value;
  if (digits !== undefined && digits !== null) return Number.isFinite(value) ? Number(fixed(value, Number(digits))) : value;
  if (!Number.isFinite(value)) return $py_int(value);
  return $py_int(Number(fixed(value, 0)));
}
export function $py_getattr(of, name, otherwise) {
  const key = `$${name}`, found = of === null ? undefined : of[key];
  if (found !== undefined) return typeof found === "function" ? $bound(of, key) : found;
  if (otherwise !== undefined) return otherwise;
  throw $py_AttributeError(`no attribute ${$py_repr(name)}`);
}
export const $py_hasattr = (of, name) => of !== null && of !== undefined && (of[`$${name}`] !== undefined || of.$class?.prototype?.[`$${name}`] !== undefined);

// -- methods of texts -----------------------------------------------------------------------------------------------------------------
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;
const LINES = /\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]/g;
function trimmed(text, signs, from, to) {
  const gone = signs === null ? c => SPACE.test(c) : c => signs.includes(c);
  let low = 0, high = text.length;
  if (from) while (low < high && gone(text[low])) low++;
  if (to) while (high > low && gone(text[high - 1])) high--;
  return text.slice(low, high);
}
const $strip = (text, signs = null) => trimmed(text, signs, true, true);
const many = of => of instanceof $Tuple ? of.all() : [of];
const span = (text, start, stop) => $slice(text, start ?? null, stop ?? null, null);
function words(text) { const found = $strip(text); return found ? found.split(new RegExp(`${SPACE.source}+`)) : []; }
function split(sep = null, maxsplit = -1n) {
  const text = String(this), limit = Number(maxsplit);
  if (sep === null) {
    if (limit < 0) return words(text);
    const found = [];
    let rest = trimmed(text, null, true, false);
    while (rest && found.length < limit) { const at = rest.search(SPACE); if (at < 0) break; found.push(rest.slice(0, at)); rest = trimmed(rest.slice(at), null, true, false); }
    return rest ? [...found, rest] : found;
  }
  const all = text.split(sep);
  return limit < 0 || all.length <= limit + 1 ? all : [...all.slice(0, limit), all.slice(limit).join(sep)];
}
function rsplit(sep = null, maxsplit = -1n) {
  const all = split.call(this, sep), limit = Number(maxsplit);
  return limit < 0 || all.length <= limit + 1 ? all : [all.slice(0, all.length - limit).join(sep), ...all.slice(all.length - limit)];
}
function splitlines(keepends = false) {
  const text = String(this), found = [];
  let at = 0;
  for (const { 0: end, index } of text.matchAll(LINES)) { found.push(text.slice(at, index + (keepends ? end.length : 0))); at = index + end.length; }
  if (at < text.length) found.push(text.slice(at));
  return found;
}
const letters = /^[\p{L}\p{N}]+$/u;
define(String.prototype, {
  split: named(split, "sep", "maxsplit"), rsplit: named(rsplit, "sep", "maxsplit"), splitlines: named(splitlines, "keepends"),
  strip(signs = null) { return $strip(String(this), signs); }, lstrip(signs = null) { return trimmed(String(this), signs, true, false); }, rstrip(signs = null) { return trimmed(String(this), signs, false, true); },
  partition(sep) { const at = this.indexOf(sep); return $tuple(at < 0 ? [String(this), "", ""] : [this.slice(0, at), sep, this.slice(at + sep.length)]); },
  rpartition(sep) { const at = this.lastIndexOf(sep); return $tuple(at < 0 ? ["", "", String(this)] : [this.slice(0, at), sep, this.slice(at + sep.length)]); },
  startswith(of, start = 0n) { return many(of).some(each => this.startsWith(each, Number(start))); }, endswith(of) { return many(of).some(each => this.endsWith(each)); },
  find(of, start = 0n, stop) { const at = this.indexOf(of, Number(start)); return at >= 0 && (stop === undefined || at + of.length <= Number(stop)) ? BigInt(at) : -1n; },
  rfind(of, start = 0n, stop) { const end = stop === undefined ? this.length : Number(stop), at = end - of.length < 0 ? -1 : this.lastIndexOf(of, end - of.length); return BigInt(at >= Number(start) ? at : -1); },
  index(of) { const at = this.indexOf(of); if (at < 0) throw $py_ValueError("substring not found"); return BigInt(at); },
  count(of, start, stop) { return BigInt(span(String(this), start, stop).split(of).length - 1); },
  replace(a, b) { return this.replaceAll(a, () => b); }, join(of) { return [...of].join(this); },
  lower() { return this.toLowerCase(); }, upper() { return this.toUpperCase(); },
  isdigit() { return /^\p{Nd}+$/u.test(this); }, isalnum() { return letters.test(this); }, isalpha() { return /^\p{L}+$/u.test(this); }, isspace() { return this.length > 0 && !trimmed(String(this), null, true, true); },
  removeprefix(of) { return of && this.startsWith(of) ? this.slice(of.length) : String(this); }, removesuffix(of) { return of && this.endsWith(of) ? this.slice(0, this.length - of.length) : String(this); },
  format: $f(function (values) { return this.replace(/\{(\w+)(?::([^}]*))?\}/g, (_, name, spec = "") => $format($item(values, name), spec)); }, [], true),
});

// -- methods of lists, tuples, dictionaries, sets and numbers -----------------------------------------------------------------------------
const searched = (all, item) => { const at = all.findIndex(each => same(each, item)); if (at < 0) throw $py_ValueError(`${$py_repr(item)} is not in list`); return at; };
define(Array.prototype, {
  append(item) { this.push(item); return null; }, extend(of) { $iadd(this, of); return null; }, insert(at, item) { this.splice(Number(at), 0, item); return null; },
  pop(at = -1n) { if (!this.length) throw $py_IndexError("pop from empty list"); return this.splice(place(at, this.length), 1)[0]; },
  index(item) { return BigInt(searched(this, item)); }, count(item) { return BigInt(this.filter(each => same(each, item)).length); }, copy() { return [...this]; }, tolist() { return [...this]; },
  remove(item) { this.splice(searched(this, item), 1); return null; }, clear() { this.length = 0; return null; }, reverse() { this.reverse(); return null; },
  sort: named(function (key = null, reverse = false) { this.splice(0, this.length, ...sorter(key, reverse)(this)); return null; }, "key", "reverse"),
});
define($Tuple.prototype, { index(item) { return BigInt(searched(this.all(), item)); }, count(item) { return BigInt(this.all().filter(each => same(each, item)).length); } });
define($Dict.prototype, {
  items() { return [...this.map.values()].map(each => $tuple([each[0], each[1]])); }, keys() { return new $Set(this); }, values() { return [...this.map.values()].map(each => each[1]); },
  get(key, otherwise = null) { const found = this.find(key); return found === undefined ? otherwise : found[1]; },
  setdefault(key, otherwise = null) { const found = this.find(key); if (found) return found[1]; this.set(key, otherwise); return otherwise; },
  pop(key, otherwise) { const found = this.find(key); if (!found) { if (otherwise === undefined) throw $py_KeyError(key); return otherwise; } this.map.delete($key(key)); return found[1]; },
  update(of) { $ior(this, of instanceof $Dict ? of : $dict(of)); return null; }, copy() { return $dict(this.map.values()); }, clear() { this.map.clear(); return null; },
});
$py_dict.$fromkeys = (of, value = null) => $dict(Array.from(of, each => [each, value]));
define($Set.prototype, {
  update(of) { $ior(this, of); return null; }, issubset(of) { return $le(this, of instanceof $Set ? of : new $Set(of)); }, union(of) { return $or(this, of); },
  remove(item) { this.map.delete($key(item)); return null; }, discard(item) { this.map.delete($key(item)); return null; },
});
define(Number.prototype, { is_integer() { return Number.isInteger(Number(this)); }, all() { return Number(this) !== 0; }, any() { return Number(this) !== 0; } });
define(Boolean.prototype, { all() { return this.valueOf(); }, any() { return this.valueOf(); } });
export { same as $same, FIELDS as $FIELDS };
export const $py_vars = of => $dict(Object.entries(of).filter(([name]) => name[0] === "$").map(([name, value]) => [name.slice(1), value]));
export const $py_setattr = $setattr;

// -- to the page's own values and from them ------------------------------------------------------------------------------------------
export function plain(value) {
  if (typeof value === "bigint") return Number(value);
  if (value instanceof $Dict) return Object.fromEntries([...value.map.values()].map(([key, each]) => [$py_str(key), plain(each)]));
  if (Array.isArray(value) || value instanceof $Tuple) return [...value].map(plain);
  return value;
}
