"""f(X·A)·B split over ranks, multiplied piece by piece and combined again, in the right order and in the
wrong one."""

from functools import cache

import numpy as np

from engine import catalog
from engine.executed import tensor
from engine.executed.tensor import HeldPieces
from widgets.kit.controls import Choice, Number, Player
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import matrices, ring
from widgets.kit.text import choose, select, show
from widgets.kit.widget import Widget, executed, hint, part, readout, regime

X, A, B = (np.array(matrix, dtype=float) for matrix in tensor.EXAMPLE)
MOST, TOKENS, WIDTH = 4, *X.shape  # A and B are square here
RANKS = np.arange(MOST)
RANK, ROW, COLUMN = (index.ravel() for index in np.indices((MOST, TOKENS, WIDTH)))  # of each rank's numbers
ONE = slice(TOKENS * WIDTH)  # the numbers of one of them
PLACES = [f"token {row + 1}, column {column + 1}" for row, column in zip(ROW, COLUMN)]
DOWN, ALONG = (index.ravel() for index in np.indices((WIDTH, WIDTH)))  # of A's and B's
GAP, PITCH = 0.22, 2.5  # between pieces; from lane to lane
AT = {"x": 0.0, "inner": 5.3, "out": 10.6}  # where the three columns of blocks begin
SIGN_AT = {"inner": 4.97, "out": 10.27}
LEFT, RIGHT, TOP = -1.45, 15.4, 2.8
HEAD, LANES_HEAD, LANES_TOP = 1.35, -5.35, -5.85
JOINED_TOP, DENSE_TOP, BOTTOM = -6.2, -8.7, -16.3  # with no lane; each lane moves them down
COST_HEAD, COST_NAMES, COST_BARS, LONGEST_BAR = -11.7, (-12.7, -14.6), (-13.4, -15.3), 15.2
CUT, MULTIPLIED, APPLIED, AGAIN, JOINED = range(5)  # the steps
CUTS = {"column-row": ("A by columns, B by rows", 0), "row-column": ("A by rows, B by columns", 1)}
FUNCTIONS = {"relu": ("ReLU", 0), "gelu": ("GeLU", 1)}
MODELS = [catalog.model(key) for key in ("gpt3-175b", "llama3-8b", "llama3-70b", "llama3.1-405b")]
SAID = [
    [
        "Nothing is cut yet",
        "1  Cut: A by columns, B by rows; X on every rank",
        "2  Each rank multiplies by its columns of A",
        "3  f, number by number: nobody has to ask",
        "4  … by its rows of B: a part of each sum",
        "5  One AllReduce adds the parts",
    ],
    [
        "Nothing is cut yet",
        "1  Cut: A by rows, B by columns, X by columns",
        "2  Each rank has a part of each sum of X·A",
        "3  f needs whole sums: AllReduce, F wide",
        "4  Each rank multiplies by its columns of B",
        "5  AllGather lays the columns together",
    ],
]
FUNCTION_NAMES, ORDERS = ([label for label, _ in options.values()] for options in (FUNCTIONS, CUTS))
SHORT = ["A by columns", "A by rows"]
EXCHANGES = ["one AllReduce", "AllReduce and AllGather"]


@cache
def run(order: int, ranks: int, function: int) -> HeldPieces:
    """The executed product."""
    split = tensor.split_product(X, A, B, ranks, tensor.ORDERS[order], (tensor.relu, tensor.gelu)[function])
    return tensor.held(split, MOST)


