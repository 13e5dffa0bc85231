"""What lessons 13 to 16 and 19 say of eager PyTorch, run on the CPU: the dispatcher, autograd, autocast, the
scaler, the optimizer, the allocator's settings. What the recordings and the lessons' own snippets show is
held elsewhere (tests/record, test_lesson_13 to 19)."""

import contextlib
import inspect
import re
from pathlib import Path

import pytest

from engine.one_gpu import allocator
from tests import machine
from tests.lessons.claims import says

torch = machine.torch()
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

PACKAGE = Path(torch.__file__).parent


class Seen(TorchDispatchMode):
    """The operators below autograd, by name."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        self.names.append(operator.name().removeprefix("aten::").split(".")[0])
        return operator(*args, **(kwargs or {}))


def operators(run) -> list[str]:
    with Seen() as seen:
        run()
    return seen.names


def kept(run) -> list:
    """The tensors that nodes keep."""
    found = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: found.append(t) or t, lambda t: t):
        run()
    return found


# -- 13: the dispatcher --------------------------------------------------------------------------------------
def test_the_table_has_thousands_of_rows_and_most_have_nothing_for_views():
    assert says(13, "one row for each of some thousands of operators", "most operators have no kernel for it")
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    for_views = [torch._C._dispatch_has_kernel_for_dispatch_key(name, "ADInplaceOrView") for name in names]
    assert len(names) > 2000 and sum(for_views) < len(names) / 2


def test_autocast_s_key_is_in_every_set_and_switched_off_outside_of_it():
    assert says(13, "in every tensor's set; switched off outside `torch.autocast`")
    off = torch._C._dispatch_tls_local_exclude_set
    assert "AutocastCPU" in str(torch._C._dispatch_keys(torch.ones(1))) and "AutocastCPU" in str(off())
    with torch.autocast("cpu"):
        assert "AutocastCPU" not in str(off())


def test_inference_mode_takes_autograd_out_and_no_grad_does_not():
    assert says(13, "switched off in `inference_mode`", "it has neither of the two keys in the middle")
    with torch.no_grad():
        assert "Autograd" not in str(torch._C._dispatch_tls_local_exclude_set())
        assert "AutogradCPU" in str(torch._C._dispatch_keys(torch.ones(1)))
    with torch.inference_mode():
        assert "Autograd" in str(torch._C._dispatch_tls_local_exclude_set())
        keys = str(torch._C._dispatch_keys(torch.ones(1)))
    assert "Autograd" not in keys and "ADInplaceOrView" not in keys and "CPU" in keys


def test_matmul_is_a_composite_of_three():
    assert says(13, "looks at the shapes and calls `mm`, `bmm` or `mv`")
    a = torch.ones(3, 3)
    assert operators(lambda: torch.matmul(a, a)) == ["mm"]
    assert operators(lambda: torch.matmul(a, a.diagonal()))[-1] == "mv"
    assert "bmm" in operators(lambda: torch.matmul(a.expand(2, 3, 3), a.expand(2, 3, 3)))


def test_casts_come_before_autograd_and_have_gradients():
    assert says(13, "Autocast comes before autograd, so casts have gradients")
    w = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = torch.ones(2, 2) @ w
    assert any(node and node.name() == "ToCopyBackward0" for node, _ in product.grad_fn.next_functions)


def test_only_cuda_s_autocast_has_a_kernel_for_softmax_and_layer_norm():
    assert says(13, "CUDA's takes `softmax` and `layer_norm` to fp32; the CPU's has no kernel for them")
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    for name in ("aten::softmax.int", "aten::layer_norm"):
        assert has(name, "AutocastCUDA") and not has(name, "AutocastCPU")


def test_views_share_a_count_of_versions_and_data_does_not():
    assert says(13, "A tensor and its views share a count of **versions**", "`x.data` shares the storage but")
    x = torch.ones(3)
    x[:2].add_(1)
    x.detach().add_(1)
    assert x._version == 2
    x.data.add_(1)
    assert x._version == 2 and x.tolist() == [4, 4, 3]
    w = torch.ones(1, requires_grad=True)
    y = w.exp()
    y.data.mul_(2)
    y.backward()  # no error
    assert w.grad.item() == pytest.approx(2 * 2.71828, rel=1e-5)  # e would be right


# -- 13: the backward graph ----------------------------------------------------------------------------------
def test_nodes_are_taken_in_the_reverse_order_of_their_making():
    assert says(13, "of the nodes whose gradients have all arrived it takes the one that was made last")
    order, w = [], torch.ones(2, requires_grad=True)
    first, second = w * 2, w * 3
    last = first + second
    for name, made in (("first", first), ("second", second), ("last", last)):
        made.grad_fn.register_hook(lambda *_, name=name: order.append(name))
    w.register_post_accumulate_grad_hook(lambda leaf: order.append(leaf.grad.tolist()))
    last.sum().backward()
    assert order == ["last", "second", "first", [5, 5]]  # the hook sees the gradient in its place
    assert first.grad_fn.next_functions[0][0].name() == "torch::autograd::AccumulateGrad"
    (w * 2).sum().backward()
    assert w.grad.tolist() == [7, 7]  # several calls add up


def test_ddp_hooks_the_leaf_and_fsdp_adds_a_node_to_the_layer():
    assert says(13, "DDP's hooks sit on the same node", "so it adds a node of its own to the graph")
    header = PACKAGE / "include/torch/csrc/distributed/c10d/reducer.hpp"
    assert "grad_accumulators_" in header.read_text(encoding="utf-8")
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group

    assert issubclass(_fsdp_param_group.RegisterPostBackwardFunction, torch.autograd.Function)
    assert "post_accumulate" not in inspect.getsource(_fsdp_param_group)


def test_each_operator_keeps_what_the_table_says():
    assert says(13, "both inputs", "a mask, a byte a value", "its input and two numbers a row")
    x, z, w = (torch.randn(*shape, requires_grad=True) for shape in ((4, 8), (4, 8), (8, 3)))
    places = {t.data_ptr() for t in kept(lambda: x @ w)}
    assert places == {x.data_ptr(), w.data_ptr()} and kept(lambda: x + z) == []
    assert [t.data_ptr() for t in kept(lambda: F.gelu(x))] == [x.data_ptr()]
    results = []
    [own] = kept(lambda: results.append(torch.softmax(x, -1)))
    assert own.data_ptr() == results[0].data_ptr()
    assert [t.numel() for t in kept(lambda: F.layer_norm(x, (8,)))] == [32, 4, 4]
    [mask] = kept(lambda: torch.native_dropout(x, 0.1, True))
    assert mask.dtype == torch.bool and mask.element_size() == 1


def test_adamw_in_a_loop_is_eight_kernels_a_weight_foreach_as_many_for_all_and_fused_is_one():
    assert says(13, "`mul_`, `lerp_`, `mul_`, `addcmul_`, `sqrt`, `div`, `add_`, `addcdiv_`")
    assert says(15, "takes all square roots before it uses any", "then `fused=True` takes it away")

    def step(**how):
        weights = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)]
        optimizer = torch.optim.AdamW(weights, lr=0.1, **how)
        for weight in weights:
            weight.grad = torch.ones(3)
        optimizer.step()
        aside = {"_local_scalar_dense", "lift_fresh"}  # step counters, on the CPU
        return [n for n in operators(optimizer.step) if "profiler" not in n and n not in aside]

    eight = ["mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_"]
    assert step(foreach=False) == 2 * ["add_", *eight]  # the first is the step counter's
    assert step(foreach=True).count("_foreach_sqrt") == 1 and "sqrt" not in step(foreach=True)
    assert step(fused=True)[-1] == "_fused_adamw_" and len(step(fused=True)) == 2


def test_foreach_is_the_default_on_a_gpu(monkeypatch):
    assert says(15, "AdamW's default on a GPU (`foreach=True`)")
    from torch.optim import optimizer
    from torch.utils import _foreach_utils

    assert "cuda" in _foreach_utils._get_foreach_kernels_supported_devices()
    monkeypatch.setattr(optimizer, "_get_foreach_kernels_supported_devices", lambda: ["cpu"])
    weights = [torch.nn.Parameter(torch.ones(1))]
    assert optimizer._default_to_fused_or_foreach(weights, False, use_fused=False) == (False, True)


@pytest.mark.parametrize("read", ["item", "branch"])
def test_a_value_cannot_be_had_without_the_gpu(read):
    """A fake tensor of a GPU has no data: what needs a value fails, as it waits on a real one."""
    assert says(13, "need a value, so they wait until the GPU is done")
    assert says(18, "`.item()` asks for a number, and a fake tensor has none")
    from torch._subclasses.fake_tensor import DataDependentOutputException

    with FakeTensorMode(), torch.no_grad():
        x = torch.empty(4, device="cuda")
        torch.where(x > 0, x, 0).argmax()  # needs none
        with pytest.raises(DataDependentOutputException):
            x.sum().item() if read == "item" else bool(x.sum() > 3)


# -- 14: formats, autocast, the scaler -----------------------------------------------------------------------
@pytest.fixture
def formats():
    """The format in which each operator runs under CUDA's autocast to fp16, asked of fake tensors."""
    with FakeTensorMode(), torch.no_grad():
        wide = torch.empty(4, 4, device="cuda")
        narrow, heads = wide.half(), wide.expand(1, 1, 4, 4)
        picture, kernel = torch.empty(1, 1, 4, 4, device="cuda"), torch.empty(1, 1, 2, 2, device="cuda")
        places = torch.zeros(4, 4, dtype=torch.long, device="cuda")
        classes, row = torch.zeros(4, dtype=torch.long, device="cuda"), torch.empty(4, device="cuda")
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", torch.float16)
        torch.autocast_increment_nesting()
        try:
            yield {
                "mm": wide @ wide,
                "linear": F.linear(wide, wide),
                "conv2d": F.conv2d(picture, kernel),
                "attention": F.scaled_dot_product_attention(heads, heads, heads),
                "exp": narrow.exp(),
                "pow": narrow.pow(2),
                "norm": narrow.norm(),
                "sum": narrow.sum(),
                "softmax": F.softmax(narrow, -1),
                "cross_entropy": F.cross_entropy(narrow, classes),
                "addcmul": torch.addcmul(narrow, wide, wide),
                "dot": torch.dot(row.half(), row),
                "scatter_add": narrow.scatter_add(0, places, wide),
                "gelu": F.gelu(narrow),
                "add": narrow + wide,
                "cat": torch.cat([narrow, wide]),
                "wide gelu": F.gelu(wide),
            }
        finally:
            torch.clear_autocast_cache()
            torch.autocast_decrement_nesting()
            torch.set_autocast_enabled("cuda", False)


