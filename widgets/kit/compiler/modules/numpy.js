// Arrays of numbers in up to a few dimensions, as far as translated modules use numpy: broadcasting, choosing, sorting. Values are doubles;
// `kind` says whether they are floats (f), whole numbers (i) or truths (b).
import { $Tuple, $f, $more, $py_IndexError, $py_TypeError, $py_ValueError, $py_float, $tuple, $withArrays } from "./python.js";
import { numpy as plain } from "./library.js";

const size = shape => shape.reduce((a, b) => a * b, 1);
class NdArray {
  constructor(data, shape, kind) { this.data = data; this.dims = shape; this.kind = kind; }
  get unhashable() { return true; }
  truth() { if (this.data.length !== 1) throw $py_ValueError("the truth of several values at once"); return this.data[0] !== 0; }
  get $shape() { return $tuple(this.dims.map(BigInt)); }
  get $ndim() { return BigInt(this.dims.length); }
  get $size() { return BigInt(this.data.length); }
  get $flat() { return Array.from(this.data, value => out(value, this.kind)); }
  get $T() { const [n, m] = this.dims, data = new Float64Array(n * m); for (let i = 0; i < n; i++) for (let j = 0; j < m; j++) data[j * n + i] = this.data[i * m + j]; return new NdArray(data, [m, n], this.kind); }
  $__len__() { return BigInt(this.dims[0]); }
  $__float__() { if (this.data.length !== 1) throw $py_TypeError("only one value can be a float"); return this.data[0]; }
  *[Symbol.iterator]() { for (let i = 0; i < this.dims[0]; i++) yield this.$__getitem__(BigInt(i)); }
  $__getitem__(key) { return chosen(this, key); }
  $tolist() { return nested(this.data, this.dims, 0, 0, this.kind); }
  $reshape(...given) {
    const dims = (given.length === 1 && typeof given[0] !== "bigint" ? [...given[0]] : given).map(Number), known = dims.reduce((a, b) => b < 0 ? a : a * b, 1);
    return new NdArray(this.data, dims.map(each => each < 0 ? this.data.length / known : each), this.kind);
  }
  $astype(kind) { return kind === $py_float ? new NdArray(this.data, this.dims, "f") : new NdArray(this.data.map(Math.trunc), this.dims, "i"); }
  $ravel() { return new NdArray(this.data, [this.data.length], this.kind); }
}
const out = (value, kind) => kind === "f" ? value : kind === "b" ? value !== 0 : BigInt(value);
function nested(data, dims, depth, at, kind) {
  if (depth === dims.length) return out(data[at], kind);
  const step = size(dims.slice(depth + 1));
  return Array.from({ length: dims[depth] }, (_, i) => nested(data, dims, depth + 1, at + i * step, kind));
}
function array(value, kind = null) {
  if (value instanceof NdArray) return kind && kind !== value.kind ? new NdArray(value.data, value.dims, kind) : value;
  if (Array.isArray(value) || value instanceof $Tuple) {
    const rows = [...value].map(each => array(each)), dims = [rows.length, ...(rows[0]?.dims ?? [])], data = new Float64Array(size(dims));
    rows.forEach((each, i) => data.set(each.data, i * each.data.length));
    const kinds = rows.map(each => each.kind);
    return new NdArray(data, dims, kind ?? (kinds.includes("f") || !kinds.length ? "f" : kinds.includes("i") ? "i" : "b"));
  }
  if (typeof value === "string" || value === null || typeof value === "object") throw $py_TypeError("not a number");
  return new NdArray(Float64Array.of(Number(value)), [], kind ?? (typeof value === "number" ? "f" : typeof value === "bigint" ? "i" : "b"));
}

