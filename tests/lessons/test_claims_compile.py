"""What lessons 16 and 18 say of torch.compile, run with backends that write nothing: guards, limits, modes,
switches. The functions of lesson 18's figure are recorded (tests/record), and its snippets run in
test_lesson_18."""

import inspect
import logging
import math
import re

import pytest

from tests import machine
from tests.lessons.claims import says

torch = machine.torch()


@pytest.fixture
def inductor():
    """Its settings: to import them takes longer than all of PyTorch, and not every process is asked."""
    return machine.torch("torch._inductor.config")


@pytest.fixture(autouse=True)
def nothing_compiled():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(function, calls, **options) -> list[int]:
    """How many graphs there are after each call."""
    graphs, counts = [], []
    run = torch.compile(function, backend=lambda g, _: graphs.append(g) or g.forward, **options)
    for call in calls:
        run(*call)
        counts.append(len(graphs))
    return counts


def of_lengths(*lengths):
    return [(torch.ones(length, 4),) for length in lengths]


# -- guards --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "calls", "counts"),
    [
        (lambda x: x.sum(0) * 2, of_lengths(5, 6, 7, 5), [1, 2, 2, 2]),
        (lambda x, n: x * n, [(torch.ones(3), n) for n in (2, 3, 4, 5)], [1, 2, 2, 2]),
        (lambda x, n: x * n, [(torch.ones(3), n) for n in (2.5, 3.5, 4.5)], [1, 2, 2]),
    ],
    ids=["a size", "a whole number", "a number"],
)
def test_a_size_or_a_number_that_changes_compiles_twice(function, calls, counts):
    assert says(18, "When a guard on a size, or on a Python number, fails, the second compilation leaves")
    assert compiled(function, calls) == counts


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        (lambda x, word: x * len(word), [(torch.ones(3), word) for word in "abc"]),
        (sum, [([torch.ones(3)] * length,) for length in (1, 2, 3)]),
        (lambda x: x * 2, [(torch.ones(3, dtype=d),) for d in (torch.float32, torch.float64, torch.int64)]),
    ],
    ids=["strings", "lengths of lists", "dtypes"],
)
def test_what_does_not_become_open_by_itself(function, calls):
    assert says(
        18, "lengths of lists, strings, dtypes, whether gradients are on. Each new value is a new graph"
    )
    assert compiled(lambda *given: function(*given), calls) == [1, 2, 3]


def test_whether_gradients_are_on_is_a_guard():
    graphs = []
    double = torch.compile(lambda x: x * 2, backend=lambda g, _: graphs.append(g) or g.forward)
    double(torch.ones(3))
    with torch.no_grad():
        double(torch.ones(3))
    double(torch.ones(3, requires_grad=True))
    assert len(graphs) == 3


@pytest.mark.parametrize(("dynamic", "counts"), [(True, [1, 1, 2, 3, 3]), (None, [1, 2, 3, 4, 4])])
def test_sizes_0_and_1_always_get_a_graph_of_their_own(dynamic, counts):
    assert says(18, "if no size is 0 or 1: those two always get a graph of their own")
    assert compiled(lambda x: x.sum(0) * 2, of_lengths(5, 6, 1, 0, 7), dynamic=dynamic) == counts


class Counts(torch.nn.Module):
    """Counts its calls in an attribute, as the exercise's module does."""

    def __init__(self, step=0):
        super().__init__()
        self.step = step

    def forward(self, x):
        self.step += 1
        return x * self.step


def test_past_the_limit_calls_run_eagerly_with_the_log_lines_of_the_exercise():
    assert says(18, "Past `recompile_limit` a call that no cached graph fits runs eagerly, with a warning")
    assert says(18, "`torch._dynamo hit config.recompile_limit (8)`", "`last reason: 0/7: self.step == 7`")
    module, graphs, told = Counts(), [], []
    handler = logging.Handler()
    handler.emit = lambda record: told.append(record.getMessage())
    logging.getLogger("torch._dynamo").addHandler(handler)
    try:
        run = torch.compile(module, backend=lambda g, _: graphs.append(g) or g.forward)
        results = [run(torch.ones(1)).item() for _ in range(12)]
    finally:
        logging.getLogger("torch._dynamo").removeHandler(handler)
    assert len(graphs) == 8 == torch._dynamo.config.recompile_limit
    assert results == list(range(1, 13))  # right all the same
    [warning] = {text for text in told if "recompile_limit" in text}
    lines = warning.splitlines()
    assert lines[0] == "torch._dynamo hit config.recompile_limit (8)"
    assert lines[2].strip().startswith("last reason: 0/7: self.step == 7")


