"""Small functions in a real Dynamo: which line ended up in which graph, why graphs end, and what makes a call
recompile."""

import numpy as np
from bokeh.core.properties import value

from engine.one_gpu import compilation, graph_trace
from engine.one_gpu.graph_trace import CALLS, EXAMPLES, GUARDS, NOTES, ROWS, TEXTS, WITHOUT
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import listing
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, executed, hint, part, readout, regime

ALL = ("example", "dynamic", "call")
NARROW, SHORT = [graph_trace.narrow(text) for text in TEXTS], [graph_trace.short(text) for text in TEXTS]
GUTTER, GUTTER_NARROW = ["eager", "", "1", "2", "3", "4"], ["e", "", "1", "2", "3", "4"]
WHERE = [
    "Runs eagerly, one operation after the other",
    "Plain Python, no operation",
    *(f"Graph {n}: " for n in "1234"),
]
DOES = ["reuses its graphs", "compiles", "runs eagerly"]
LETTERS = ["r", "C", "e"]
TOLD = (  # what a call does, its letter, and how one and several of them are said to do it
    (graph_trace.COMPILES, "C", "compiles", "compile"),
    (graph_trace.REUSES, "r", "reuses", "reuse"),
    (WITHOUT, "e", "runs eagerly", "run eagerly"),
)
COUNT = fig.BOLD | {"text_font_size": "19px"}
CODE = fig.TEXT | {"text_font": value(fig.CODE_FONT)}
NUMBER_OF = {each["key"]: number for number, each in enumerate(EXAMPLES)}