// -- broadcasting ---------------------------------------------------------------------------------------------------------
function together(...several) {
  const depth = Math.max(...several.map(each => each.dims.length)), dims = Array(depth).fill(1);
  for (const { dims: each } of several) each.forEach((n, i) => {
    const at = i + depth - each.length;
    if (n !== 1 && dims[at] !== 1 && dims[at] !== n) throw $py_ValueError("operands could not be broadcast together");
    if (n !== 1) dims[at] = n;
  });
  return dims;
}
function strides(of, depth) {
  const found = Array(depth).fill(0);
  let step = 1;
  for (let i = of.dims.length - 1; i >= 0; i--) { if (of.dims[i] !== 1) found[i + depth - of.dims.length] = step; step *= of.dims[i]; }
  return found;
}
// Goes through all rows of the last dimension: (where the result begins, where each operand does).
function rows(dims, several, run) {
  const depth = dims.length, steps = several.map(each => strides(each, depth)), inner = depth ? dims[depth - 1] : 1, outer = depth ? size(dims) / (inner || 1) : 1;
  const last = steps.map(each => depth ? each[depth - 1] : 0), at = Array(several.length).fill(0), count = Array(depth).fill(0);
  for (let row = 0; row < outer; row++) {
    run(row * inner, inner, at, last);
    for (let d = depth - 2; d >= 0; d--) {
      for (let k = 0; k < at.length; k++) at[k] += steps[k][d];
      if (++count[d] < dims[d]) break;
      for (let k = 0; k < at.length; k++) at[k] -= steps[k][d] * dims[d];
      count[d] = 0;
    }
  }
}
const floorMod = (x, y) => { const r = x % y; return r !== 0 && (r < 0) !== (y < 0) ? r + y : r; };
// One loop for each operator, so that each is fast.
const LOOPS = {
  add: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] + b[j]; },
  sub: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] - b[j]; },
  mul: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] * b[j]; },
  div: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] / b[j]; },
  mod: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = floorMod(a[i], b[j]); },
  floordiv: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = Math.floor((a[i] - floorMod(a[i], b[j])) / b[j] + 0.5); },
  pow: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] === 1 ? 1 : Math.pow(a[i], b[j]); },
  lt: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] < b[j] ? 1 : 0; },
  le: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] <= b[j] ? 1 : 0; },
  gt: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] > b[j] ? 1 : 0; },
  ge: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] >= b[j] ? 1 : 0; },
  eq: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] === b[j] ? 1 : 0; },
  ne: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] !== b[j] ? 1 : 0; },
  and: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] && b[j] ? 1 : 0; },
  or: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = a[i] || b[j] ? 1 : 0; },
  minimum: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = Math.min(a[i], b[j]); },
  maximum: (r, o, n, a, i, s, b, j, t) => { for (let k = 0; k < n; k++, i += s, j += t) r[o + k] = Math.max(a[i], b[j]); },
};
const TRUTHS = new Set(["lt", "le", "gt", "ge", "eq", "ne", "and", "or"]);
function two(name, a, b) {
  const x = array(a), y = array(b), dims = together(x, y), found = new Float64Array(size(dims)), loop = LOOPS[name];
  rows(dims, [x, y], (o, n, at, last) => loop(found, o, n, x.data, at[0], last[0], y.data, at[1], last[1]));
  const kind = TRUTHS.has(name) ? "b" : name === "div" || x.kind === "f" || y.kind === "f" ? "f" : "i";
  return new NdArray(found, dims, kind);
}
const one = (of, way, kind) => { const x = array(of); return new NdArray(x.data.map(way), x.dims, kind ?? x.kind); };
$withArrays((name, a, b) => {
  if (name === "invert") return one(a, value => value ? 0 : 1);
  if (name === "abs") return one(a, Math.abs);
  if (name === "matmul") return reduced(two("mul", a, b), -1, (x, y) => x + y, 0);
  return two(name, a, b);
});

