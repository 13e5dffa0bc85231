"""Runs what a reader has written for a puzzle, and says what came of it: plain Python without a library, so
that a page (in Brython) and the command line (in CPython) judge by the same lines.

A puzzle's module has ``run(function)`` and ``check(function)``. Each gives words and what its figure is to show,
or raises ``Slip`` with the same two.
"""

FILE = "<string>"  # as Python calls a text that it executes
MOST_LINES, MOST_CHARACTERS = 200, 8000  # that a reader's code may print
ENDS_NOT = "A function calls itself without end"
LONGEST = 160  # characters of a value that is quoted


class Slip(Exception):
    """What is wrong with what the reader's function gave, in words that help; ``drawn`` is what the figure is
    to show of it."""

    def __init__(self, words, drawn=None):
        super().__init__(words)
        self.words, self.drawn = words, drawn


class Printed(Exception):
    """The reader's code prints without end."""


def tried(code, name, task):
    """Run the reader's code and hand its function to ``task``. Gives ``right``, ``words``, the ``line`` that
    they are about (0 where none is), what was ``printed``, and what is ``drawn``."""
    printed, drawn, line, right = [], None, 0, False
    names = {"__name__": "yours", "print": printer(printed)}
    try:
        exec(code, names)
        if not callable(names.get(name)):
            raise Slip(f"There is no function {name} any more. Keep its first line as it was.")
        words, drawn = task(names[name])
        right = True
    except Slip as slip:
        words, drawn = slip.words, slip.drawn
    except Printed:
        words = f"Stopped: your code printed more than {MOST_LINES} lines. Print less."
    except SyntaxError as error:
        words, line = f"Python cannot read this line: {error.msg}.", error.lineno or 0
    except BaseException as error:  # SystemExit too: the reader's code says nothing about this process
        words, line = said(error), line_of(error, ENDS_NOT in said(error))
    return {"right": right, "words": words, "line": line, "printed": printed, "drawn": drawn}


def printer(printed):
    """A print that keeps what it is given, up to a limit."""
    size = [0]

    def print_here(*values, sep=" ", end="\n", file=None, flush=False):
        """Like ``print``, into the list."""
        text = (" " if sep is None else sep).join([str(value) for value in values])
        size[0] += len(text) + 1
        if len(printed) >= MOST_LINES or size[0] > MOST_CHARACTERS:
            raise Printed()
        printed.append(text)

    return print_here


def said(error):
    """An error of the reader's code in one line: as Python says it, or in words where only the page's Python,
    which is JavaScript underneath, would say it so."""
    kind, words = type(error).__name__, " ".join(str(error).split())
    if kind in ("ImportError", "ModuleNotFoundError") or "XMLHttpRequest" in words:
        return "A puzzle needs no libraries; there is math to import, and nothing else."
    if kind == "OverflowError":
        return "OverflowError: a number became too large, as exp of anything above 709 is."
    if isinstance(error, RecursionError) or "call stack" in words or "too much recursion" in words:
        return f"{ENDS_NOT}, or this nests too deeply."
    if isinstance(error, MemoryError) or (
        kind == "JavascriptError" and ("length" in words or "alloc" in words)
    ):
        return "This asks for more memory than there is."
    return f"{kind}: {short(words)}" if words else kind


def line_of(error, too_deep=False):
    """The line of the reader's code in which an error arose, 0 where it is not known. What is ``too_deep`` may have
    ended on the way into the last call, so that the one before it says where it calls."""
    lines, step = [0], error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == FILE:
            lines.append(step.tb_lineno)
        step = step.tb_next
    return lines[-2] if too_deep and len(lines) > 2 else lines[-1]


def short(value):
    """A text that is short enough to be read."""
    return value if len(value) <= LONGEST else value[: LONGEST - 2] + " …"


def shown(value):
    """A value as Python writes it, cut where it is long."""
    return short(repr(value[:40] if isinstance(value, (list, tuple, str)) else value))


def whole(value):
    """Whether this is a whole number; True and 2.0 are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def number(value):
    """Whether this is a finite number."""
    return (isinstance(value, (int, float)) and not isinstance(value, bool)) and abs(value) < 1e300


def something(value, call):
    """What a call gave; a Slip where that is nothing."""
    if value is None:
        raise Slip(f"{call} gave None. Does it end with a return?")
    return value


def rows(value, call, wanted, most):
    """The list that a call gave, if it is one and not too long; a Slip otherwise."""
    something(value, call)
    if not isinstance(value, (list, tuple)):
        raise Slip(f"{call} must give {wanted}, and gave {shown(value)}.")
    if len(value) > most:
        raise Slip(f"{call} gave a list of {len(value)} entries; {most} would be the most that it can need.")
    return list(value)


def one_for_each(value, call, wanted, count, whose):
    """The list that a call gave, if it has ``count`` entries, whose they are in words; a Slip otherwise."""
    given = rows(value, call, wanted, 1000)
    if len(given) != count:
        raise Slip(f"{call} gave {len(given)} entries for {count} {whose}.")
    return given


# -- pictures ------------------------------------------------------------------------------------------------
LOOKS = ("compute", "deep", "hbm", "link", "network", "plain", "idle", "wrong")  # as the page's CSS has them


def box(start, end, text: "str | int" = "", look="plain"):
    """A box of a picture, from a place to another, with a text in it if there is room."""
    return [round(start, 4), round(end, 4), str(text), look]


def picture(lines, key, says, unit=""):
    """What a puzzle without a figure of its own shows of an answer: lines of (name, boxes) on one axis, words for the
    looks that need them, and a sentence for those who do not see it."""
    return {"picture": {"lines": [list(line) for line in lines], "key": key, "says": says, "unit": unit}}


# -- what a page reads ---------------------------------------------------------------------------------------
def as_json(value):
    """Lists, dicts, texts, numbers and truths as JSON in ASCII; the page's Python has no module for it."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return '"' + "".join([in_json(character) for character in value]) + '"'
    if isinstance(value, dict):
        return "{" + ",".join([as_json(str(key)) + ":" + as_json(value[key]) for key in value]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([as_json(each) for each in value]) + "]"
    return repr(value)


def in_json(character):
    """A character as it may be written in a JSON text."""
    code = ord(character)
    if 32 <= code < 127 and character not in '"\\':
        return character
    if code < 65536:
        return "\\u" + ("000" + hex(code)[2:])[-4:]
    high, low = divmod(code - 65536, 1024)
    return in_json(chr(55296 + high)) + in_json(chr(56320 + low))
