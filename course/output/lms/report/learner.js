// Several learners may use one browser, as in a computer room. What the pages keep there is one learner's: whoever comes next
// begins with nothing.
const OWNER = "course-lms.learner", PREFIX = "course.";

export function keepApart(learner, store = localStorage) {
  document.documentElement.dataset.toldTo = "your learning system";   // the line at the lesson's end must not promise otherwise
  if (store.getItem(OWNER) === learner) return;
  for (const key of Object.keys(store)) if (key.startsWith(PREFIX)) store.removeItem(key);
  store.setItem(OWNER, learner);
}
