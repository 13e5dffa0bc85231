"""How many replicas should prefill and how many decode: two limits that cross, a wire between the pools, and
sharing as the alternative."""

import numpy as np

from engine.serving import pools
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import beside
from widgets.kit.drawing import figure as fig
from widgets.kit.text import choose, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

MOST = 24
PREFILLERS = np.arange(1.0, MOST)
VIEWS = [m * 10.0**e for e in range(-2, 4) for m in (1, 1.5, 2, 3, 4, 6, 8)]
KEY_ABOVE = 1.12  # how much higher the frame is than what is drawn, for the key
INSIDE = beside.Frame(33.0, 342.0)
NOW_PX, BEST_PX, SHARING_PX = (
    beside.width(longest, bold=True)
    for longest in ("now: 6.75", "best: 6.75, with 12 of 16", "sharing: 6.75")
)
SPOTS = beside.around(0.0, 16.0, 18.0)
WORK = ("prompt", "answer", "replicas", "model", "gpu", "tp", "wire", "ttft", "tpot")


class PoolRatio(Widget):
    question = "How many replicas should read prompts, and how many write answers?"
    prompt = Number(
        "Prompt", 2000, 50, 128_000, family="tokens", stops=61, whole=True, marks=(500, 2000, 8000, 32000)
    )
    answer = Number("Answer", 300, 10, 8000, family="tokens", stops=53, whole=True, marks=(300, 1000))
    prefillers = Number(
        "Replicas that prefill", 8, 1, MOST - 1, stops=[*range(1, MOST)], log=False, whole=True
    )
    replicas = Number("Replicas", 16, 2, MOST, stops=[*range(2, MOST + 1)], log=False, whole=True, more=True)
    tp = Choice("GPUs of a replica", {str(n): (str(n), n) for n in (1, 2, 4, 8, 16)}, "4", more=True)
    model = Choice("Model", asked.MODELS, "llama3-70b", more=True)
    gpu = Choice("GPU", asked.GPUS, "h100-sxm", more=True)
    wire = asked.wire("One way out of each replica, over all its GPUs")
    ttft = asked.first_token(
        "First token, on average",
        30.0,
        "The mean of all requests; one in ten waits more than twice as long where prefill binds",
    )
    tpot = asked.each_token(0.04)

    presets = {
        "Chat": {},
        "Documents": {"prompt": 16_000, "answer": 300, "ttft": 5, "prefillers": 12},
        "Reasoning, 40 tokens a second": {"prompt": 1000, "answer": 4000, "tpot": 0.025, "prefillers": 1},
        "A hurried agent": {"tpot": 0.02, "ttft": 0.5, "prefillers": 3},
        "Documents over 25 Gb/s": {"prompt": 16_000, "ttft": 5, "prefillers": 12, "wire": 3.125e9},
    }
    break_it = "Find requests for which pools apart serve less than sharing, however they are split."
    assumptions = (
        "All requests are alike, and the wait for a first token is the mean of M/D/1. A replica that shares "
        "pays in each step for the prefills that refill it and is held to the same mean time per token, but "
        "not to any pause. Leaves out bursts beyond Poisson, spread of lengths, and rebalancing as the mix "
        "changes."
    )
    formula = (
        "$$X = \\min\\left(R_p \\, \\frac{\\rho}{\\tau_\\text{prefill}}, \\; R_p \\, \\frac{W}{\\kappa n}, "
        "\\; (R-R_p) \\max_{u:\\,\\tau(u) \\le \\tau_\\text{token}} \\frac{u}{\\tau(u)\\, n_{out}}\\right), "
        "\\qquad \\rho = "
        "\\frac{2(\\tau_\\text{target}-\\tau_\\text{prefill})}{2(\\tau_\\text{target}-\\tau_\\text{prefill})+"
        "\\tau_\\text{prefill}}$$\n\n$R_p$ of $R$ replicas prefill a prompt of $n$ tokens in "
        "$\\tau_\\text{prefill}$ and answer within $\\tau_\\text{target}$ on average; a cache of $\\kappa n$ "
        "bytes leaves over a wire $W$; the others decode with as many users $u$ as $\\tau_\\text{token}$ and "
        "their HBM allow. Without the wire the best share is the prefill's share of the work."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    def at(self):
        return over(machine, self.gpu)

    @once
    def rates(self):
        """(prefill, wire, decode) requests a second of one replica, and of one that shares."""
        at = self.at()
        return over(
            lambda model: pools.rates(
                model, at, self.tp, pools.USERS, self.prompt, self.answer, self.ttft, self.tpot, self.wire
            ),
            self.model,
        )

    @once
    def split(self):
        rates = self.rates()
        return pools.pools(
            np.minimum(PREFILLERS, self.replicas),
            self.replicas,
            rates.prefill_per_s,
            rates.wire_per_s,
            rates.decode_per_s,
        )

    def together(self):
        return self.replicas * self.rates().shared_per_s

    def best(self):
        return np.argmax(self.split().goodput_per_s)

    def best_goodput(self):
        return np.max(self.split().goodput_per_s)

    def front(self):
        return np.minimum(self.prefillers, self.replicas - 1.0)

    def chosen(self, values):
        return np.sum(np.where(self.front() == PREFILLERS, values, 0.0))

    # -- the picture -----------------------------------------------------------------------------------------
    @part(*WORK)
    def bounds(self):
        """Each one is a straight line that ends where it leaves the view; above is room for the key."""
        rates, top = self.rates(), self.view()
        least = top / (2 * MOST)  # so slow a line does not leave the view
        split, none = self.split(), np.zeros(1)
        inside = np.append(none, np.minimum(PREFILLERS, self.replicas))
        all_decode = np.append(none + self.replicas * rates.decode_per_s, split.decode_per_s)
        return {
            "x": inside,
            "goodput": np.append(none, split.goodput_per_s),
            "prefill": np.append(none, np.minimum(split.prefill_per_s, top)),
            "wire": np.append(none, np.minimum(split.wire_per_s, top)),
            "decode": np.minimum(all_decode, top),
            "prefill_x": np.minimum(inside, top / np.maximum(rates.prefill_per_s, least)),
            "wire_x": np.minimum(inside, top / np.maximum(rates.wire_per_s, least)),
            "decode_x": np.maximum(inside, self.replicas - top / np.maximum(rates.decode_per_s, least)),
        }

    @hint("splits")
    def said(self):
        split, inside = self.split(), np.minimum(PREFILLERS, self.replicas)
        return phrase(
            "{p} of them prefill: {x} requests/s.\nPrompts {a}, the wire {b}, answers {c}.",
            p=show(inside, "count"),
            x=show(split.goodput_per_s, "count"),
            a=show(split.prefill_per_s, "count"),
            b=show(split.wire_per_s, "count"),
            c=show(split.decode_per_s, "count"),
        )

    @part(*WORK)
    def splits(self):
        return {"x": np.minimum(PREFILLERS, self.replicas), "y": self.split().goodput_per_s}

    @part(*WORK)
    def sharing(self):
        return {
            "y": self.together(),
            "x": self.replicas,
            "label": f"sharing: {show(self.together(), 'count')}",
        }

    @part(*WORK)
    def winner(self):
        place = self.best()
        x = lookup(PREFILLERS, place)
        left, right = x < self.replicas * 0.35, x > self.replicas * 0.65
        up = np.where(self.together() > self.best_goodput(), 16.0, -16.0)
        between = (x > self.replicas * 0.4) & (x < self.replicas * 0.78)  # where two lines cross, and part
        wedge = between & (self.together() < 0.9 * self.best_goodput())
        narrow_end = np.where(left, beside.LEFT, np.where(right, beside.RIGHT, beside.CENTER))
        end = np.where(wedge, beside.LEFT, narrow_end)
        return {
            "end": end,
            "align": select(end, beside.ALIGN),
            "aside": np.where(wedge, 22.0, 0.0),
            "narrow_end": narrow_end,
            "narrow_align": select(narrow_end, beside.ALIGN),
            "narrow_shift": up,
            "x": lookup(np.minimum(PREFILLERS, self.replicas), place),
            "y": self.best_goodput(),
            "shift": np.where(wedge, 9.0, up),
            "label": choose(
                self.best_goodput() > 0,
                f"best: {show(self.best_goodput(), 'count')}, with "
                f"{show(lookup(PREFILLERS, place), 'count')} of {show(self.replicas, 'count')}",
                "",
            ),
        }

    @part("prefillers", *WORK)
    def mine(self):
        here = self.chosen(self.split().goodput_per_s)
        apart = here < 0.8 * self.best_goodput()
        now = {"x": self.front(), "y": here, "label": choose(apart, f"now: {show(here, 'count')}", "")}
        return now | self.words_at("wide") | self.words_at("narrow")

    def words_at(self, width):
        """Where the words of this split stand: off those of the best one, of sharing, and of the line of
        sharing."""
        best, top = self.winner(), self.view() * KEY_ABOVE
        aside, down = (best["aside"], best["shift"]) if width == "wide" else (0.0, best["narrow_shift"])
        end = best["end"] if width == "wide" else best["narrow_end"]
        at = best["x"] / self.replicas, best["y"] / top
        sharing = self.together() / top
        line = beside.Boxes(0.0, sharing, 0.0, 1000.0, -2.0, 2.0)
        taken = beside.together(
            beside.words(*at, BEST_PX, end, aside, down),
            beside.marks(*at, 15.0),
            beside.words(1.0, sharing, SHARING_PX, beside.RIGHT, -6.0, -10.0),
            line,
        )
        here = self.front() / self.replicas, self.chosen(self.split().goodput_per_s) / top
        return beside.spot(*here, NOW_PX, SPOTS, INSIDE, taken, of=width)[0]

    def view(self):
        return fig.fitting_view(np.maximum(self.best_goodput(), self.together()), VIEWS, headroom=1.35)

    def ranges(self):
        return {"x": [0.0, self.replicas], "y": [0.0, self.view() * KEY_ABOVE]}

    # -- the words -------------------------------------------------------------------------------------------
    @readout("This split serves", rest=True)
    def serves(self):
        goodput = self.chosen(self.split().goodput_per_s)
        return f"{show(goodput, 'count')} requests/s", goodput < self.best_goodput() * 0.5

    def none(self):
        return self.best_goodput() <= 0

    @readout("Best split")
    def best_split(self):
        best = lookup(PREFILLERS, self.best())
        return choose(
            self.none(), "none", f"{show(best, 'count')} : {show(self.replicas - best, 'count')}"
        ), self.none()

    @readout("It serves", rest=True)
    def best_serves(self):
        return f"{show(self.best_goodput(), 'count')} requests/s"

    @readout("Sharing would serve", rest=True)
    def shared(self):
        return f"{show(self.together(), 'count')} requests/s", self.together() > self.best_goodput()

    @readout("Prefill of one")
    def prefill(self):
        return show(self.rates().prefill_s, "seconds"), self.rates().prefill_s > self.ttft

    @readout("Cache of one")
    def cache(self):
        return show(self.rates().cache_bytes, "bytes")

    @regime(target=True)
    def sharing_wins(self):
        return self.together() > self.best_goodput(), (
            f"You found work that does not want two pools: sharing serves {show(self.together(), 'count')} "
            f"requests/s, the best split {show(self.best_goodput(), 'count')}. First response: keep prompts "
            "and answers together, in chunks where pauses matter."
        )

    @regime()
    def cut(self):
        return self.prefillers > self.front(), (
            f"Of {show(self.replicas, 'count')} replicas one at least has to write, so "
            f"{show(self.front(), 'count')} prefill, not {show(self.prefillers, 'count')}."
        )

    @regime()
    def out_of_reach(self):
        late = self.rates().prefill_s > self.ttft
        return self.none(), choose(
            late,
            f"One prompt alone takes {show(self.rates().prefill_s, 'seconds')} to read, the target is "
            f"{show(self.ttft, 'seconds')}: no split meets it. First response: more GPUs in a replica that "
            "prefills, or a looser target.",
            f"Not one user is served within {show(self.tpot, 'seconds')} a token: no split meets it. First "
            "response: more GPUs in a replica, narrower weights, or a looser target.",
        )

    @regime()
    def idle_pool(self):
        split = self.split()
        prompts, answers = self.chosen(split.prefill_per_s), self.chosen(split.decode_per_s)
        bound = choose(
            prompts < answers,
            "prompts wait while the others idle",
            "answers wait while the prompts' replicas idle",
        )
        wire_waits = self.chosen(split.wire_per_s) >= np.minimum(prompts, answers)
        return (self.chosen(split.goodput_per_s) < self.best_goodput() * 0.7) & wire_waits, (
            f"This split serves {show(self.chosen(split.goodput_per_s), 'count')} of "
            f"{show(self.best_goodput(), 'count')} requests/s: {bound}. "
            "First response: move replicas to the pool that binds."
        )

    @regime()
    def wire_binds(self):
        split = self.split()
        wire = self.chosen(split.wire_per_s)
        return (wire < self.chosen(split.prefill_per_s)) & (wire < self.chosen(split.decode_per_s)), (
            f"The wire binds: each cache of {self.cache()} takes longer to send than to make. First "
            "response: all the replica's cards, a narrower cache, or sharing."
        )

    def summary(self):
        here, most = self.chosen(self.split().goodput_per_s), self.best_goodput()
        is_best = here >= 0.999 * most
        prompts = f"prompts of {show(self.prompt, 'tokens')}"
        replicas = f"{show(self.replicas, 'count')} replicas"
        split = f"{show(self.front(), 'count')} : {show(self.replicas - self.front(), 'count')}"
        better = f"{self.best_split()[0]} would serve {show(most, 'count')}, "
        return choose(
            self.none(),
            f"No split of {replicas} of {self.model.name} serves {prompts} within the targets.",
            f"Split {split}{choose(is_best, ', the best', '')}, {replicas} serve {show(here, 'count')} "
            f"{prompts} a second; {choose(is_best, '', better)}sharing "
            f"{choose(is_best, 'serves ', '')}{show(self.together(), 'count')}.",
        )

    def figure(self, sources):
        p = fig.plot(
            (0, 16),
            (0, 20),
            height=420,
            x_title="replicas that prefill; ○ each split",
            y_title="requests per second",
        )
        color, bounds = fig.COLOR, sources["bounds"]
        p.varea("x", y1=0, y2="goodput", source=bounds, fill_color=color["accent"], fill_alpha=0.14)
        for name, token, dash in (
            ("prefill", "compute", "solid"),
            ("decode", "hbm", "solid"),
            ("wire", "network", [6, 4]),
        ):
            p.line(f"{name}_x", name, source=bounds, line_color=color[token], line_width=2.2, line_dash=dash)
        p.scatter(
            "x", "y", source=sources["splits"], size=6, fill_color=color["panel"], line_color=color["accent"]
        )
        p.segment(
            0,
            "y",
            100,
            "y",
            source=sources["sharing"],
            line_color=color["ink"],
            line_dash=[2, 4],
            line_width=2,
        )
        p.text(
            "x",
            "y",
            text="label",
            x_offset=-6,
            y_offset=-10,
            text_align="right",
            source=sources["sharing"],
            **fig.ON_PANEL,
            **fig.LABEL,
        )
        p.scatter(
            "x",
            "y",
            source=sources["mine"],
            size=13,
            fill_color=color["accent"],
            line_color=color["panel"],
            line_width=2,
        )
        p.scatter(
            "x",
            "y",
            source=sources["winner"],
            marker="diamond",
            size=15,
            fill_color=color["panel"],
            line_color=color["accent"],
            line_width=2,
        )
        now = {"text": "label", "source": sources["mine"]} | fig.BOLD
        for width in ("wide", "narrow"):
            fig.only(width, p.text("x", "y", **beside.placed(width), **now))
        best = {"text": "label", "source": sources["winner"]} | fig.BOLD
        wide = {"x_offset": "aside", "y_offset": "shift", "text_align": "align"}
        fig.only("wide", p.text("x", "y", **wide, **best))
        narrow = {"y_offset": "narrow_shift", "text_align": "narrow_align"}
        fig.only("narrow", p.text("x", "y", **narrow, **best, **fig.ON_PANEL))
        fig.key(
            p,
            {"prompts could": "compute", "the wire could": "network", "answers could": "hbm"},
            wide=0.96,
            narrow=0.96,
            own_heights=True,
        )
        return p


PoolRatio.serve_as(__name__)
