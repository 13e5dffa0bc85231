"""What each figure advises, how a reader follows it there, and what it should make better.

An entry of GIVEN belongs to a regime whose words hold a *First response*. ``follow`` moves controls as a
reader would who does what the words say, and ``worse`` is the number that the advice promises to make
smaller. ELSEWHERE are those that no control of the figure can follow, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from engine import catalog
from engine.executed import zero
from engine.mechanism import fusion, hierarchy, memory, roofline
from engine.one_gpu import allocator_replay, tiling
from engine.serving.deployment import choice
from engine.step import home, planner, search
from engine.step.layout import Job
from tests import states
from widgets.composition.strategy_triangle import FSDP
from widgets.gpu import loss_scaling
from widgets.gpu.program_blocks import GROUPS

State = dict[str, float]
Follow = Callable[[type, State, object], State | None]


@dataclass(frozen=True)
class Advice:
    """A piece of the words, what a reader does about it, and what should fall; ``instead`` measures what is
    taken up, where that is not the same thing in another state."""

    words: str
    follow: Follow
    worse: Callable
    instead: Callable | None = None
    enough: bool = False  # one move must end the regime
    at_times: bool = False  # never worse, better in some state: what counts in whole users or ranks


# -- what a hand does ----------------------------------------------------------------------------------------
def stops(cls, name: str) -> list[float]:
    return states.values_of(cls.controls()[name])


def along(name: str, by: int) -> Follow:
    """The control moved by so many stops, to its end if that is nearer; None at the end."""

    def follow(cls, state, _):
        values = stops(cls, name)
        place = min(range(len(values)), key=lambda i: abs(values[i] - state[name]))
        there = min(max(place + by, 0), len(values) - 1)
        return None if there == place else state | {name: values[there]}

    return follow


def to(**values: float) -> Follow:
    """These controls set; None where they are set so already."""
    return lambda cls, state, _: None if state | values == state else state | values


def at_least(name: str, wanted: Callable) -> Follow:
    """The first stop at or above a number that the figure names; None where no stop is so large."""

    def follow(cls, state, widget):
        enough = [value for value in stops(cls, name) if value >= float(wanted(widget)) * (1 - 1e-9)]
        return state | {name: enough[0]} if enough else None

    return follow


def nearest(name: str, wanted: Callable) -> Follow:
    def follow(cls, state, widget):
        return state | {name: min(stops(cls, name), key=lambda value: abs(value - float(wanted(widget))))}

    return follow


def times(name: str, factor: float) -> Follow:
    """The control at about so many times its value; None where that is beyond its end."""

    def follow(cls, state, _):
        wanted, values = state[name] * factor, stops(cls, name)
        if not values[0] <= wanted <= values[-1]:
            return None
        return state | {name: min(values, key=lambda value: abs(value - wanted))}

    return follow


def both(*follows: Follow) -> Follow:
    def follow(cls, state, widget):
        for each in follows:
            state = each(cls, state, widget) or state
        return state

    return follow


def where(condition: Callable, follow: Follow) -> Follow:
    """Followed only in the states that the words mean."""
    return lambda cls, state, widget: follow(cls, state, widget) if condition(state) else None


def stay(cls, state: State, _) -> State:
    """Nothing is moved: the figure shows both things that are compared."""
    return state


# -- what falls ----------------------------------------------------------------------------------------------
def minus(measure: Callable) -> Callable:
    return lambda widget: -measure(widget)


def kinds_without_room(widget) -> float:
    return float(np.sum(widget.found().why == choice.NO_ROOM))


def deployments_lost(widget) -> float:
    """The fewer keep both limits, the more."""
    return -float(np.nansum(widget.found().within))


def share_lost(widget) -> float:
    return widget.share(loss_scaling.run.LOST)


def of_decode(widget) -> float:
    return widget.chosen(widget.step_s())


def allowed(widget) -> float:
    """The share of the peak that the ceilings allow the training step."""
    return roofline.attained_share(widget.ceilings(), widget.peak())[3]


def ranks_to_fit(widget) -> float:
    return widget.of_stage(zero.ranks_to_fit(widget.size, widget.gpu.hbm_bytes, widget.recipe, np.arange(4)))


def towards(widget) -> int:
    """One replica more for prompts, or one fewer: for the pool that binds."""
    split = widget.split()
    return 1 if widget.chosen(split.prefill_per_s) < widget.chosen(split.decode_per_s) else -1


def within(size: float) -> int:
    """The place of a node's size among powers of two: a choice's last group that one node holds."""
    return int(np.log2(size))


def within_a_node(cls, state: State, _) -> State | None:
    """No more GPUs than a node has: the third of 2, 4, 8 and so on."""
    return state | {"gpus": 2} if state["gpus"] > 2 else None


def planned_s(widget) -> float:
    """The same step in the fastest layout of all that fit."""
    job = Job(home.SEQUENCES, home.SEQ)
    return search.plan(catalog.model(home.MODEL), widget.gpu, job, int(widget.gpus)).best.step_s


def while_hidden(follow: Follow) -> Follow:
    """As far as the wire allows: not into a state in which the AllReduce shows."""

    def within_reach(cls, state, widget):
        moved = follow(cls, state, widget)
        if moved is None:
            return None
        there = cls()
        there.set_raw(moved)
        return moved if there.shares(there.ranks).exposed < 0.02 else None

    return within_reach


def on_stops(name: str, wanted: Callable) -> Follow:
    """A number that the figure names, where its control goes so far."""

    def follow(cls, state, widget):
        values, value = stops(cls, name), float(wanted(widget))
        return state | {name: value} if values[0] <= value <= values[-1] else None

    return follow


GIVEN: dict[tuple[str, str], tuple[Advice, ...]] = {
    # -- foundations
    ("memory_stack", "does_not_fit"): (
        Advice(
            "shard it over several GPUs",
            stay,
            lambda w: w.ratio(),
            lambda w: w.total_bytes() / w.cards_needed() / w.gpu.hbm_bytes,
            enough=False,
        ),
    ),
    ("memory_stack", "memory_wall"): (
        Advice(
            "shard it over several GPUs",
            stay,
            lambda w: w.ratio(),
            lambda w: w.total_bytes() / w.cards_needed() / w.gpu.hbm_bytes,
        ),
    ),
    ("memory_wall", "over_the_wall"): (
        Advice("First response: full checkpointing", to(recompute=2), lambda w: w.total_bytes(), enough=True),
        Advice("FlashAttention", to(flash=1), lambda w: w.total_bytes()),
        Advice(
            "shard the state over",
            stay,
            lambda w: w.total_bytes(),
            lambda w: w.total_bytes() - w.parts_bytes()[1] * (1 - 1 / w.ranks_needed()),
        ),
    ),
    ("three_walls", "memory_wall"): (
        Advice(
            "shard the state over at least",
            both(to(state=0), at_least("gpus", lambda w: w.state_ranks() * w.ratios()[0])),
            lambda w: w.ratios()[0],
        ),
    ),
    ("three_walls", "step_wall"): (
        Advice(
            "split the batch over",
            at_least("gpus", lambda w: w.gpus * w.ratios()[1]),
            lambda w: w.ratios()[1],
        ),
        Advice("or make it smaller", along("step_tokens", -3), lambda w: w.ratios()[1]),
    ),
    ("three_walls", "deadline_wall"): (
        Advice("First response", at_least("gpus", lambda w: w.gpus * w.ratios()[2]), lambda w: w.ratios()[2]),
        Advice("or a better MFU", along("mfu", 5), lambda w: w.ratios()[2]),
    ),
    ("three_walls", "budget_wall"): (
        Advice("fewer tokens", along("tokens", -3), lambda w: w.ratios()[3]),
        Advice("a smaller model", along("size", -3), lambda w: w.ratios()[3]),
        Advice("then MFU", along("mfu", 5), lambda w: w.ratios()[3]),
        Advice("the price", along("price", -3), lambda w: w.ratios()[3]),
    ),
    ("roofline", "decode_computes"): (
        Advice("stop growing the batch", along("batch", -3), lambda w: w.batch / w.critical_batch()),
        Advice("shrink the cache", along("context", -6), minus(lambda w: w.users_that_fit()), at_times=True),
    ),
    ("roofline", "batch_does_not_fit"): (
        Advice("more GPUs", along("holders", 6), minus(lambda w: w.users_that_fit()), at_times=True),
        Advice("a shorter context", along("context", -6), minus(lambda w: w.users_that_fit()), at_times=True),
    ),
    ("roofline", "network_binds"): (
        Advice(
            "reach the ridge",
            at_least("tokens", lambda w: w.tokens / allowed(w)),
            minus(lambda w: allowed(w)),
            enough=True,
        ),
    ),
    ("regime_cube", "nothing_can_be_met"): (
        Advice("more GPUs", along("gpus", 8), lambda w: w.least()),
        Advice("or a longer step", along("step_s", 8), lambda w: w.least()),
    ),
    ("regime_cube", "cannot_be_met"): (
        Advice("cut the state over more GPUs", along("gpus", 8), lambda w: np.max(w.chosen())),
        Advice("more GPUs", along("gpus", 8), lambda w: np.max(w.chosen())),
        Advice("or a longer step", along("step_s", 8), lambda w: np.max(w.chosen())),
        Advice("fewer sequences at once", along("batch", -8), lambda w: np.max(w.chosen())),
    ),
    ("regime_cube", "another_binds"): (
        Advice("more GPUs", along("gpus", 8), lambda w: np.max(w.chosen())),
        Advice("or a longer step", along("step_s", 8), lambda w: np.max(w.chosen())),
        # a larger batch: more arithmetic for the same bytes
        Advice("a larger batch", along("tokens", 8), lambda w: w.chosen()[2] / w.chosen()[1]),
    ),
    ("training_step", "memory_binds"): (
        Advice("more GPUs that share the state", along("gpus", 1), lambda w: w.step().total_bytes),
    ),
    ("training_step", "network_binds"): (
        Advice("cut the step along other axes", stay, lambda w: w.step().step_s, planned_s),
    ),
    ("bandwidth_pyramid", "start_up"): (
        Advice(
            "fewer, larger messages",
            along("payload", 10),
            minus(lambda w: hierarchy.rate_reached(w.payload, w.chip)[6]),
        ),
    ),
    ("bandwidth_pyramid", "network_waits"): (
        Advice("keep in the node", stay, lambda w: w.took_s()[6], lambda w: w.took_s()[4]),
    ),
    ("bandwidth_pyramid", "memory_waits"): (
        Advice("larger products", along("payload", 10), lambda w: w.against()[3]),
    ),
    ("collective_primitives", "more_than_its_buffer"): (
        Advice("stop at ReduceScatter", to(primitive=4), lambda w: np.max(w.sent_bytes())),
    ),
    ("collective_cost", "latency"): (
        Advice("fuse small buffers", along("size", 8), lambda w: w.best_s() / w.size),
    ),
    ("collective_cost", "bandwidth"): (
        Advice("send fewer bytes (16 bits", times("size", 0.5), lambda w: w.best_s()),
        Advice("ReduceScatter alone", to(operation=1), lambda w: w.best_s()),
        Advice(
            "keep them on faster wires",
            both(along("nic_bytes_per_s", 8), along("link_bytes_per_s", 8)),
            lambda w: w.best_s(),
        ),
    ),
    ("ring_allreduce", "idle_links"): (
        Advice("at least one chunk for each rank", to(cut=0), lambda w: w.time_s(), enough=True),
    ),
    ("ring_allreduce", "latency"): (
        Advice("fuse small buffers", along("size", 8), lambda w: w.time_s() / w.size),
    ),
    # -- training
    ("ddp_overlap", "wire_bound"): (
        Advice("a larger micro-batch", along("tokens", 8), lambda w: w.exposed_share()),
    ),
    ("ddp_overlap", "too_many"): (
        Advice("larger ones", nearest("bucket", lambda w: w.best_bucket()), lambda w: w.run()["exposed_s"]),
    ),
    ("ddp_scaling", "not_freed"): (
        Advice(
            "FSDP and ZeRO",
            stay,
            lambda w: w.state_bytes(),
            lambda w: memory.sharded_state_bytes(w.size, ranks=w.ranks, stage=3),
        ),
    ),
    ("ddp_scaling", "past_critical"): (
        Advice(
            "fewer tokens on each GPU, as far as the wire allows",
            while_hidden(along("step_tokens", -8)),
            minus(lambda w: w.shares(w.ranks).useful),
        ),
        Advice("fewer GPUs on this axis", along("ranks", -4), minus(lambda w: w.shares(w.ranks).useful)),
    ),
    ("ddp_scaling", "on_the_wire"): (
        Advice(
            "a larger micro-batch on each GPU", along("step_tokens", 8), lambda w: w.shares(w.ranks).exposed
        ),
    ),
    ("zero_stages", "little_work"): (
        Advice("more tokens in a micro-batch", along("tokens", 8), lambda w: w.of_stage(w.behind().pressure)),
        Advice(
            "at least; ",
            at_least("tokens", lambda w: w.tokens * w.of_stage(w.behind().pressure)),
            lambda w: w.of_stage(w.behind().pressure),
            enough=True,
        ),
        Advice("a shard group in one node", to(group=1), lambda w: w.of_stage(w.exposed_s(w.group))),
        Advice("stage 1", to(stage=1), lambda w: w.of_stage(w.exposed_s(w.group))),
    ),
    ("zero_stages", "too_large"): (
        Advice(
            "share each copy among at least",
            both(to(group=0), at_least("ranks", lambda w: ranks_to_fit(w))),
            lambda w: w.held(),
            at_times=True,
        ),
        Advice("a higher stage", along("stage", 1), lambda w: w.held(), at_times=True),
    ),
    ("fsdp_timeline", "wire_sets_the_pace"): (
        Advice("or more in a micro-batch", along("tokens", 8), lambda w: w.run()["exposed_share"]),
        Advice(
            "a shard group on a faster wire",
            both(to(wire_bytes_per_s=450e9), along("ranks", -3)),
            lambda w: w.run()["exposed_share"],
        ),
    ),
    ("fsdp_timeline", "nothing_ahead"): (
        Advice("gather one layer ahead", to(prefetch=1), lambda w: w.run()["exposed_s"]),
    ),
    ("fsdp_timeline", "activations_fill_it"): (
        Advice("recompute them", to(recompute=1), lambda w: w.peak_bytes()),
        Advice("a smaller micro-batch", along("tokens", -8), lambda w: w.peak_bytes()),
    ),
    ("tensor_split", "exchanges_twice"): (
        Advice("A by columns, B by rows", to(order=0), lambda w: w.sent(), enough=True),
    ),
    ("tp_scaling", "slower"): (
        Advice("fewer tensor ranks", along("ranks", -1), lambda w: w.whole_s(w.ranks)),
    ),
    ("tp_scaling", "mostly_traffic"): (
        Advice("fewer tensor ranks", along("ranks", -1), lambda w: w.sent_s(w.ranks) / w.compute_s(w.ranks)),
    ),
    ("tp_scaling", "beyond_the_node"): (
        Advice(
            "at most as many as a node has GPUs",
            lambda cls, s, w: s | {"ranks": within(w.per_node)},
            lambda w: w.sent_s(w.ranks),
            enough=True,
        ),
    ),
    ("tp_scaling", "cut_heads"): (
        Advice(
            "a number of ranks that divides them",
            along("ranks", -1),
            minus(lambda w: w.whole_heads()),
            at_times=True,
        ),
    ),
    ("pipeline_timeline", "starved"): (
        Advice("more micro-batches", along("micro_batches", 8), lambda w: w.found()["bubble"]),
        Advice("or fewer stages", along("stages", -2), lambda w: w.found()["bubble"], at_times=True),
    ),
    ("pipeline_timeline", "heavy"): (
        Advice("1F1B", to(schedule=1), lambda w: w.times_1f1b()),
        Advice("ZB-H1", to(schedule=3), lambda w: w.times_1f1b()),
    ),
    ("pipeline_timeline", "uneven"): (
        Advice(
            "take layers off it",
            both(to(first_extra=0.0), to(last_extra=0.0)),
            lambda w: w.slowest(),
            enough=True,
        ),
    ),
    ("bubble_map", "burst"): (
        Advice("1F1B or", to(schedule=1), lambda w: w.held_bytes(w.stages, w.micro_batches)),
        Advice("or ZB-H1", to(schedule=3), lambda w: w.held_bytes(w.stages, w.micro_batches)),
    ),
    ("bubble_map", "starving"): (
        Advice(
            "more micro-batches", times("micro_batches", 2), lambda w: w.bubble(w.stages, w.micro_batches)
        ),
        Advice(
            "then interleaving",
            where(lambda s: s["schedule"] == 1, to(schedule=2, chunks=2.0)),
            lambda w: w.bubble(w.stages, w.micro_batches),
        ),
    ),
    ("activation_sharding", "wall"): (
        Advice("context ranks or more", along("context", 1), lambda w: w.against()),
        Advice("recompute more", along("kept", 1), lambda w: w.against()),
    ),
    ("ring_attention", "idle"): (
        Advice("zig-zag order", to(order=2), minus(lambda w: w.busy_if_free()), enough=True),
    ),
    ("ring_attention", "bare_messages"): (
        Advice("fewer ranks for this length", along("ranks", -1), lambda w: w.message_s() / w.busiest_s(1)),
        Advice("a faster wire", to(link=0), lambda w: w.message_s()),
    ),
    ("moe_routing", "overflow"): (
        Advice("balance the router", to(balancing=1, steps=120.0), lambda w: w.dropped()),
        Advice("raise the capacity", along("capacity_factor", 8), lambda w: w.dropped()),
    ),
    ("moe_routing", "straggler"): (
        Advice("balance the router", to(balancing=1, steps=120.0), lambda w: w.slower()),
        Advice(
            "a lower capacity, which trades the time",
            along("capacity_factor", -8),
            lambda w: w.layer_s(),
            at_times=True,
        ),
    ),
    ("moe_routing", "starved"): (
        Advice("more tokens for each expert", along("tokens", 8), minus(lambda w: w.efficiency())),
    ),
    ("alltoall_cost", "mostly_wires"): (
        Advice(
            "send a token once to each node", where(lambda s: s["way"] == 0, to(way=1)), lambda w: w.ratio()
        ),
        Advice("to few nodes", to(way=3), lambda w: w.ratio(), at_times=True),
        Advice("in fewer bits", to(fp8=1), lambda w: w.here().dispatch_s, at_times=True),
    ),
    ("alltoall_cost", "off_node"): (
        Advice(
            "send a token once to each node", where(lambda s: s["way"] == 0, to(way=1)), lambda w: w.ratio()
        ),
        Advice("to few nodes", to(way=3), lambda w: w.ratio(), at_times=True),
        Advice("in fewer bits", to(fp8=1), lambda w: w.here().dispatch_s, at_times=True),
    ),
    ("alltoall_cost", "waits_for_the_fullest"): (
        Advice("balance the router", to(liked=0), lambda w: w.fullest_here()),
        Advice("a spare place on each GPU", to(spare=1), lambda w: w.fullest_here()),
    ),
    ("alltoall_cost", "too_large"): (Advice("more expert ranks", along("ep", 1), lambda w: w.held()),),
    ("alltoall_cost", "starved"): (
        Advice("more tokens", along("tokens", 8), minus(lambda w: w.efficiency())),
        Advice("more expert ranks", along("ep", 1), minus(lambda w: w.efficiency())),
    ),
    ("rank_wires", "doubled"): (
        Advice(
            "along the axis that sends most",
            lambda cls, s, w: s | {"order": 0, "other": s["one"]},
            lambda w: w.times().step,
            enough=True,
        ),
    ),
    ("rank_wires", "torn"): (
        Advice(
            "put the rank back",
            lambda cls, s, w: s | {"other": s["one"]},
            lambda w: w.times().step,
            enough=True,
        ),
    ),
    # -- composition
    ("rank_mesh", "torn"): (
        Advice(
            "tensor innermost and no larger than a node",
            lambda cls, s, w: s | {"order": 0, "tp": min(s["tp"], within(w.per_node))},
            lambda w: w.nodes().tp,
            enough=True,
        ),
    ),
    ("rank_mesh", "experts_across"): (
        Advice("fewer expert ranks", along("ep", -1), lambda w: w.nodes().ep, at_times=True),
    ),
    ("topology_placement", "tensor_across"): (
        Advice(
            "make it innermost",
            lambda cls, s, w: s | {"innermost": 0, "tp": min(s["tp"], within(w.gpus_per_node))},
            lambda w: w.times_s()[0],
            enough=True,
        ),
    ),
    ("topology_placement", "all_exposed"): (
        Advice("fewer tensor ranks", along("tp", -1), lambda w: w.ratios()[0], at_times=True),
    ),
    ("goodput", "wall"): (
        Advice("restart what failed", along("restart_s", -6), minus(lambda w: w.best_useful())),
    ),
    ("goodput", "recovery"): (Advice("spare nodes", along("restart_s", -6), minus(lambda w: w.useful())),),
    ("goodput", "seldom"): (
        Advice(
            "First response: every",
            nearest("interval_s", lambda w: w.best_s()),
            minus(lambda w: w.useful()),
            enough=True,
        ),
    ),
    ("goodput", "often"): (
        Advice(
            "First response: every", nearest("interval_s", lambda w: w.best_s()), minus(lambda w: w.useful())
        ),
        Advice("write in the background", along("checkpoint_s", -8), minus(lambda w: w.useful())),
    ),
    ("budget_guard", "refusal"): (
        Advice("stop after", on_stops("duration_s", lambda w: w.pays_for_s()), lambda w: w.over()),
    ),
    ("layout_missions", "does_not_fit"): (
        Advice("a higher ZeRO stage", along("zero", 1), lambda w: w.ratios()[0], at_times=True),
        Advice("a finer cut of the sequence", along("cp", 1), lambda w: w.ratios()[0], at_times=True),
    ),
    ("strategy_triangle", "wires_bind"): (
        Advice("more tokens a step for each GPU", along("sequences", 6), lambda w: w.load(2)),
        Advice("more tokens in each micro-batch", along("seq", 8), lambda w: w.load(2)),
        Advice("shards inside a node", within_a_node, lambda w: w.load(2)),
        Advice("keep it inside a node", within_a_node, lambda w: w.load(2)),
        Advice("longer sequences", along("seq", 8), lambda w: w.load(2)),
        Advice("or fewer ranks", along("gpus", -1), lambda w: w.load(2)),
        Advice("more tokens for each expert", along("sequences", 6), lambda w: w.load(2)),
        Advice("ranks inside a node", within_a_node, lambda w: w.load(2)),
    ),
    ("strategy_triangle", "does_not_fit"): (
        Advice("FSDP, which shards the whole state", to(strategy=FSDP), lambda w: w.load(0)),
        Advice("more GPUs to share the model", along("gpus", 1), lambda w: w.load(0), at_times=True),
    ),
    ("layout_planner", "too_thin"): (
        Advice(
            "more tokens in a step", along("batch_tokens", 6), lambda w: planner.waiting_share(w.outcome())
        ),
        Advice("fewer GPUs", along("gpus", -6), lambda w: planner.waiting_share(w.outcome())),
    ),
    ("layout_planner", "nothing_fits"): (
        Advice(
            "more GPUs to shard over", along("gpus", 8), lambda w: w.outcome().total_bytes[0], at_times=True
        ),
        Advice(
            "a recipe with fewer bytes", to(recipe=5), lambda w: w.outcome().total_bytes[0], at_times=True
        ),
    ),
    # -- serving
    ("decode_latency", "too_many"): (
        Advice(
            "GPUs a replica and more replicas",
            lambda cls, s, w: s | {"tp": int(np.argmax(w.of_half_in_a_node())) - 1},
            lambda w: w.step_s()[int(np.argmax(w.of_half_in_a_node()))],
            of_decode,
        ),
    ),
    ("decode_latency", "beyond_the_node"): (Advice("replicas of one node each", to(tp=3), of_decode),),
    ("decode_latency", "full_cache"): (
        Advice("more GPUs", along("tp", 1), minus(lambda w: w.chosen(w.users())), at_times=True),
        Advice("narrower weights", along("weights", 1), minus(lambda w: w.chosen(w.users())), at_times=True),
        Advice("a narrower cache", along("cache", 1), minus(lambda w: w.chosen(w.users())), at_times=True),
    ),
    ("kv_cache", "exhausted"): (
        Advice("a cache in fp8", to(cache=1), minus(lambda w: w.fit()[0])),
        Advice("more GPUs", along("gpus", 1), minus(lambda w: w.fit()[0]), at_times=True),
    ),
    ("kv_cache", "no_room"): (
        Advice("narrower weights", along("weights", 1), lambda w: w.rooms().weights_bytes[0]),
        Advice("more GPUs for one copy", along("gpus", 1), lambda w: w.rooms().weights_bytes[0]),
    ),
    ("serving_frontier", "impossible"): (
        Advice("narrower weights", along("weights", 1), lambda w: np.nanmin(w.token_s())),
        Advice("a shorter prompt", along("prompt", -6), lambda w: np.nanmin(w.token_s())),
    ),
    ("serving_frontier", "too_little"): (
        Advice("more replicas of the same split", along("fleet", 1), minus(lambda w: w.fleet_brings())),
        Advice("a looser target", along("target", 6), minus(lambda w: w.fleet_brings()), at_times=True),
    ),
    ("deployment_planner", "impossible"): (
        Advice("weights in fewer bits", along("weights", 1), kinds_without_room, at_times=True),
        Advice("a looser limit for the first token", along("ttft", 12), deployments_lost, at_times=True),
        Advice("a looser limit for each token", along("tpot", 12), deployments_lost, at_times=True),
    ),
    ("pool_ratio", "sharing_wins"): (
        Advice(
            "keep prompts and answers together",
            stay,
            minus(lambda w: w.best_goodput()),
            minus(lambda w: w.together()),
        ),
    ),
    ("pool_ratio", "out_of_reach"): (
        Advice("more GPUs in a replica", along("tp", 1), lambda w: w.rates().prefill_s),
        Advice(
            "a looser target",
            both(along("ttft", 12), along("tpot", 12)),
            minus(lambda w: w.best_goodput()),
            at_times=True,
        ),
    ),
    ("pool_ratio", "idle_pool"): (
        Advice(
            "move replicas to the pool that binds",
            on_stops("prefillers", lambda w: w.front() + towards(w)),
            minus(lambda w: w.chosen(w.split().goodput_per_s)),
        ),
    ),
    ("pool_ratio", "wire_binds"): (
        Advice(
            "all the replica's cards", times("wire", 2), minus(lambda w: w.chosen(w.split().goodput_per_s))
        ),
    ),
    ("prefill_decode", "overloaded"): (
        Advice("more replicas", along("replicas", 2), minus(lambda w: w.can_serve()), at_times=True),
        Advice("turn requests away", along("rate", -6), lambda w: w.rate / w.can_serve()),
    ),
    ("prefill_decode", "wire_too_narrow"): (
        Advice("a wider wire", along("wire", 20), lambda w: w.median_pause(w.run())),
        Advice("chunks instead of pools", to(mode=1), lambda w: w.median_pause(w.run())),
    ),
    ("prefill_decode", "near_the_limit"): (
        Advice("plan for less load", along("rate", -6), lambda w: w.rate / w.can_serve()),
    ),
    ("prefill_decode", "stalled"): (
        Advice("prompts in chunks", to(mode=1), lambda w: w.median_pause(w.run())),
        Advice("on GPUs of their own", to(mode=2), lambda w: w.median_pause(w.run())),
    ),
    # -- one GPU
    ("allocator_replay", "full"): (
        Advice("shorter batches", along("length", -8), lambda w: w.run()["needed_bytes"]),
    ),
    ("allocator_replay", "fragmented_and_too_small"): (
        Advice("shorter batches", along("length", -8), lambda w: w.run()["needed_bytes"]),
    ),
    ("allocator_replay", "fragmented"): (
        Advice("expandable segments", to(expandable=1), lambda w: w.run()["failed"], at_times=True),
    ),
    ("allocator_replay", "thrashing"): (
        Advice("expandable segments", to(expandable=1), lambda w: w.run()["all_retries"], at_times=True),
    ),
    ("allocator_replay", "loose"): (
        Advice("expandable segments", to(expandable=1), lambda w: allocator_replay.excess(w.run())),
    ),
    ("captured_addresses", "damage"): (
        Advice("keep the graph's private pool", to(shared=0), lambda w: w.run()["spoilt"], enough=True),
    ),
    ("captured_addresses", "stale"): (
        Advice("copy into the captured input", to(way=0), lambda w: w.run()["wrong"], enough=True),
        Advice(
            "capture a graph of more rows",
            both(to(captured=8.0), to(way=0)),
            lambda w: w.run()["wrong"],
            enough=True,
        ),
    ),
    ("compile_break_even", "never_pays_back"): (
        Advice("dynamic shapes", to(dynamic=2), minus(lambda w: w.here())),
        Advice("padding to a few sizes", to(shapes=4.0), minus(lambda w: w.here())),
    ),
    ("compile_break_even", "slower"): (
        Advice("leave it eager", stay, minus(lambda w: w.here()), lambda w: -1.0),
    ),
    ("compile_break_even", "too_short"): (
        Advice("compile one block instead", along("compile_s", -12), minus(lambda w: w.here())),
    ),
    ("graph_breaks", "limit_hit"): (
        Advice("let the size be dynamic", to(dynamic=2), lambda w: w.of("compiled"), at_times=True),
    ),
    ("dispatcher_trace", "outgrown"): (Advice("fused attention", to(call=4), lambda w: w.kept_at_end()),),
    ("eager_overhead", "issue_bound"): (
        Advice("a larger batch", along("side", 12), lambda w: w.idle_share(), at_times=True),
        Advice("one launch for all of them", along("issue_s", -20), lambda w: w.idle_share()),
    ),
    ("eager_overhead", "synchronized"): (
        Advice("read it every hundred steps", to(sync=1), lambda w: w.waits_share()),
    ),
    ("flash_attention", "too_wide"): (
        Advice("narrower heads", along("head_dim", -6), lambda w: w.tiled(w.seq) / w.standard(w.seq)),
    ),
    ("float_explorer", "overflow"): (
        Advice("a scale", times("value", 2.0**-8), lambda w: abs(w.value)),
        Advice(
            "a format with more exponent bits", to(format=2), lambda w: 1 - w.found()["fits"], at_times=True
        ),
    ),
    ("float_explorer", "underflow"): (
        Advice("a scale", times("value", 2.0**8), minus(lambda w: w.found()["kind"]), at_times=True),
    ),
    ("fusion", "spilled"): (
        Advice("two kernels", times("kept", 0.5), lambda w: fusion.spilled_bytes(w.elements, w.kept)),
    ),
    ("fusion", "launch_bound"): (Advice("a CUDA graph", along("launch", -10), lambda w: w.found().apart_s),),
    ("graph_buckets", "too_many"): (
        Advice("one dimension of buckets", to(lengths=1.0), lambda w: w.cost().capture_s),
    ),
    ("launch_timeline", "cpu_bound"): (
        Advice("capture", stay, lambda w: w.totals()[0], lambda w: w.totals()[3]),
    ),
    ("launch_timeline", "too_big"): (
        Advice("more GPUs", to(tp=3), minus(lambda w: w.fits()), at_times=True),
        Advice("fewer sequences", to(batch=1.0), minus(lambda w: w.fits()), at_times=True),
    ),
    ("loss_scaling", "no_scale_serves"): (Advice("bf16", to(format=1), share_lost, at_times=True),),
    ("loss_scaling", "underflow"): (
        Advice("a loss scale", nearest("scale", lambda w: w.found()["best_scale"]), share_lost),
        Advice("or bf16", to(format=1), share_lost),
    ),
    ("lost_updates", "nothing_arrives"): (
        Advice(
            "an fp32 master copy",
            stay,
            lambda w: abs(w.last("plain") - w.last("exact")),
            lambda w: abs(w.last("master") - w.last("exact")),
            at_times=True,
        ),
    ),
    ("lost_updates", "stalled"): (
        Advice(
            "an fp32 master copy",
            stay,
            lambda w: abs(w.last("plain") - w.last("exact")),
            lambda w: abs(w.last("master") - w.last("exact")),
            at_times=True,
        ),
    ),
    ("program_blocks", "wasteful"): (
        Advice(
            "rows",
            lambda cls, s, w: s | {"group": float(GROUPS[int(np.argmin(w.reads_of_orders()))])},
            lambda w: w.whole()["read"],
            enough=True,
        ),
    ),
    ("program_blocks", "ragged"): (
        Advice("a smaller block", along("block", -1), lambda w: w.masked(), at_times=True),
        Advice("a size that divides", to(side=1024.0, inner=1024.0), lambda w: w.masked()),
    ),
    ("tile_tuner", "tail"): (
        Advice(
            "another tile (the best is", stay, minus(lambda w: w.speed()), minus(lambda w: w.best_speed())
        ),
    ),
    ("tile_tuner", "sparse"): (
        Advice(
            "smaller tiles",
            both(along("block_m", -1), along("block_n", -1)),
            minus(lambda w: w.speed()),
            at_times=True,
        ),
    ),
    ("tile_tuner", "starved"): (
        Advice(
            "larger tiles (the best is", stay, minus(lambda w: w.speed()), minus(lambda w: w.best_speed())
        ),
    ),
    ("tile_tuner", "spills"): (
        Advice("a smaller tile", along("block_m", -1), lambda w: tiling.spilled(w.tile(), w.gpu)),
        Advice("more warps", along("warps", 1), lambda w: tiling.spilled(w.tile(), w.gpu)),
    ),
    ("tile_tuner", "too_large"): (
        Advice("fewer stages", to(stages=1.0), lambda w: float(w.refused()), at_times=True),
        Advice("a smaller BLOCK_K", to(block_k=0), lambda w: float(w.refused()), at_times=True),
    ),
}

ELSEWHERE = {
    (
        "flash_attention",
        "too_many_scores",
    ): "keys at a time are no control: the figure takes the largest tile that fits",
    ("float_explorer", "no_number"): "names a check, no cure",
    ("fusion", "no_gain"): "says that there is nothing to gain",
    (
        "graph_breaks",
        "in_pieces",
    ): "names what points at the break; the mended functions are recorded beside it",
    ("graph_breaks", "skipped"): "the mended function is recorded beside it",
    ("graph_buckets", "wasteful"): "names what to look at, no cure",
    ("launch_timeline", "nothing_gained"): "leads to lesson 16",
    ("layout_planner", "nothing_legal"): "which of several limits to lift is for the reader to find",
    ("layout_planner", "tight"): "names a measurement, no cure",
    ("tensor_split", "rounded_otherwise"): "says that there is nothing to do",
    ("topology_placement", "spine_narrow"): "which nodes share a leaf is the scheduler's choice, no control",
    ("validation_scatter", "half_outside"): "names a measurement, no cure",
}
