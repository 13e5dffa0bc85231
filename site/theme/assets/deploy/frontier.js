// Speed for a user against throughput of a GPU: every deployment that the closed forms judge, the line that none within the limits passes, the
// simulated ones with their numbers, and published points.
import { element, speed } from "./answer.js";

const HIGH = 360, LEFT = 56, RIGHT = 14, TOP = 30, BOTTOM = 44, NEAR = 24;
const COUNT = 6;  // ticks on an axis, about
const BEYOND = 1.5;  // a published point this far past all deployments is listed, but would squeeze the picture
const svg = (kind, properties = {}, ...children) => {
  const made = document.createElementNS("http://www.w3.org/2000/svg", kind);
  for (const [name, value] of Object.entries(properties)) made.setAttribute(name, value);
  made.append(...children);
  return made;
};
const whole = value => Math.round(value).toLocaleString("en");

function ticks(most) {
  const rough = most / COUNT, power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(each => each * power >= rough) * power;
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
}

export class Frontier {
  constructor(place, published) {
    this.place = place;
    this.published = published;
    this.marked = [];
    new ResizeObserver(([{ contentRect }]) => { if (this.all && Math.abs(contentRect.width - this.wide) > 1) this.paint(); }).observe(place);
  }
  clear() { this.all = null; this.marked = []; this.place.hidden = true; this.place.replaceChildren(); }
  draw(all, asked, marked) {
    this.all = all;
    this.asked = asked;
    [this.marked, this.chosen] = [marked, 0];
    this.line = all.best.flatMap((best, i) => best ? [i] : []).sort((a, b) => all.user[a] - all.user[b]);
    this.points = this.published.filter(({ models, gpu }) => gpu === asked.gpu && models.includes(asked.model));
    this.at = null;
    this.place.hidden = false;
    this.paint();
  }
  mark(marked, chosen) {
    [this.marked, this.chosen] = [marked, chosen];
    if (this.all) this.paint();
  }

