"""A deck of slides for each lesson, /04-data-parallel/slides/, made of the page that mkdocs has built.

No slide has a text of its own: its words are the first sentences of the lesson's case, rules, captions and
questions, and what follows these goes into the speaker's notes. A prediction becomes a poll, and the figure
that it is about comes after it, live, in the state that shows the answer. The page's script is
site/theme/assets/js/slides.js.
"""
