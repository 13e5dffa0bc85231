// Where a text stops being JSON, as [line, column]. Browsers' own words about it differ, and often leave the place out.

const OPEN_STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const CUT_BEHIND_A_CODE = /(?:^|[^\\])(?:\\\\)*\\u[0-9a-fA-F]{4}$/;
const WORD = /true|false|null/y, BLANK = /[ \t\n\r]*/y, COMMA = /,/y, COLON = /:/y;

export function faultIn(text) {
  let at = 0;
  const take = pattern => {
    pattern.lastIndex = at;
    const found = pattern.test(text);
    if (found) at = pattern.lastIndex;
    return found;
  };
  const list = (close, item) => {
    at += 1;
    take(BLANK);
    if (text[at] !== close) do { if (!item() || !take(BLANK)) return false; } while (take(COMMA) && take(BLANK));
    if (text[at] !== close) return false;
    at += 1;
    return true;
  };
  // One without an end is wrong where it starts; otherwise at the character that may not be in it.
  const string = () => {
    const start = at;
    if (!take(OPEN_STRING)) return false;
    if (text[at] === '"') return !!(at += 1);
    if (at >= text.length && CUT_BEHIND_A_CODE.test(text)) at = text.length - 5;      // Python wants to see what follows it, and names its u
    else if (at >= text.length - (text[at] === "\\")) at = start;
    else if (text.startsWith("\\u", at)) at += 1;
    return false;
  };
  const pair = () => string() && take(BLANK) && take(COLON) && value();
  const value = () => {
    take(BLANK);
    if (text[at] === "{") return list("}", pair);
    if (text[at] === "[") return list("]", value);
    if (text[at] === '"') return string();
    return take(NUMBER) || take(WORD);
  };
  if (value()) take(BLANK);
  const before = text.slice(0, at).split("\n");
  return [before.length, [...before.at(-1)].length + 1];
}
