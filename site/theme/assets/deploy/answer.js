// A deployment, its rivals and its commands as elements of the page.
export function element(kind, properties = {}, ...children) {
  const made = Object.assign(document.createElement(kind), properties);
  if (properties.role) made.setAttribute("role", properties.role);
  made.append(...children);
  return made;
}
const heading = words => element("h2", { className: "deploy-title", textContent: words });
const whole = value => Math.round(value).toLocaleString("en");
export const speed = value => value < 10 ? value.toFixed(1) : whole(value);
const range = ([low, high]) => low === high ? `${low}` : `${low} to ${high}`;

export function facts(one, price) {
  const said = [
    ["GPUs", `${one.gpus}; 80 % band ${range(one.gpusBand)}, from runs with full batches; servers under load may lie outside`],
    ["Formats", `weights ${one.weights}, cache ${one.cache}`],
    ["A step", `at most ${whole(one.chunk)} tokens; at most ${whole(one.batch)} answers at once ${one.seats}${one.drafted ? `; ${one.drafted} drafted tokens are checked for each` : ""}`],
    ["Speed", `${one.requests ? `half of the users get ${speed(one.perUser)} tokens/s or more` : `a user gets ${speed(one.perUser)} tokens/s`}; each GPU writes ${speed(one.perGpu)}`],
  ];
  if (one.requests) {
    said.push(["First token", `${one.ttft} at most for the share that you promise; band ${range(one.ttftBand)}`], ["Further tokens", `${one.tpot} each at most for the share that you promise; band ${range(one.tpotBand)}`], ["Longest pause", `${one.pause} between two tokens of an answer; band ${range(one.pauseBand)}`], ["Goodput", `${one.goodput} of the requests kept every promise`]);
    said.push(["What binds", one.binds], ["At the bands' slow end", one.sure ? "every limit still holds" : "a limit would be missed: measure before you promise it"]);
  }
  said.push(["Price", price]);
  if (one.extrapolates.length) said.push(["Beyond what was measured", one.extrapolates.join("; ")]);
  return [element("dl", { className: "deploy-facts" }, ...said.map(([name, words]) => element("div", {}, element("dt", { textContent: name }), element("dd", { textContent: words }))))];
}

// The cheapest of each kind, and what it costs more; a row can be chosen.
export function rows(all, chosen, choose, leavesOut) {
  const cell = (kind, words) => element(kind, kind === "th" ? { scope: "col", textContent: words } : { textContent: words });
  const head = element("tr", {}, ...["", "Deployment", "GPUs", "$/M tokens", "more", "First token", "Further", "Pause", "Per user", "Per GPU"].map(words => cell("th", words)));
  head.firstChild.append(element("span", { className: "deploy-unseen", textContent: "Show" }));
  const body = all.map((one, at) => {
    const radio = element("input", { type: "radio", name: "deploy-row", checked: at === chosen, ariaLabel: `Show ${one.split} in ${one.weights}` });
    radio.dataset.row = String(at);
    radio.addEventListener("change", () => choose(at));
    const name = element("th", { scope: "row" }, `${one.split} `, element("span", { textContent: `${one.weights}${one.cache === "bf16" ? "" : `, ${one.cache} cache`}${one.apart ? ", two pools" : ""}${one.drafted ? `, ${one.drafted} drafted` : ""}` }));
    const row = element("tr", {}, element("td", {}, radio), name, ...[one.gpus, one.dollars, one.dearer > 0.0005 ? `+${Math.round(100 * one.dearer)} %` : at ? "same" : "", one.ttft, one.tpot, one.pause, speed(one.perUser), speed(one.perGpu)].map(words => cell("td", words)));
    row.toggleAttribute("data-chosen", at === chosen);
    row.addEventListener("click", event => { if (event.target !== radio) choose(at); });
    return row;
  });
  const table = element("table", { className: "deploy-rows" }, element("caption", { textContent: "The cheapest, and the cheapest of other kinds, all simulated" }), element("thead", {}, head), element("tbody", {}, ...body));
  return [heading("What the others lose by"), element("div", { className: "deploy-table", tabIndex: 0, role: "region", ariaLabel: "The cheapest deployments" }, table), element("p", { className: "deploy-soft", textContent: `Not tried: ${leavesOut.join(", ")}.` })];
}

let shown = 0;  // the program whose commands a reader last looked at
export function commands(one, programs) {
  const text = element("code", { textContent: one.commands[shown] }), box = element("pre", { id: "deploy-commands", tabIndex: 0, role: "tabpanel", ariaLabel: "Commands" }, text);
  const tabs = programs.map((name, at) => {
    const tab = element("button", { type: "button", role: "tab", textContent: name, ariaSelected: String(at === shown), tabIndex: at === shown ? 0 : -1 });
    tab.setAttribute("aria-controls", box.id);
    tab.addEventListener("click", () => turn(at));
    return tab;
  });
  const turn = at => {
    shown = (at + programs.length) % programs.length;
    tabs.forEach((tab, each) => { tab.ariaSelected = String(each === shown); tab.tabIndex = each === shown ? 0 : -1; });
    text.textContent = one.commands[shown];
  };
  const list = element("div", { className: "deploy-tabs", role: "tablist", ariaLabel: "Commands for" }, ...tabs);
  list.addEventListener("keydown", event => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by) { event.preventDefault(); turn(shown + by); tabs[shown].focus(); }
  });
  const copied = element("span", { role: "status" }), copy = element("button", { type: "button", textContent: "Copy" });
  copy.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(one.commands[shown]); copied.textContent = "Copied."; } catch { window.prompt("Copy this", one.commands[shown]); }
  });
  return [heading("How to start it"), list, box, element("p", { className: "deploy-tools" }, copy, copied)];
}
