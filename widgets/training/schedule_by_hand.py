"""A pipeline's schedule, built by hand: take the next pass of a stage, place it, and see what it held up.

It is a figure beside ``pipeline_timeline`` and not a mode of it, because it has another state: the order of
each stage, and not the dozen settings of a published schedule. A link to it holds a position, as a link to a
chess problem does. What the two show of a schedule, timetable and memory, comes from the same functions.
"""

import numpy as np
from bokeh.core.properties import value

from engine.executed.placed_by_hand import (
    BACKWARD_S,
    CHUNKED,
    EMPTY,
    LEVELS,
    MAY,
    MOST_CODE,
    MOST_SLOTS,
    MOST_STAGES,
    NONE_LEFT,
    ROOM,
    ROWS,
    SHARDED,
    SPLIT,
    codes_of,
    placed_by_hand,
    published_orders,
)
from engine.mechanism.pipeline_orders import FORWARD, GATHER, WEIGHT
from widgets.kit.controls import Choice, Number, Switch
from widgets.kit.drawing import figure as fig
from widgets.kit.drawing import lanes
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

POSITION = "The position, as numbers"
STAGES = [f"stage_{s + 1}" for s in range(MOST_STAGES)]
EVERY = ("level", "room", *STAGES)
HAND = np.arange(float(ROWS))
KEYS = [key for row in zip(*("1234", "qwer", "asdf", "zxcv"), strict=True) for key in row]
HAND_STAGE, HAND_SLOT = np.floor(HAND / MOST_SLOTS), HAND % MOST_SLOTS

# A lane from its top: the passes, and below them what the stage holds. Beside it, on a phone below all four,
# are its buttons.
PASSES, STRIP, STRIP_HIGH = (0.05, 0.66), (0.72, 0.95), 0.95 - 0.72
HIGH = (0.03, 0.97)
BUTTONS, BUTTONS_END, BETWEEN = 1.05, 1.49, 0.008
ON_PHONE = {  # where the chart and the buttons lie on a narrow picture: the ends of its width and height
    "chart": ((-0.118, 1.012), (-1.192, 1.269)),
    "buttons": ((0.997, 1.494), (-0.012, 2.655)),
}
WIDER = 1.12  # the chart is as long as par and a little, until the reader's own step is longer
PALE, FAINT, GHOSTLY = 0.42, 0.16, 0.3

