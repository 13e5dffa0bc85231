"""What an argument of a formula may be, read off its name: a unit at its end says so, and what has none
counts things.

So a new formula is driven over its domain without a line here. DOMAIN of a test's module has the arguments
that are something else (a model, a word of a list), or whose numbers have limits of their own.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

# how a name ends -> what it may be; the first that fits
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
    """What the function returns; where it fails, with the line that may be missing."""
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
