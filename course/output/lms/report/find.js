// What both editions of SCORM need: where the learning system's API is, and how long a text may be.
const MOST_FRAMES = 500;   // a page may lie that deep
const MOST_WORDS = 250;    // of a description or of a word filled in, which every system must take

// In the windows around this one, then in those around the one that opened it.
export function findApi(from, name) {
  for (const start of [from, from.opener]) {
    let here = start;
    for (let depth = 0; here && depth < MOST_FRAMES; depth += 1) {
      try { if (here[name]) return here[name]; } catch { break; }  // of another origin
      if (here.parent === here) break;
      here = here.parent;
    }
  }
  return null;
}

export const short = text => text.slice(0, MOST_WORDS);
