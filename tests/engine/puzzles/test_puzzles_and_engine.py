"""What the puzzles call right is what the engine executes: each solution against the mechanism of its lesson,
also in sizes that no puzzle asks for."""

import itertools
import math

import numpy as np
import pytest

from engine import catalog, puzzles
from engine.executed import (
    backward_walk,
    data_parallel,
    fully_sharded,
    layer_passes,
    pipeline_schedules,
    ranks,
    ranks_schedules,
    reverse_mode,
    routing,
    tensor,
)
from engine.mechanism import (
    collectives,
    context_parallel,
    memory,
    mesh,
    online_softmax,
    placement,
    reliability,
)
from engine.one_gpu import compilation, guards, recordings, tile_order
from engine.puzzles import (
    beat_1f1b,
    fill_step,
    gather_ahead,
    guarded_graphs,
    hide_buckets,
    interleave_chunks,
    one_f_one_b,
    order_tiles,
    pipelines,
    place_rings,
    ring_step,
    route_tokens,
    save_often,
    shared_prefixes,
    small_autograd,
    split_mlp,
    unequal_ring,
    zigzag_ring,
)
from engine.serving import modes, prefix_cache, shape_buckets
from tests.engine.serving.test_events import run


def function(name):
    """A puzzle's solution as a Python function."""
    names = {}
    exec(puzzles.puzzle(name).SOLUTION, names)
    return names[puzzles.puzzle(name).FUNCTION]


@pytest.mark.parametrize("recompute", [False, True])
def test_the_most_that_equal_layers_hold_is_the_engines_peak(recompute):
    """Lesson 01's bytes of Llama 3 8B: a layer's input and what is inside. The engine counts the input of the
    layer that is rebuilt twice."""
    model = catalog.model("llama3-8b")
    whole = float(memory.layer_activation_bytes(model, 8192, 1))
    entry = float(memory.activation_bytes(model, 8192, 1, recompute=memory.FULL)) / model.depth
    held = function("kept_layers")([entry] * model.depth, [whole - entry] * model.depth, recompute)
    peak = memory.peak_activation_bytes(
        model, 8192, 1, recompute=memory.FULL if recompute else memory.NO_RECOMPUTE
    )
    assert max(held) + (entry if recompute else 0) == pytest.approx(float(peak), rel=1e-6)
    assert held == pytest.approx(layer_passes.held_bytes([entry] * 32, [whole - entry] * 32, recompute))


def test_a_walk_back_gives_the_sum_over_all_paths():
    """Of random graphs, against the product of slopes along each path, added up."""
    draw = np.random.default_rng(3)
    for _ in range(20):
        slopes = {0: [(1, 2.0)]} | {
            node: [(int(each), float(draw.integers(1, 4))) for each in draw.integers(node + 1, 9, 2)]
            for node in range(1, 7)
        }
        graph = {str(node): [str(each) for each, _ in slopes.get(node, [])] for node in range(9)}
        paths: dict[str, float] = {}

        def add(node, product, slopes=slopes, paths=paths):
            if node not in slopes:
                paths[str(node)] = paths.get(str(node), 0.0) + product
            for each, slope in slopes.get(node, []):
                add(each, product * slope)

        add(0, 1.0)
        ran = []

        def back(name, gradient, slopes=slopes, ran=ran):
            ran.append(name)
            return [gradient * slope for _, slope in slopes[int(name)]]

        assert function("walk_back")(graph, "0", back) == paths == backward_walk.walked(graph, "0", back)
        assert len(ran) == 2 * len(set(ran))  # each once in either walk


def test_the_engines_1f1b_is_the_solution():
    for stages, batches in one_f_one_b.SIZES:
        mine = pipelines.played(
            one_f_one_b.orders_of(function("one_f_one_b"), stages, batches), stages, batches
        )
        engines = pipeline_schedules.by_key("1f1b", stages, batches)
        assert max(mine["end"]) == engines["total_s"]
        assert mine["held"] == list(engines["held"][:stages])