def test_cuda_s_autocast_has_the_lists_that_the_lesson_names(formats):
    assert says(14, "matrix products, convolutions and attention go to the narrow format")
    assert says(14, "Exponentials, powers, norms, sums, softmax and losses go to fp32")
    assert says(14, "such as `addcmul`, `dot` and `scatter_add`, to the **widest** format among them")
    assert says(14, "What is on no list runs in the format it is given", "as without autocast")
    found = {name: result.dtype for name, result in formats.items()}
    narrow = {name for name, dtype in found.items() if dtype == torch.float16}
    assert narrow == {"mm", "linear", "conv2d", "attention", "gelu"}
    assert set(found.values()) == {torch.float16, torch.float32}
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    assert all(has(f"aten::{name}", "AutocastCUDA") for name in ("addcmul", "dot", "scatter_add"))
    assert not any(has(f"aten::{name}", "AutocastCUDA") for name in ("cat", "add.Tensor", "gelu"))


def test_a_weight_is_cast_once_in_a_block_and_goes_stale_in_a_long_one():
    assert says(
        14, "inside one `with` block a weight that is used twice is cast once", "`cache_enabled=False`"
    )
    assert says(14, "it would go on with casts of weights that the optimizer has changed since")
    layer, x = torch.nn.Linear(1, 1, bias=False), torch.ones(1, 1, dtype=torch.bfloat16)

    def casts(cached):
        with torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=cached):
            return operators(lambda: (layer(x), layer(x))).count("_to_copy")

    assert (casts(True), casts(False)) == (1, 2)
    torch.nn.init.ones_(layer.weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        first = layer(x).item()
        with torch.no_grad():
            layer.weight.fill_(2.0)
        assert (first, layer(x).item()) == (1.0, 1.0)
    assert layer(x.float()).item() == 2.0


def test_graphs_want_the_weight_cache_off():
    assert says(14, "CUDA graphs, which replay the cast, want it off")
    source = inspect.getsource(torch.cuda.graphs)
    assert "does not support the autocast caching. Please set `cache_enabled=False`." in source


def test_tf32_is_off_for_products_and_on_for_convolutions():
    assert says(14, "PyTorch leaves it off for products, on for convolutions")
    assert torch.backends.cudnn.allow_tf32 and not torch.backends.cuda.matmul.allow_tf32


def test_a_cast_to_e4m3_stops_at_448_and_one_to_e5m2_does_not_stop():
    assert says(14, "PyTorch has stopped at 448 since version 2.12")
    large = torch.tensor([1000.0, -1e9, float("inf")])
    assert large.to(torch.float8_e4m3fn).float().tolist() == [448.0, -448.0, 448.0]
    assert large.to(torch.float8_e5m2).float()[1:].tolist() == [float("-inf"), float("inf")]
    assert torch.finfo(torch.float8_e5m2).max == 57344


def test_the_scaler_starts_halves_doubles_and_skips_as_told():
    assert says(14, "`GradScaler` starts at 65,536", "it skips the step and halves the scale")
    scaler, w = torch.amp.GradScaler("cpu"), torch.ones(2, requires_grad=True)
    assert scaler.get_scale() == 65536 and scaler.get_growth_interval() == 2000
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor()) == (2.0, 0.5)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale(torch.ones(1))
    w.grad = torch.tensor([float("inf"), 1.0])
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [1.0, 1.0] and scaler.get_scale() == 32768


