// What is said about a typed answer. It never says the number before it was found: it says what kind of slip this looks like.
import { human, number } from "../widget/numbers.js";
import { points } from "../widget/points.js";
import { fitting, readAnswer } from "../widget/typed.js";

const EXACT = 1e-6;
const CLOSE = 0.25, CLOSE_TO_EXACT = 0.05;  // nothing farther off is close, however wide the tolerance
const TRAPPED = 0.03;                       // a known wrong way, with its own rounding
const near = (ratio, factor, within) => Math.abs(ratio / factor - 1) <= within;

const isBeyond = (value, { expected, side }) => side && (side === "below" ? value > expected : value < expected);  // one more does not fit

// Near enough, or right to the digits that were typed: 0.73 for 0.7316, where at least two of them count.
function isRight({ value, half, digits }, asked) {
  const { expected, within, side } = asked, off = Math.abs(value - expected);
  const allowed = isBeyond(value, asked) ? EXACT : within || EXACT;
  return off <= allowed * Math.abs(expected) || (within > 0 && !side && digits > 1 && off <= half);
}

// { right, counts, said }: whether it is right, whether it was a try at all, and the words.
export function judge(text, asked) {
  const typed = fitting(text, { ...asked, others: [1] }, way => isRight(way, asked), readAnswer);
  if (typed.value === null) return { right: false, counts: false, said: typed.refused };
  const { value, half, digits } = typed, { expected, within, side, shown, trap, hint } = asked;
  if (isRight(typed, asked)) return { right: true, counts: true, said: `Right: ${shown}.${apart(value, asked)}` };
  if (within && !side && digits === 1 && Math.abs(value - expected) <= half) {
    return { right: false, counts: false, said: `Right as far as it goes, but the answer must be within ${number(100 * within)} %, so give one digit more.` };
  }
  const meant = asked.family === "percent" ? human(value, "percent") : `${text.trim()} ${asked.unit}`;
  const readAs = typed.bare && asked.unit ? `Read as ${meant}. ` : "";
  const said = hint && near(value, trap, TRAPPED) ? hint : slip(value, asked) ?? distance(value, expected, within, side, isBeyond(value, asked));
  return { right: false, counts: true, said: readAs + said };
}

function apart(value, { expected, family }) {
  const off = Math.abs(value / expected - 1), far = family === "percent" ? points(value - expected) : `${number(100 * off, 2)} %`;
  return off > 0.0005 ? ` Yours is ${far} ${value > expected ? "above" : "below"}.` : "";
}

// What this asks of a reader whose answer is off as a known slip would put it; which slips can be meant here, the build has chosen.
function slip(value, { expected, slips = [] }) {
  const ratio = value / expected;
  if (ratio < 0) return "Look at the sign.";
  for (const [factors, words, within] of slips) {
    const by = factors.find(factor => near(ratio, factor, within) || near(ratio, 1 / factor, within));
    if (by) return words.replace("{by}", number(by));
  }
  return null;
}

function distance(value, expected, within, one, beyond) {
  const side = value > expected ? "high" : "low", ratio = Math.abs(value / expected);
  if ((!within || one) && Number.isInteger(expected) && (Math.ceil(value) === expected || Math.floor(value) === expected)) {
    return "Nearly, but the answer is a whole number. Which way must this one be rounded?";
  }
  if (near(ratio, 1, within ? Math.min(2 * within, CLOSE) : CLOSE_TO_EXACT)) {
    if (!within) return `Close, a little too ${side}; but this one must be exact.`;
    if (beyond) return `Close, a little too ${side}: ${one === "below" ? "so many no longer fit" : "so few are not enough"}.`;
    return `Close, a little too ${side}: the answer must be within ${number(100 * within)} %. Something rounded early, or a small term left out?`;
  }
  if (ratio > 10 || ratio < 0.1) return `Too ${side}, by more than a factor of ten.`;
  return within ? `Too ${side}, by more than rounding explains.` : `Too ${side}.`;
}