def test_a_ring_of_the_solution_is_executed():
    """``ranks.execute`` sums what ranks send: the chunks of the solution make every sum complete."""
    for count in (2, 3, 8):
        pieces = ranks_schedules.cut(count, count)
        steps = [
            ranks.MoveStep(
                ranks_schedules.SCATTER,
                tuple(
                    ranks.Move(rank, (rank + 1) % count, *pieces[c], pieces[c][0], ranks.ADD)
                    for rank in range(count)
                    for c in [function("ring_step")(rank, count, step)]
                ),
            )
            for step in range(count - 1)
        ]
        buffers = ranks.example(count, count)
        owners = ring_step.complete(ring_step.reduced(function("ring_step"), count), count)
        outputs = [pieces[chunk] for chunk in owners]
        last = ranks.execute("reduce_scatter", ranks.full_memory(buffers), steps, pieces, outputs).states[-1]
        for rank, chunk in enumerate(owners):
            assert last.values[rank][chunk] == np.sum(buffers, axis=0)[chunk]


def test_coordinates_are_the_meshs():
    size = mesh.sizes(gpus=512.0, tp=8.0, pp=4.0)
    for rank in (0, 7, 8, 300, 511):
        at = mesh.coordinates(float(rank), size)
        assert function("rank_coordinates")(rank, [8, 16, 4]) == [at.tp, at.dp, at.pp]


def test_merged_parts_are_the_engines():
    one, other = (3.0, 1.5, 4.0), (2.0, 1.0, -1.0)
    parts = [online_softmax.Partial(*map(np.array, (m, t, [w]))) for m, t, w in (one, other)]
    engines = online_softmax.joined(*parts)
    wanted = [engines.maximum, engines.total, engines.weighted[0]]
    assert function("merge_partials")(one, other) == pytest.approx([float(each) for each in wanted])


def test_the_best_sizes_are_the_engines():
    counts = shape_buckets.batches(24, 0.8, 1)
    for kept in (1, 3, 8):
        mine = function("pick_buckets")(counts, kept)
        fewest = shape_buckets.padding(counts, shape_buckets.buckets_of(shape_buckets.best(counts, kept)))
        assert shape_buckets.padding(counts, shape_buckets.buckets_of(mine)) == fewest


def test_what_crosses_is_what_the_rings_of_the_engine_send():
    """Hop by hop, and by the formula of ``placement``: in every order of every job."""
    for kinds, per_node in place_rings.CASES:
        gpus = math.prod(size for size, _ in kinds.values())
        fabric = placement.LeafNetwork(nodes=gpus / per_node, gpus_per_node=per_node)
        for order in itertools.permutations(kinds):
            apart, crossing = 1, 0.0
            for name in order:
                size, sent = kinds[name]
                crossing += gpus * placement.ring_wires(sent, placement.reach(size, apart, fabric)).nic
                apart *= size
            assert place_rings.crossed(list(order), kinds, per_node) == pytest.approx(crossing)


def test_buckets_of_a_cap_end_when_the_engines_step_does():
    """``overlap`` fills buckets by PyTorch's rule; the puzzle has the same ones through at the same time."""
    sizes, start_up, per_mb = [4.0, 6.0, 2.0, 8.0, 4.0, 6.0, 2.0, 8.0], 1.5, 0.25
    for cap in (5.0, 9.0, 15.0, 100.0):
        step = data_parallel.overlap(
            0.0, 80.0, 2, sizes[:4], 8.0, 8.0, 0.0, start_up, per_mb, cap, cap, [0.0]
        )
        tensors = data_parallel.backward_order(2, sizes[:4], 8.0, 8.0, 0.0)
        work = np.array(tensors[1])
        ready = tuple(np.cumsum(80.0 * work / work.sum()))
        ends = data_parallel.bucket_ends(tensors[0], cap, cap)
        counts = list(np.diff([-1, *ends]))
        case = (ready, tensors[0], start_up, per_mb)
        assert hide_buckets.sent(counts, case)[1][-1] == pytest.approx(float(step["step_s"]))
        assert hide_buckets.earliest(case) <= float(step["step_s"]) + 1e-9