def test_a_second_unscale_is_an_error():
    assert says(14, "a second `unscale_` before `update()` is an error")
    scaler, w = torch.amp.GradScaler("cpu"), torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale(w.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)


def test_bf16_weights_in_an_optimizer_do_not_move():
    assert says(14, "Do not call `model.bfloat16()` and hand its parameters to an optimizer")
    model = torch.nn.Linear(4, 4, bias=False)
    torch.nn.init.ones_(model.weight)
    model.bfloat16()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0)
    for _ in range(20):
        model.weight.grad = torch.ones_like(model.weight)
        optimizer.step()
    assert (model.weight == 1).all()


# -- 15: the allocator ---------------------------------------------------------------------------------------
def test_the_sizes_are_those_of_pytorch_s_header():
    assert says(15, "c10/core/AllocatorConfig.h")
    header = (PACKAGE / "include/c10/core/AllocatorConfig.h").read_text(encoding="utf-8")
    size = {name: int(value) for name, value in re.findall(r"constexpr size_t (k\w+) = (\d+);", header)}
    assert allocator.rounded_bytes(1) == size["kMinBlockSize"]
    assert size["kSmallSize"] == 2**20 and size["kSmallBuffer"] == size["kRoundLarge"] == 2 * 2**20
    assert size["kMinLargeAlloc"] == 10 * 2**20


