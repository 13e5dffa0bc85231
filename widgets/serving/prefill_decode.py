"""Requests on their way through a server, event by event: prompts and answers on the same GPUs, in chunks, or
on separate pools."""

import numpy as np

from engine.serving import latencies, phases, steady_state, step_costs, under_traffic
from engine.step.layout import machine
from widgets.kit.compiler.symbols import lookup, over
from widgets.kit.controls import Choice, Number
from widgets.kit.drawing import figure as fig
from widgets.kit.guide import Light, Step
from widgets.kit.text import choose, counted, phrase, select, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime
from widgets.serving.two_pools import asked

REQUESTS, WARM_UP, SHOWN = 240, 80, 32  # of a run; dropped at its beginning; then drawn
COUNTED_REQUESTS = REQUESTS - WARM_UP
NUMBERS = np.arange(1.0, SHOWN + 1)
REPLICAS = np.arange(16.0)
COUNTED = ["", *(f"{n + 1:.0f}" for n in REPLICAS)]
NAMED = ["", *(f"replica {n + 1:.0f}" for n in REPLICAS)]
GAP = 0.7  # between the lanes of two replicas, in lanes
LEFT = 0.1  # of the time drawn: the room for the replicas' names
MODES = {
    "prefill_first": ("together, prompts first", 0),
    "chunked": ("together, prompts in chunks", 1),
    "disaggregated": ("pools apart", 2),
}
NEAR = 0.75  # of what can be served: from there on one short run says little
WIDEST = 450e9  # a wire that no cache waits for
WHOLE_PROMPTS = 8192  # tokens of a step that prefills alone
VIEWS_S = [m * 10.0**e for e in range(-1, 5) for m in (1, 1.2, 1.6, 2, 2.5, 3, 4, 5, 6, 8)]
PAUSE = {"fill_color": fig.COLOR["panel"], "line_color": fig.COLOR["ink"], "line_width": 1.5}
RUN = (
    "mode",
    "rate",
    "prompt",
    "answer",
    "spread",
    "model",
    "gpu",
    "tp",
    "replicas",
    "prefillers",
    "chunk",
    "wire",
    "seed",
)
TARGETS = ("ttft", "tpot")


