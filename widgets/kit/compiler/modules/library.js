// Modules of Python's library and of numpy, as far as translated modules call them: by name, for python.js. numpy.js adds what takes arrays.
import {
  $Dict, $FIELDS, $Named, $Tuple, $class, $dict, $f, $key, $lt, $module, $mul, $add, $py_ValueError, $py_int, $py_sorted, $replaced, $setattr, $true, $tuple,
} from "./python.js";

const fault = $py_ValueError;
const real = value => Number(value);

// -- math, itertools, functools, statistics ---------------------------------------------------------------------------------
$module("math", {
  $inf: Infinity, $nan: NaN, $pi: Math.PI, $e: Math.E,
  $floor: value => typeof value === "bigint" ? value : $py_int(Math.floor(value)), $ceil: value => typeof value === "bigint" ? value : $py_int(Math.ceil(value)),
  $sqrt: value => { if (value < 0) throw fault("math domain error"); return Math.sqrt(real(value)); }, $log2: value => positive(value, Math.log2), $log10: value => positive(value, Math.log10),
  $log: value => positive(value, Math.log), $exp: value => Math.exp(real(value)),
  $isfinite: value => Number.isFinite(real(value)), $isinf: value => Math.abs(real(value)) === Infinity, $isnan: value => Number.isNaN(real(value)),
  $prod: of => { let found = 1n; for (const each of of) found = $mul(found, each); return found; },
  $isqrt: value => { let low = BigInt(Math.floor(Math.sqrt(real(value)))); while (low * low > value) low--; while ((low + 1n) * (low + 1n) <= value) low++; return low; },
  $frexp: value => {
    if (value === 0 || !Number.isFinite(value)) return $tuple([value, 0n]);
    let exponent = Math.max(-1023, Math.floor(Math.log2(Math.abs(value))) + 1), mantissa = value * 2 ** -exponent;
    while (Math.abs(mantissa) < 0.5) { mantissa *= 2; exponent--; }
    while (Math.abs(mantissa) >= 1) { mantissa /= 2; exponent++; }
    return $tuple([mantissa, BigInt(exponent)]);
  },
  $gcd: (a, b) => { while (b) [a, b] = [b, a % b]; return a < 0n ? -a : a; },
});
function positive(value, way) {
  if (real(value) <= 0) throw fault("math domain error");
  return way(real(value));
}
$module("itertools", {
  $islice: function* (of, most) { let left = Number(most); if (left > 0) for (const each of of) { yield each; if (--left <= 0) return; } },
  $combinations: (of, two) => {
    const all = [...of], found = [];
    if (two !== 2n) throw fault("only pairs are combined here");
    for (let i = 0; i < all.length; i++) for (let j = i + 1; j < all.length; j++) found.push($tuple([all[i], all[j]]));
    return found;
  },
  $pairwise: of => { const all = [...of]; return all.slice(1).map((each, i) => $tuple([all[i], each])); },
  $chain: (...several) => several.flatMap(each => [...each]),
});
export const $like = (way, other) => { way.$p = other.$p; way.$__name__ = other.$__name__ ?? other.name; return way; };
const remembered = (most, typed) => way => {
  const known = new Map();
  const found = $like((...given) => {
    const key = given.length === 1 && typeof given[0] === "string" ? given[0] : $key($tuple(typed ? [...given, given.map(each => typeof each).join()] : given));
    if (known.has(key)) return known.get(key);
    const value = way(...given);
    if (most !== null && known.size >= Number(most)) known.clear();
    known.set(key, value);
    return value;
  }, way);
  found.$cache_clear = () => { known.clear(); return null; };
  return found;
};
$module("functools", { $lru_cache: $f((most, typed) => remembered(most ?? 128n, typed), ["maxsize", "typed"]), $cache: remembered(null), $wraps: other => way => $like(way, other) });
// The normal distribution's quantiles: Wichura's algorithm AS 241, as Python has it.
const HORNER = (r, ...of) => of.reduce((sum, each) => sum * r + each, 0);
function quantile(p) {
  if (!(p > 0 && p < 1)) throw fault("p must be in the range 0.0 < p < 1.0");
  const q = p - 0.5;
  if (Math.abs(q) <= 0.425) {
    const r = 0.180625 - q * q;
    return HORNER(r, 2.5090809287301226727e3, 3.3430575583588128105e4, 6.7265770927008700853e4, 4.5921953931549871457e4, 1.3731693765509461125e4, 1.9715909503065514427e3, 1.3314166789178437745e2, 3.3871328727963666080) * q
      / HORNER(r, 5.2264952788528545610e3, 2.8729085735721942674e4, 3.9307895800092710610e4, 2.1213794301586595867e4, 5.3941960214247511077e3, 6.8718700749205790830e2, 4.2313330701600911252e1, 1);
  }
  const r = Math.sqrt(-Math.log(q <= 0 ? p : 1 - p));
  const x = r <= 5
    ? HORNER(r - 1.6, 7.74545014278341407640e-4, 2.27238449892691845833e-2, 2.41780725177450611770e-1, 1.27045825245236838258, 3.64784832476320460504, 5.76949722146069140550, 4.63033784615654529590, 1.42343711074968357734)
      / HORNER(r - 1.6, 1.05075007164441684324e-9, 5.47593808499534494600e-4, 1.51986665636164571966e-2, 1.48103976427480074590e-1, 6.89767334985100004550e-1, 1.67638483018380384940, 2.05319162663775882187, 1)
    : HORNER(r - 5, 2.01033439929228813265e-7, 2.71155556874348757815e-5, 1.24266094738807843860e-3, 2.65321895265761230930e-2, 2.96560571828504891230e-1, 1.78482653991729133580, 5.46378491116411436990, 6.65790464350110377720)
      / HORNER(r - 5, 2.04426310338993978564e-15, 1.42151175831644588870e-7, 1.84631831751005468180e-5, 7.86869131145613259100e-4, 1.48753612908506148525e-2, 1.36929880922735805310e-1, 5.99832206555887937690e-1, 1);
  return q < 0 ? -x : x;
}
$module("statistics", { $NormalDist: () => ({ $inv_cdf: quantile }), $median: of => { const all = $py_sorted(of), half = all.length >> 1; return all.length % 2 ? all[half] : $mul(0.5, $add(all[half - 1], all[half])); } });
$module("dataclasses", {
  $replace: $f((one, changes) => $replaced(one, changes), ["one"], true), $fields: kind => $tuple((kind.$class ? kind : kind.constructor.$made)[$FIELDS].map(name => ({ $name: name }))),
  $MISSING: {}, $is_dataclass: kind => Boolean(kind?.[$FIELDS]),
});
$module("collections.abc", { $Mapping: { $class: $Dict } });
$module("contextvars", { $ContextVar: $f((name, value) => ({ $get: () => value, $set(other) { const before = value; value = other; return before; }, $reset(before) { value = before; } }), ["name", "default"]) });
$module("time", { $perf_counter: () => performance.now() / 1000 });
$module("types", { $SimpleNamespace: $f(names => { const found = {}; for (const [name, value] of names.map.values()) $setattr(found, name, value); return found; }, [], true) });
$module("bisect", { $bisect_left(of, what) { let low = 0, high = of.length; while (low < high) { const middle = (low + high) >> 1; if (of[middle] < what) low = middle + 1; else high = middle; } return BigInt(low); } });
// A heap is kept in order, which gives the same as Python's where no two entries are equal.
const before = (heap, one) => { let low = 0, high = heap.length; while (low < high) { const middle = (low + high) >> 1; if ($lt(heap[middle], one)) low = middle + 1; else high = middle; } return low; };
$module("heapq", {
  $nsmallest: (count, of) => $py_sorted(of).slice(0, Number(count)), $heapify: of => { of.splice(0, of.length, ...$py_sorted(of)); return null; },
  $heappop: of => of.shift(), $heappush: (of, one) => { of.splice(before(of, one), 0, one); return null; },
});

