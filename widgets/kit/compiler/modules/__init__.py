"""Whole modules of plain Python as a page runs them: texts, dictionaries, classes.

``translate`` turns one module's syntax tree into JavaScript, ``bundle`` puts several together, each after
what it imports. ``python.js`` has Python's own types and functions, ``library.js`` and ``numpy.js`` what
modules import.
"""
