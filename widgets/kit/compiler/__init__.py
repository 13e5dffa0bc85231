"""From Python to JavaScript: numpy computations, plain loops and whole modules, for a page without a server.

GRAMMAR.md says which code is accepted, what it means to the last bit, and what is refused. There are two
halves: this package writes the code, and the scripts beside it hold the functions that the code calls:
``numbers.js`` for expressions and programs, those in ``modules`` for modules.

===============  ==========================================================================================
expressions      run once on symbols, which keep a graph: symbols, texts, graph; it is written by writer
                 (steps: each operation; fusion: which share a loop; tables: what is executed beforehand)
programs         an ``engine.base.program``, statement by statement: programs (kinds: what each expression is;
                 assigned: that each name has a value); an ``engine.base.sweep``: sweeps
modules          whole modules of plain Python: modules (translate: one; bundle: several, with what they need)
tables           operations: every operation there is; grammar: writes them into GRAMMAR.md
refusal          how anything else stops, with file and line
===============  ==========================================================================================

The package does not depend on the course. It needs numpy, the protocols of ``engine.base.program`` and
``engine.base.sweep`` (``__run_program__``, ``__run_sweep__``, ``__pick__``), and the formatter of
``engine.base.units``, though only through numbers.js, which reads its tables.
"""