  paint() {
    const { all, line, marked, points } = this, had = this.place.contains(document.activeElement);
    this.wide = this.place.clientWidth;
    const ours = (own, name) => Math.max(...(line.length ? line : [...all.user.keys()]).map(i => own[i]), ...marked.map(one => one[name]));
    const [ox, oy] = [ours(all.user, "perUser"), ours(all.gpu, "perGpu")], inside = points.filter(one => one.user <= BEYOND * ox && one.gpus <= BEYOND * oy);
    const [mx, my] = [1.1 * Math.max(ox, ...inside.map(one => one.user)), 1.1 * Math.max(oy, ...inside.map(one => one.gpus))];
    this.out = points.filter(one => !inside.includes(one));
    const x = value => LEFT + (this.wide - LEFT - RIGHT) * value / mx, y = value => TOP + (HIGH - TOP - BOTTOM) * (1 - value / my);
    Object.assign(this, { x, y });
    const dots = within => all.user.map((user, i) => all.within[i] === within && user <= mx && all.gpu[i] <= my ? `M${x(user).toFixed(1)} ${y(all.gpu[i]).toFixed(1)}h0` : "").join("");
    const picture = svg("svg", { viewBox: `0 0 ${this.wide} ${HIGH}`, width: this.wide, height: HIGH, "aria-hidden": "true" });
    for (const value of ticks(mx)) picture.append(svg("path", { class: "deploy-grid", d: `M${x(value)} ${TOP}V${HIGH - BOTTOM}` }), svg("text", { x: x(value), y: HIGH - BOTTOM + 18, "text-anchor": "middle" }, whole(value)));
    for (const value of ticks(my)) picture.append(svg("path", { class: "deploy-grid", d: `M${LEFT} ${y(value)}H${this.wide - RIGHT}` }), svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, value < 10 && value % 1 ? value.toFixed(1) : whole(value)));
    picture.append(svg("text", { x: 0, y: 14, class: "deploy-axis" }, "tokens/s from each GPU"), svg("text", { x: this.wide - RIGHT, y: HIGH - 6, "text-anchor": "end", class: "deploy-axis" }, "tokens/s for a user"));
    picture.append(svg("path", { class: "deploy-outside", d: dots(false) }), svg("path", { class: "deploy-within", d: dots(true) }));
    picture.append(svg("path", { class: "deploy-line", d: line.map((i, k) => `${k ? "L" : "M"}${x(all.user[i]).toFixed(1)} ${y(all.gpu[i]).toFixed(1)}`).join("") }));
    const limit = 1 / this.asked.tpot_s;
    if (limit < mx) {
      const end = x(limit) > this.wide * 0.6;
      picture.append(svg("path", { class: "deploy-limit", d: `M${x(limit)} ${TOP}V${HIGH - BOTTOM}` }), svg("text", { class: "deploy-on", x: x(limit) + (end ? -5 : 5), y: HIGH - BOTTOM - 8, "text-anchor": end ? "end" : "start" }, `limit: ${speed(limit)}`));
    }
    for (const { user, gpus } of inside) picture.append(svg("path", { class: "deploy-published", d: `M${x(user)} ${y(gpus) - 6}l6 6l-6 6l-6 -6z` }));
    marked.forEach((one, i) => i !== this.chosen && picture.append(svg("circle", { class: "deploy-rival", cx: x(one.perUser), cy: y(one.perGpu), r: 5 })));
    const one = marked[this.chosen], right = x(one.perUser) > this.wide * 0.6;
    picture.append(svg("circle", { class: "deploy-chosen", cx: x(one.perUser), cy: y(one.perGpu), r: 7 }), svg("text", { class: "deploy-name deploy-on", x: x(one.perUser) + (right ? -12 : 12), y: y(one.perGpu) - 10, "text-anchor": right ? "end" : "start" }, `${one.split}, ${one.weights}`));
    this.ring = svg("circle", { class: "deploy-ring", r: 6, visibility: "hidden" });
    picture.append(this.ring);
    const box = element("div", { className: "deploy-picture", tabIndex: 0, role: "application", ariaLabel: `${this.words()} Arrow keys walk along the line.` }, picture);
    box.addEventListener("pointermove", event => this.near(event));
    box.addEventListener("pointerdown", event => this.near(event));
    box.addEventListener("keydown", event => this.walk(event));
    this.said = element("p", { className: "deploy-point", role: "status" });
    this.place.replaceChildren(element("h2", { className: "deploy-title", textContent: "Fast for each user, or much from each GPU" }), this.key(), box, this.said, this.caption());
    this.tell(this.at);
    if (had) box.focus({ preventScroll: true });
  }
  words() {
    const [first, last] = [this.line[0], this.line.at(-1)], { user, gpu } = this.all;
    return first === undefined ? "No deployment is within the limits." : `Within the limits the line goes from ${speed(user[first])} tokens/s for a user at ${speed(gpu[first])} from each GPU to ${speed(user[last])} at ${speed(gpu[last])}.`;
  }
  key() {
    const item = (name, words) => element("span", {}, element("i", { className: name }), words);
    return element("p", { className: "deploy-key" }, item("deploy-within", "within the limits"), item("deploy-outside", "outside"), item("deploy-chosen", "chosen"), ...(this.marked.length > 1 ? [item("deploy-rival", "runners-up")] : []), ...(this.points.length > this.out.length ? [item("deploy-published", "published")] : []));
  }
  caption() {
    const { all, points, marked } = this;
    const what = `Each dot is a kind of deployment with some number of replicas, ${all.user.length.toLocaleString("en")} in all, in closed form: mean speed under your load. ${marked[0].requests ? "The chosen one and the runners-up were simulated, and lie where half of the users are at least as fast." : ""}`;
    const list = points.length
      ? [element("p", { textContent: "Published, each under its own load, which is not yours:" }), element("ul", {}, ...points.map(one => element("li", { textContent: `${one.what}: ${speed(one.user)} tokens/s for a user, ${speed(one.gpus)} from each GPU (${one.source}${one.load}). ${one.ours} ${one.differs}${this.out.includes(one) ? " It lies outside the picture." : ""}` })))]
      : [element("p", { textContent: "Of this model on this GPU we know no published point with both speeds, so none is drawn." })];
    return element("figcaption", {}, element("p", { textContent: what }), points.length > 2 ? element("details", {}, element("summary", { textContent: `${points.length} published points` }), ...list) : element("div", {}, ...list));
  }

  // -- one dot ------------------------------------------------------------------------------------------------------------------
  near({ clientX, clientY, currentTarget }) {
    const { left, top } = currentTarget.querySelector("svg").getBoundingClientRect(), [px, py] = [clientX - left, clientY - top];
    let best = null, least = NEAR ** 2;
    this.all.user.forEach((user, i) => {
      const far = (this.x(user) - px) ** 2 + (this.y(this.all.gpu[i]) - py) ** 2 - (this.all.best[i] ? 16 : 0);
      if (far < least) [best, least] = [i, far];
    });
    if (best !== null) this.tell(best);
  }
  walk(event) {
    const by = { ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1 }[event.key];
    if (!by || !this.line.length) return;
    event.preventDefault();
    const at = this.line.indexOf(this.at);
    this.tell(this.line[at < 0 ? (by > 0 ? 0 : this.line.length - 1) : Math.min(this.line.length - 1, Math.max(0, at + by))]);
  }
  tell(i) {
    this.at = i;
    if (i === null) { this.said.textContent = "Point at a dot, or walk along the line with the arrow keys."; return; }
    const { all } = this, [reads, writes] = [all.units[i] * all.prefill[i], all.units[i] * all.decode[i]];
    const met = Math.min(1, Math.max(0, all.met[i]));
    const split = reads && all.front[i] !== all.back[i] ? `${reads} × ${all.front[i]} + ${writes} × ${all.back[i]}` : `${reads ? `${reads} + ` : ""}${writes} × ${all.back[i]}`;
    this.said.textContent = `${split}, ${all.weights[i]}${all.cache[i] === "bf16" ? "" : `, ${all.cache[i]} cache`}${all.drafted[i] ? `, ${all.drafted[i]} drafted` : ""}, ${whole(all.chunk[i])} tokens a step: ${whole(all.gpus[i])} GPU${all.gpus[i] > 1 ? "s" : ""}, ${speed(all.user[i])} tokens/s for a user, ${speed(all.gpu[i])} from each GPU; ${(100 * met).toFixed(met > 0.995 && met < 1 ? 1 : 0)} % of the requests within the stricter limit.`;
    for (const [name, value] of [["cx", this.x(all.user[i])], ["cy", this.y(all.gpu[i])], ["visibility", "visible"]]) this.ring.setAttribute(name, value);
  }
}