def test_no_buckets_end_earlier_than_those_of_the_solution():
    for case in hide_buckets.CASES:
        count = len(case[1])
        cuts = itertools.chain.from_iterable(itertools.combinations(range(1, count), n) for n in range(count))
        every = (np.diff([0, *cut, count]).tolist() for cut in cuts)
        mine = hide_buckets.sent(function("hide_buckets")(*case), case)[1][-1]
        assert mine == pytest.approx(min(hide_buckets.sent(counts, case)[1][-1] for counts in every))


def test_a_step_of_the_solution_lasts_as_long_as_the_engines():
    lasts = gather_ahead.LASTS_MS
    for layers, ahead in (*gather_ahead.SIZES, (8, 1), (7, 3)):
        engines = fully_sharded.simulate_step(
            layers,
            ahead,
            lasts["forward"],
            lasts["backward"],
            lasts["gather"],
            lasts["scatter"],
            1.0,
            1.0,
            1.0,
            0.0,
            fully_sharded.NOT_OWN,
        )
        assert gather_ahead.ended(function("gather_ahead")(layers, ahead)) == float(engines["total_s"])
        assert gather_ahead.LASTS_MS["gather"] == gather_ahead.LASTS_MS["scatter"]


def test_the_pieces_of_the_solution_are_the_engines():
    for size in split_mlp.SIZES:
        x, a, b = split_mlp.matrices(size)
        engines = tensor.split_product(x, a, b, size[2], f=tensor.relu)
        for rank in range(size[2]):
            mine, others = function("split_mlp")(a, b, rank, size[2])
            assert np.array_equal(mine, engines.a_pieces[rank])
            assert np.array_equal(others, engines.b_pieces[rank])
        held = split_mlp.split(function("split_mlp"), size)
        parts = split_mlp.parts_of_y(x, [mine for mine, _ in held], [others for _, others in held])
        assert np.array_equal(np.sum(parts, axis=0), engines.dense)
        columns = np.transpose(a).tolist()
        assert len({tuple(column) for column in columns}) == len(columns)  # a column tells where it is from


def test_routed_tokens_load_the_experts_as_the_engine_counts():
    """The loads of the engine's own run, from its scores, and the choices that a capacity drops."""
    experts, top_k, skew, seed = 8, 2, 0.8, 1.0
    engines = routing.route(experts, top_k, skew, seed, routing.OFF, 0)
    weight = [(rank + 1.0) ** -skew for rank in range(experts)]
    state, scores = routing.first_state(seed), []
    for _ in range(routing.TOKENS):
        score = [0.0] * experts
        state = routing.draw_scores(score, weight, experts, state)
        scores.append(score)
    for capacity in (routing.TOKENS, 160):
        routed = function("route_tokens")(scores, [0.0] * experts, top_k, capacity)
        load = np.bincount([e for each in routed for e, _ in each], minlength=experts)
        assert np.array_equal(load, np.minimum(engines["load"][:experts], capacity))


def test_balancing_turns_fewer_away():
    words = route_tokens.run(function("route_tokens"))[0]
    before, after = words.split(": ")[1].split(", and ")
    assert int(before.split()[0]) > int(after.split()[0])


def test_prefixes_are_those_of_the_radix_tree():
    trace = prefix_cache.turns(prefix_cache.Chats(chats=5, turns=3, system=6, question=3, answer=4), 60)
    mine = function("shared_prefixes")([(list(turn.tokens), turn.prompt) for turn in trace])
    assert mine == prefix_cache.hits(trace, shared_prefixes.ROOM) and max(mine) > 6


