"""The types that annotations use for the numbers of a formula.

``Real`` is a number, an array of numbers that broadcasts against the others, or a symbol that represents
either while the widgets' compiler traces a formula; a formula returns whichever of the three it was given.
``Truth`` is the same for a comparison: a bool, an array of them, or a symbol.
``Sized`` is a ``catalog.models.Model`` or its ``mechanism.shape.Shape``, which has the same numbers as
floats; a formula reads either.

To a type checker all three are ``Any``, as the result of a numpy function is. A union would be narrower but
no more useful: every place that formats one number or loops that many times would have to narrow it again. So
the checker ignores arithmetic and watches everything else: what is a model and what a GPU, what may be None,
and which number is a ``float`` or an ``int`` because it is used as a single one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

Real: TypeAlias = Any
Truth: TypeAlias = Any
Sized: TypeAlias = Any