@pytest.fixture
def settings():
    """Sets the allocator's configuration as the environment variable would, and puts it back."""
    before = torch._C._accelerator_getAllocatorSettings()
    yield torch._C._accelerator_setAllocatorSettings
    torch._C._accelerator_setAllocatorSettings(before)


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("expandable_segments:True", "expandable_segments:yes", "Expected 'True' or 'False'"),
        ("max_split_size_mb:20", "max_split_size_mb:19", "must be >= 20"),
        ("garbage_collection_threshold:0.8", "garbage_collection_threshold:1.0", r"\(0.0, 1.0\)"),
        ("roundup_power2_divisions:4", "roundup_power2_divisions:3", "power of 2"),
        ("large_segment_size_mb:64", "large_segment_size_mb:1", "must be >"),
    ],
)
def test_settings_are_read_as_the_table_says(settings, good, bad, words):
    assert says(15, "`" + good.split(":")[0] + ("" if "expand" not in good else ":True"))
    settings(good)
    assert torch._C._accelerator_getAllocatorSettings() == good
    with pytest.raises(ValueError, match=words):
        settings(bad)


def test_both_names_of_the_variable_are_read():
    assert says(15, "Older releases know it as `PYTORCH_CUDA_ALLOC_CONF`, which is still read")
    library = (PACKAGE / "lib/libc10.so").read_bytes()
    assert b"PYTORCH_ALLOC_CONF" in library and b"PYTORCH_CUDA_ALLOC_CONF" in library


