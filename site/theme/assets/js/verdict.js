// What is said about a typed answer, by the rule of engine/base/answers.py. It never says the number before it was found: it says
// what kind of slip this looks like.
import { human, number } from "../widget/numbers.js";
import { fitting, readAnswer } from "../widget/typed.js";
import { BEYOND, judged, sentence } from "../widgets/answers.js";

// Words and factor of each known slip; which slips can be meant here, the build has chosen.
const slipsOf = ({ slips = [] }) => slips.flatMap(([factors, words, near]) => factors.map(by => ({ by, words, near })));

function ruled({ value, half, digits }, asked) {
  const { expected, within, side, family, trap, hint } = asked, slips = slipsOf(asked);
  return judged(value, half, digits, expected, within, BEYOND[side ?? ""], Number(family === "percent"), hint ? trap : NaN,
    slips.map(({ by }) => by), slips.map(({ near }) => near));
}

// { right, counts, said }: whether it is right, whether it was a try at all, and the words.
export function judge(text, asked) {
  const typed = fitting(text, { ...asked, others: [1] }, way => way.value !== null && ruled(way, asked).right, readAnswer);
  if (typed.value === null) return { right: false, counts: false, said: typed.refused };
  const found = ruled(typed, asked), slip = slipsOf(asked)[found.slip], right = found.right > 0, counts = found.counts > 0;
  const said = sentence(found, { shown: asked.shown, within: number(100 * asked.within), hint: asked.hint,
    slip: slip?.words.replace("{by}", number(slip.by)) });
  const meant = asked.family === "percent" ? human(typed.value, "percent") : `${text.trim()} ${asked.unit}`;
  return { right, counts, said: counts && !right && typed.bare && asked.unit ? `Read as ${meant}. ${said}` : said };
}