class GraphBreaks(Widget):
    question = "What does torch.compile make of a function, and of the next call?"
    example = Choice(
        "Function", {each["key"]: (each["name"], NUMBER_OF[each["key"]]) for each in EXAMPLES}, "helper"
    )
    dynamic = Choice(
        "Dynamic shapes",
        {"automatic": ("automatic (default)", 0), "off": ("off", 1), "on": ("on", 2)},
        "automatic",
    )
    call = Number(
        "Call",
        1,
        1,
        CALLS,
        stops=range(1, CALLS + 1),
        log=False,
        whole=True,
        help="The same function again; some get another length or number each time",
    )

    presets = {
        "An if in a helper": {"example": "helper"},
        "A value read: .item()": {"example": "reads_value"},
        "A C extension": {"example": "extension"},
        "An if in a loop": {"example": "loops"},
        "A length that changes": {"example": "lengths", "call": 2},
    }
    break_it = "Find a function that has no graph break at all and still ends up eager."
    assumptions = (
        f"Recorded with {compilation.recorded_on()} on the CPU by a script of this course: a backend writes "
        "down each graph that Dynamo hands over, and runs it as it is. Operations are counted as calls of "
        "torch functions. The guards shown are those on the function's own values; most of what is checked "
        "concerns PyTorch's state, modules and globals. Reasons are Dynamo's own words. Another release may "
        "break elsewhere."
    )
    formula = (
        "$$\\text{in graphs} = \\frac{\\text{operations in a graph}}{\\text{all operations}}$$\n\n$$"
        "\\text{graphs of one call} \\approx 1 + \\text{breaks that it meets}$$\n\nA break in a helper "
        "counts several times: the caller's graph ends before the call, the helper has its own graphs, and "
        "the caller goes on in another. A break inside a for loop leaves no graph of the function that holds "
        "the loop; what it calls is captured by itself. A call compiles when no cached graph's guards hold, "
        "until the limit of 8 graphs for a function."
    )

    # -- the recording ---------------------------------------------------------------------------------------
    @executed(*ALL)
    def view(self):
        return graph_trace.view(self.example, self.dynamic, self.call)

    def of(self, name, version="written"):
        """A single number of one version."""
        return self.view()[f"{version}_{name}"][0]

    def both(self, name):
        view = self.view()
        return np.concatenate([view[f"written_{name}"], view[f"mended_{name}"]])

    def longer(self):
        return np.maximum(self.of("length"), self.of("length", "mended"))

    def has_mend(self):
        return self.of("length", "mended") > 0

    # -- the picture -----------------------------------------------------------------------------------------
    def lines(self, places, texts, gutter):
        state = self.both("state")
        return {
            **places,
            "text": select(self.both("line"), texts),
            "gutter": select(state + 1, gutter),
            "graph": listing.shade(state),
            "eager": np.where(state < 0, 0.28, 0.0),
        }

    @part(*ALL)
    def code(self):
        return {
            **self.lines(listing.beside(ROWS, listing.FIRST_LINE), TEXTS, GUTTER),
            "state": listing.or_none(self.both("state")),
        }

    @part(*ALL, shown=False)
    def code_narrow(self):
        return self.lines(listing.below(ROWS, self.of("length"), NOTES), NARROW, GUTTER_NARROW)

    def about_lines(self):
        return phrase(
            "{where}{ops}", where=select(self.both("state") + 1, WHERE), ops=select(self.both("ops"), TEXTS)
        )

    @hint("code")
    def about_code(self):
        return self.about_lines()

    @hint("code_narrow")
    def about_code_narrow(self):
        return self.about_lines()

    @part(*ALL, shown=False)
    def breaks(self):
        """The line under the last row of a graph."""
        row = self.view()["written_break_row"]
        return {
            "at": listing.heights(listing.FIRST_LINE + listing.or_none(row))["bottom"],
            "seen": np.where(row >= 0, 1.0, 0.0),
        }

    @part(*ALL)
    def notes(self):
        """Under the code: why a graph ends, which guard failed."""
        number, note = self.view()["written_notes"], np.arange(float(NOTES))
        return {
            "y": listing.heights(listing.under(self.longer(), note))["y"],
            "narrow_y": listing.heights(listing.under(self.of("length"), note))["y"],
            "text": select(number, TEXTS),
            "narrow": select(number, SHORT),
        }

    @part(*ALL)
    def guards(self):
        """The guards on the function's own values, listed under the notes."""
        places = listing.beside(GUARDS, listing.under(self.longer(), NOTES + 1))
        return {**places, "text": select(self.both("guards"), TEXTS)}

    @part(*ALL, shown=False)
    def headings(self):
        row = listing.under(self.longer(), NOTES)
        return {
            "x": [half[0] for half in listing.HALVES],
            "top": listing.heights(np.zeros(2))["y"],
            "text": [self.runs("as written"), self.mended_runs()],
            "told_at": listing.heights(np.full(2, listing.TOLD))["y"],
            "told": [f"{CALLS} calls: {self.told()}", self.told_of_mended()],
            "told_short": [self.told(), ""],
            "y": listing.heights(np.stack([row, row]))["y"],
            "guards": [self.checked("written"), self.checked("mended")],
        }

    def runs(self, name, version="written"):
        """How many graphs this call runs, as the heading of a listing says it."""
        ran = self.of("ran", version)
        graphs = choose(ran > 0, counted(ran, "graph", "graphs"), "no graph: eager")
        return f"{name}: {graphs}"

    def mended_runs(self):
        return choose(self.has_mend(), self.runs("mended", "mended"), "nothing to mend")

    def told(self, version="written"):
        """What becomes of the calls, under their boxes: only what is among them."""
        strip, before, said = self.view()[f"{version}_strip"], 0, ""
        for code, letter, one, many in TOLD:
            count = np.sum(np.where(strip == code, 1.0, 0.0))
            comma = choose(before > 0, ", ", "")
            said = f"{said}{choose(count > 0, f'{comma}{counted(count, one, many)} ({letter})', '')}"
            before = before + count
        return said

    def told_of_mended(self):
        return choose(self.has_mend(), f"{CALLS} calls: {self.told('mended')}", "")

    def checked(self, version):
        count = self.of("checks", version)
        return choose(count > 0, f"{show(count, 'count')} guards at each call, among them", "")

    @part(*ALL, shown=False)
    def second(self):
        """On a phone, the mended version's heading."""
        return {
            "y": listing.heights(listing.second_heading(self.of("length"), NOTES))["y"],
            "text": self.mended_runs(),
        }

    def boxes(self, strip, places):
        return {
            **places,
            "compiles": np.where(strip == 1, 0.45, 0.0),
            "graph": np.where(strip < WITHOUT, 1.0, 0.0),
            "bordered": np.where(strip == WITHOUT, 1.0, 0.0),
            "eager": fig.right_if(strip == WITHOUT, places["left"], places["right"]),
            "text": select(strip, LETTERS),
            "does": select(strip, DOES),
        }

    @part("example", "dynamic", "call")
    def calls(self):
        return self.boxes(self.both("strip"), listing.strip(CALLS))

    @hint("calls")
    def about_calls(self):
        number = np.tile(np.arange(1.0, CALLS + 1), 2)
        return phrase(
            "Call {number} {does}", number=show(number, "count"), does=select(self.both("strip"), DOES)
        )

    @part("example", "dynamic", "call", shown=False)
    def calls_narrow(self):
        return self.boxes(self.view()["written_strip"], listing.strip(CALLS, [(0.0, 100.0)]))

    @part("call", shown=False)
    def now(self):
        """The present call's box."""
        return listing.at_call(self.call, CALLS)

    @part("call", shown=False)
    def now_narrow(self):
        return listing.at_call(self.call, CALLS, [(0.0, 100.0)])

    def ranges(self):
        return {"y": [-listing.height(self.of("length"), self.of("length", "mended"), NOTES), 0.2]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((-0.5, 100.5), (-listing.LEAST, 0.2), height=580)
        fig.bare(p)
        for width, code, calls, indent in (
            ("wide", "code", "calls", 26),
            ("narrow", "code_narrow", "calls_narrow", 15),
        ):
            lines, strip = sources[code], sources[calls]
            fig.only(
                width,
                p.quad(
                    **fig.BOX, source=lines, fill_color=color["compute"], fill_alpha="graph", line_color=None
                ),
                p.quad(
                    **fig.BOX, source=lines, fill_color=color["idle"], fill_alpha="eager", line_color=None
                ),
                p.text("left", "y", text="gutter", source=lines, x_offset=4, **fig.LABEL),
                p.text("left", "y", text="text", source=lines, x_offset=indent, **CODE),
                p.quad(
                    **fig.BOX,
                    source=strip,
                    fill_color=color["compute"],
                    fill_alpha="compiles",
                    line_color=color["compute"],
                    line_alpha="graph",
                ),
                p.quad(**fig.BOX | {"right": "eager"}, source=strip, **fig.IDLE | {"line_alpha": "bordered"}),
                p.text("x", "y", text="text", source=strip, text_align="center", **fig.TEXT),
            )
        notes, headings = sources["notes"], sources["headings"]
        for width, right in (("wide", listing.HALVES[0][1]), ("narrow", 100)):
            fig.only(
                width,
                p.segment(
                    0,
                    "at",
                    right,
                    "at",
                    source=sources["breaks"],
                    line_color=color["ink"],
                    line_alpha="seen",
                    line_width=2.5,
                    line_dash=[7, 4],
                ),
            )
        for width, now in (("wide", "now"), ("narrow", "now_narrow")):
            fig.only(
                width,
                p.quad(
                    **fig.BOX, source=sources[now], fill_color=None, line_color=color["ink"], line_width=2
                ),
            )
        for width, told in (("wide", "told"), ("narrow", "told_short")):
            fig.only(width, p.text("x", "told_at", text=told, source=headings, **fig.LABEL))
        fig.only(
            "wide",
            p.text(0, "y", text="text", source=notes, **fig.TEXT),
            p.text("x", "top", text="text", source=headings, **COUNT),
            p.text("x", "y", text="guards", source=headings, **fig.LABEL),
            p.text("left", "y", text="text", source=sources["guards"], x_offset=12, **CODE),
        )
        fig.only(
            "narrow",
            p.text(0, "narrow_y", text="narrow", source=notes, **fig.TEXT),
            p.text("x", "top", text="text", source=headings, view=fig.of_rows([0]), **COUNT),
            p.text(0, "y", text="text", source=sources["second"], **COUNT),
        )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    def share(self):
        return self.of("in_graphs") / self.of("ops_all")

    def called(self):
        return select(self.example, graph_trace.NAMES)

    def gave_up(self):
        """Eager because of the limit, not because of a break."""
        return (self.of("ran") < 1) & (self.of("compiled") > 0)

    @readout("This call")
    def this(self):
        counted_from_one = np.concatenate([np.zeros(1), self.view()["written_strip"]])
        return select(lookup(counted_from_one, self.call), DOES), self.gave_up()

    @readout("Graphs in this call")
    def ran(self):
        return show(self.of("ran"), "count"), ~(self.of("ran") == 1)

    @readout("Operations in graphs", rest=True)
    def captured(self):
        return show(self.share(), "percent"), self.share() < 1

    @readout("Graphs compiled so far")
    def compiled(self):
        return show(self.of("compiled"), "count"), self.of("compiled") > 4

    @readout("Guards that held", rest=True)
    def checks(self):
        return show(self.of("checks"), "count")

    @regime(target=True)
    def limit_hit(self):
        return self.gave_up(), (
            f"You found a function that compiled itself to death: {show(self.of('compiled'), 'count')} "
            "graphs for one function, each good for one value, and since then it runs eagerly, with no "
            "error. First response: TORCH_LOGS=recompiles names the guard; make the value a tensor, or let "
            "the size be dynamic."
        )

    @regime()
    def skipped(self):
        return (self.of("ran") < 1) & (self.of("compiled") < 1), (
            "No graph at all: the break lies inside a loop, and Dynamo cannot go on from there, so it leaves "
            "the function that holds the loop to Python. What that function calls is still compiled, if it "
            "is Python, too: see “A loop over layers”. First response: take the loop or the branch out, as "
            "on the right."
        )

    @regime()
    def in_pieces(self):
        return self.of("ran") > 1, (
            f"In pieces: {show(self.of('ran'), 'count')} graphs run where one would do. Nothing is fused "
            "across a border, and Python runs between them. First response: fullgraph=True turns each break "
            "into an error with its line."
        )

    @regime()
    def again(self):
        return (self.of("anew") > 0) & (self.of("ran") > 0), (
            f"Compiled anew in call {show(self.call, 'count')}, because a guard failed. Once is the price of "
            "learning that a value changes; every time is a storm."
        )

    def summary(self):
        ran = self.of("ran")
        mended = f"; mended, it runs {show(self.of('ran', 'mended'), 'count')}"
        return (
            f"Call {show(self.call, 'count')} of “{self.called()}” runs {counted(ran, 'graph', 'graphs')} "
            f"with {show(self.share(), 'percent')} of its operations{choose(self.has_mend(), mended, '')}."
        )


GraphBreaks.serve_as(__name__)