def test_what_the_lesson_calls_is_there_with_the_arguments_it_gives():
    memory = torch.cuda.memory
    assert says(15, '_record_memory_history(max_entries=10**5, stacks="python")', "_dump_snapshot(path)")
    inspect.signature(memory._record_memory_history).bind(max_entries=10**5, stacks="python")
    inspect.signature(memory._record_memory_history).bind(enabled=None)
    inspect.signature(memory._dump_snapshot).bind("memory.pickle")
    assert says(15, "torch.cuda.set_per_process_memory_fraction(0.5)", "warn_tensor_cycles()")
    inspect.signature(torch.cuda.set_per_process_memory_fraction).bind(0.5)
    from torch.utils.viz import _cycles

    inspect.signature(_cycles.warn_tensor_cycles).bind()
    assert says(13, '`torch.cuda.set_sync_debug_mode("warn")`')
    inspect.signature(torch.cuda.set_sync_debug_mode).bind("warn")


# -- 16 and 19 -----------------------------------------------------------------------------------------------
def test_one_call_is_one_operator_and_the_backend_can_be_forced():
    assert says(16, "(`torch.nn.attention.sdpa_kernel` forces one)", "one call, one kernel")
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q, x = torch.randn(1, 2, 8, 4), torch.randn(4, 8)
    fused = operators(lambda: F.scaled_dot_product_attention(q, q, q))
    assert len(fused) == 1 and "flash" in fused[0] and len(operators(lambda: F.gelu(x))) == 1
    with sdpa_kernel(SDPBackend.MATH):
        written_out = operators(lambda: F.scaled_dot_product_attention(q, q, q))
    assert written_out.count("bmm") == 2 and len(written_out) > 10
    assert hasattr(torch.ops.aten, "_fused_rms_norm")  # F.rms_norm on a GPU
    from torch.nn.attention.flex_attention import flex_attention

    assert callable(flex_attention)


def test_the_decode_steps_attention_is_one_operator_or_thirteen():
    """Which backend takes the call on a GPU is PyTorch's sdp_utils.cpp: flash refuses a mask, the
    memory-efficient one grouped heads. What the call is without any of them can be counted here."""
    assert says(19, "attention counts as one kernel", "it becomes thirteen operators")
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from record import decode_kernels as recorder

    def counted(*backend) -> int:
        model, inputs = recorder.step(layers=1)
        with torch.no_grad(), sdpa_kernel(list(backend)), recorder.Kernels() as kernels:
            model(*inputs)
        return len(kernels.names)

    assert counted(SDPBackend.MATH) - counted(SDPBackend.FLASH_ATTENTION) == 13 - 1


