// A picture measures its texts when it is drawn, so its fonts are fetched before that.
const FACES = { "Course Sans": [400, 600], "Course Mono": [400] };
const PATIENCE_MS = 1500;  // after that it is drawn with what the machine has, and Bokeh paints it anew when they come

export function fontsOf(picture) {
  const families = Object.keys(FACES).filter(family => picture.includes(family));
  const faces = families.flatMap(family => FACES[family].map(weight => document.fonts.load(`${weight} 13px "${family}"`)));
  return Promise.race([Promise.allSettled(faces), new Promise(resolve => setTimeout(resolve, PATIENCE_MS))]);
}
