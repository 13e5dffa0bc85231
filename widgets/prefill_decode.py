"""Requests on their way through a server, event by event: prompts and answers on the same GPUs, in chunks, or on pools apart."""

import numpy as np

from engine import catalog, serving
from engine.layout import machine
from widgets.kit import figure as fig
from widgets.kit.controls import Choice, Number
from widgets.kit.symbolic import lookup, over
from widgets.kit.text import choose, phrase, show
from widgets.kit.widget import Widget, hint, once, part, readout, regime

REQUESTS, SHOWN = 96, 32
ROWS = -np.arange(1.0, SHOWN + 1)
ROW_OF = np.concatenate([[0.0], ROWS])        # requests are counted from 1
MODELS = [catalog.model(key) for key in ("llama3-8b", "qwen3-32b", "llama3-70b", "gpt-oss-120b", "deepseek-v3")]
GPUS = [catalog.gpu(key) for key in ("a100-80", "h100-sxm", "h200", "b200")]
MODES = {"prefill_first": ("together, prompts first", 0), "chunked": ("together, prompts in chunks", 1),
         "disaggregated": ("pools apart", 2)}
WHOLE_PROMPTS = 8192            # tokens of a step that prefills alone
VIEWS_S = [m * 10.0**e for e in range(-1, 5) for m in (1, 1.5, 2, 3, 4, 6, 8)]
RUN = ("mode", "rate", "prompt", "answer", "spread", "model", "gpu", "tp", "replicas", "prefillers", "chunk", "wire", "seed")
TARGETS = ("ttft", "tpot")