def test_a_copy_that_is_longer_than_its_target_is_refused():
    assert says(19, "PyTorch refuses a copy that is longer than its target")
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.zeros(4).copy_(torch.ones(6))


def test_graphed_callables_warm_up_three_times_share_a_pool_and_then_replay(monkeypatch):
    """PyTorch's own function, with stand-ins for what needs a GPU."""
    assert says(19, "(`pool=graph.pool()`)", "Three warm-up runs", "`torch.cuda.make_graphed_callables`")
    done = []

    class Graph:
        def replay(self):
            done.append("replay")

    @contextlib.contextmanager
    def captured(graph, pool):
        done.append(f"capture into {pool}")
        yield

    stand_ins = {
        "CUDAGraph": Graph,
        "graph": captured,
        "Stream": lambda: None,
        "stream": contextlib.nullcontext,
        "synchronize": lambda: None,
    }
    for name, stand_in in stand_ins.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)

    def step(x):
        done.append("step")
        return 2 * x

    graphed = torch.cuda.make_graphed_callables(step, (torch.ones(3, requires_grad=True),), pool="the pool")
    assert done == ["step"] * 3 + ["capture into the pool", "step", "capture into the pool"]  # the backward
    graphed(torch.ones(3, requires_grad=True)).sum().backward()
    assert done[6:] == ["replay", "replay"]


def test_a_captured_optimizer_counts_its_steps_in_a_tensor():
    """And says so on a device that has no graphs."""
    assert says(
        19, "`AdamW(…, capturable=True)`", "because a Python counter would be frozen at its first value"
    )
    weight = torch.nn.Parameter(torch.ones(2))
    weight.grad = torch.ones(2)
    plain = torch.optim.AdamW([weight])
    plain.step()
    assert plain.state[weight]["step"].device.type == "cpu"
    assert inspect.signature(torch.optim.AdamW).parameters["capturable"].default is False
    with pytest.raises((AssertionError, RuntimeError), match="capturable=True"):
        torch.optim.AdamW([weight], capturable=True, foreach=False).step()


def test_a_number_in_a_kernel_s_arguments_is_the_first_one_for_ever():
    """As a trace shows: the number is in the graph, and a tensor is an input."""
    assert says(19, "a kernel's argument, the first number for ever")
    from torch.fx.experimental.proxy_tensor import make_fx

    n = 3
    traced = make_fx(lambda x: x + n + torch.full((1,), n))(torch.zeros(1))
    n = 4
    assert traced(torch.zeros(1)).item() == 3 + 3


# -- what else can be run ------------------------------------------------------------------------------------
def test_the_wheel_s_list_of_operators_has_matmul_composite_and_mm_for_each_backend():
    assert says(13, "`native_functions.yaml` in PyTorch's sources: it lists every operator")
    assert says(13, "`matmul` has no gradient of its own, because it is **composite**")
    import torchgen

    path = Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    listed = path.read_text(encoding="utf-8").split("\n- func: ")
    assert len(listed) > 2000
    [mm] = [each for each in listed if each.startswith("mm(")]
    assert "structured_delegate: mm.out" in mm
    registered = {name: torch._C._dispatch_dump(f"aten::{name}") for name in ("matmul", "mm")}
    assert "CompositeImplicitAutograd" in registered["matmul"] and "\nCPU" not in registered["matmul"]
    assert "CompositeImplicitAutograd" not in registered["mm"] and "\nCPU" in registered["mm"]


@pytest.mark.parametrize("read", [lambda x: x.nonzero(), lambda x: x[x > 0]], ids=["nonzero", "mask"])
def test_how_many_there_are_cannot_be_known_without_the_data(read):
    assert says(13, "`nonzero()`\nand indexing with a mask need a value")
    assert says(19, "fails: the result's size is asked of the GPU")
    from torch._subclasses.fake_tensor import DynamicOutputShapeException

    with FakeTensorMode(), torch.no_grad(), pytest.raises(DynamicOutputShapeException):
        read(torch.empty(4))