class TensorSplit(Widget):
    question = "How do you cut two matrix products so that the ranks must talk only once?"
    order = Choice("Cut", CUTS, "column-row")
    ranks = Choice("Ranks", {"2": ("2", 2), "4": ("4", 4)}, "2")
    tokens = Number(
        "Tokens",
        2048,
        1,
        131072,
        whole=True,
        marks=(8192,),
        help="Only for the bars and the bytes; the matrices above have two",
    )
    function = Choice("Function f", FUNCTIONS, "relu", more=True)
    model = Choice("Bytes of", MODELS, "gpt3-175b", more=True)
    play = Player("Cut, multiply, join", frames=5, seconds_per_frame=1.6)

    presets = {"Columns, then rows": {}, "4 ranks": {"ranks": "4"}, "GeLU": {"function": "gelu"}}
    break_it = "Cut the two matrices so that the ranks have to talk twice."
    assumptions = (
        "Executed on real arrays, two tokens and h = F = 4, so that you can check every number by hand; a "
        "model's F is three to four times its h. The bars take the widths of the model chosen under *more*: "
        "bf16, one MLP, forward, what a rank sends by a ring. A gated MLP such as Llama's has two matrices "
        "before f, both cut like A."
    )
    formula = (
        r"$$f(XA)\,B = \sum_r f(X A_r)\,B_r$$"
        "\n\n"
        r"$$f(XA) = f\Big(\sum_r X_r A_r\Big)$$"
        "\n\n"
        r"By columns, then rows, a rank sends $2\frac{t-1}{t}\,T\,h$ values for $T$ tokens; by rows, then "
        r"columns, $\frac{t-1}{t}\,T\,(2F + h)$. In the first, $A_r$ are rank $r$'s columns of $A$ and $B_r$ "
        r"the same rows of $B$; in the second, $X_r$ are its columns of $X$ and $A_r$ the same rows of $A$. "
        r"There "
        "$f$ stands outside of the sum (Shoeybi et al., arXiv:1909.08053, section 3)."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @executed("order", "ranks", "function")
    def arrays(self):
        found = run(int(self.order), int(self.ranks), int(self.function))
        return {name: values.ravel() for name, values in found._asdict().items()}

    def held(self):
        return HeldPieces(**self.arrays())

    def rows_first(self):
        return self.order == 1

    def columns_first(self):
        return self.order == 0

    def sent_bytes(self):
        """The bytes that one rank sends in the forward pass of one MLP, for either order."""
        model, tokens = self.model, self.tokens
        gated = np.where(model.gated, 3, 2)
        return np.stack(
            [
                tensor.column_row_bytes(tokens, model.hidden, self.ranks),
                tensor.row_column_bytes(tokens, model.hidden, model.ffn, self.ranks, matrices_of_mlp=gated),
            ]
        )

    def sent(self):
        return np.sum(np.where(np.arange(2) == self.order, self.sent_bytes(), 0.0))

    def ratio(self):
        """How many times the bytes of the better order this order sends."""
        return self.sent() / np.min(self.sent_bytes())

    def difference(self):
        """The difference of the joined product from the dense one, in units in the last place."""
        return self.held().last_places[0]

    # -- places ----------------------------------------------------------------------------------------------
    def ways(self):
        """How far each step is, from 0 to 1."""
        return ring.eased(fig.revealed(np.ones(5), self.play))

    def summed(self):
        """Whether the parts are added up."""
        done = self.ways()
        return np.where(self.rows_first(), done[APPLIED], done[JOINED]) > 0.5

    def gaps(self):
        """Between the pieces where A is cut by rows, and where it is cut by columns."""
        gap = GAP * self.ways()[CUT]
        return np.where(self.rows_first(), gap, 0.0), np.where(self.rows_first(), 0.0, gap)

    def left(self, block, column):
        by_rows, by_columns = self.gaps()
        gap = by_columns if block == "inner" else by_rows
        return matrices.across(AT[block], column, WIDTH, self.ranks, gap)

    def below_lanes(self, place):
        return matrices.lane(self.ranks, place, PITCH)

    # -- the picture -----------------------------------------------------------------------------------------
    def weights(self, block, values, by_rows, gap):
        """A or B over the column of its products, each rank's piece in its shade."""
        top = matrices.down(0.0, DOWN, WIDTH, self.ranks, gap)
        owner = matrices.piece(np.where(by_rows, DOWN, ALONG), WIDTH, self.ranks)
        return {
            **matrices.cells(self.left(block, ALONG), top, values.ravel(), np.ones(values.size)),
            "shade": matrices.shade(owner, self.ranks, self.ways()[CUT]),
        }

    def in_lanes(self, block, values, seen):
        """A block of each rank's, in its lane."""
        top = matrices.down(matrices.lane(RANK, LANES_TOP, PITCH), ROW)
        there = np.where(self.ranks > RANK, seen, 0.0)
        return {
            **matrices.cells(self.left(block, COLUMN), top, values, there),
            "shade": matrices.shade(RANK, self.ranks) * there,
        }

    def moving(self, block, values, held, way):
        """The cells of a block on their way to where blocks are joined."""
        top = fig.between(matrices.lane(RANK, LANES_TOP, PITCH), self.below_lanes(JOINED_TOP), way)
        seen = np.where((way > 0) & (way < 1), held, 0.0)
        return matrices.cells(self.left(block, COLUMN), matrices.down(top, ROW), values, seen)

    def whole(self, block, top, values, seen):
        """A block of numbers that are on all ranks, or on the one GPU."""
        return matrices.cells(
            self.left(block, COLUMN[ONE]),
            matrices.down(top, ROW[ONE]),
            values,
            np.broadcast_to(np.where(seen, 1.0, 0.0), values.shape),
        )

    @part("order", "ranks", "play", shown=False)
    def weights_a(self):
        return self.weights("inner", A, self.rows_first(), self.gaps()[0])

    @part("order", "ranks", "play", shown=False)
    def weights_b(self):
        return self.weights("out", B, self.columns_first(), self.gaps()[1])

    @part("order", "ranks", "play", shown=False)
    def inputs(self):
        mine = self.columns_first() | (matrices.piece(COLUMN, WIDTH, self.ranks) == RANK)
        return self.in_lanes("x", np.tile(X.ravel(), MOST), np.where(mine, 1.0, 0.0) * self.ways()[CUT])

    @part("order", "ranks", "function", "play", shown=False)
    def products(self):
        held = self.held()
        applied = self.columns_first() & (self.ways()[APPLIED] > 0.5)
        values = np.where(applied, np.tile(held.inner, MOST), held.products)
        return self.in_lanes("inner", values, held.products_held * self.ways()[MULTIPLIED])

    @part("order", "ranks", "function", "play", shown=False)
    def partial(self):
        held = self.held()
        return self.in_lanes("out", held.partial, held.partial_held * self.ways()[AGAIN])

    @part("order", "ranks", "function", "play", shown=False)
    def products_moving(self):
        held = self.held()
        sent = np.where(self.rows_first(), held.products_held, 0.0)
        return self.moving("inner", held.products, sent, self.ways()[APPLIED])

    @part("order", "ranks", "function", "play", shown=False)
    def partial_moving(self):
        held = self.held()
        return self.moving("out", held.partial, held.partial_held, self.ways()[JOINED])

    @part("order", "ranks", "function", "play", shown=False)
    def inner_joined(self):
        seen = self.rows_first() & (self.ways()[APPLIED] >= 1)
        return self.whole("inner", self.below_lanes(JOINED_TOP), self.held().inner, seen)

    @part("order", "ranks", "function", "play", shown=False)
    def joined(self):
        return self.whole("out", self.below_lanes(JOINED_TOP), self.held().result, self.ways()[JOINED] >= 1)

    @part("order", "ranks", "function", "play", shown=False)
    def dense(self):
        return self.whole("out", self.below_lanes(DENSE_TOP), self.held().dense, self.play >= 0)

    # -- what each number is ---------------------------------------------------------------------------------
    def said_of(self, cells, values, names):
        """What each visible cell of a block is, and its number in full; empty for the others."""
        return [
            choose(cells["seen"][i] > 0, f"{name}: {show(values[i], 'count')}", "")
            for i, name in enumerate(names)
        ]

    def said_of_weights(self, name, values, by_rows):
        """Whose each number is, once the matrix is cut."""
        owner, cut = matrices.piece(np.where(by_rows, DOWN, ALONG), WIDTH, self.ranks), self.ways()[CUT] > 0.5
        whose = [choose(cut, f" on rank {show(owner[i], 'count')}", "") for i in range(values.size)]
        places = [f"row {i + 1}, column {j + 1}" for i, j in zip(DOWN, ALONG)]
        return [
            f"{name}{who}, {place}: {show(value, 'count')}"
            for place, who, value in zip(places, whose, values.ravel())
        ]

    @hint("weights_a")
    def of_a(self):
        return self.said_of_weights("A", A, self.rows_first())

    @hint("weights_b")
    def of_b(self):
        return self.said_of_weights("B", B, self.columns_first())

    @hint("inputs")
    def of_an_input(self):
        names = [f"X on rank {r}, {place}" for r, place in zip(RANK, PLACES)]
        return self.said_of(self.inputs(), np.tile(X.ravel(), MOST), names)

    @hint("products")
    def of_a_product(self):
        held, done, f = self.held(), self.ways(), select(self.function, FUNCTION_NAMES)
        applied = self.columns_first() & (done[APPLIED] > 0.5)
        what = choose(self.rows_first(), "A part of the sum X·A", choose(applied, f"{f}(X·A)", "X·A"))
        values = np.where(applied, np.tile(held.inner, MOST), held.products)
        names = [f"{what} on rank {r}, {place}" for r, place in zip(RANK, PLACES)]
        return self.said_of(self.products(), values, names)

    @hint("partial")
    def of_a_part(self):
        what = choose(self.rows_first(), "The result", "A part of the result’s sum")
        names = [f"{what} on rank {r}, {place}" for r, place in zip(RANK, PLACES)]
        return self.said_of(self.partial(), self.held().partial, names)

    @hint("inner_joined")
    def of_the_joined_inner(self):
        f = select(self.function, FUNCTION_NAMES)
        names = [f"{f}(X·A) on every rank, {place}" for place in PLACES[ONE]]
        return self.said_of(self.inner_joined(), self.held().inner, names)

    @hint("joined")
    def of_the_result(self):
        names = [f"The result on every rank, {place}" for place in PLACES[ONE]]
        return self.said_of(self.joined(), self.held().result, names)

    @hint("dense")
    def of_one_gpu(self):
        names = [f"The result on one GPU, {place}" for place in PLACES[ONE]]
        return self.said_of(self.dense(), self.held().dense, names)

    @hint("cost")
    def of_an_order(self):
        sent = self.sent_bytes()
        return [
            f"{ORDERS[i]}: {show(sent[i], 'bytes')} sent by each rank in {EXCHANGES[i]}, "
            f"{show(sent[i] / np.min(sent), 'times')} the least"
            for i in range(2)
        ]

    @part("order", "ranks", "play", shown=False)
    def numbers(self):
        """The rank's number beside each piece of A and of B, and beside each lane."""
        rows_first, gap = self.rows_first(), np.maximum(*self.gaps())
        a_x, a_y = matrices.beside_piece(AT["inner"], RANKS, WIDTH, self.ranks, gap, rows_first)
        b_x, b_y = matrices.beside_piece(AT["out"], RANKS, WIDTH, self.ranks, gap, self.columns_first())
        lane_y = matrices.lane(RANKS, fig.midpoint(LANES_TOP, matrices.down(LANES_TOP, TOKENS)), PITCH)
        there, cut = self.ranks > RANKS, self.ways()[CUT] > 0.5
        texts = [choose(there[i] & cut, f"{i}", "") for i in range(MOST)]
        return {
            "x": np.concatenate([a_x, b_x, np.full(MOST, -0.5)]),
            "y": np.concatenate([a_y, b_y, lane_y]),
            "text": [*texts, *texts, *texts],
        }

    @part("order", "function", "play", shown=False)
    def heads(self):
        """What stands over the blocks."""
        done, rows_first = self.ways(), self.rows_first()
        cut, f = done[CUT] > 0.5, select(self.function, FUNCTION_NAMES)
        inner = choose(rows_first, "X·A, in parts", choose(done[APPLIED] > 0.5, f"{f}(X·A)", "X·A"))
        out = choose(rows_first, "Y, by columns", "Y, in parts")
        return {
            "x": [AT["inner"], AT["out"], *AT.values()],
            "y": [HEAD, HEAD, LANES_HEAD, LANES_HEAD, LANES_HEAD],
            "text": [
                choose(cut, choose(rows_first, "A, by rows", "A, by columns"), "A"),
                choose(cut, choose(rows_first, "B, by columns", "B, by rows"), "B"),
                choose(cut, choose(rows_first, "X, by columns", "X"), ""),
                choose(done[MULTIPLIED] > 0.5, inner, ""),
                choose(done[AGAIN] > 0.5, out, ""),
            ],
        }

    @part("order", "play", shown=False)
    def said(self):
        """The step that is being done."""
        step = np.ceil(self.play)
        return {"text": choose(self.rows_first(), select(step, SAID[1]), select(step, SAID[0]))}

    @part("order", "ranks", "function", "play", shown=False)
    def compared(self):
        """What stands beside the joined product, and beside that of one GPU."""
        lines = [
            matrices.down(self.below_lanes(top), np.array([0.5, 1.5])) for top in (JOINED_TOP, DENSE_TOP)
        ]
        begun = self.summed()
        return {
            "y": np.concatenate(lines),
            "text": [
                choose(begun, "joined,", ""),
                choose(begun, "on every rank:", ""),
                "on one GPU:",
                choose(self.play >= 5, f"largest difference: {self.difference_in_words()}", ""),
            ],
            "narrow": [
                choose(begun, "joined,", ""),
                choose(begun, "on every rank:", ""),
                "on one GPU:",
                choose(self.play >= 5, f"differs: {self.difference_in_words()}", ""),
            ],
        }

    @part("order", "ranks", "play", shown=False)
    def signs(self):
        """A plus before each part but the first, and what follows from them all."""
        rows_first, done = self.rows_first(), self.ways()
        lanes = matrices.lane(RANKS, fig.midpoint(LANES_TOP, matrices.down(LANES_TOP, TOKENS)), PITCH)
        joined = self.below_lanes(fig.midpoint(JOINED_TOP, matrices.down(JOINED_TOP, TOKENS)))
        made = np.where(rows_first, done[MULTIPLIED], done[AGAIN]) > 0.5
        x = np.where(rows_first, SIGN_AT["inner"], SIGN_AT["out"])
        plus = [choose((RANKS[i] < self.ranks) & made, "+", "") for i in range(1, MOST)]
        return {
            "x": np.broadcast_to(x, (MOST,)),
            "y": np.append(lanes[1:], joined),
            "text": [*plus, choose(self.summed(), choose(rows_first, "f", "="), "")],
        }

    @part("order", "ranks", "model", "tokens")
    def cost(self):
        sent = self.sent_bytes()
        places = [np.stack([self.below_lanes(y) for y in pair]) for pair in (COST_NAMES, COST_BARS)]
        end = sent / np.max(sent) * LONGEST_BAR
        return {
            "order": ORDERS,
            "exchanges": EXCHANGES,
            "sent_bytes": sent,
            "name_y": places[0],
            "bar_y": places[1],
            "end": end,
            "fill": np.where(np.arange(2) == self.order, 1.0, 0.4),
            "text": [f"{ORDERS[i]}: {EXCHANGES[i]}, {show(sent[i], 'bytes')}" for i in range(2)],
            "narrow": [f"{SHORT[i]}: {show(sent[i], 'bytes')}" for i in range(2)],
        }

    @part("ranks", "model", "tokens", shown=False)
    def cost_head(self):
        return {
            "y": self.below_lanes(COST_HEAD),
            "text": f"Each rank sends, for an MLP of {self.model.name} and {show(self.tokens, 'count')} "
            "tokens",
            "narrow": f"Each rank sends ({self.model.name})",
        }

    def difference_in_words(self):
        last = self.difference()
        return choose(last > 0, f"{show(last, 'count')} in the last of 16 digits", "0")

    def ranges(self):
        return {"y": [self.below_lanes(BOTTOM), TOP]}

    def figure(self, sources):
        color = fig.COLOR
        p = fig.plot((LEFT, RIGHT), (BOTTOM - 2 * PITCH, TOP), height=660)
        fig.hide(p.xaxis[0])
        fig.hide(p.yaxis[0])
        p.grid.grid_line_color = None
        center = fig.TEXT | {"text_align": "center"}
        looks = {
            "weights_a": ("hbm", "shade"),
            "weights_b": ("hbm", "shade"),
            "inputs": ("idle", "shade"),
            "products": ("compute", "shade"),
            "partial": ("compute", "shade"),
            "inner_joined": ("link", "tint"),
            "joined": ("link", "tint"),
            "dense": ("idle", "tint"),
            "products_moving": ("link", "tint"),
            "partial_moving": ("link", "tint"),
        }
        for name, (hue, alpha) in looks.items():
            source = sources[name]
            if alpha == "tint":  # what moves hides what it passes
                p.quad(
                    **fig.BOX, source=source, fill_color=color["panel"], fill_alpha="seen", line_color=None
                )
            p.quad(
                **fig.BOX,
                source=source,
                fill_color=color[hue],
                fill_alpha=alpha,
                line_color=color[hue],
                line_alpha="seen",
            )
            for width, column in (("wide", "text"), ("narrow", "narrow")) if "moving" not in name else ():
                fig.only(width, p.text("x", "y", text=column, source=source, text_alpha="seen", **center))
        p.text("x", "y", text="text", source=sources["numbers"], **fig.LABEL | {"text_align": "center"})
        p.text("x", "y", text="text", source=sources["heads"], **fig.BOLD)
        fig.only("wide", p.text(-0.5, LANES_HEAD, text=["rank"], **fig.LABEL | {"text_align": "center"}))
        p.text(0, fig.midpoint(HEAD, TOP), text="text", source=sources["said"], **fig.BOLD)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(width, p.text(0, "y", text=column, source=sources["compared"], **fig.LABEL))
        p.text("x", "y", text="text", source=sources["signs"], **fig.BOLD | {"text_align": "center"})
        cost, bars = sources["cost"], {"y": "bar_y", "height": 0.6, "source": sources["cost"]}
        p.hbar(left=0, right="end", fill_color=color["link"], fill_alpha="fill", line_color=None, **bars)
        for width, column in (("wide", "text"), ("narrow", "narrow")):
            fig.only(
                width,
                p.text(0, "name_y", text=column, source=cost, **fig.TEXT),
                p.text(0, "y", text=column, source=sources["cost_head"], **fig.BOLD),
            )
        return p

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Exchanges, forward")
    def exchanges(self):
        return select(self.order, EXCHANGES), self.rows_first()

    @readout("Each rank sends", rest=True)
    def sends(self):
        return show(self.sent(), "bytes"), self.rows_first()

    @readout("Against the better cut")
    def against(self):
        return show(self.ratio(), "times"), self.rows_first()

    @readout("Largest difference from one GPU")
    def off_by(self):
        return self.difference_in_words()

    @regime(target=True)
    def exchanges_twice(self):
        sent = self.sent_bytes()
        return self.rows_first(), (
            "You cut it the wrong way: each rank has a part of every sum of X·A, and f of a sum is not the "
            "sum of f. So an AllReduce must come before f, and an AllGather after the second product: "
            f"{show(sent[1], 'bytes')} from each rank instead of {show(sent[0], 'bytes')}. First response: A "
            "by columns, B by rows."
        )

    @regime()
    def rounded_otherwise(self):
        return self.difference() > 0, (
            "Equal, but not in every bit: the ranks add the same products in another order, and each "
            f"addition rounds. The largest difference is {self.difference_in_words()}. First response: none; "
            "expect it, and compare with a tolerance."
        )

    def summary(self):
        more = choose(self.ratio() > 1, f", {show(self.ratio(), 'times')} as much", "")
        return (
            f"Cut by {choose(self.rows_first(), 'rows, then columns', 'columns, then rows')}, f(X·A)·B takes "
            f"{select(self.order, EXCHANGES)}: each of {show(self.ranks, 'count')} ranks sends "
            f"{show(self.sent(), 'bytes')}{more}."
        )


TensorSplit.serve_as(__name__)