// -- along a dimension ------------------------------------------------------------------------------------------------------
function along(of, axis, way, kind) {
  const at = axis < 0 ? axis + of.dims.length : axis, n = of.dims[at], inner = size(of.dims.slice(at + 1)), outer = of.data.length / (n * inner || 1);
  const found = new Float64Array(outer * inner);
  for (let i = 0; i < outer; i++) for (let j = 0; j < inner; j++) found[i * inner + j] = way(of.data, i * n * inner + j, n, inner);
  return new NdArray(found, of.dims.filter((_, i) => i !== at), kind);
}
const reduced = (of, axis, way, start, kind = of.kind) => along(of, axis, (data, begin, n, step) => { let found = start; for (let k = 0; k < n; k++) found = way(found, data[begin + k * step]); return found; }, kind);
const whole = (of, axis, way, start, kind = of.kind) => {
  if (axis !== null && axis !== undefined) return reduced(of, Number(axis), way, start, kind);
  let found = start;
  for (const value of of.data) found = way(found, value);
  return out(found, kind);
};
function least(of, axis, better) {
  const way = (data, begin, n, step) => { let best = 0; for (let k = 1; k < n; k++) if (better(data[begin + k * step], data[begin + best * step])) best = k; return best; };
  if (axis === undefined || axis === null) return BigInt(way(of.data, 0, of.data.length, 1));
  return along(of, Number(axis), way, "i");
}
const method = (name, way, ...names) => Object.defineProperty(NdArray.prototype, name, { value: $f(way, names) });
method("$argmin", function (axis) { return least(this, axis, (a, b) => a < b); }, "axis");
method("$argmax", function (axis) { return least(this, axis, (a, b) => a > b); }, "axis");
method("$all", function (axis) { return whole(this, axis, (a, b) => a && b ? 1 : 0, 1, "b"); }, "axis");
method("$any", function (axis) { return whole(this, axis, (a, b) => a || b ? 1 : 0, 0, "b"); }, "axis");
method("$max", function (axis) { return whole(this, axis, Math.max, -Infinity); }, "axis");
method("$min", function (axis) { return whole(this, axis, Math.min, Infinity); }, "axis");

// -- items --------------------------------------------------------------------------------------------------------------------
const isCut = key => key && typeof key === "object" && "low" in key && "step" in key;
function chosen(of, key) {
  const keys = key instanceof $Tuple ? [...key] : [key];
  if (keys.length === 1 && keys[0] instanceof NdArray && keys[0].kind === "b" && keys[0].dims.length > 1) return chosen(of.$ravel(), keys[0].$ravel());
  if (keys.length === 1 && keys[0] instanceof NdArray && keys[0].kind === "b") return taken(of, keys[0].data.reduce((found, value, i) => (value && found.push(i), found), []));
  if (keys.length === 1 && keys[0] instanceof NdArray) return taken(of, keys[0].data, keys[0].dims);
  if (keys.length > 1 && keys.length === of.dims.length && keys.some(each => each instanceof NdArray) && keys.every(each => each instanceof NdArray || typeof each === "bigint")) {
    const each = keys.map(key => array(key)), dims = together(...each), found = new Float64Array(size(dims)), by = of.dims.map((_, d) => size(of.dims.slice(d + 1)));
    each.forEach((key, d) => rows(dims, [key], (o, n, [i], [s]) => { for (let k = 0; k < n; k++, i += s) found[o + k] += (key.data[i] < 0 ? key.data[i] + of.dims[d] : key.data[i]) * by[d]; }));
    return new NdArray(found.map(at => of.data[at]), dims, of.kind);
  }
  const dims = [], from = [];
  let axis = 0, base = 0;
  const step = of.dims.map((_, i) => size(of.dims.slice(i + 1)));
  for (const each of keys) {
    if (each === null) { dims.push(1); from.push([0, 0]); continue; }
    const n = of.dims[axis];
    if (isCut(each)) {
      const by = each.step === null ? 1 : Number(each.step), within = value => Math.min(n, Math.max(0, value < 0 ? value + n : value));
      const low = each.low === null ? (by > 0 ? 0 : n - 1) : within(Number(each.low)), high = each.high === null ? (by > 0 ? n : -1) : within(Number(each.high));
      dims.push(Math.max(0, Math.ceil((high - low) / by)));
      from.push([low * step[axis], by * step[axis]]);
    } else {
      const at = Number(each) < 0 ? Number(each) + n : Number(each);
      if (!(at >= 0 && at < n)) throw $py_IndexError("index out of range");
      base += at * step[axis];
    }
    axis++;
  }
  for (; axis < of.dims.length; axis++) { dims.push(of.dims[axis]); from.push([0, step[axis]]); }
  const found = new Float64Array(size(dims)), count = dims.map(() => 0);
  for (let i = 0; i < found.length; i++) {
    found[i] = of.data[count.reduce((at, c, d) => at + from[d][0] + c * from[d][1], base)];
    for (let d = dims.length - 1; d >= 0; d--) { if (++count[d] < dims[d]) break; count[d] = 0; }
  }
  return dims.length ? new NdArray(found, dims, of.kind) : out(found[0], of.kind);
}
function taken(of, places, dims = [places.length]) {
  const step = size(of.dims.slice(1)), found = new Float64Array(places.length * step);
  if (step === 1) for (let i = 0; i < found.length; i++) found[i] = of.data[places[i]];
  else places.forEach((place, i) => found.set(of.data.subarray(place * step, (place + 1) * step), i * step));
  return new NdArray(found, [...dims, ...of.dims.slice(1)], of.kind);
}