def test_a_loss_that_is_added_up_keeps_every_step_s_graph():
    assert says(13, "since `total += loss` keeps each step's graph alive", "`loss.detach()`")
    import weakref

    def alive(add) -> int:
        w, total, graphs = torch.ones(1, requires_grad=True), torch.zeros(1), []
        for _ in range(5):
            inner = w.exp()
            graphs.append(weakref.ref(inner))
            inner_loss = inner * 2
            total = total + add(inner_loss)
            keeps = inner_loss.grad_fn
            del inner, inner_loss, keeps
        seen, todo = set(), [total.grad_fn] if total.grad_fn else []
        while todo:
            node = todo.pop()
            if node and node not in seen:
                seen.add(node)
                todo += [each for each, _ in node.next_functions]
        return sum(node.name() == "ExpBackward0" for node in seen)

    assert (alive(lambda loss: loss), alive(lambda loss: loss.detach())) == (5, 0)


def test_fused_attention_keeps_one_number_a_row_instead_of_the_scores():
    assert says(13, "The kernel keeps one number a\n    row, the logarithm of the softmax's sum")
    q = torch.randn(1, 2, 64, 8, requires_grad=True)
    fused = kept(lambda: F.scaled_dot_product_attention(q, q, q))
    assert max(t.numel() for t in fused) == q.numel() and any(t.numel() == 2 * 64 for t in fused)
    [sums] = [t for t in fused if t.numel() == 2 * 64]
    scores = q @ q.transpose(-1, -2) / 8**0.5
    torch.testing.assert_close(sums.reshape(1, 2, 64), scores.logsumexp(-1))


def test_a_mode_sees_operators_below_autograd():
    assert says(13, "sees each operator below autograd, on its way to the")
    seen = []

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            seen.append(operator.name())
            return operator(*args, **(kwargs or {}))

    x = torch.ones(2, 2, requires_grad=True)
    with Mode():
        torch.matmul(x, x)
    assert seen == ["aten::mm"]  # matmul was taken apart above


def test_bf16_is_fp32_s_upper_half_and_e4m3_has_one_pattern_for_nan():
    assert says(14, "bf16 is fp32 with the\nlower half cut off", "keeps one pattern\nfor NaN")
    x = torch.randn(1000).bfloat16()
    assert torch.equal(x.view(torch.int16), (x.float().view(torch.int32) >> 16).to(torch.int16))
    patterns = torch.arange(256, dtype=torch.uint8)
    wide = patterns.view(torch.float8_e4m3fn).float()
    assert patterns[wide.isnan()].tolist() == [0x7F, 0xFF] and not wide.isinf().any()  # one for each sign
    wide = patterns.view(torch.float8_e5m2).float()
    assert wide.isinf().sum() == 2 and wide.isnan().sum() == 6


def test_sums_and_counters_stop_where_the_lesson_says():
    assert says(
        14,
        "There the sum stops growing",
        "Where does the count stop, and where would it in fp16 and in fp32?",
    )
    for dtype, stop in ((torch.bfloat16, 2**8), (torch.float16, 2**11), (torch.float32, 2**24)):
        at = torch.tensor(float(stop), dtype=dtype)
        assert at + 1 == at and at - 1 != at and (at - 1) + 1 == at
    total = torch.zeros((), dtype=torch.bfloat16)
    for product in torch.rand(4096).bfloat16() * torch.rand(4096).bfloat16():
        total += product
    assert 64 <= total <= 256  # of about 1,024


