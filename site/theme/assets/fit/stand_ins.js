// Modules that a page replaces by its own: the engine's tables come with the page, and it draws its results itself.
import { $Dict, $Thing, $Tuple, $dict, $f, $key, $module, $modules, $py_ValueError } from "./python.js";
import { $like } from "./library.js";

const real = value => Number(value);

let tables = {};
export const $tables = given => { tables = given; };
const whole = value => Array.isArray(value) ? value.map(whole) : value !== null && typeof value === "object" ? $dict(Object.entries(value).map(([key, each]) => [key, whole(each)])) : value;
class Path {
  constructor(name) { this.name = name; }
  get $parent() { return new Path(this.name.slice(0, this.name.lastIndexOf("/"))); }
  $__truediv__(name) { return new Path(`${this.name}/${name}`); }
  $open() { return this; }
  $__enter__() { return this; }
  $__exit__() { return null; }
}
$module("pathlib", { $Path: name => new Path(name) });
$module("tomllib", { $TOMLDecodeError: $py_ValueError, $load: file => whole(tables[file.name.replace(/^\/(?=engine\/)/, "")]) });
$module("engine.catalog.files", {
  $table: $f((name, kind, named = $dict()) => {
    const found = whole(tables[`engine/catalog/${name}`]);
    for (const [, [key, entry]] of found.map) if (entry instanceof $Dict) for (const [field, find] of named.map.values()) { const given = entry.find(field); if (given) given[1] = find(given[1]); }
    return found;
  }, ["name", "kind"], true),
  $where: $f(() => "", ["name", "key", "field"]),
});
$module("engine.base.discovery", {
  $modules_of: of => Object.keys($modules).filter(name => name.startsWith(`${of}.`) && !name.slice(of.length + 1).includes(".")).sort().map(name => $modules[name]),
});
$module("engine.base.hashing", { $once: $key });
$module("engine.base.program", {
  $program: $f(outputs => way => {
    const plain = value => Array.isArray(value) ? value.map(plain) : value?.data ? [...value.data] : real(value);
    return $like((...given) => {
      const found = way(...given.map(plain));
      for (const pair of found.map.values()) {
        const length = outputs.find(pair[0])[1];
        pair[1] = length instanceof $Tuple ? real(pair[1]) : [...pair[1].map(real), ...Array(Number(length) - pair[1].length).fill(NaN)];
      }
      return found;
    }, way);
  }, [], true),
  $elementwise: way => way, $for_each: (way, columns, ...others) => way(...columns, ...others), $mean: column => $modules.numpy.$mean(column),
  $zeros: count => Array(Number(count)).fill(0), $full: (count, value) => Array(Number(count)).fill(value),
});
// A page draws its results itself: of what prints them it needs the base class, which is empty.
$module("engine.base.printing", { $Printed: { $class: class extends $Thing {} }, $parts: { $register: way => way } });