// The value at a percentile, linearly between its neighbours or the higher of them; ``values`` are sorted where they are.
function quantile(values, percent, higher) {
  values.sort();
  const at = (values.length - 1) * Number(percent) / 100, low = values[Math.floor(at)], high = values[Math.ceil(at)], share = at - Math.floor(at);
  return higher ? high : share === 0 || low === high ? low : low + (high - low) * share;
}

// -- numpy's functions ------------------------------------------------------------------------------------------------------------
const any = (...several) => several.some(each => each instanceof NdArray);
const lifted = (name, way) => { const single = plain[name]; return (...given) => any(...given) ? way(...given) : single(...given); };
$more("numpy", {
  $ndarray: { $class: NdArray },
  $array: $f((value, dtype) => array(value, dtype === undefined ? null : "f"), ["value", "dtype"]),
  $asarray: $f((value, dtype) => any(value) || Array.isArray(value) || value instanceof $Tuple ? array(value, dtype === undefined ? null : "f") : dtype === $py_float ? plainNumber(value) : value, ["value", "dtype"]),
  $where: lifted("$where", (condition, yes, no) => {
    const c = array(condition), x = array(yes), y = array(no), dims = together(c, x, y), found = new Float64Array(size(dims));
    rows(dims, [c, x, y], (o, n, [i, j, k], [s, t, u]) => { for (let m = 0; m < n; m++, i += s, j += t, k += u) found[o + m] = c.data[i] ? x.data[j] : y.data[k]; });
    return new NdArray(found, dims, x.kind === "f" || y.kind === "f" ? "f" : x.kind);
  }),
  $minimum: lifted("$minimum", (a, b) => two("minimum", a, b)), $maximum: lifted("$maximum", (a, b) => two("maximum", a, b)),
  $ceil: lifted("$ceil", of => one(of, Math.ceil, "f")), $floor: lifted("$floor", of => one(of, Math.floor, "f")), $sqrt: lifted("$sqrt", of => one(of, Math.sqrt, "f")), $log2: lifted("$log2", of => one(of, Math.log2, "f")),
  $isfinite: lifted("$isfinite", of => one(of, value => Number.isFinite(value) ? 1 : 0, "b")),
  $all: $f((of, axis) => any(of) ? of.$all(axis) : plainTruth(of), ["of", "axis"]), $any: $f((of, axis) => any(of) ? of.$any(axis) : plainTruth(of), ["of", "axis"]),
  $sum: $f((of, axis) => whole(array(of), axis, (a, b) => a + b, 0), ["of", "axis"]),
  $prod: $f(of => whole(array(of, "f"), null, (a, b) => a * b, 1), ["of", "dtype"]),
  $ndim: of => any(of) ? of.$ndim : 0n, $shape: of => any(of) ? of.$shape : $tuple([]), $argmax: of => array(of).$argmax(),
  $arange: (...given) => { const [low, high] = given.length > 1 ? given : [typeof given[0] === "bigint" ? 0n : 0, given[0]], n = Math.max(0, Math.ceil(Number(high) - Number(low))); return new NdArray(Float64Array.from({ length: n }, (_, i) => i + Number(low)), [n], typeof low === "bigint" && typeof high === "bigint" ? "i" : "f"); },
  $zeros: dims => { const each = [...dims].map(Number); return new NdArray(new Float64Array(size(each)), each, "f"); },
  $broadcast_to: (of, shape) => { const x = array(of), dims = [...shape].map(Number), found = new Float64Array(size(dims)); rows(dims, [x], (o, n, [i], [s]) => { for (let k = 0; k < n; k++, i += s) found[o + k] = x.data[i]; }); return new NdArray(found, dims, x.kind); },
  $broadcast_arrays: (...several) => { const all = several.map(each => array(each)), dims = together(...all); return all.map(each => plain.$broadcast_to(each, dims)); },
  $concatenate: $f((several, axis = 0n) => {
    const all = several.map(each => array(each)), d = Number(axis) < 0 ? Number(axis) + all[0].dims.length : Number(axis), inner = size(all[0].dims.slice(d + 1)), outer = size(all[0].dims.slice(0, d));
    const dims = [...all[0].dims]; dims[d] = all.reduce((sum, each) => sum + each.dims[d], 0);
    const found = new Float64Array(size(dims)); let begin = 0;
    for (const each of all) { const run = each.dims[d] * inner; for (let o = 0; o < outer; o++) found.set(each.data.subarray(o * run, (o + 1) * run), o * dims[d] * inner + begin); begin += run; }
    return new NdArray(found, dims, all[0].kind);
  }, ["several", "axis"]),
  $stack: $f((several, axis = 0n) => { const all = plain.$broadcast_arrays(...several); return Number(axis) === 0 ? array(all) : plain.$concatenate(all.map(each => new NdArray(each.data, [...each.dims, 1], each.kind)), -1n); }, ["several", "axis"]),
  $column_stack: several => plain.$concatenate(several.map(each => each.dims.length === 1 ? each.$reshape(-1n, 1n) : each), 1n),
  $append: (first, rest) => { const x = array(first), y = array(rest); return new NdArray(Float64Array.of(...x.data, ...y.data), [x.data.length + y.data.length], y.kind); },
  $cumsum: of => { const x = array(of); let sum = 0; return new NdArray(x.data.map(value => sum += value), x.dims, x.kind === "b" ? "i" : x.kind); },
  $lexsort: several => { const all = [...several].map(each => array(each)).reverse(), n = all[0].data.length, order = Array.from({ length: n }, (_, i) => i); order.sort((a, b) => { for (const each of all) { const by = each.data[a] - each.data[b]; if (by || Number.isNaN(by)) return each.data[a] === each.data[b] ? 0 : each.data[a] < each.data[b] ? -1 : 1; } return 0; }); return new NdArray(Float64Array.from(order), [n], "i"); },
  $nonzero: of => { const places = of.dims.map(() => []); of.data.forEach((value, i) => { if (value) { let rest = i; for (let d = of.dims.length - 1; d >= 0; d--) { places[d].push(rest % of.dims[d]); rest = Math.floor(rest / of.dims[d]); } } }); return $tuple(places.map(each => new NdArray(Float64Array.from(each), [each.length], "i"))); },
  $count_nonzero: of => BigInt(array(of).data.reduce((sum, value) => sum + (value ? 1 : 0), 0)),
  $exp: lifted("$exp", of => one(of, Math.exp, "f")), $expm1: lifted("$expm1", of => one(of, Math.expm1, "f")), $abs: of => any(of) ? one(of, Math.abs) : Math.abs(Number(of)), $round: of => one(of, value => { const low = Math.floor(value), over = value - low; return over > 0.5 || (over === 0.5 && low % 2) ? low + 1 : low; }, "f"),
  $reshape: (of, dims) => array(of).$reshape(dims),
  $unique: of => { const data = Float64Array.from(new Set(array(of).data)).sort(); return new NdArray(data, [data.length], of.kind); },
  $isnan: of => one(of, value => Number.isNaN(value) ? 1 : 0, "b"), $zeros_like: of => new NdArray(new Float64Array(of.data.length), of.dims, of.kind),
  $full: (dims, value) => { const each = dims instanceof $Tuple ? [...dims].map(Number) : [Number(dims)], like = array(value); return new NdArray(new Float64Array(size(each)).fill(like.data[0]), each, like.kind); },
  $errstate: $f(() => ({ $__enter__() { return this; }, $__exit__: () => null }), [], true),
  $clip: (of, low, high) => two("minimum", two("maximum", of, low), high),
  $searchsorted: (known, of) => one(of, value => { let low = 0, high = known.data.length; while (low < high) { const middle = (low + high) >> 1; if (known.data[middle] < value) low = middle + 1; else high = middle; } return low; }, "i"),
  $mean: $f((of, axis) => { const x = array(of, "f"), sum = whole(x, axis, (a, b) => a + b, 0); return axis === undefined ? sum / x.data.length : one(sum, value => value / x.dims.at(Number(axis))); }, ["of", "axis"]),
  $std: $f((of, ddof = 0n) => { const x = array(of, "f").data, mean = x.reduce((a, b) => a + b, 0) / x.length; return Math.sqrt(x.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (x.length - Number(ddof))); }, ["of", "ddof"]),
  $percentile: $f((of, percent, method = "linear") => quantile(array(of).data.slice(), percent, method === "higher"), ["of", "percent", "method"]),
  $nanmedian: of => quantile(array(of).data.filter(value => !Number.isNaN(value)), 50, false),
  $array_split: (of, parts) => { const n = of.data.length, each = Math.floor(n / Number(parts)), more = n % Number(parts); let at = 0; return Array.from({ length: Number(parts) }, (_, i) => { const data = of.data.subarray(at, at += each + (i < more ? 1 : 0)); return new NdArray(data, [data.length], of.kind); }); },
  $geomspace: (low, high, count) => { const [a, b, n] = [low, high, count].map(Number); return new NdArray(Float64Array.from({ length: n }, (_, i) => i === n - 1 ? b : 10 ** (Math.log10(a) + (Math.log10(b) - Math.log10(a)) * i / (n - 1))), [n], "f"); },
  $isin: (of, some) => { const known = new Set([...some].map(Number)); return one(of, value => known.has(value) ? 1 : 0, "b"); },
  $remainder: (a, b) => two("mod", a, b), $max: of => array(of).$max(), $min: of => array(of).$min(),
  $unravel_index: (place, shape) => { let rest = Number(place); const dims = [...shape].map(Number), found = []; for (let d = dims.length - 1; d >= 0; d--) { found.unshift(BigInt(rest % dims[d])); rest = Math.floor(rest / dims[d]); } return $tuple(found); },
});
function plainNumber(value) {
  if (typeof value === "string" || value === null || typeof value === "object") throw $py_TypeError("not a number");
  return Number(value);
}
function plainTruth(value) { return Array.isArray(value) ? value.every(Boolean) : Boolean(value); }