LOOKS = ["forward", "backward", "later_forward", "later_backward", "weight", "gather"]
HUES = dict(
    zip(LOOKS, ("compute", "compute-deep", "compute", "compute-deep", "compute", "network"), strict=True)
)
ON = dict(zip(LOOKS, ("on-work", "on-deep", "ink", "ink", "ink", "on-work"), strict=True)) | {
    "not": "ink-soft"
}
ON_LOOK = {look: ON[look] for look in LOOKS}
LETTERS = ["F", "B", "I", "W", "", "G"]  # as pipeline_orders counts its kinds
NAMES = ["Forward", "Backward", "Input gradient", "Weight gradient", "", "Gather"]
HELD = {"fill_color": fig.COLOR["hbm"], "fill_alpha": 0.35, "line_color": None}
GHOST = {"line_dash": [3, 3], "line_width": 1.2}
PALE_LOOK = {"fill_color": fig.COLOR["compute"], "line_color": fig.COLOR["compute"]}
KEY = [
    ("forward", "F", {"fill_color": fig.COLOR["compute"], "line_color": None}),
    ("backward or I", "B, I", {"fill_color": fig.COLOR["compute-deep"], "line_color": None}),
    ("held", "held", HELD),
    ("could go here", "could", GHOST | {"fill_color": None, "line_color": fig.COLOR["compute"]}),
    ("critical path", "path", {"fill_color": None, "line_color": fig.COLOR["ink"], "line_width": 2}),
    ("W", "W", PALE_LOOK | {"fill_alpha": FAINT}),
    ("second chunk", "second chunk", PALE_LOOK | {"fill_alpha": PALE}),
    ("gather", "gather", {"fill_color": fig.COLOR["network"], "line_color": None}),
]
HOW = (
    "A filled button is a pass that its stage can run next: press it, and it is placed as early as it can "
    "start. A dashed one lacks something: press it to hear what."
)
TASK = [
    (
        "Each of eight micro-batches goes down the four stages in forwards (F) and comes up again in "
        "backwards (B), which take twice as long."
    ),
    (
        "Each stage now has two chunks of layers. A micro-batch goes down the stages through their first "
        "chunks, F1, down once more through their second, F1′, and back the same way."
    ),
    (
        "The backward is cut in two. I makes the gradient that the stage above waits for; W, the gradient "
        "of the weights, nobody waits for, but until it is made it holds its activations."
    ),
    (
        "Weights are sharded as well. A stage keeps those of one chunk at a time, and has to gather them "
        "(G) before a pass through it, at most eight times in a step."
    ),
]
FIRST = [*["F1 of stage 1"] * 3, "G1 of every stage"]
NEXT = [
    "Next, build it interleaved; or open this as code, and find the rule that places these passes.",
    "Next, build ZB-H1, whose backward comes in two halves.",
    "Next, build FSDP × PP, where weights have to be gathered.",
    "That was the last of the four.",
]
KEEN = [  # each of these, followed to the letter, reaches par (tests/widgets/training)
    (
        "Fill the pipe first: stage 1 takes forwards until it has no room. From then on take what can start "
        "soonest, the dashed outline furthest left; where two start together, the backward: it frees room, "
        "and the stages above wait for it."
    ),
    ("Take what can start soonest, the dashed outline furthest left; where two start together, the forward."),
    (
        "Take what can start soonest, the dashed outline furthest left. Where several start together, take "
        "a forward if its stage has fewer than 4 micro-batches under way, that is, forwards without their I "
        "(stage 2: 3, stage 3: 2, stage 4: 1); otherwise an I, and a W last."
    ),
    (
        "Three gathers a stage are enough: one at the start, one after all four forwards of the first chunk, "
        "one after all four backwards of the second. Otherwise take what can start soonest, the dashed "
        "outline furthest left."
    ),
]
NEEDS = "{name} on stage {here} needs {input} of stage {there} first"
WHY = [  # a pass cannot be placed, in the order of placed_by_hand
    "stage {here} has placed all of these",
    *[NEEDS] * 4,
    "{name} finds no room on stage {here}, which holds all the activations that it can",
    "{name} needs weights that stage {here} does not have: gather them first",
    "stage {here} may gather eight times, and needs those that are left for passes still to come",
]
BECAUSE = [
    "",
    "",
    "A forward starts from what the stage before it has sent.",
    "A backward starts from the gradient that the stage behind it sends back.",
    "A backward starts from the loss, which the micro-batch’s forward on the last stage makes.",
    "A weight gradient takes the gradient of the stage’s output, which comes with the input gradient.",
    "It has to free some first, by a backward or, where the backward is split, a weight gradient.",
    "A gather fetches the weights of one chunk, and drops those of the other.",
    "Go on with the chunk whose weights it has.",
]


def started(key, *counts):
    """The first passes of each stage in the published order, as the controls of a preset."""
    orders = [order[:count] for order, count in zip(published_orders(key), counts, strict=True)]
    return {"level": key} | {
        name: f"{code:.0f}" for name, code in zip(STAGES, codes_of(key, orders), strict=True)
    }


def order_of(stage):
    return Number(
        f"Stage {stage}’s order",
        EMPTY,
        EMPTY,
        MOST_CODE,
        whole=True,
        more=POSITION,
        slider=False,
        until="level",
        help="Which passes the stage has placed, behind a leading 1",
    )