def test_backward_needs_no_autocast_and_a_function_of_one_s_own_says_its_format():
    assert says(
        14, "`backward()` stays outside of the block", "in the format that its forward operator ran in"
    )
    assert says(14, "is on no list at all, so `torch.amp.custom_fwd` on its forward")
    formats = []

    class Own(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            formats.append((x.dtype, torch.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            return 2 * grad

    layer, found = torch.nn.Linear(4, 4), []
    x = torch.randn(2, 4, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = layer(x)
        Own.apply(y).sum().backward(retain_graph=True)
    assert formats == [(torch.float32, False)]

    class Formats(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            if operator.name() == "aten::mm":
                found.append({t.dtype for t in args})
            return operator(*args, **(kwargs or {}))

    with Formats():
        y.float().sum().backward()
    assert found and all(formats == {torch.bfloat16} for formats in found)


def test_a_scale_falls_to_one_and_below_where_a_value_is_infinite_at_any_scale():
    assert says(14, "every other step is skipped, the scale goes to 1 and below")
    scaler, w = torch.amp.GradScaler("cpu"), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=1.0)
    scaler.scale(torch.ones(1))
    for _ in range(18):
        w.grad = torch.tensor([float("inf")])
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 0.25 and w.item() == 1.0


def test_a_cycle_waits_for_the_garbage_collector():
    assert says(15, "reference cycles: Python frees those when its garbage collector runs")
    import gc
    import weakref

    class Holder:
        pass

    gc.collect()
    gc.disable()
    try:
        holder = Holder()
        holder.tensor, holder.me = torch.ones(3), holder
        tensor = weakref.ref(holder.tensor)
        del holder
        assert tensor() is not None
        gc.collect()
        assert tensor() is None
    finally:
        gc.enable()


def test_fsdp2_records_no_stream_and_pools_and_snapshots_can_be_asked_for():
    assert says(
        15, "FSDP2 does without it for that reason", "`torch.cuda.use_mem_pool(pool)`", "_snapshot()`"
    )
    from torch.distributed.fsdp import _fully_shard

    sources = [path.read_text(encoding="utf-8") for path in Path(_fully_shard.__file__).parent.glob("*.py")]
    assert len(sources) > 5 and not any(".record_stream(" in source for source in sources)
    inspect.signature(torch.cuda.use_mem_pool).bind("pool")
    assert isinstance(torch.cuda.MemPool, type)
    inspect.signature(torch.cuda.memory._snapshot).bind()


def test_layer_norm_is_one_operator_and_a_dropped_flag_one_byte():
    assert says(16, "Dropout reads 2, writes 2 and a flag of 1", "LayerNorm, one\n        kernel already")
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    assert operators(lambda: F.layer_norm(x, (8,))) == ["native_layer_norm"]
    assert torch.native_dropout(x, 0.1, True)[1].element_size() == 1


def test_a_capture_under_a_compiler_makes_conditional_nodes_of_cond():
    """Its node is made on a GPU alone; that a capture meets ``torch.cond`` on its way is in the source."""
    assert says(19, '`torch.compile(backend="cudagraphs")` does of `torch.cond`')
    from torch._higher_order_ops import cudagraph_conditional_nodes as nodes

    assert "torch.ops.higher_order.cond" in inspect.getsource(nodes.CUDAGraphCaptureControlFlowOpDispatchMode)
    assert "begin_capture_to_if_node" in inspect.getsource(nodes)
    trees = (PACKAGE / "_inductor/cudagraph_trees.py").read_text(encoding="utf-8")
    assert "CUDAGraphCaptureControlFlowOpDispatchMode()," in trees
    assert "CaptureControlFlow" not in inspect.getsource(torch.cuda.graphs)  # a capture by hand makes none


def test_a_python_number_and_its_random_ones_are_frozen_in_a_trace():
    assert says(19, "| a Python counter, `random.random()` | **silent**: it runs once, at capture |")
    import random

    from torch.fx.experimental.proxy_tensor import make_fx

    calls = []
    traced = make_fx(lambda x: calls.append(1) or x + random.random())(torch.zeros(1))
    assert traced(torch.zeros(1)).item() == traced(torch.zeros(1)).item() and len(calls) == 1


def test_ddp_wants_eleven_steps_before_it_is_captured():
    assert says(19, "DDP has had eleven eager steps")
    assert re.search(r"needs\s+11 iterations", torch.cuda.make_graphed_callables.__doc__)