// -- texts: re, decimal, difflib, json -----------------------------------------------------------------------------------------
$module("re", {
  $escape: text => text.replace(/[\\^$.*+?()[\]{}|\-#&~ ]/g, "\\$&"),
  $sub: $f((pattern, put, text, count = 0n) => { throw fault(`re.sub is not here: ${pattern}`); }, ["pattern", "put", "text", "count"]),
});
// A number's exact decimal digits, as far as units.py asks for them.
class Decimal {
  constructor(text) { [this.digits, this.power] = text; }          // digits × 10^power
  $adjusted() { return BigInt(String(this.digits < 0n ? -this.digits : this.digits).length - 1) + BigInt(this.power); }
  $quantize(to) {
    const drop = to.power - this.power;
    if (drop <= 0) return new Decimal([this.digits * 10n ** BigInt(-drop), to.power]);
    const size = this.digits < 0n ? -this.digits : this.digits, unit = 10n ** BigInt(drop), up = 2n * (size % unit) >= unit;
    const found = size / unit + (up ? 1n : 0n);
    return new Decimal([this.digits < 0n ? -found : found, to.power]);
  }
  $normalize() { let [digits, power] = [this.digits, this.power]; while (digits && digits % 10n === 0n) { digits /= 10n; power++; } return new Decimal([digits, power]); }
  $__float__() { return Number(`${this.digits}e${this.power}`); }
  $__str__() { const text = String(this.digits).replace("-", ""), e = text.length - 1 + this.power; return `${this.digits < 0n ? "-" : ""}${text[0]}${text.length > 1 ? `.${text.slice(1)}` : ""}e${e < 0 ? "-" : "+"}${Math.abs(e)}`; }
}
function decimal(value) {
  if (value instanceof $Tuple) { const [, digits, power] = value.all(); return new Decimal([BigInt([...digits].join("")), Number(power)]); }
  const text = typeof value === "string" ? value : exactly(Number(value));
  const [, sign, whole, part = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text);
  return new Decimal([BigInt(sign + whole + part), Number(power) - part.length]);
}
function exactly(value) {
  const size = Math.abs(value);
  return (value < 0 ? "-" : "") + (size >= 1e21 ? BigInt(size).toString() : size >= 1e-6 ? size.toFixed(100) : size.toExponential(100));
}
$module("decimal", { $Decimal: decimal, $ROUND_HALF_UP: "ROUND_HALF_UP" });

// Gestalt pattern matching, as difflib does it for short texts.
function ratio(a, b) {
  const places = new Map();
  for (let j = 0; j < b.length; j++) (places.get(b[j]) ?? places.set(b[j], []).get(b[j])).push(j);
  let matched = 0;
  const todo = [[0, a.length, 0, b.length]];
  while (todo.length) {
    const [al, ah, bl, bh] = todo.pop();
    let [i0, j0, size] = [al, bl, 0], before = new Map();
    for (let i = al; i < ah; i++) {
      const now = new Map();
      for (const j of places.get(a[i]) ?? []) {
        if (j < bl) continue;
        if (j >= bh) break;
        const length = (before.get(j - 1) ?? 0) + 1;
        now.set(j, length);
        if (length > size) [i0, j0, size] = [i - length + 1, j - length + 1, length];
      }
      before = now;
    }
    if (!size) continue;
    matched += size;
    if (al < i0 && bl < j0) todo.push([al, i0, bl, j0]);
    if (i0 + size < ah && j0 + size < bh) todo.push([i0 + size, ah, j0 + size, bh]);
  }
  return a.length + b.length ? 2 * matched / (a.length + b.length) : 1;
}
$module("difflib", {
  $get_close_matches: $f((word, several, n = 3n, cutoff = 0.6) => {
    const found = [];
    for (const each of several) {
      if (2 * Math.min(each.length, word.length) / (each.length + word.length || 1) < cutoff) continue;
      const near = ratio(each, word);
      if (near >= cutoff) found.push([near, each]);
    }
    found.sort(([a, x], [b, y]) => b - a || (x < y ? 1 : x > y ? -1 : 0));
    return found.slice(0, Number(n)).map(([, each]) => each);
  }, ["word", "several", "n", "cutoff"]),
});

// JSON as Python reads it: whole numbers stay whole, and an error knows its place.
const JSONDecodeError = $class(class JSONDecodeError extends $py_ValueError.$class {
  constructor(message, text, at) {
    const lines = text.slice(0, Number(at)).split("\n");
    super(`${message}: line ${lines.length} column ${lines.at(-1).length + 1} (char ${at})`);
    this.$lineno = BigInt(lines.length);
    this.$colno = BigInt(lines.at(-1).length + 1);
  }
}, "JSONDecodeError", [], {}, [["message", "text", "at"]], {});
const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y, PLAIN = /[^"\\\x00-\x1f]*/y, CONSTANT = /NaN|-?Infinity/y;
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
function loads(text, parse_constant = null, parse_int = null) {
  let at = 0;
  const wrong = (words, where = at) => JSONDecodeError(words, text, where);
  const space = () => { while (" \t\n\r".includes(text[at] ?? "x")) at++; };
  const match = pattern => { pattern.lastIndex = at; const found = pattern.exec(text); if (found) at += found[0].length; return found; };
  function quoted() {
    const begin = at++;
    let found = "";
    for (;;) {
      found += match(PLAIN)[0];
      const sign = text[at];
      if (sign === undefined) throw wrong("Unterminated string starting at", begin);
      at++;
      if (sign === '"') return found;
      if (sign !== "\\") throw wrong("Invalid control character at", at - 1);
      const next = text[at++];
      if (next === "u") {
        const digits = text.slice(at, at + 4);
        if (!/^[\da-fA-F]{4}$/.test(digits)) throw wrong("Invalid \\uXXXX escape", at - 1);
        found += String.fromCharCode(parseInt(digits, 16));
        at += 4;
      } else if (next in ESCAPES) found += ESCAPES[next];
      else if (next === undefined) throw wrong("Unterminated string starting at", begin);
      else throw wrong("Invalid \\escape", at - 2);
    }
  }
  function value() {
    const sign = text[at];
    if (sign === '"') return quoted();
    if (sign === "{" || sign === "[") return several(sign);
    for (const [word, means] of [["true", true], ["false", false], ["null", null]]) if (text.startsWith(word, at)) { at += word.length; return means; }
    const constant = match(CONSTANT);
    if (constant) return parse_constant ? parse_constant(constant[0]) : real(constant[0]);
    const number = match(NUMBER);
    if (!number) throw wrong("Expecting value");
    return number[1] || number[2] ? Number(number[0]) : parse_int ? parse_int(number[0]) : BigInt(number[0]);
  }
  function several(sign) {
    const found = sign === "{" ? $dict() : [], end = sign === "{" ? "}" : "]";
    at++;
    space();
    if (text[at] === end) { at++; return found; }
    for (;;) {
      if (sign === "{") {
        if (text[at] !== '"') throw wrong("Expecting property name enclosed in double quotes");
        const name = quoted();
        space();
        if (text[at] !== ":") throw wrong("Expecting ':' delimiter");
        at++;
        space();
        found.set(name, value());
      } else found.push(value());
      space();
      if (text[at] === end) { at++; return found; }
      if (text[at] !== ",") throw wrong("Expecting ',' delimiter");
      at++;
      space();
    }
  }
  space();
  const found = value();
  space();
  if (at < text.length) throw wrong("Extra data");
  return found;
}
const dumped = value => typeof value === "bigint" ? String(value) : value instanceof $Dict ? `{${[...value.map.values()].map(([k, v]) => `${JSON.stringify(k)}:${dumped(v)}`).join(",")}}` : Array.isArray(value) ? `[${value.map(dumped).join(",")}]` : JSON.stringify(value);
$module("json", { $JSONDecodeError: JSONDecodeError, $loads: $f(loads, ["text", "parse_constant", "parse_int"]), $dumps: $f(value => dumped(value), ["value", "ensure_ascii", "separators"]) });

// -- programs ------------------------------------------------------------------------------------------------------------------
// A function that the compiler of programs has written: over plain numbers, lists of them, and both by name, in a dict or a record.
const numbers = value => typeof value === "bigint" ? real(value) : Array.isArray(value) ? value.map(numbers) : value instanceof $Named ? numbers(value.$_asdict())
  : value instanceof $Tuple ? value.all().map(numbers) : value instanceof $Dict ? Object.fromEntries([...value.map.values()].map(([name, each]) => [name, numbers(each)])) : value?.data ? [...value.data] : value;
export const $compiled = way => (...given) => {
  const found = way(...given.map(numbers));
  return found !== null && typeof found === "object" && !Array.isArray(found) ? $dict(Object.entries(found)) : found;
};

// -- numpy for single numbers ----------------------------------------------------------------------------------------------------
const pick = way => (a, b) => { const [x, y] = [real(a), real(b)]; return Number.isNaN(x) || Number.isNaN(y) ? NaN : way(x, y); };
export const numpy = $module("numpy", {
  $inf: Infinity, $nan: NaN, $newaxis: null, $ndarray: { $class: class {} }, $number: { $class: class {} },
  $asarray: $f(value => { if (typeof value === "string" || value === null || typeof value === "object") throw fault("not a number"); return real(value); }, ["value", "dtype"]),
  $isfinite: value => Number.isFinite(real(value)), $all: value => $true(value), $any: value => $true(value),
  $where: (condition, yes, no) => $true(condition) ? yes : no, $minimum: pick(Math.min), $maximum: pick(Math.max),
  $ceil: value => Math.ceil(real(value)), $floor: value => Math.floor(real(value)), $sqrt: value => Math.sqrt(real(value)), $log2: value => Math.log2(real(value)),
  $ndim: () => 0n, $shape: () => $tuple([]), $arange: (...given) => Array.from({ length: Math.max(0, Math.ceil(real(given.at(-1)) - (given.length > 1 ? real(given[0]) : 0))) }, (_, i) => i + (given.length > 1 ? real(given[0]) : 0)),
});