def test_graphs_that_exist_are_still_used_past_the_limit():
    assert says(18, "Graphs that exist are still used")
    ran = []
    pool = torch.compile(
        lambda x: x.sum(0) * 2,
        backend=lambda g, _: lambda *given: ran.append(1) or g.forward(*given),
        dynamic=False,
    )
    for [x] in of_lengths(*range(5, 15)):
        pool(x)
    assert len(ran) == 8
    pool(torch.ones(5, 4))
    pool(torch.ones(14, 4))
    assert len(ran) == 9  # the first length has its graph, the last none


def test_modules_that_share_code_have_256_graphs_together():
    assert says(18, "Where many modules share one function's code, they have")
    assert torch._dynamo.config.accumulated_recompile_limit == 256
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph.forward

    with torch._dynamo.config.patch(accumulated_recompile_limit=3):
        for step in range(6):
            torch.compile(Counts(step), backend=backend)(torch.ones(1))
    assert len(graphs) == 3


def test_one_graph_serves_all_layers_that_are_compiled_alone():
    assert says(
        18, "traces one and reuses it", "the first layer's input wants no gradient and the others' do"
    )

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(4, 4)

        def forward(self, x):
            return torch.relu(self.inner(x))

    def made(net) -> int:
        torch._dynamo.reset()
        graphs = []

        def backend(graph, _):  # one for all: another backend is another graph
            graphs.append(graph)
            return graph.forward

        for layer in net:
            if isinstance(layer, Layer):
                layer.compile(backend=backend)
        net(torch.ones(2, 4))
        return len(graphs)

    layers = [Layer() for _ in range(4)]
    assert made(torch.nn.Sequential(torch.nn.Linear(4, 4), *layers)) == 1
    assert made(torch.nn.Sequential(*layers)) == 2


def test_the_stance_runs_a_new_shape_eagerly():
    assert says(18, '`torch.compiler.set_stance("eager_on_recompile")` runs a new shape eagerly')
    graphs = []
    double = torch.compile(lambda x: x * 2, backend=lambda g, _: graphs.append(g) or g.forward, dynamic=False)
    double(torch.ones(3))
    torch.compiler.set_stance("eager_on_recompile")
    try:
        double(torch.ones(4))
        assert len(graphs) == 1
    finally:
        torch.compiler.set_stance("default")
    double(torch.ones(4))
    assert len(graphs) == 2


# -- export --------------------------------------------------------------------------------------------------
def test_what_would_break_or_compile_again_is_an_error_of_an_exported_program():
    assert says(
        18, "in which a graph break is an error", "what would have been a recompilation is an error now"
    )

    class Gate(torch.nn.Module):
        def forward(self, x):
            return x.relu() if x.mean() > 0 else x

    with pytest.raises(Exception, match="data-dependent"):
        torch.export.export(Gate(), (torch.ones(3),))
    rows = {"input": {0: torch.export.Dim("batch", min=2)}}
    program = torch.export.export(torch.nn.Linear(8, 4), (torch.ones(3, 8),), dynamic_shapes=rows).module()
    assert program(torch.ones(5, 8)).shape == (5, 4)
    with pytest.raises(AssertionError, match="Guard failed"):
        program(torch.ones(5, 9))


# -- breaks and their ways out -------------------------------------------------------------------------------
def graphs_of(function, x) -> int:
    torch._dynamo.reset()
    return torch._dynamo.explain(function)(x).graph_count


def test_a_number_that_goes_on_becomes_a_symbol():
    assert says(18, "torch._dynamo.config.capture_scalar_outputs", "the number becomes a symbol in the graph")

    def scaled(x):
        return x * x.sum().item()

    assert graphs_of(scaled, torch.ones(3)) == 2
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        assert graphs_of(scaled, torch.ones(3)) == 1
        torch._dynamo.reset()
        run = torch.compile(scaled, backend="eager", fullgraph=True)
        assert run(torch.ones(3)).tolist() == [3.0] * 3 and run(torch.ones(2)).tolist() == [2.0] * 2


def test_a_branch_can_be_computed_twice_or_be_traced_twice():
    assert says(18, "`torch.where`, where both sides may be computed", "`torch.cond`, which traces both")

    def gate(x):
        return torch.cond(x.mean() > 0, torch.relu, torch.neg, (x,))

    def both(x):
        return torch.where(x.mean() > 0, torch.relu(x), torch.neg(x))

    for function in (gate, both):
        torch._dynamo.reset()
        run = torch.compile(function, backend="eager", fullgraph=True)
        assert run(torch.tensor([3.0, -1.0])).tolist() == [3.0, 0.0]
        assert run(torch.tensor([-3.0, 1.0])).tolist() == [3.0, -1.0]


