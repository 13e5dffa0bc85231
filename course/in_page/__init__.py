"""Plain Python of the engine as a page runs it: translated to JavaScript when the site is built.

The widgets' compiler (``widgets/kit/compiler``) traces formulas and takes loops over numbers; this is for the
part of the engine that works on texts, dictionaries and classes: the reader of launch files and all that it
calls. ``translate`` turns a module's tree into JavaScript and refuses what it cannot keep to the letter,
``bundle`` collects modules and data, and ``site/theme/assets/fit/python.js`` is what Python's own types and
functions do. ``tests/course/test_in_page.py`` holds both against each other on all published launch files.
"""