class ScheduleByHand(Widget):
    question = "Can you keep four stages busy, placing pass after pass by hand?"
    in_page = True
    level = Choice("Build", {task.key: (task.name, task) for task in LEVELS}, "1f1b")
    room = Number(
        "Room of a stage",
        ROOM,
        1,
        8,
        stops=range(1, 9),
        log=False,
        whole=True,
        help="Micro-batches whose activations a stage can hold; 4 is what the published schedule needs",
    )
    coach = Switch("Mark what the published schedule does next", until="level")
    ghosts_on = Switch("Show where a pass would go", True, more=True)
    stage_1 = order_of(1)
    stage_2 = order_of(2)
    stage_3 = order_of(3)
    stage_4 = order_of(4)
    tried = Number(
        "Refused move",
        0,
        0,
        ROWS,
        stops=range(ROWS + 1),
        log=False,
        whole=True,
        more=POSITION,
        slider=False,
        until="level",
        help="The button that was pressed in vain, counted from the top; 0 if none",
    )
    on_phone = "level"
    press = ("blocks", "ghosts", "hand")
    opens = ("beat_1f1b", "blocks")

    presets = {
        "An empty line": {},
        "The first one comes back": started("1f1b", 5, 4, 3, 2),
        "1F1B, half-way": started("1f1b", 9, 8, 8, 8),
        "Interleaved": {"level": "interleaved"},
        "ZB-H1": {"level": "zb-h1"},
        "FSDP × PP": {"level": "fsdp"},
    }
    break_it = "Place every pass, each of them legally, and end up with a longer step than par."
    lights = {
        "critical": Light("the critical path: passes that each waited for the one before", ("critical",)),
        "memory": Light("the activations that each stage holds, over time", ("strips", "room_lines")),
        "buttons": Light("the next passes of each stage", ("hand", "faces")),
    }
    tour = (
        Step(
            "A micro-batch goes down the stages in forwards, which take {forward_time} each. Four are on "
            "their way, and every stage has placed what it could.",
            started("1f1b", 4, 3, 2, 1),
            "blocks",
        ),
        Step(
            "The last stage has turned the first one round: its backward goes up the stages and frees room "
            "on each. {placed} stand.",
            started("1f1b", 5, 4, 3, 2),
            "memory",
        ),
        Step(
            "From now on each stage runs a backward and a forward in turn. Outlined is the chain of passes "
            "of which each waited for the one before: it makes the step as long as it is.",
            started("1f1b", 9, 8, 8, 8),
            "critical",
        ),
        Step(
            "The whole of 1F1B takes {so_far}. No order of these passes is shorter without more chunks or "
            "split backwards.",
            started("1f1b", 16, 16, 16, 16),
        ),
    )
    assumptions = (
        "A forward of a stage takes 20 ms, a backward 40 ms, a gather of a chunk’s weights 10 ms; messages "
        "take no time. A pass starts when its stage is free and its input has arrived. Micro-batches go in "
        "order. Par is the published schedule, run with the same times. In the last level a stage has the "
        "full weights of one chunk at a time and gathers nothing while it computes; par gathers as a "
        "breadth-first pipeline does (arXiv:2211.05953), and the ReduceScatter of gradients is left out. "
        "An input gradient leaves 32/34 of the activations to its weight gradient (arXiv:2401.10241, Table "
        "1)."
    )
    formula = (
        "$$\\text{start}(x) = \\max\\bigl(\\text{end}(\\text{the pass before on its stage}),\\ "
        "\\text{end}(\\text{the input})\\bigr)$$\n\n"
        "The input of a forward is the same micro-batch’s forward on the stage before. That of a backward is "
        "its backward on the stage behind or, on the last stage, its forward there."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def orders(self):
        return np.stack([self.stage_1, self.stage_2, self.stage_3, self.stage_4])

    @once
    def found(self):
        task = self.level
        return placed_by_hand(
            task.schedule, task.mode, task.stages, task.micro_batches, task.chunks, self.room, self.orders()
        )

    def width_s(self):
        found = self.found()
        return np.maximum(WIDER * found["par_s"], found["total_s"] + BACKWARD_S)

    def is_complete(self):
        found = self.found()
        return found["placed"] >= found["passes"]

    def is_par(self):
        found = self.found()
        return found["total_s"] < 1.0001 * found["par_s"]

    def is_lost(self):
        """Whether no passes that may still come lead to par."""
        found = self.found()
        return found["least_s"] > 1.0001 * found["par_s"]

    def is_stuck(self):
        return ~self.is_complete() & (np.max(np.where(self.may(), 1.0, 0.0)) < 1)

    @once
    def may(self):
        return self.found()["hand_why"] == MAY

    def is_refused(self):
        return (self.tried > 0) & (self.of_tried("hand_why") != MAY) & (self.of_tried("hand_there") > 0)

    def of_tried(self, column):
        """A column of the hand in the row of the refused move."""
        return np.sum(np.where(self.tried == HAND + 1, self.found()[column], 0.0))

    @staticmethod
    def look(kind, chunk):
        later = np.where(chunk > 0, 2.0, 0.0)
        whole = np.where(kind == FORWARD, 0.0, 1.0) + later
        return np.where(kind == WEIGHT, 4.0, np.where(kind == GATHER, 5.0, whole))

    @staticmethod
    def strength(look):
        return np.where(look == 4, FAINT, np.where((look == 2) | (look == 3), PALE, 1.0))

    @staticmethod
    def named(kind, batch, chunk, say=phrase):
        """A pass as its button has it: F3, or F3′ through a second chunk; a gather has its chunk's number."""
        number = np.where(kind == GATHER, chunk, batch) + 1
        prime = np.where((chunk > 0) & (kind != GATHER), 1.0, 0.0)
        return say(
            "{letter}{number}{prime}",
            letter=select(kind, LETTERS),
            number=show(number, "count"),
            prime=select(prime, ["", "′"]),
        )

    def reasons(self, of, say=phrase):
        """Why a pass cannot be placed, in the order of the engine's reasons; ``of`` gives its columns."""
        batch = of("hand_batch")
        texts = {
            "name": self.named(of("hand_kind"), batch, of("hand_chunk"), say),
            "here": show(of("hand_stage") + 1, "count"),
            "input": self.named(of("input_kind"), batch, of("input_chunk"), say),
            "there": show(of("input_stage") + 1, "count"),
        }
        return [
            "",
            *(say(words, **{key: texts[key] for key in texts if f"{{{key}}}" in words}) for words in WHY),
        ]

    # -- the picture -----------------------------------------------------------------------------------------
    def slots(self):
        """The kinds of passes that a stage can place, each with a button."""
        return np.where(self.level.mode == CHUNKED, 4.0, np.where(self.level.mode == 0, 2.0, 3.0))

    def band(self, stage, reach):
        """(bottom, top) of a share of a stage's lane, counted from its top."""
        top = 1 - stage / self.level.stages
        return top - reach[1] / self.level.stages, top - reach[0] / self.level.stages

    def to_position(self, stage, order):
        """What a press sets: one stage's order anew, the others as they stand, and no refused move."""
        code = self.found()["code"]
        return {f"sets_{name}": np.where(stage == s, order, code[s]) for s, name in enumerate(STAGES)}

    def entries(self):
        """The passes as the puzzle *beat 1F1B* has them, in which no stage has chunks."""
        found = self.found()
        number = show(found["batch"], "count")
        forms = ['("F", {i})', '("I", {i}), ("W", {i})', '("I", {i})', '("W", {i})', "{i}", "{i}"]
        entry = select(found["kind"], [phrase(form, i=number) for form in forms])
        return select(np.where(self.level.chunks > 1, 0.0, 1.0) + 0.0 * found["kind"], ["", entry])

    @part(*EVERY)
    def blocks(self):
        found = self.found()
        bottom, top = self.band(found["stage"], PASSES)
        look = self.look(found["kind"], found["chunk"])
        left, right = found["start_s"] / self.width_s(), found["end_s"] / self.width_s()
        return {
            "stage": found["stage"] + 1,
            "pass": select(found["kind"], LETTERS),
            "micro_batch": found["batch"] + 1,
            "entry": self.entries(),
            "start_s": found["start_s"],
            "end_s": found["end_s"],
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "x": fig.midpoint(left, right),
            "y": fig.midpoint(bottom, top),
            "text": show(np.where(found["kind"] == GATHER, found["chunk"], found["batch"]) + 1, "count"),
            "look": select(look, LOOKS),
            "strength": self.strength(look),
            "edge": np.where((look > 1) & (look < 5), 1.0, 0.0),  # what is pale
            "critical": found["critical"],
            **self.to_position(found["stage"], found["before"]),
            "sets_tried": 0.0 * found["stage"],
        }

    @hint("blocks")
    def of_a_block(self):
        found = self.found()
        return phrase(
            "{kind} {name} on stage {stage}: {start} to {end}{critical}\n"
            "press to take it back, with what needs it",
            kind=select(found["kind"], NAMES),
            name=self.named(found["kind"], found["batch"], found["chunk"]),
            stage=show(found["stage"] + 1, "count"),
            start=show(found["start_s"], "seconds"),
            end=show(found["end_s"], "seconds"),
            critical=select(found["critical"], ["", ", on the critical path"]),
        )

    @part(*EVERY)
    def strips(self):
        found = self.found()
        share = found["held_batches"] / self.room
        bottom, top = self.band(found["held_stage"], (STRIP[1] - STRIP_HIGH * share, STRIP[1]))
        return {
            "stage": found["held_stage"] + 1,
            "from_s": found["held_from_s"],
            "to_s": found["held_to_s"],
            "micro_batches": found["held_batches"],
            "left": found["held_from_s"] / self.width_s(),
            "right": found["held_to_s"] / self.width_s(),
            "bottom": bottom,
            "top": top,
        }

    @hint("strips")
    def of_a_strip(self):
        found = self.found()
        return phrase(
            "Stage {stage} holds the activations of {held} of {room} micro-batches",
            stage=show(found["held_stage"] + 1, "count"),
            held=show(found["held_batches"], "count"),
            room=show(self.room + 0.0 * found["held_stage"], "count"),
        )

    @part("level", "room", *STAGES, "ghosts_on", shown=False)
    def ghosts(self):
        """Where a pass would go, in the part of a lane that its slot has."""
        found = self.found()
        slots, high = self.slots(), PASSES[1] - PASSES[0]
        begins = PASSES[0] + high * HAND_SLOT / slots
        bottom, top = self.band(HAND_STAGE, (begins, begins + high / slots))
        seen = self.may() & self.ghosts_on & (found["hand_there"] > 0)
        look = self.look(found["hand_kind"], found["hand_chunk"])
        gone = -9.0
        return {
            "left": np.where(seen, found["hand_start_s"] / self.width_s(), gone),
            "right": np.where(seen, found["hand_end_s"] / self.width_s(), gone),
            "bottom": bottom,
            "top": top,
            "look": select(look, LOOKS),
            **self.to_position(found["hand_stage"], found["hand_code"]),
            "sets_tried": 0.0 * HAND,
        }

    @part("level", "room", *STAGES, "coach", "tried", shown=False)
    def hand(self):
        """The buttons: the next passes of each stage."""
        found = self.found()
        wide = (BUTTONS_END - BUTTONS) / self.slots()
        there = found["hand_there"] > 0
        left = np.where(there, BUTTONS + wide * HAND_SLOT, BUTTONS_END)
        right = np.where(there, BUTTONS + wide * (HAND_SLOT + 1) - BETWEEN, BUTTONS_END)
        bottom, top = self.band(HAND_STAGE, HIGH)
        look = self.look(found["hand_kind"], found["hand_chunk"])
        may, left_over = self.may() & there, there & (found["hand_why"] != NONE_LEFT)
        lacking = self.is_refused() & (self.of_tried("hand_missing") == HAND)
        asked = self.is_refused() & (self.tried == HAND + 1)
        moves = self.to_position(found["hand_stage"], found["hand_code"])
        return {
            "stage": found["hand_stage"] + 1,
            "left": left,
            "right": right,
            "bottom": bottom,
            "top": top,
            "x": fig.midpoint(left, right),
            "y": fig.midpoint(bottom, top),
            "key": select(np.where(there, HAND, ROWS), [*KEYS, ""]),
            "key_seen": np.where(left_over, 1.0, 0.0),
            "name": select(
                np.where(left_over, 1.0, 0.0),
                ["", self.named(*(found[f"hand_{name}"] for name in ("kind", "batch", "chunk")))],
            ),
            "look": select(look, LOOKS),
            "on": select(np.where(may, look, 6.0), [*LOOKS, "not"]),
            "strength": np.where(may, self.strength(look), 0.0),
            "outline": np.where(may, 1.0, 0.0),
            "dashed": np.where(left_over & ~may, 0.9, 0.0),
            "lit": np.where(lacking, 1.0, 0.0),
            "asked": np.where(asked, 1.0, 0.0),
            "coached": np.where(self.coach & (found["hand_published"] > 0), 1.0, 0.0),
            **{
                name: np.where(may, column, found["code"][s])
                for s, (name, column) in enumerate(moves.items())
            },
            "sets_tried": np.where(may | ~left_over, 0.0, HAND + 1),
        }

    @hint("hand")
    def of_a_button(self):
        found = self.found()
        can = phrase(
            "{kind} {name} on stage {stage}: it would run from {start} to {end}",
            kind=select(found["hand_kind"], NAMES),
            name=self.named(found["hand_kind"], found["hand_batch"], found["hand_chunk"]),
            stage=show(found["hand_stage"] + 1, "count"),
            start=show(found["hand_start_s"], "seconds"),
            end=show(found["hand_end_s"], "seconds"),
        )
        why = select(found["hand_why"], self.reasons(lambda name: found[name]))
        said = select(np.where(self.may(), 0.0, 1.0), [can, why])
        return select(found["hand_there"], ["", said])

    @part(*EVERY)
    def stage_rows(self):
        found = self.found()
        stage = np.arange(float(MOST_STAGES))
        passes, strip = self.band(stage, PASSES), self.band(stage, STRIP)
        return {
            "stage": stage + 1,
            "y": fig.midpoint(*passes),
            "middle": fig.midpoint(*self.band(stage, HIGH)),
            "low": fig.midpoint(*strip),
            "bottom": strip[0],
            "top": strip[1],
            "number": show(stage + 1, "count"),
            "name": phrase("stage {n}", n=show(stage + 1, "count")),
            "most_held": found["held"],
            "room": phrase(
                "{most}/{room}",
                most=show(found["held"], "count", 2),
                room=show(self.room + 0.0 * stage, "count"),
            ),
            "held": phrase(
                "{most} of {room}",
                most=show(found["held"], "count", 2),
                room=show(self.room + 0.0 * stage, "count"),
            ),
        }

    @part(*EVERY, shown=False)
    def step_so_far(self):
        found = self.found()
        at, par = found["total_s"] / self.width_s(), found["par_s"] / self.width_s()
        par_time = show(found["par_s"], "seconds")
        return {
            "x": at,
            "par": par,
            "text": choose(found["total_s"] > 0, f"so far {show(found['total_s'], 'seconds')}", ""),
            "par_short": choose(self.is_lost(), "par out of reach", f"par {par_time}"),
            "weight_key": fig.in_key(self.level.mode == SPLIT),
            "chunk_key": fig.in_key(self.level.chunks > 1),
            "gather_key": fig.in_key(self.level.mode == SHARDED),
            "par_text": choose(self.is_lost(), f"par {par_time} is out of reach", f"par {par_time}"),
        }

    def figure(self, sources):
        p = fig.plot((-0.12, 1.5), (-0.12, 1.12), height=520)
        fig.room_left(p, -0.012, 60)
        fig.bare(p)
        self.draw_chart(p, sources, "wide", "par_text", {"text": "name", "x": -0.012}, "held", {})
        self.draw_hand(p, sources["hand"], "wide", {})
        fig.only(
            "wide",
            p.text(BUTTONS_END - BETWEEN, 1.07, text=value("place next"), text_align="right", **fig.TEXT),
        )
        chart, buttons = (fig.window(p, name, *ends) for name, ends in ON_PHONE.items())
        self.draw_chart(p, sources, "narrow", "par_short", {"text": "number", "x": -0.02}, "room", chart)
        self.draw_hand(p, sources["hand"], "narrow", buttons)
        over, number = {"text_baseline": "bottom"}, {"text_align": "right"} | fig.LABEL | buttons
        fig.only(
            "narrow",
            p.text(BUTTONS, 1, text=value("place next"), y_offset=-3, **fig.TEXT | over | buttons),
            p.text(BUTTONS - BETWEEN, "middle", text="number", source=sources["stage_rows"], **number),
        )
        seen = {"W": "weight_key", "second chunk": "chunk_key", "gather": "gather_key"}
        places = {name: (sources["step_so_far"], column) for name, column in seen.items()}
        lanes.key(p, KEY, phone_px=300, places=places)
        return p

    def draw_chart(self, p, sources, width, par, name, held, scales):
        """The lanes, on a wide picture or on a phone, where they have scales of their own."""
        color, hues = fig.COLOR, fig.hues("look", HUES)
        rows, blocks, end = (sources[part] for part in ("stage_rows", "blocks", "step_so_far"))
        held_text = fig.TEXT | {"text_color": color["hbm"]}
        box, all_blocks = fig.BOX | scales, fig.BOX | scales | {"source": blocks}
        lines = [
            p.segment(0, side, 1, side, source=rows, line_color=color["grid"], name="room_lines", **scales)
            for side in ("bottom", "top")
        ]
        strong = {"line_color": color["ink"], "line_alpha": "critical", "line_width": 2, "name": "critical"}
        number = fig.TEXT | {"text_color": fig.hues("look", ON_LOOK), "text_align": "center"} | scales
        right = {"text_align": "right"} | scales
        soft = {"line_color": color["ink-soft"], "line_dash": [2, 4], "line_width": 2}
        below = {"y_offset": 14} | scales
        fig.only(
            width,
            *lines,
            p.quad(**box, source=sources["strips"], **HELD),
            p.quad(**all_blocks, fill_color=hues, fill_alpha="strength", line_color=color["panel"]),
            p.quad(**all_blocks, fill_color=None, line_color=hues, line_alpha="edge", name="edges"),
            p.quad(
                **box, source=sources["ghosts"], fill_color=hues, fill_alpha=GHOSTLY, line_color=hues, **GHOST
            ),
            p.quad(**all_blocks, fill_color=None, **strong),
            p.text("x", "y", text="text", source=blocks, **number),
            p.text(name["x"], "y", text=name["text"], source=rows, **fig.LABEL | right),
            p.text(name["x"], "low", text=held, source=rows, **held_text | right),
            p.segment("par", 0, "par", 1, source=end, **soft | scales),
            p.segment(0, -0.03, "x", -0.03, source=end, line_color=color["ink"], line_width=1.5, **scales),
            p.text(0, -0.03, text="text", source=end, **fig.BOLD | below),
            p.text("par", -0.03, text=par, source=end, **fig.LABEL | below | {"text_align": "right"}),
        )

    def draw_hand(self, p, hand, width, scales):
        color, hues = fig.COLOR, fig.hues("look", HUES)
        box, dashes = fig.BOX | scales | {"source": hand}, {"line_dash": [4, 3], "line_width": 1}
        face = {"line_color": hues, "line_alpha": "outline", "line_width": 1.2, "name": "faces"}
        name = fig.TEXT | {"text_color": fig.hues("on", ON)} | scales
        drawn = [
            p.quad(**box, fill_color=hues, fill_alpha="strength", **face),
            p.quad(**box, fill_color=None, line_color=color["axis"], line_alpha="dashed", **dashes),
            *(
                p.quad(**box, fill_color=None, line_color=color["ink"], line_alpha=alpha, line_width=thick)
                for alpha, thick in (("lit", 4), ("asked", 2))
            ),
            p.text("x", "y", text="name", source=hand, text_align="center", **name),
            p.scatter(
                "x",
                "top",
                source=hand,
                marker="inverted_triangle",
                size=11,
                fill_color=color["ink"],
                fill_alpha="coached",
                line_color=color["panel"],
                line_alpha="coached",
                **scales,
            ),
        ]
        if width == "wide":
            low = {"y_offset": -14, "text_align": "center", "text_alpha": "key_seen"}
            drawn.append(p.text("x", "bottom", text="key", source=hand, **name | low))
        fig.only(width, *drawn)

    # -- the words -------------------------------------------------------------------------------------------
    @readout("Placed")
    def placed(self):
        found = self.found()
        return f"{show(found['placed'], 'count')} of {show(found['passes'], 'count')} passes"

    @readout("The step at best", help="No step takes less if what is placed stays as it is")
    def at_best(self):
        return show(self.found()["least_s"], "seconds"), self.is_lost()

    @readout("Step so far", help="From the first start to the last end of what is placed", rest=True)
    def so_far(self):
        return show(self.found()["total_s"], "seconds")

    @readout("Par", help="The published schedule, run with the same times")
    def par(self):
        return f"{show(self.found()['par_s'], 'seconds')}, {self.level.name}"

    @readout("Most that a stage holds", help="Of the micro-batches for which it has room", rest=True)
    def held(self):
        return f"{show(np.max(self.found()['held']), 'count')} of {show(self.room, 'count')} micro-batches"

    @readout(
        "Idle so far",
        help="The share of all stages’ time up to the last end in which they do not compute",
        rest=True,
    )
    def idle(self):
        return show(self.found()["idle"], "percent")

    @readout("Idle at par", rest=True)
    def par_idle(self):
        return show(self.found()["par_idle"], "percent")

    def forward_time(self):
        return show(self.found()["hand_end_s"][0] - self.found()["hand_start_s"][0], "seconds")

    def index(self):
        return self.level.mode

    def reason(self):
        """Why the move that was tried is refused."""
        return select(self.of_tried("hand_why"), self.reasons(self.of_tried, str.format))

    @regime()
    def refused(self):
        why = self.of_tried("hand_why")
        lit = choose(self.of_tried("hand_missing") >= 0, " The button of what it needs is outlined.", "")
        return self.is_refused(), f"Not yet: {self.reason()}. {select(why, BECAUSE)}{lit}"

    @regime(target=True)
    def behind(self):
        found = self.found()
        return self.is_complete() & ~self.is_par(), (
            "All is placed and every move was legal, and yet a step takes "
            f"{show(found['total_s'], 'seconds')}, where {self.level.name} takes "
            f"{show(found['par_s'], 'seconds')}. The outlined passes are why: each of them waited for the "
            f"one before. {select(self.index(), KEEN)} Press a pass to take it back, with all that needs "
            "it."
        )

    @regime()
    def lost(self):
        found = self.found()
        from_start = found["total_s"] <= 0
        of_room = (
            f"{self.level.name} needs room for more micro-batches: here a step takes at least "
            f"{show(found['least_s'], 'seconds')}, whatever the order."
        )
        of_a_pass = (
            f"Par is out of reach: if what is placed stays, a step takes at least "
            f"{show(found['least_s'], 'seconds')}. Take passes back, the last one first, with its button or "
            "Backspace, until this is said no more. Then place another pass first, on the same stage or on "
            f"one whose output it waits for. {select(self.index(), KEEN)}"
        )
        lost = self.is_lost() & ~self.is_complete() & ~self.is_refused() & ~self.is_stuck()
        return lost, choose(from_start, of_room, of_a_pass)

    @regime()
    def stuck(self):
        return self.is_stuck() & ~self.is_refused(), (
            "No stage can place anything: each of them waits for another, or has no room. Take passes back, "
            "the last one first, with its button or Backspace, or give the stages more room."
        )

    @regime()
    def reached(self):
        found = self.found()
        beaten = found["total_s"] < 0.9999 * found["par_s"]
        return self.is_complete() & self.is_par(), (
            f"{choose(beaten, 'Shorter than', 'As short as')} {self.level.name}: all "
            f"{show(found['passes'], 'count')} passes in {show(found['total_s'], 'seconds')}, with "
            f"{show(found['idle'], 'percent')} of the stages’ time not spent computing. "
            f"{select(self.index(), NEXT)}"
        )

    @regime()
    def begin(self):
        begins = (self.found()["total_s"] <= 0) & ~self.is_refused() & ~self.is_lost()
        return begins, f"{select(self.index(), TASK)} Begin with {select(self.index(), FIRST)}. {HOW}"

    @regime()
    def going(self):
        found = self.found()
        under_way = (found["total_s"] > 0) & ~self.is_complete() & ~self.is_refused()
        return under_way & ~self.is_lost() & ~self.is_stuck(), f"{select(self.index(), KEEN)} {HOW}"

    def summary(self):
        found = self.found()
        passes, total = show(found["passes"], "count"), show(found["total_s"], "seconds")
        par = show(found["par_s"], "seconds")
        some = f"{show(found['placed'], 'count')} of {passes} passes"
        whole = (
            f"All {passes} passes take {total}, {choose(self.is_par(), 'no longer than', 'and')} "
            f"{self.level.name}{choose(self.is_par(), '', f' takes {par}')}."
        )
        room = show(self.room, "count")
        empty = (
            f"Place all {passes} passes within {par}, the time of {self.level.name}: press a filled button, "
            f"first {select(self.index(), FIRST)}."
        )
        so_far = f"Placed: {some}, in {total}; {self.level.name} needs {par} for all."
        longer = (
            f"a step takes {show(found['least_s'], 'seconds')} or more, where {self.level.name} takes {par}"
        )
        lost = choose(
            found["total_s"] > 0,
            f"Out of reach: after these {some} {longer}, so take the last one back.",
            f"With room for {room} on a stage {longer}.",
        )
        lost = choose(self.is_stuck(), f"{some} are placed, and no stage can go on: take some back.", lost)
        stands = choose(self.is_lost() | self.is_stuck(), lost, choose(found["total_s"] > 0, so_far, empty))
        refused = f"Not yet: {self.reason()}; {some} stand, in {total}."
        return choose(self.is_refused(), refused, choose(self.is_complete(), whole, stands))


ScheduleByHand.serve_as(__name__)
