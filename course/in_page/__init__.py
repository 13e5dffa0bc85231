"""Plain Python of the engine as a page runs it: translated to JavaScript when the site is built.

The widgets' compiler (``widgets/kit/compiler``) handles formulas and loops over numbers. This package handles
the part of the engine that works on texts, dictionaries and classes: the reader of launch files and all that
it calls. ``translate`` turns a module's tree into JavaScript and refuses what it cannot translate exactly,
``bundle`` collects modules and data, and ``site/theme/assets/fit/python.js`` implements Python's own types
and functions. ``tests/course/test_in_page.py`` compares Python and JavaScript on all published launch files.
"""
