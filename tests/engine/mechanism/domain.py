"""Finds the allowed values of a formula's argument by the argument's name: a name that ends in a unit is a
quantity in this unit, any other name counts things.

So a new formula is tested over its domain without an entry here. DOMAIN in a test's module lists the
arguments of other kinds (a model, a word of a list), and those with special limits.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

# the end of a name -> its allowed values; the first match counts
UNITS = {
    r"(^|_)flops_per_s": st.floats(1e12, 1e17),
    r"(^|_)per_s": st.floats(1e6, 1e13),
    r"(^|_)flops_per_byte(_sent)?": st.floats(1e-3, 1e12),
    r"^bytes_per_\w+": st.floats(0.5, 4),
    r"(^|_)bytes": st.floats(1, 1e15),
    r"(^|_)flops": st.floats(1e9, 1e27),
    r"_s": st.floats(1e-9, 1e6),
    r"(^|_)(hours|dollars)": st.floats(1e-3, 1e9),
    r"(^|_)share": st.floats(0.01, 0.99),
}
COUNT = st.integers(1, 128)

Strategies = Mapping[str, st.SearchStrategy]


def of(name: str, known: Strategies) -> st.SearchStrategy:
    """The values of the argument of this name."""
    fitting = (values for end, values in UNITS.items() if re.search(rf"{end}$", name))
    return known[name] if name in known else next(fitting, COUNT)


def called(function: Callable, values: dict[str, Any], known: Strategies, module: str) -> Any:
    """The result of the function; if it fails, the error names the entry that DOMAIN may lack."""
    try:
        return function(**values)
    except Exception as error:
        guessed = [name for name in inspect.signature(function).parameters if name not in known]
        if not guessed:
            raise
        lines = "\n".join(
            f"    {name}=st.sampled_from([...]),  # or st.floats(least, most)" for name in guessed
        )
        raise AssertionError(
            f"{function.__name__} fails for {values}. If one of these is no such thing, say what it is "
            f"in DOMAIN of {module}:\n{lines}"
        ) from error