def test_a_day_of_the_solution_is_the_engines():
    """First tokens and pauses of the puzzle's server, and of ``serve`` with chunks."""
    requests, budget, seats = fill_step.DAY
    came, prompts, outputs = (list(column) for column in zip(*requests))
    first, pause = fill_step.day(function("fill_step"), requests, budget, seats)
    rows_s = [fill_step.BEGIN_MS / 1e3, (fill_step.BEGIN_MS + 1000 * fill_step.TOKEN_MS) / 1e3]
    engines = run(
        [each / 1e3 for each in came],
        prompts,
        outputs,
        mode=modes.CHUNKED,
        budget=budget,
        most_running=seats,
        capacity=1e6,
        rows=[0.0, 1000.0],
        rows_s=rows_s,
    )
    assert [each / 1e3 for each in first] == pytest.approx(list(engines["first"]))
    assert pause / 1e3 == pytest.approx(max(engines["pause"]))


def test_an_order_of_tiles_reads_what_the_engine_reads():
    for case in order_tiles.CASES:
        tall, wide, steps, wave, room = case
        for height in range(1, tall + 1):
            engines = tile_order.run(tall, wide, steps, height, wave, room, tall * wide)
            mine = order_tiles.read_by(order_tiles.grouped(case, height), case)
            assert mine == (engines["read"], engines["asked"])


def test_graphs_are_those_that_a_real_dynamo_ran():
    """The recording of twelve calls with ten lengths, and the engine's counts for shapes in turn."""
    graphs_that_run = function("guarded_graphs")
    limit = recordings.load("graph_breaks")["recompile_limit"]
    calls = compilation.run("lengths")["calls"]
    sizes = [*range(100, 110), 100, 101]  # that lengths differ is all that counts
    ran = graphs_that_run([("float32", size) for size in sizes], limit)
    assert [[number] for number in ran] == [call["ran"] for call in calls]
    for shapes in (1, 2, 3, 9):
        sizes = [10 + step % shapes for step in range(4 * shapes)]
        ran = graphs_that_run([("float32", size) for size in sizes], limit)
        assert max(ran) + 1 == compilation.graphs(shapes, compilation.AUTOMATIC)
        own, any_size, eager = compilation.kinds(len(sizes), shapes, compilation.AUTOMATIC)
        assert (ran.count(0), len(ran) - ran.count(0), ran.count(None)) == (own, any_size, eager)
    assert all(limit <= 8 for limit, _ in guarded_graphs.CASES)


def test_guards_run_the_graphs_that_are_counted():
    """The engine's cache, call by call, against its closed form, whatever the puzzle says."""
    for shapes in (1, 2, 3, 12):
        graphs, compiled, ran = [], [], []
        for call in range(4 * shapes):
            ran.append(guards.call_graph(("float32", 10 + call % shapes), graphs, compiled, 8)[0])
        assert len(graphs) == compilation.graphs(shapes, compilation.AUTOMATIC) and None not in ran


def test_no_ring_is_faster_than_the_best_one_by_its_slowest_wire():
    """Of all orders of each machine; and on equal wires the time is the engine's ring."""
    for job in unequal_ring.JOBS:
        rates = unequal_ring.wired(*job)
        rings = [[0, *others] for others in itertools.permutations(range(1, len(rates)))]
        best = max(min(rates[a][b] for a, b in unequal_ring.pairs(ring)) for ring in rings)
        mine = function("unequal_ring")(rates)
        assert unequal_ring.slowest_of(mine, rates) == best == unequal_ring.fastest_of(rates)
        steps_s = 2 * (len(rates) - 1) * 1e9 / len(rates) / (best * 1e9)
        assert steps_s == pytest.approx(collectives.ring_all_reduce_s(1e9, len(rates), best * 1e9, 0.0))


def test_a_zigzag_ring_has_the_engines_pairs():
    """Rank by rank and step by step, in zig-zag order and in contiguous blocks."""
    for order, chunks_of in (
        (context_parallel.ZIGZAG, function("zigzag_ring")),
        (context_parallel.CONTIGUOUS, lambda rank, ranks: [2 * rank, 2 * rank + 1]),
    ):
        for count in (1, 2, 4, 7):
            work = zigzag_ring.work_of([list(chunks_of(rank, count)) for rank in range(count)])
            for step, rank in itertools.product(range(count), range(count)):
                block = 2 * zigzag_ring.TOKENS
                assert work[step][rank] == context_parallel.block_pairs(rank, step, count, block, order)


