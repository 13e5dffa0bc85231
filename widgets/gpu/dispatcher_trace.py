"""A call on its way through PyTorch's dispatcher, as recorded: the kernels it runs, the graph that grows, and
the saved tensors."""

import numpy as np
from bokeh.core.properties import value

from engine import catalog
from engine.mechanism import memory
from engine.one_gpu import recordings, traces
from widgets.kit.compiler.symbols import lookup
from widgets.kit.controls import Choice, Number, Player, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes
from widgets.kit.text import adding_up, counted, phrase, select, show
from widgets.kit.widget import Widget, executed, hint, once, part, readout, regime

TABLES = traces.tables()
CASES = {
    "matmul": "torch.matmul",
    "linear_gelu": "linear, then GELU",
    "layer_norm": "layer norm",
    "attention": "attention, written out",
    "sdpa": "attention, fused",
}
MODES = {"grad": "training", "no_grad": "torch.no_grad", "inference": "inference_mode"}
MODELS = [catalog.model(key) for key in ("llama3-8b", "llama3-70b", "llama3.1-405b")]
EVENTS = int(TABLES.events.max())
CALLS = np.arange(float(TABLES.calls["op"].shape[1]))
LEAST = 10  # rows: a short trace is not blown up beyond that
TOP, HEAD_AT, TITLE_AT, NOTE_AT = 0.895, 0.925, 0.975, -0.03
INDENT = 0.018
WIDE = {"keys": np.array([0.215, 0.295, 0.375, 0.455]), "graph": 0.56, "kept": 0.995}
NARROW = {"keys": np.array([0.42, 0.52, 0.62, 0.72]), "graph": 0.795, "kept": 0.995}
KEPT = (0.735, 0.905)  # the bars of what is kept
HALF = 0.0105  # of such a bar's height
RIGHT = -np.pi / 2  # turned by so much, a triangle points right
TITLES = {
    "wide": [(0.0, "operators called", "left"), (0.335, "kernels that each visits, left to right", "center")],
    "narrow": [(0.0, "operators", "left"), (0.57, "kernels visited", "center")],
}
NOTE = {
    "wide": "A dot is a kernel that works, a ring one that only calls other operators.",
    "narrow": "dot: works; ring: only calls; square: a node",
}
ABBREVIATED = {"wide": ["autocast", "autograd", "views", "CPU"], "narrow": ["cast", "grad", "view", "CPU"]}
FUSED = list(CASES).index("sdpa")
CARD = catalog.gpu("h100-sxm")
CARD_BYTES = float(memory.capacity_bytes(CARD))


def brief(word: str) -> str:
    """An operator's or node's name as it fits into the picture; the whole one is under the pointer."""
    for long, short in (
        ("aten::", ""),
        ("scaled_dot_product", "sdpa"),
        ("_flash_attention_for_cpu", "_flash_cpu"),
        ("Backward0", "′"),
        ("ScaledDotProductFlashAttentionForCpu", "SdpaFlashCpu"),
    ):
        word = word.replace(long, short)
    return word


BRIEF = [brief(word) for word in TABLES.words]


def key_at(places, key):
    """Where the column of a dispatch key stands."""
    return fig.between(places["keys"][0], places["keys"][-1], key / (len(traces.KEYS) - 1.0))


def draw_graph(p, sources, graph, x):
    """The nodes of the backward graph as squares, and arrows to the nodes that come after them."""
    soft = fig.COLOR["ink-soft"]
    edges = {"source": sources["edges"], "line_alpha": "seen", "line_color": soft, "line_width": 1.5}
    arrow = {"marker": "triangle", "angle": RIGHT, "size": 7, "line_color": None, "fill_alpha": "seen"}
    node = {"marker": "square", "size": 10, "line_color": None, "fill_alpha": "seen"}
    bow = graph - 0.04
    return [
        p.scatter(graph - 0.009, "end", source=sources["edges"], fill_color=soft, **arrow),
        p.bezier(graph, "start", graph, "end", bow, "start", bow, "end", **edges),
        p.scatter(x, "y", source=sources["nodes"], fill_color=soft, **node),
    ]