class PrefillDecode(Widget):
    question = "Should reading prompts and writing answers share the same GPUs?"
    in_page = True
    mode = Choice("Prompts and answers", MODES, "prefill_first")
    rate = Number("Requests per second", 8, 0.2, 200, stops=73, marks=(1, 2, 4, 8, 16))
    prompt = Number(
        "Prompt, median",
        2000,
        50,
        64_000,
        family="tokens",
        stops=61,
        whole=True,
        marks=(500, 2000, 8000, 32000),
    )
    answer = Number(
        "Answer, median", 200, 1, 4000, family="tokens", stops=53, whole=True, marks=(200, 1000), more=True
    )
    spread = asked.spread()
    model = Choice("Model", asked.MODELS, "llama3-70b", more=True)
    gpu = Choice("GPU", asked.GPUS, "h100-sxm", more=True)
    tp = Choice("GPUs of a replica", {str(n): (str(n), n) for n in (1, 2, 4, 8)}, "4", more=True)
    replicas = Number("Replicas", 6, 2, 16, stops=[*range(2, 17)], whole=True, more=True)
    prefillers = Number(
        "Of them only prefill",
        3,
        1,
        15,
        stops=[*range(1, 16)],
        whole=True,
        more=True,
        help="For separate pools; at least one replica is left to decode",
    )
    chunk = Number(
        "Chunk",
        512,
        64,
        8192,
        family="tokens",
        stops=[2**k for k in range(6, 14)],
        whole=True,
        more=True,
        help="Tokens per step, prompts and answers together",
    )
    wire = asked.wire("One way between two replicas, over all GPUs of one")
    ttft = asked.first_token("First token, at most", 20.0)
    tpot = asked.each_token(0.05)
    seed = Number("Seed", 97, 0, 99, stops=[*range(100)], log=False, whole=True, more=True)
    follow = Number(
        "Follow request", 12, 1, SHOWN, stops=[*range(1, SHOWN + 1)], log=False, whole=True, more=True
    )

    presets = {
        "Prompts first": {},
        "… in chunks": {"mode": "chunked"},
        "… pools apart": {"mode": "disaggregated"},
        "Documents, pools apart": {
            "mode": "disaggregated",
            "prompt": 8000,
            "rate": 3,
            "prefillers": 4,
            "ttft": 5,
        },
        "8B, many chats": {"model": "llama3-8b", "tp": "1", "rate": 40, "prompt": 500},
    }
    break_it = (
        "Move the pools apart, then narrow the wire between them until moving a cache takes longer "
        "than it saves."
    )
    lights = {
        "waits": Light("requests that wait for their prefill", ("waits",)),
        "prefill": Light("prompts being read", ("prefill",)),
        "wire": Light("caches on the wire", ("wire",)),
        "decode": Light("answers being written", ("decode",)),
        "pauses": Light("the longest pause of each answer", ("pauses",)),
    }
    tour = (
        Step(
            "{rate} requests a second, a row for each. A new prompt goes first and stops all answers on its "
            "replica: for half of the users the longest pause is {pause} or more.",
            {},
            "pauses",
        ),
        Step(
            "Cut into chunks, prompts and answers take turns: the median pause falls to {pause}. A prompt "
            "is through later, and half of the first tokens take {first_median} or more.",
            {"mode": "chunked"},
            "pauses",
        ),
        Step(
            "On pools apart prompts stop no answer. Each cache has to move to the other pool, which takes "
            "{moving}; the median pause is down to {pause}.",
            {"mode": "disaggregated"},
            "wire",
        ),
        Step(
            "Over a wire of {wire} caches are made faster than they are sent: {most} is all that it can "
            "carry, and each user waits longer than the one before. Sharing the GPUs was better.",
            {"mode": "disaggregated", "wire": 1.25e9},
            "wire",
        ),
    )
    assumptions = (
        f"The seed draws {REQUESTS} requests, which arrive at random (a Poisson stream) and whose lengths "
        "are log-normal. The first "
        f"{WARM_UP} find a server that fills up and are dropped; the other {COUNTED_REQUESTS} are counted, "
        f"the share that meets both targets with its 95 % interval, and the first {SHOWN} of them are drawn. "
        "What the replicas can serve is a closed form. A request goes to the replica that owes the fewest "
        "tokens. Caches move once a prompt is through, one after another. Leaves out shared prefixes, "
        "priorities, and moving a cache layer by layer behind the prefill."
    )
    formula = (
        "A step of a replica over $n$ tokens takes $\\tau(n) + \\tau_\\text{attention} + "
        "\\tau_\\text{cache}$: the products, norms and AllReduces of the cost model at $n$, attention for "
        "each pair of a new token and one that it sees, and the reading of each cached token. What is drawn "
        "is no formula of queues but a run of the server, step by step (DistServe, arXiv:2401.09670; chunks: "
        "Sarathi-Serve, arXiv:2403.02310)."
    )

    # -- the engine, asked -----------------------------------------------------------------------------------
    @once
    def costs(self):
        at = over(machine, self.gpu)
        read = under_traffic.context_of(self.traffic())
        return over(lambda model: step_costs.costs(model, at, self.tp, 2048.0, context=read), self.model)

    def decoders(self):
        return self.replicas - self.front()

    def front(self):
        return np.minimum(self.prefillers, self.replicas - 1.0)

    def steps(self):
        costs = self.costs()
        return step_costs.Costs(
            costs.rows, costs.rows_s, costs.pair_s, costs.cached_s, costs.capacity, costs.kv_bytes
        )

    def traffic(self):
        return under_traffic.Traffic(
            REQUESTS, self.rate, self.prompt, self.answer, self.spread, self.spread, self.seed
        )

    def service(self, mode):
        return self.service_over(mode, self.wire)

    def service_over(self, mode, wire):
        budget = np.where(mode == 1, self.chunk, WHOLE_PROMPTS)
        return under_traffic.Service(mode, self.replicas, self.front(), budget, 256.0, wire)

    def served(self, mode):
        """The requests that are counted."""
        run = under_traffic.run(self.steps(), self.traffic(), self.service(mode))
        return phases.since(run, WARM_UP, REQUESTS)

    @once
    def can_serve(self):
        """Requests a second, at most, without a queue that grows for ever."""
        return steady_state.can_serve_per_s(self.steps(), self.traffic(), self.service(self.mode))

    def behind(self):
        return self.rate >= self.can_serve()

    def pools_serve(self, wire):
        """Whether this split into pools could serve all that arrives, over such a wire."""
        service = self.service_over(2, wire)
        return self.rate < steady_state.can_serve_per_s(self.steps(), self.traffic(), service)

    @once
    def run(self):
        return self.served(self.mode)

    @once
    def together(self):
        """The same requests with prompts first, which separate pools should beat."""
        return self.served(0)

    @once
    def felt(self):
        return latencies.felt(self.run())

    def apart(self):
        return self.mode == 2

    def attained(self):
        return latencies.attained(self.felt(), self.ttft, self.tpot, COUNTED_REQUESTS)

    def attained_error(self):
        return steady_state.half_width(latencies.met(self.felt(), self.ttft, self.tpot))

    def moving_s(self):
        return latencies.percentile(phases.moving_s(self.run()), 0.5)

    def median_pause(self, run):
        return latencies.percentile(latencies.felt(run).pause_s, 0.5)

    # -- the picture -----------------------------------------------------------------------------------------
    def phases(self):
        """The times at which each of the requests shown arrived, started, gave its first token, had its cache
        sent, and finished, since the first of them arrived."""
        at = phases.phases(phases.since(self.run(), 0, SHOWN))
        return phases.Phases(*[column - at.came_s[0] for column in at])

    def whose(self):
        """The replica that answers each one."""
        return self.run()["at"][:SHOWN]

    def lane(self):
        """How high a lane is, so that all of them and the gaps between replicas take one height."""
        return SHOWN / (SHOWN + GAP * (self.replicas - 1))

    def heights(self):
        return -(1.0 + phases.lanes(self.whose()) + GAP * np.maximum(self.whose(), 0.0)) * self.lane()

    @part(*RUN)
    def requests(self):
        at = self.phases()
        return {
            "left": at.came_s,
            "prefill": at.started_s,
            "waits": np.where(at.started_s > at.came_s, 1.0, 0.0),
            "spoke": at.first_s,
            "moved": at.moved_s,
            "right": at.last_s,
            "pause": at.paused_s,
            "pause_end": at.resumed_s,
            **fig.rows_of(self.heights(), 0.42 * self.lane()),
        }

    @hint("requests")
    def said(self):
        run, at = phases.since(self.run(), 0, SHOWN), self.phases()
        felt = latencies.felt(run)
        return phrase(
            "Request {n}: {prompt} of prompt, {answer} of answer.\nWaits {wait}, prefill {prefill}, cache on "
            "the wire {moving}, then {each} a token.\nLongest pause between two tokens: {pause}. Preempted "
            "{out} times.",
            n=show(NUMBERS, "count"),
            prompt=show(run["prompt"], "tokens"),
            answer=show(run["output"], "tokens"),
            wait=show(at.started_s - at.came_s, "seconds"),
            prefill=show(at.first_s - at.started_s, "seconds"),
            moving=show(at.moved_s - at.first_s, "seconds"),
            each=show(np.maximum(felt.tpot_s, 0.0), "seconds"),
            pause=show(np.maximum(felt.pause_s, 0.0), "seconds"),
            out=show(run["put_out"], "count"),
        )

    @part("follow", *RUN)
    def followed(self):
        """A frame round the request that is followed, from its arrival to its last token."""
        at, row = self.phases(), self.follow - 1
        ends = {"left": lookup(at.came_s, row), "right": lookup(at.last_s, row)}
        return ends | fig.rows_of(lookup(self.heights(), row), 0.5 * self.lane())

    @part(*RUN, shown=False)
    def replicas_named(self):
        """Each replica's number in the middle of its lanes."""
        of_each = self.whose()[None, :] == REPLICAS[:, None]
        lanes = np.sum(np.where(of_each, 1.0, 0.0), axis=1)
        middle = np.sum(np.where(of_each, self.heights()[None, :], 0.0), axis=1) / np.maximum(lanes, 1.0)
        number = np.where(lanes > 0, REPLICAS + 1, 0)
        return {"y": middle, "number": select(number, COUNTED), "name": select(number, NAMED)}

    @part("mode", "model", "gpu", "tp", "replicas", shown=False)
    def finding(self):
        """Whose requests are drawn; and which of the key's entries the picture has marks for."""
        each = f"{show(self.tp, 'count')} {self.gpu.name}"
        return {
            "x": 0.0,
            "text": f"{self.model.name} on {counted(self.replicas, 'replica', 'replicas')} of {each}: "
            f"{SHOWN} requests, a row each",
            "wire_key": fig.in_key(self.apart()),
        }

    def view_s(self):
        return fig.fitting_view(np.max(self.phases().last_s), VIEWS_S, headroom=1.01)

    def ranges(self):
        return {"x": [-LEFT * self.view_s(), self.view_s()]}

    # -- the words -------------------------------------------------------------------------------------------
    def settled(self, shown):
        """A value of the steady state, where there is one."""
        return choose(self.behind(), "not settled", shown)

    @readout("First token, median", rest=True)
    def first_median(self):
        return self.settled(show(latencies.percentile(self.felt().ttft_s, 0.5), "seconds"))

    @readout("First token, 9 of 10 within")
    def first_most(self):
        value = latencies.percentile(self.felt().ttft_s, 0.9)
        return self.settled(show(value, "seconds")), self.behind() | (value > self.ttft)

    @readout("Each token, 9 of 10 within")
    def each_most(self):
        value = latencies.percentile(self.felt().tpot_s, 0.9)
        return self.settled(show(value, "seconds")), self.behind() | (value > self.tpot)

    @readout("Longest pause of an answer, median")
    def pause(self):
        return self.settled(show(self.median_pause(self.run()), "seconds"))

    @readout("Meet both targets", rest=True)
    def meet(self):
        error, share = self.attained_error(), show(self.attained(), "percent")
        known = choose(error > 0, f"{share} ± {show(error, 'percent')}", share)
        return self.settled(known), self.behind() | (self.attained() < 0.9)

    @readout("Can serve", rest=True)
    def most(self):
        return f"{show(self.can_serve(), 'count')} requests/s", self.behind()

    @readout("Moving a cache", rest=True)
    def moving(self):
        return choose(self.apart(), show(self.moving_s(), "seconds"), "not needed")

    @readout("Request followed", rest=True)
    def one(self):
        at, followed = self.phases(), self.follow == NUMBERS
        return show(np.max(np.where(followed, at.last_s - at.came_s, 0.0)), "seconds")

    @regime(target=True)
    def wire_too_narrow(self):
        apart, together = self.median_pause(self.run()), self.median_pause(self.together())
        stopped = together > 2.0 * latencies.percentile(latencies.felt(self.together()).tpot_s, 0.5)
        waits = choose(
            self.behind(),
            "caches are made faster than it sends them, so every user waits longer than the one before",
            f"half of the users wait {show(apart, 'seconds')} or more for a cache on its way",
        )
        return self.apart() & stopped & (apart > together) & self.pools_serve(WIDEST), (
            f"You found the wire that eats the saving: {waits}, "
            f"where prompts on the same GPUs had stopped half of them for {show(together, 'seconds')} or "
            "more. First response: a wider wire, a narrower cache, or chunks instead of pools."
        )

    @regime()
    def cut(self):
        return self.apart() & (self.prefillers > self.front()), (
            f"Of {show(self.replicas, 'count')} replicas one at least has to decode, so "
            f"{show(self.front(), 'count')} only prefill, not {show(self.prefillers, 'count')}."
        )

    @regime()
    def overloaded(self):
        return self.behind(), (
            f"There is no steady state: {counted(self.rate, 'request', 'requests')} arrive in a second and "
            f"{show(self.can_serve(), 'count')} can be served, so waits grow for as long as this goes on. "
            "First response: more replicas, another split, or turn requests away."
        )

    @regime()
    def near_the_limit(self):
        load = self.rate / self.can_serve()
        return (load > NEAR) & (load < 1.0), (
            f"At {show(load, 'percent')} of what can be served, queues come and go over minutes: these "
            f"{COUNTED_REQUESTS} requests are one draw of many, another seed gives another. First response: "
            "plan for less load, or measure for longer."
        )

    @regime()
    def stalled(self):
        return ~self.behind() & (self.mode == 0) & (self.median_pause(self.run()) > 3.0 * self.tpot), (
            f"Half of the users see a pause of {show(self.median_pause(self.run()), 'seconds')} or "
            "longer: someone else's prompt. First response: prompts in chunks"
            f"{choose(self.pools_serve(self.wire), ', or on GPUs of their own', '')}."
        )

    def summary(self):
        pools = (
            f"{counted(self.front(), 'replica', 'replicas')} to prefill, {show(self.decoders(), 'count')} to "
            "decode"
        )
        rate = f"at {counted(self.rate, 'request', 'requests')} a second"
        start = select(self.mode, [f"prompts first, {rate}", f"prompts in chunks, {rate}", pools])
        slower = show(np.maximum(0.0, self.rate / self.can_serve() - 1.0), "seconds")
        room = show(self.can_serve(), "count")
        return choose(
            self.behind(),
            f"{self.model.name}, {start}: there is room for {room}, so waits grow by {slower} every second.",
            f"{self.model.name}, {start}: half of the answers pause for {self.pause()} or longer.",
        )

    def figure(self, sources):
        p = fig.plot(
            (0, 30), (-SHOWN - 0.7, 6.6), height=470, x_title="seconds since the first request drawn"
        )
        fig.hide(p.yaxis[0])
        p.ygrid.visible = False
        color, rows = fig.COLOR, sources["requests"]
        names = sources["replicas_named"]
        for width, words in (("wide", "name"), ("narrow", "number")):
            fig.only(
                width, p.text(0, "y", text=words, x_offset=-6, text_align="right", source=names, **fig.LABEL)
            )
        p.quad(
            left="left",
            right="prefill",
            bottom="bottom",
            top="top",
            source=rows,
            name="waits",
            **fig.IDLE | {"line_alpha": "waits"},
        )
        for name, start, end, token in (
            ("prefill", "prefill", "spoke", "compute"),
            ("wire", "spoke", "moved", "network"),
            ("decode", "moved", "right", "hbm"),
        ):
            p.quad(
                left=start,
                right=end,
                bottom="bottom",
                top="top",
                source=rows,
                fill_color=color[token],
                line_color=None,
                name=name,
            )
        p.quad(
            left="pause", right="pause_end", bottom="bottom", top="top", source=rows, name="pauses", **PAUSE
        )
        p.quad(
            **fig.BOX, source=sources["followed"], fill_color=None, line_color=color["accent"], line_width=1.5
        )
        finding = sources["finding"]
        fig.only("wide", p.text("x", 4.9, text="text", source=finding, **fig.BOLD))
        fig.key(
            p,
            {
                "waits": "idle",
                "prefill": "compute",
                "decode": "hbm",
                "its longest pause": PAUSE,
                "cache on the wire": "network",
            },
            wide=2.4,
            narrow=5.6,
            places={"cache on the wire": (finding, "wire_key")},
        )
        return p


PrefillDecode.serve_as(__name__)
