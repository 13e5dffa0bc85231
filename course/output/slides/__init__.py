"""A deck of slides for each lesson, /04-data-parallel/slides/, made from the page that mkdocs has built.

The words on the slides are the first sentences of the lesson's case, rules, captions and questions; the
sentences after them go into the speaker's notes. A prediction becomes a poll, and the figure that it is about
comes after it, live, in the state that shows the answer. The page's script is site/theme/assets/js/slides.js.
"""