def test_interleaving_and_the_split_backward_last_as_the_engines_run():
    for stages, batches, chunks in interleave_chunks.SHAPES:
        orders = interleave_chunks.orders_of(function("interleave_chunks"), stages, batches, chunks)
        assert orders == interleave_chunks.engines(stages, batches, chunks)
        mine = pipelines.played(orders, stages, batches, chunks)
        engines = pipeline_schedules.by_key("interleaved", stages, batches, chunks)
        assert max(mine["end"]) == pytest.approx(float(engines["total_s"]))
        assert mine["held"] == pytest.approx(list(engines["held"][:stages]))
    for stages, batches in beat_1f1b.LINES:
        mine = pipelines.played(beat_1f1b.orders_of(function("beat_1f1b"), stages, batches), stages, batches)
        engines = pipeline_schedules.by_key("zb-h1", stages, batches)
        assert max(mine["end"]) == float(engines["total_s"])
        assert mine["held"] == pytest.approx(list(engines["held"][:stages]))


def test_the_square_root_is_youngs():
    for checkpoint_s, mtbf_s in save_often.JOBS:
        assert function("save_often")(checkpoint_s, mtbf_s) == reliability.young_interval_s(
            checkpoint_s, mtbf_s
        )


def test_a_readers_buckets_and_tiles_are_drawn_as_they_are_judged():
    """What a puzzle gives the figure comes to the same times and reads there."""
    for case in hide_buckets.CASES[:4]:
        counts = function("hide_buckets")(*case)
        own = hide_buckets.drawn(counts, case)["give"]["own"]
        nothing = (1.0, 1.0, 1, [1.0], 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
        step = data_parallel.overlap(*nothing, own)
        assert 1e3 * float(step["step_s"]) == pytest.approx(hide_buckets.sent(counts, case)[1][-1])
        assert int(step["buckets"]) == len(counts) and int(step["own"]) == 1
    tall, wide, steps, wave, room = case = order_tiles.CASES[0]
    tiles = function("order_tiles")(tall, wide, wave)
    own = order_tiles.drawn(tiles, case)["give"]["own"]
    drawn = tile_order.run_in(tall, wide, steps, 1, wave, room, tall * wide, own)
    assert (drawn["read"], drawn["asked"]) == order_tiles.read_by(tiles, case)
    placed = tile_order.places(tall, wide, 1, own)
    found = zip(placed["row"][: tall * wide], placed["column"][: tall * wide])
    assert [(int(row), int(column)) for row, column in found] == tiles
    short = tile_order.places(tall, wide, 1, own[:-1])  # of another product: groups of rows are drawn
    assert int(short["own"]) == 0 and int(short["column"][1]) == 1


def test_the_engines_small_autograd_agrees_with_differences_and_with_the_solution():
    """Central differences of each program without its hooks; then gradients and hooks of the solution."""
    for leaves, text, factors in small_autograd.PROGRAMS:
        calls = small_autograd.parsed(text)

        def last(at, calls=calls):
            values = dict(at)
            for result, operator, inputs in calls:
                values[result], _ = reverse_mode.called(operator, [values[name] for name in inputs])
            return values[calls[-1][0]]

        grads, _ = small_autograd.right(leaves, text, {})
        for leaf in leaves:
            up, down = (last(leaves | {leaf: leaves[leaf] + step}) for step in (1e-5, -1e-5))
            assert grads[leaf] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-9)
        found, seen = small_autograd.answered(function("small_autograd"), leaves, text, factors)
        wanted, due = small_autograd.right(leaves, text, factors)
        assert found == pytest.approx(wanted) and sorted(seen) == sorted(due)
