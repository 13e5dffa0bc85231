"""What axe finds serious on a page.

Half of its work is about colours, a millisecond for each text and three for each link. What stands on one page stands
on the next in the same place: so each look is judged once, the first time that a window shows it.
"""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
COLOURS = ["color-contrast", "link-in-text-block"]
NEVER_SERIOUS = ["region"]  # a seventh of the work, for a fault that axe calls moderate
# Leaves of an article one part alone: axe goes through the whole page, whatever it is asked of.
REST_GOES = """part => {
  while (!part.parentElement.matches("article")) part = part.parentElement;
  for (const other of [...part.parentElement.children]) if (other !== part) other.remove();
}"""
# Marks one text of each look in each kind of place, and one link: of those that have the same colour and size, and all
# around which the same elements of the same classes and backgrounds stand. One letter does not speak: axe judges none.
MARKS = """([within, judged]) => {
  axe.configure({ rules: [
    { id: "color-contrast", selector: "[data-speaks]" }, { id: "link-in-text-block", selector: "[data-leads]" },
  ] });
  const known = new Set(judged), places = new Map();
  const number = text => {  // of 53 bits: cyrb53
    let a = 0xdeadbeef, b = 0x41c6ce57;
    for (let i = 0; i < text.length; i++) {
      const letter = text.charCodeAt(i);
      a = Math.imul(a ^ letter, 2654435761);
      b = Math.imul(b ^ letter, 1597334677);
    }
    a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
    b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
    return 4294967296 * (2097151 & b) + (a >>> 0);
  };
  const mark = (element, name, look) => {
    if (known.has(look)) return;
    known.add(look);
    element.dataset[name] = look;
  };
  // a link is told from the words of the block in which it stands, if there are any
  const block = element => getComputedStyle(element).display.startsWith("inline") ? block(element.parentElement) : element;
  for (const old of document.querySelectorAll("[data-speaks], [data-leads]")) {
    delete old.dataset.speaks;
    delete old.dataset.leads;
  }
  for (const element of document.querySelectorAll("body, body *")) {
    const style = getComputedStyle(element);
    const { color, fontSize, fontWeight, backgroundColor, backgroundImage, opacity, position } = style;
    const around = places.get(element.parentElement);
    const place = number([around?.place, element.localName, element.className, backgroundColor, backgroundImage, opacity, position].join());
    places.set(element, { place, color });
    if (!element.closest(within) || element.closest("math") || !element.checkVisibility()) continue;
    const look = [place, color, fontSize, fontWeight].join();
    const writes = element.matches("input, select, textarea") || [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (writes && element.textContent.trim().length !== 1) mark(element, "speaks", number(look));
    if (!element.matches("a[href]")) continue;
    const others = block(element).textContent.trim().length > element.textContent.trim().length;
    mark(element, "leads", number([look, style.textDecoration, style.borderBottom, around?.color, others].join()));
  }
}"""
# What is serious, and the looks that axe could judge.
RUN = """async ([within, settings]) => {
  const marked = [...document.querySelectorAll("[data-speaks], [data-leads]")].flatMap(one => [one.dataset.speaks, one.dataset.leads]);
  const { violations, incomplete } = await axe.run(
    { include: [[within]], exclude: [["math"]] }, { ...settings, resultTypes: ["violations", "incomplete"], elementRef: true },
  );
  const unsure = new Set([...violations, ...incomplete].flatMap(({ nodes }) => nodes)
    .flatMap(({ element }) => [element?.dataset.speaks, element?.dataset.leads]));
  const faults = violations.filter(({ impact }) => ["serious", "critical"].includes(impact))
    .flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`));
  return [faults, marked.filter(look => look && !unsure.has(look)).map(Number)];
}"""
judged: set[int] = set()  # the looks in which axe has found nothing


def faults(
    page, only: list[str] | None = None, without: list[str] | None = None, within: str = "html"
) -> list[str]:
    """What axe finds serious, on the page or in one part of it: by some rules only, or by all without some."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(AXE)
    left_out = {rule: {"enabled": False} for rule in (*NEVER_SERIOUS, *(without or ()))}
    settings = {"runOnly": only} if only else {"rules": left_out}
    page.evaluate(MARKS, [within, list(judged)])
    found, looks = page.evaluate(RUN, [within, settings])
    if not set(COLOURS) & set(without or ()):
        judged.update(looks)
    return found