def test_a_helper_that_is_not_to_be_compiled_is_one_break():
    assert says(18, "`torch.compiler.disable` on the helper, one break that you chose")
    seen = []

    @torch.compiler.disable
    def log(x):
        seen.append(float(x[0]))

    def logged(x):
        log(2 * x)
        return x + 1

    assert graphs_of(logged, torch.ones(3)) == 2 and seen[-1] == 2.0


# -- switches ------------------------------------------------------------------------------------------------
def test_the_modes_add_what_the_table_says():
    assert says(18, "CUDA graphs around what can be captured", "the timing alone")
    modes = torch._inductor.list_mode_options()
    assert modes["default"] == {} and modes["reduce-overhead"] == {"triton.cudagraphs": True}
    assert modes["max-autotune"]["max_autotune"] and modes["max-autotune"]["triton.cudagraphs"]
    alone = modes["max-autotune-no-cudagraphs"]
    assert alone["max_autotune"] and "triton.cudagraphs" not in alone


def test_the_names_of_logs_backends_and_caches_are_pytorch_s():
    from torch._logging._internal import log_registry

    for said, names in (
        ('TORCH_LOGS="graph_breaks,recompiles"', ("graph_breaks", "recompiles")),
        ("`TORCH_LOGS=output_code`", ("output_code",)),
        ("`TORCH_LOGS=dynamo`", ("dynamo",)),
    ):
        assert says(18, said)
        for name in names:
            assert log_registry.is_artifact(name) or log_registry.is_log(name)
    assert says(18, '`backend="eager"` runs Dynamo alone, `"aot_eager"` adds AOTAutograd')
    assert {"eager", "aot_eager", "inductor"} <= set(torch._dynamo.list_backends(exclude_tags=()))
    assert says(18, "torch.compiler.save_cache_artifacts()", "`load_cache_artifacts`", "TORCH_TRACE=folder")
    assert callable(torch.compiler.save_cache_artifacts) and callable(torch.compiler.load_cache_artifacts)
    assert callable(torch._inductor.aoti_compile_and_package)
    assert "TORCH_TRACE" in inspect.getsource(torch._logging._internal)


def test_the_switches_for_other_numbers_are_pytorch_s(inductor):
    assert says(18, "TORCHINDUCTOR_EMULATE_PRECISION_CASTS=1", "TORCHDYNAMO_REPRO_AFTER=aot")
    assert says(18, "`TORCHDYNAMO_REPRO_LEVEL=4`", "A fused chain keeps its intermediates in fp32")
    assert inductor.emulate_precision_casts is False  # the default: fewer roundings
    source = inspect.getsource(inductor)
    assert 'os.environ.get("TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "0") == "1"' in source
    source = inspect.getsource(torch._dynamo.config)
    assert "TORCHDYNAMO_REPRO_AFTER" in source and "TORCHDYNAMO_REPRO_LEVEL" in source


def test_the_defaults_of_late_2026(inductor):
    """What is cut out of a graph, what a product is tried with, whether a helper's break goes up."""
    assert says(18, "graph partition, which is on by default", "The setting is off by default")
    assert inductor.graph_partition is True
    assert says(18, "tries the library (`ATEN`) and its own Triton templates")
    assert {"ATEN", "TRITON"} <= set(inductor.max_autotune_gemm_backends.split(","))
    source = inspect.getsource(inductor)
    for backend in ("CUTLASS", "NVGEMM", "CUTEDSL", "CK"):
        assert says(18, f"`{backend}`") and backend in source
    assert torch._dynamo.config.nested_graph_breaks is False


def test_with_nested_breaks_one_break_makes_two_graphs_at_any_depth():
    assert says(18, "one break makes two graphs at any depth")

    def deepest(x):
        x = x + 1
        torch._dynamo.graph_break()
        return 2 * x

    def deeper(x):
        return deepest(x - 1) + 1

    def function(x):
        return deeper(3 * x) + 1

    made = {}
    for nested in (False, True):
        torch._dynamo.reset()
        with torch._dynamo.config.patch(nested_graph_breaks=nested):
            [made[nested]] = compiled(function, [(torch.ones(3),)])
    assert made == {False: 6, True: 2}


def test_an_unbacked_input_never_compiles_again():
    assert says(18, "nothing compiles again, not even for the sizes 0 and 1")
    graphs = []
    double = torch.compile(lambda x: x.sum(0) * 2, backend=lambda g, _: graphs.append(g) or g.forward)
    for [x] in of_lengths(5, 6, 1, 0, 7):
        torch._dynamo.decorators.mark_unbacked(x, 0)
        double(x)
    assert len(graphs) == 1


