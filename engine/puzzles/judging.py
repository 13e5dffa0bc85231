"""Runs a reader's solution of a puzzle and judges it. This is plain Python without a library, so that a page
(in Brython) and the command line (in CPython) run the same lines.

A puzzle's module has ``run(function)`` and ``check(function)``. Each gives words and what its figure is to show,
or raises ``Slip`` with the same two.
"""

FILE = "<string>"  # the file name that Python gives to a text it executes
MOST_LINES, MOST_CHARACTERS = 200, 8000  # the most that a reader's code may print
ENDS_NOT = "A function calls itself without end"
LONGEST = 160  # characters of a value that is quoted


class Slip(Exception):
    """Raised for a wrong answer of the reader's function. ``words`` say what is wrong with it and help to
    find the mistake; ``drawn`` is the state in which the figure shows it; ``line`` is the line of the reader's
    code that it is about. A slip that is ``here`` is about the line that was running."""

    here = False

    def __init__(self, words, drawn=None, line=0):
        super().__init__(words)
        self.words, self.drawn, self.line = words, drawn, line


class EndlessOutput(Exception):
    """The reader's code prints without end."""


def tried(code, name, task, known=None):
    """Run the reader's code and pass its function to ``task``. Returns a dictionary: ``right`` is whether the
    answer is right, ``words`` the verdict, ``line`` the line that it is about (0 if none), ``printed`` the
    lines that the code printed, and ``drawn`` the state of the figure. ``known`` are names that the code may
    use; the lines that would import them are passed over."""
    printed, drawn, line, right = [], None, 0, False
    names = {"__name__": "yours", "print": printer(printed), **(known or {})}
    try:
        exec(with_lines(code) if known else code, names)
        if not callable(names.get(name)):
            raise Slip(f"There is no function {name} any more. Keep its first line as it was.")
        words, drawn = task(names[name])
        right = True
    except Slip as slip:
        words, drawn = slip.words, slip.drawn
        line = slip.line or (line_of(slip) if slip.here else 0)
    except EndlessOutput:
        words = f"Stopped: your code printed more than {MOST_LINES} lines. Print less."
    except SyntaxError as error:
        words, line = f"Python cannot read this line: {error.msg}.", error.lineno or 0
    except BaseException as error:  # SystemExit as well: the reader's code must not end this process
        words, line = said(error), line_of(error, ENDS_NOT in said(error))
    return {"right": right, "words": words, "line": line, "printed": printed, "drawn": drawn}


IMPORTS = ("import triton", "import triton.language as tl")  # the page has both


def with_lines(code):
    """The code with empty lines in place of the imports of Triton, and with its loads and stores told in which
    line they stand: the page's Python cannot ask for it while code runs."""
    lines = ["" if line.rstrip() in IMPORTS else line for line in code.split("\n")]
    for at in range(len(lines)):
        for call in ("tl.load(", "tl.store("):
            lines[at] = lines[at].replace(call, f"tl.on({at + 1}).{call[3:]}")
    return "\n".join(lines)


def printer(printed):
    """A replacement for ``print`` that appends its text to the list ``printed``, up to a limit."""
    size = [0]

    def print_here(*values, sep=" ", end="\n", file=None, flush=False):
        """Like ``print``, but append the text to the list."""
        text = (" " if sep is None else sep).join([str(value) for value in values])
        size[0] += len(text) + 1
        if len(printed) >= MOST_LINES or size[0] > MOST_CHARACTERS:
            raise EndlessOutput()
        printed.append(text)

    return print_here


def said(error):
    """An error of the reader's code in one line: Python's own message, or one of ours where the page's
    Python, which is JavaScript underneath, has a message of its own."""
    kind, words = type(error).__name__, " ".join(str(error).split())
    if kind in ("ImportError", "ModuleNotFoundError") or "XMLHttpRequest" in words:
        return "A puzzle needs no libraries; there is math to import, and nothing else."
    of_javascript = kind == "JavascriptError" and ("length" in words or "alloc" in words)
    if isinstance(error, MemoryError) or "index-sized" in words or of_javascript:
        return "This asks for more memory than there is."
    if kind == "OverflowError":
        return "OverflowError: a number became too large, as exp of anything above 709 is."
    if kind == "TypeError" and "real number" in words and "NumberBlock" in words:
        return "Python's math takes single numbers, and this is a block: use tl.exp, tl.sqrt, tl.log."
    if kind == "ZeroDivisionError":  # Pythons say this in different words
        return "ZeroDivisionError: division by zero"
    if isinstance(error, RecursionError) or "call stack" in words or "too much recursion" in words:
        return f"{ENDS_NOT}, or this nests too deeply."
    return f"{kind}: {short(words)}" if words else kind


def line_of(error, too_deep=False):
    """The line of the reader's code in which an error arose, or 0 if it is not known. A recursion that went
    ``too_deep`` may have ended while entering the last call, so the line is then that of the call before
    it."""
    lines, step = [0], error.__traceback__
    while step is not None:
        if step.tb_frame.f_code.co_filename == FILE:
            lines.append(step.tb_lineno)
        step = step.tb_next
    return lines[-2] if too_deep and len(lines) > 2 else lines[-1]


def short(value):
    """The text, cut if it is too long to be read."""
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
    """The value that a call returned; a Slip if it is None."""
    if value is None:
        raise Slip(f"{call} gave None. Does it end with a return?")
    return value


def rows(value, call, wanted, most):
    """The list that a call returned; a Slip if it is not a list or too long. ``wanted`` says in words what to
    return."""
    something(value, call)
    if not isinstance(value, (list, tuple)):
        raise Slip(f"{call} must give {wanted}, and gave {shown(value)}.")
    if len(value) > most:
        raise Slip(f"{call} gave a list of {len(value)} entries; {most} would be the most that it can need.")
    return list(value)


def one_for_each(value, call, wanted, count, whose):
    """The list that a call returned; a Slip unless it has ``count`` entries. ``whose`` says in words what has
    one entry each."""
    given = rows(value, call, wanted, 1000)
    if len(given) != count:
        raise Slip(f"{call} gave {len(given)} entries for {count} {whose}.")
    return given


# -- pictures ------------------------------------------------------------------------------------------------
LOOKS = ("compute", "deep", "hbm", "link", "network", "plain", "idle", "wrong")  # classes in the page's CSS


def box(start, end, text: "str | int" = "", look="plain"):
    """A box of a picture from one position to another, with a text in it if there is room."""
    return [round(start, 4), round(end, 4), str(text), look]


def picture(lines, key, says, unit=""):
    """The picture of an answer, for a puzzle without a figure: lines of (name, boxes) on one axis, a key that
    explains the looks, and a sentence for readers who cannot see the picture."""
    return {"picture": {"lines": [list(line) for line in lines], "key": key, "says": says, "unit": unit}}


# -- what a page reads ---------------------------------------------------------------------------------------
def as_json(value):
    """A value of lists, dicts, strings, numbers and booleans as JSON in ASCII; the page's Python has no json
    module."""
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
    """A character, escaped for a JSON string."""
    code = ord(character)
    if 32 <= code < 127 and character not in '"\\':
        return character
    if code < 65536:
        return "\\u" + ("000" + hex(code)[2:])[-4:]
    high, low = divmod(code - 65536, 1024)
    return in_json(chr(55296 + high)) + in_json(chr(56320 + low))