class PrefillDecode(Widget):
    question = "Should reading prompts and writing answers share the same GPUs?"
    in_page = True
    mode = Choice("Prompts and answers", MODES, "prefill_first")
    rate = Number("Requests per second", 8, 0.2, 200, stops=73, marks=(1, 2, 4, 8, 16))
    prompt = Number("Prompt, median", 2000, 50, 64_000, family="tokens", stops=61, whole=True, marks=(500, 2000, 8000, 32000))
    answer = Number("Answer, median", 200, 1, 4000, family="tokens", stops=53, whole=True, marks=(200, 1000), more=True)
    spread = Number("Spread of the lengths", 0.6, 0.0, 1.5, stops=31, log=False, more=True,
                    help="Standard deviation of their logarithm; 0 makes all alike")
    model = Choice("Model", MODELS, "llama3-70b", more=True)
    gpu = Choice("GPU", GPUS, "h100-sxm", more=True)
    tp = Choice("GPUs of a replica", {str(n): (str(n), n) for n in (1, 2, 4, 8)}, "4", more=True)
    replicas = Number("Replicas", 6, 2, 16, stops=[*range(2, 17)], whole=True, more=True)
    prefillers = Number("Of them only prefill", 3, 1, 15, stops=[*range(1, 16)], whole=True, more=True,
                        help="Where the pools are apart; at least one is left to decode")
    chunk = Number("Chunk", 512, 64, 8192, family="tokens", stops=[2**k for k in range(6, 14)], whole=True, more=True,
                   help="Tokens of a step, prompts and answers together")
    wire = Number("Wire between the pools", 50e9, 0.1e9, 450e9, family="bytes_per_s", stops=61, marks=(1.25e9, 12.5e9, 400e9), more=True,
                  help="From replica to replica, all its GPUs together, one way")
    ttft = Number("First token, at most", 1.0, 0.05, 20.0, family="seconds", stops=49, marks=(0.2, 0.5, 2.0), more=True)
    tpot = Number("Each token, at most", 0.05, 0.005, 1.0, family="seconds", stops=49, marks=(0.02, 0.05, 0.1), more=True)
    seed = Number("Seed", 1, 0, 99, stops=[*range(100)], log=False, whole=True, more=True)
    follow = Number("Follow request", 12, 1, SHOWN, stops=[*range(1, SHOWN + 1)], log=False, whole=True, more=True)

    presets = {
        "Prompts first": {},
        "… in chunks": {"mode": "chunked"},
        "… pools apart": {"mode": "disaggregated"},
        "Documents, pools apart": {"mode": "disaggregated", "prompt": 8000, "rate": 3, "prefillers": 4, "ttft": 5},
        "8B, many chats": {"model": "llama3-8b", "tp": "1", "rate": 40, "prompt": 500},
    }
    break_it = "Move the pools apart, then narrow the wire between them until moving a cache takes longer than it saves."
    assumptions = (f"{REQUESTS} requests from an idle start: Poisson arrivals, log-normal lengths, drawn from the seed; the first "
                   f"{SHOWN} are drawn. A request goes to the replica that owes the fewest tokens. Caches move once a prompt is through, one "
                   "after another. Leaves out shared prefixes, priorities, and moving a cache layer by layer behind the prefill.")
    formula = ("Each step of a replica takes $t(n) + a \\sum_{pairs} + c \\sum_{cached}$ for $n$ tokens: the products, norms and AllReduces "
               "of the cost model at $n$, attention for each pair of a new token and one that it sees, and the reading of each cached token. "
               "What is drawn is no formula of queues but a run of the server, step by step (DistServe, arXiv:2401.09670; chunks: "
               "Sarathi-Serve, arXiv:2403.02310).")

    # -- the engine, asked ------------------------------------------------------------------------------------------
    @once
    def costs(self):
        at = over(machine, self.gpu)
        return over(lambda model: serving.costs(model, at, self.tp, 2048.0), self.model)

    def decoders(self):
        return serving.others(self.replicas, self.front())

    def front(self):
        return serving.at_least_one_left(self.prefillers, self.replicas)

    def served(self, mode):
        costs = self.costs()
        budget = np.where(mode == 1, self.chunk, WHOLE_PROMPTS)
        traffic = serving.Traffic(REQUESTS, self.rate, self.prompt, self.answer, self.spread, self.spread, self.seed)
        return serving.run(serving.Costs(costs.rows, costs.rows_s, costs.pair_s, costs.cached_s, costs.capacity, costs.kv_bytes), traffic,
                           serving.Service(mode, self.replicas, self.front(), budget, 256.0, self.wire))

    @once
    def run(self):
        return self.served(self.mode)

    @once
    def together(self):
        """The same requests where prompts go first: what pools apart are to be better than."""
        return self.served(0)

    @once
    def felt(self):
        return serving.felt(self.run())

    def apart(self):
        return self.mode == 2

    def attained(self):
        return serving.attained(self.felt(), self.ttft, self.tpot, REQUESTS)

    def moving_s(self):
        return serving.percentile(serving.moving_s(self.run()), 0.5)

    def median_pause(self, run):
        return serving.percentile(serving.felt(run).pause_s, 0.5)

    # -- the picture ------------------------------------------------------------------------------------------------
    def phases(self):
        """When each of the requests shown came, was begun, spoke, had its cache moved, and was through."""
        return serving.phases({name: column[:SHOWN] for name, column in self.run().items()})

    @part(*RUN)
    def requests(self):
        at = self.phases()
        return {"left": at.came_s, "prefill": at.started_s, "spoke": at.first_s, "moved": at.moved_s, "right": at.last_s,
                "pause": at.paused_s, "pause_end": at.resumed_s, **fig.rows_of(ROWS, 0.42)}

    @hint("requests")
    def said(self):
        run, at = {name: column[:SHOWN] for name, column in self.run().items()}, self.phases()
        felt = serving.felt(run)
        return phrase("Request {n}: {prompt} of prompt, {answer} of answer.\nWaits {wait}, prefill {prefill}, cache on the wire {moving}, "
                      "then {each} a token.\nLongest pause between two tokens: {pause}. Put out of the cache {out} times.",
                      n=show(np.arange(1.0, SHOWN + 1), "count"), prompt=show(run["prompt"], "tokens"), answer=show(run["output"], "tokens"),
                      wait=show(fig.length(at.came_s, at.started_s), "seconds"), prefill=show(fig.length(at.started_s, at.first_s), "seconds"),
                      moving=show(fig.length(at.first_s, at.moved_s), "seconds"), each=show(np.maximum(felt.tpot_s, 0.0), "seconds"),
                      pause=show(np.maximum(felt.pause_s, 0.0), "seconds"), out=show(run["put_out"], "count"))

    @part("follow")
    def followed(self):
        return fig.rows_of(lookup(ROW_OF, self.follow), 0.5)

    def view_s(self):
        return fig.fitting_view(np.max(self.phases().last_s), VIEWS_S, headroom=1.01)

    def ranges(self):
        return {"x": [0.0, self.view_s()]}

    # -- the words --------------------------------------------------------------------------------------------------
    @readout("First token, median")
    def first_median(self):
        return show(serving.percentile(self.felt().ttft_s, 0.5), "seconds")

    @readout("First token, 9 of 10 within")
    def first_most(self):
        value = serving.percentile(self.felt().ttft_s, 0.9)
        return show(value, "seconds"), value > self.ttft

    @readout("Each token, 9 of 10 within")
    def each_most(self):
        value = serving.percentile(self.felt().tpot_s, 0.9)
        return show(value, "seconds"), value > self.tpot

    @readout("Longest pause, median")
    def pause(self):
        return show(self.median_pause(self.run()), "seconds")

    @readout("Meet both targets")
    def meet(self):
        return show(self.attained(), "percent"), self.attained() < 0.9

    @readout("Moving a cache")
    def moving(self):
        return choose(self.apart(), show(self.moving_s(), "seconds"), "not needed")

    @readout("Request followed")
    def one(self):
        at, followed = self.phases(), ROWS == lookup(ROW_OF, self.follow)
        return show(np.max(np.where(followed, fig.length(at.came_s, at.last_s), 0.0)), "seconds")

    @regime(target=True)
    def wire_too_narrow(self):
        apart, together = self.median_pause(self.run()), self.median_pause(self.together())
        stopped = together > serving.times(2.0, serving.percentile(serving.felt(self.together()).tpot_s, 0.5))
        return self.apart() & stopped & (apart > together), (
            f"You found the wire that eats the saving: half of the readers now wait {show(apart, 'seconds')} or more for a cache on its way, "
            f"where prompts on the same GPUs had stopped them for {show(together, 'seconds')}. First response: a wider wire, a narrower "
            "cache, or chunks instead of pools.")

    @regime()
    def overloaded(self):
        late, early = serving.late_over_early(self.felt().ttft_s, REQUESTS)
        return late > serving.times(2.0, np.maximum(early, self.ttft)), (
            f"The queue only grows: the last quarter waits {show(late, 'seconds')} for a first token, the first quarter "
            f"{show(early, 'seconds')}. First response: more replicas, or turn requests away.")

    @regime()
    def stalled(self):
        return (self.mode == 0) & (self.median_pause(self.run()) > serving.times(3.0, self.tpot)), (
            f"Half of the readers see a pause of {show(self.median_pause(self.run()), 'seconds')} or longer: someone else's prompt. First "
            "response: prompts in chunks, or on GPUs of their own.")

    def summary(self):
        pools = f"{show(self.front(), 'count')} to prefill and {show(self.decoders(), 'count')} to decode"
        return (f"At {show(self.rate, 'count')} requests a second, {show(self.replicas, 'count')} replicas of {self.model.name}"
                f"{choose(self.apart(), f', {pools},', '')} give half of the readers a first token within {self.first_median()} and nine of ten "
                f"a token every {self.each_most()[0]}; {self.meet()[0]} meet both targets.")

    def figure(self, sources):
        p = fig.plot((0, 30), (-SHOWN - 0.7, 6.6), height=470, x_title="seconds since the first request")
        fig.hide(p.yaxis[0])
        p.ygrid.visible = False
        color, rows = fig.COLOR, sources["requests"]
        p.quad(left=-1e4, right=1e6, bottom="bottom", top="top", source=sources["followed"], fill_color=color["accent"], fill_alpha=0.14,
               line_color=None)
        p.quad(left="left", right="prefill", bottom="bottom", top="top", source=rows, **fig.IDLE | {"line_color": None})
        for start, end, token, alpha in (("prefill", "spoke", "compute", 0.75), ("spoke", "moved", "network", 0.8),
                                         ("moved", "right", "hbm", 0.4)):
            p.quad(left=start, right=end, bottom="bottom", top="top", source=rows, fill_color=color[token], fill_alpha=alpha, line_color=None)
        p.quad(left="pause", right="pause_end", bottom="bottom", top="top", source=rows, fill_color=color["ink"], fill_alpha=0.8,
               line_color=None)
        fig.key(p, {"waits": "idle", "prefill": "compute", "cache on the wire": "network", "decode": "hbm",
                    "its longest pause": "ink"}, wide=2.4, narrow=(5.6, 3.4, 1.2), hatches=["left_diagonal_line", " ", " ", " ", " "])
        return p