def test_a_branch_on_an_unknown_size_is_an_error_without_a_promise():
    assert says(18, "Could not guard on data-dependent expression u0 < 2")

    def few(x, mask):
        kept = x[mask]
        return kept if kept.shape[0] < 2 else 2 * kept

    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run = torch.compile(few, fullgraph=True, backend="eager")
        with pytest.raises(torch._dynamo.exc.UserError, match="data-dependent expression u0 < 2"):
            run(torch.ones(4), torch.ones(4) > 0)


# -- 16: what a compiler finds -------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("scores", "found"), [(lambda s: s, True), (torch.tanh, False)], ids=["textbook", "tanh"]
)
def test_inductor_finds_attention_in_the_textbook_s_spelling_alone(scores, found):
    assert says(
        16, "it replaces them by a call of `scaled_dot_product_attention`", "Put a `tanh` over the scores"
    )
    from torch._inductor.compile_fx import compile_fx

    operators = []

    def lowered(graph, inputs, **_):
        operators.extend(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    def attention(q, k, v):
        return torch.softmax(scores(q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])), -1) @ v

    q = torch.randn(2, 4, 16, 8)
    with torch.no_grad():
        run = torch.compile(attention, backend=lambda g, i: compile_fx(g, i, inner_compile=lowered))
        torch.testing.assert_close(run(q, q, q), attention(q, q, q))
    assert any("attention" in name for name in operators) == found
    assert any("bmm" in name for name in operators) != found


def test_some_thirty_spellings_are_written_down():
    assert says(16, "somebody wrote some thirty spellings of it down")
    from torch._inductor.fx_passes import fuse_attention

    patterns = [name for name in vars(fuse_attention) if name.startswith("_sfdp_pattern_")]
    assert 25 <= len(patterns) <= 40


# -- what Dynamo does not read, and what is printed ----------------------------------------------------------
def test_a_function_that_is_traced_by_running_it_is_no_break_and_keeps_what_it_did():
    assert says(18, "AOTAutograd traces it by running it, and keeps what it did then")
    factor = [2.0]

    @torch._dynamo.nonstrict_trace
    def unreadable(x):
        torch._dynamo.graph_break()
        return x * factor[0]

    run = torch.compile(lambda x: unreadable(x) + 1, backend="aot_eager", fullgraph=True)
    assert run(torch.ones(2)).tolist() == [3, 3]
    factor[0] = 5.0
    assert run(torch.ones(2)).tolist() == [3, 3]


def test_a_break_can_be_refused_in_a_part_of_the_code():
    assert says(18, "`torch._dynamo.error_on_graph_break()`](")

    @torch.compile(backend="eager")
    def function(x):
        torch._dynamo.graph_break()  # one that may stay
        with torch._dynamo.error_on_graph_break(True):
            torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        function(torch.ones(2))


def test_the_times_of_both_are_printed_at_exit():
    assert says(18, "`TORCH_LOGS=dynamo` prints a table of both at exit")
    source = inspect.getsource(torch._dynamo.utils)
    assert re.search(r"@atexit\.register\ndef dump_compile_times\(\)", source)


def test_products_are_not_recomputed_unless_asked():
    assert says(18, "Matrix products are not recomputed, by default")
    from torch._functorch import partitioners

    assert "aten.mm" in inspect.getsource(partitioners.get_default_op_list)


# -- graphs that are not made --------------------------------------------------------------------------------
def test_writing_into_an_input_prevents_a_cuda_graph_unless_its_address_is_static(inductor):
    """The check that reduce-overhead makes, asked of a traced graph: what is refused, and in which words."""
    from torch._inductor import cudagraph_utils

    assert says(19, "skipping cudagraphs due to mutated inputs") and says(19, "cudagraph_or_error = True")
    assert inductor.triton.cudagraph_or_error is False

    def step(cache, x):
        cache.add_(x)
        return cache * 2

    graph = torch.fx.experimental.proxy_tensor.make_fx(step)(torch.ones(3), torch.ones(3))
    check = cudagraph_utils.check_for_mutation_ignore_cuda_graph_managed_tensor
    refused = check(graph, {"cache_1"}, {0}, [])
    assert refused.startswith("skipping cudagraphs due to mutated inputs")
    assert check(graph, {"cache_1"}, {0}, [0]) is None


def test_a_buffer_can_be_said_to_stay_where_it_is():
    assert says(19, "torch._dynamo.mark_static_address")
    buffer = torch.ones(3)
    torch._dynamo.mark_static_address(buffer)
    assert buffer._dynamo_static_input_type == "unguarded"  # its address is not even checked