class DispatcherTrace(Widget):
    question = "What happens between a line of PyTorch and the kernel that does its work?"
    call = Choice(
        "Call", {key: (words, float(i)) for i, (key, words) in enumerate(CASES.items())}, "linear_gelu"
    )
    autocast = Switch("Autocast to bf16", True)
    tokens = Number("Tokens", 8192, 128, 131072, family="tokens", stops=61, whole=True, marks=(2048, 32768))
    mode = Choice(
        "Mode", {key: (words, float(i)) for i, (key, words) in enumerate(MODES.items())}, "grad", more=True
    )
    model = Choice("Sizes of", MODELS, "llama3-8b", more=True)
    play = Player("Step through the call", frames=EVENTS, seconds_per_frame=0.6, tween=1)

    on_phone = "call"
    presets = {
        "Linear and GELU": {},
        "… in fp32": {"autocast": "off"},
        "… under no_grad": {"mode": "no_grad"},
        "… in inference_mode": {"mode": "inference"},
        "Attention, written out": {"call": "attention", "autocast": "off"},
        "Attention, fused": {"call": "sdpa", "autocast": "off"},
    }
    break_it = (
        "Make one call keep more for its backward pass than an H100 has memory. Then say which call "
        "would not."
    )
    assumptions = (
        f"Recorded with {recordings.made_with('dispatch')} on a CPU: every kernel is replaced by a function "
        "that notes the visit and calls it. So each mark was seen; keys without a kernel for that operator "
        "are passed by, which is read off the dispatcher's tables. Autocast does what it does on a GPU: "
        "softmax and layer norm in fp32, which the CPU's leaves alone. Other things differ there and are the "
        "CPU's here: the keys' names, the inner operator of fused attention, and what is called inside a "
        "backend's kernel, which is counted, not listed. Kept bytes follow from the recorded shapes; weights "
        "are left out, their cast copies are not. On a narrow screen a node's name is under its square."
    )
    formula = (
        "$$\\text{kept} = \\sum_{\\text{saved}} \\text{bytes of an item} \\times \\prod "
        "\\text{sizes}$$\n\nover the tensors that nodes keep, each stretch of memory once. The dispatcher "
        "takes the highest key that is in the tensors' key sets or switched on for the thread, and not "
        "switched off (PyTorch: c10/core/DispatchKeySet.h)."
    )

    # -- the recording, asked --------------------------------------------------------------------------------
    @once
    def row(self):
        return traces.index(self.call, np.where(self.autocast, 1.0, 0.0), self.mode)

    @executed("call", "autocast", "mode")
    def recorded(self):
        return traces.columns(self.call, self.autocast, self.mode)

    def events(self):
        return lookup(TABLES.events, self.row())

    def moment(self):
        return np.minimum(self.play, self.events())

    def happened(self, part):
        """1 for each row of a part that is there and has had its turn."""
        return np.where(self.recorded()[f"{part}.event"] < self.moment(), 1.0, 0.0)

    def rows(self):
        return np.maximum(lookup(TABLES.operators, self.row()), LEAST)

    def height(self, call):
        return fig.between(0.0, TOP, lanes.middle(call, self.rows()))

    def kept_each(self):
        kept = {name: self.recorded()[f"kept.{name}"] for name in TABLES.kept}
        return traces.tensor_bytes(
            kept, self.tokens, self.model.hidden, self.model.ffn, self.model.heads, self.model.head_dim
        )

    def kept_by(self, now):
        """Bytes that count among those kept so far, and by the end."""
        counted = self.recorded()["kept.counted"]
        return np.sum(np.where((counted > 0) & (now > 0), self.kept_each(), 0.0))

    def kept_now(self):
        return self.kept_by(self.happened("kept"))

    def kept_at_end(self):
        return self.kept_by(np.where(self.recorded()["kept.event"] >= 0, 1.0, 0.0))

    def so_far(self, part):
        return np.sum(self.happened(part))

    def composite(self):
        """Whether the kernel of each visit only calls other operators."""
        return self.recorded()["visits.kernel"] == traces.COMPOSITE

    def written_out(self):
        """What the written-out attention keeps, whatever call is shown."""
        in_bf16, in_fp32 = (
            traces.kept_bytes("attention", autocast, "grad", self.tokens, self.model)
            for autocast in (True, False)
        )
        return np.where(self.autocast, in_bf16, in_fp32)

    # -- the picture -----------------------------------------------------------------------------------------
    @part("call", "autocast", "mode", "play")
    def calls(self):
        op, depth = self.recorded()["calls.op"], self.recorded()["calls.depth"]
        return {
            "y": self.height(np.where(op >= 0, CALLS, op)),
            "x": depth * INDENT,
            "seen": self.happened("calls"),
            "inside": self.recorded()["calls.inside"],
            "operator": select(op, TABLES.words),
            "name": select(op, BRIEF),
        }

    @hint("calls")
    def about_call(self):
        return phrase(
            "{op}; its kernel calls {inside} more",
            op=select(self.recorded()["calls.op"], TABLES.words),
            inside=show(self.recorded()["calls.inside"], "count"),
        )

    @part("call", "autocast", "mode", "play")
    def visits(self):
        key, now = self.recorded()["visits.key"], self.happened("visits")
        solid = np.where(self.composite(), 0.0, now)
        return {
            "y": self.height(self.recorded()["visits.call"]),
            "x": key_at(WIDE, key),
            "narrow": key_at(NARROW, key),
            "seen": now,
            "solid": solid,
            "operator": select(self.recorded()["visits.op"], TABLES.words),
            "key": select(key, traces.KEYS),
        }

    @hint("visits")
    def about_visit(self):
        return phrase(
            "{op} at {key}: {kind}",
            op=select(self.recorded()["visits.op"], TABLES.words),
            key=select(self.recorded()["visits.key"], traces.KEYS),
            kind=select(
                traces.whose(self.recorded()["visits.key"], self.recorded()["visits.kernel"]), traces.WHOSE
            ),
        )

    @part("call", "autocast", "mode", "play")
    def nodes(self):
        name = self.recorded()["nodes.name"]
        return {
            "y": self.height(self.recorded()["nodes.call"]),
            "x": np.where(name >= 0, 1.0, name) * WIDE["graph"],
            "narrow": np.where(name >= 0, 1.0, name) * NARROW["graph"],
            "seen": self.happened("nodes"),
            "node": select(name, TABLES.words),
            "name": select(name, BRIEF),
        }

    @hint("nodes")
    def about_node(self):
        return phrase(
            "{node}: a node of the backward graph", node=select(self.recorded()["nodes.name"], TABLES.words)
        )

    @part("call", "autocast", "mode", "play", shown=False)
    def edges(self):
        start = self.height(self.recorded()["edges.call"])
        return {
            "start": start,
            "end": self.height(self.recorded()["edges.to"]),
            "seen": self.happened("edges"),
        }

    @part("call", "autocast", "mode", "tokens", "model", "play")
    def kept(self):
        """Each tensor that a node keeps, as long as its bytes; those of one operator end to end. A weight, or
        memory that another tensor counts, has no length."""
        of, counted = self.recorded()["kept.of"], self.recorded()["kept.counted"]
        call, slot = self.recorded()["kept.call"], self.recorded()["kept.slot"]
        counts = np.where((counted > 0) & (self.recorded()["kept.event"] >= 0), self.kept_each(), 0.0)
        before = traces.before(call, slot, counts)
        longest = np.maximum(np.max(traces.summed(call, counts, CALLS)), 1.0)
        seen = (counts > 0) & (self.happened("kept") > 0)
        return {
            **fig.rows_of(self.height(call), HALF),
            "left": fig.gone_unless(seen, fig.between(*KEPT, before / longest)),
            "right": fig.gone_unless(seen, fig.between(*KEPT, (before + counts) / longest)),
            "bytes": self.kept_each(),
            "seen": self.happened("kept"),
            "tensor": select(of, TABLES.words),
            "counted": counted,
        }

    @hint("kept")
    def about_kept(self):
        return phrase(
            "keeps {tensor}: {bytes}{how}",
            tensor=select(self.recorded()["kept.of"], TABLES.words),
            bytes=show(self.kept_each(), "bytes"),
            how=select(self.recorded()["kept.counted"], [" (a weight, or memory already counted)", ""]),
        )

    @part("call", "autocast", "mode", "tokens", "model", "play", shown=False)
    def kept_in_all(self):
        """The heading of what is kept, so far."""
        text = show(self.kept_now(), "bytes")
        return {"wide": f"kept for backward: {text}", "narrow": f"keeps {text}"}

    @part("call", "autocast", "mode", "tokens", "model", "play", shown=False)
    def kept_rows(self):
        """What each operator keeps, and counts."""
        counted = (self.recorded()["kept.counted"] > 0) & (self.happened("kept") > 0)
        total = traces.summed(self.recorded()["kept.call"], np.where(counted, self.kept_each(), 0.0), CALLS)
        return {
            "y": self.height(CALLS),
            "text": show(adding_up(total), "bytes"),
            "seen": np.where(total > 0, 1.0, 0.0),
        }

    def ends(self):
        return {"play": self.events()}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((0, 1), (-0.05, 1), height=590)
        fig.bare(p)
        calls, visits, nodes = sources["calls"], sources["visits"], sources["nodes"]
        for width, places, marks in (("wide", WIDE, "x"), ("narrow", NARROW, "narrow")):
            for place, name in zip(places["keys"], ABBREVIATED[width]):
                fig.only(
                    width,
                    p.text([place], [HEAD_AT], text=[name], text_align="center", **fig.LABEL),
                    p.segment([place], [0], [place], [TOP], line_color=color["grid"], line_width=6),
                )
            fig.only(
                width,
                p.segment(
                    places["keys"][0],
                    "y",
                    places["keys"][-1],
                    "y",
                    source=calls,
                    line_color=color["axis"],
                    line_alpha="seen",
                    line_dash=[2, 3],
                ),
                p.scatter(
                    marks,
                    "y",
                    source=visits,
                    size=12,
                    fill_color=color["panel"],
                    line_color=color["compute"],
                    fill_alpha="seen",
                    line_alpha="seen",
                    line_width=2,
                ),
                p.scatter(
                    marks,
                    "y",
                    source=visits,
                    size=12,
                    fill_color=color["compute"],
                    line_color=None,
                    fill_alpha="solid",
                ),
                p.text(
                    places["kept"],
                    TITLE_AT,
                    text=width,
                    source=sources["kept_in_all"],
                    text_align="right",
                    **fig.BOLD | {"text_color": color["hbm"]},
                ),
                p.text(
                    places["kept"],
                    "y",
                    text="text",
                    source=sources["kept_rows"],
                    text_align="right",
                    text_alpha="seen",
                    **fig.BOLD | {"text_color": color["hbm"]},
                ),
            )
            for place, title, align in TITLES[width]:
                fig.only(width, p.text([place], [TITLE_AT], text=[title], text_align=align, **fig.LABEL))
            fig.only(width, p.text([0], [NOTE_AT], text=[NOTE[width]], **fig.LABEL))
        p.text("x", "y", text="name", source=calls, text_alpha="seen", **fig.TEXT)
        for width, places in (("wide", WIDE), ("narrow", NARROW)):
            fig.only(width, *draw_graph(p, sources, places["graph"], "x" if width == "wide" else "narrow"))
        graph = WIDE["graph"]
        fig.only(
            "wide",
            p.quad(
                left="left",
                right="right",
                bottom="bottom",
                top="top",
                source=sources["kept"],
                fill_color=color["hbm"],
                line_color=color["panel"],
            ),
            p.text([graph], [TITLE_AT], text=value("backward graph"), **fig.LABEL),
            p.text("x", "y", text="name", source=nodes, x_offset=12, text_alpha="seen", **fig.TEXT),
        )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Operators called")
    def operators(self):
        return show(self.so_far("calls"), "count")

    @readout(
        "Kernels visited",
        help="All marks. A ring is a composite's kernel, which only calls other operators",
        rest=True,
    )
    def hops(self):
        return f"{show(self.so_far('visits'), 'count')} ({counted(self.rings(), 'ring', 'rings')})"

    def rings(self):
        return np.sum(np.where(self.composite(), self.happened("visits"), 0.0))

    @readout("Nodes of the graph")
    def graph(self):
        return show(self.so_far("nodes"), "count")

    @readout("Kept for backward", rest=True)
    def keeps(self):
        return show(self.kept_now(), "bytes"), self.kept_now() > CARD_BYTES

    @readout("Kept for each token")
    def per_token(self):
        return show(self.kept_now() / self.tokens, "bytes")

    @regime(target=True)
    def outgrown(self):
        return self.kept_at_end() > CARD_BYTES, (
            f"You found the call that outgrows the GPU: {show(self.tokens, 'count')} tokens make it keep "
            f"{show(self.kept_at_end(), 'bytes')}, an H100 has {show(CARD_BYTES, 'bytes')} usable. The "
            f"scores of {show(self.model.heads, 'count')} heads grow with the square of the tokens. First "
            "response: fused attention, which keeps a sum for each row instead (lesson 16)."
        )

    @regime()
    def answered(self):
        return (self.call == FUSED) & (self.mode <= 0) & (self.written_out() > CARD_BYTES), (
            f"This is the call that would not: {show(self.kept_at_end(), 'bytes')} for "
            f"{show(self.tokens, 'count')} tokens, where the written-out attention keeps "
            f"{show(self.written_out(), 'bytes')}. No score is kept, one number a row is."
        )

    @regime()
    def nothing_kept(self):
        return (self.kept_at_end() <= 0) & (self.mode > 0), (
            "Nothing is kept and no node is made. Under no_grad the call still passes autograd's kernels; "
            "in inference_mode it does not."
        )

    def summary(self):
        return (
            f"“{select(self.call, list(CASES.values()))}” becomes "
            f"{counted(self.so_far('calls'), 'operator', 'operators')}, visits "
            f"{counted(self.so_far('visits'), 'kernel', 'kernels')} and keeps "
            f"{show(self.kept_now(), 'bytes')} for its backward pass."
        )


DispatcherTrace.serve_as(__name__)
