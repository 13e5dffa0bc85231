"""What lesson 17 says of Triton: under its interpreter, and of what can be asked of it without a GPU. What
the compiler makes of the kernels is recorded (tests/record)."""

import inspect
from pathlib import Path

import pytest

from tests import machine
from tests.lessons.claims import says

triton = machine.torch("triton")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def found():
    machine.torch()
    return machine.interpreted("tests.lessons.interpreted")


def test_whole_numbers_wrap_round_past_2_31_and_one_wide_one_is_enough(found):
    assert says(17, "Triton's whole numbers are int32, so `row * stride` wraps round past $2^{31}$ elements")
    assert says(17, "one wide number is enough, and the sum is wide")
    assert found["offsets"] == [40_000 * 60_000 - 2**32, 40_000 * 60_000]


def test_the_solved_kernels_run_in_triton_as_they_stand():
    """The numbers are the page's: no further apart than the order of a sum in fp32 makes them."""
    found = machine.interpreted("tests.lessons.solved_kernels")
    assert len(found) == 5 and all(found.values())
    assert max(max(each) for each in found.values()) < 1e-6, found


def test_a_block_is_as_long_as_a_power_of_two(found):
    assert says(17, "A block's length is a power of two, so a row of 100 takes a block of 128")
    assert "must be a power of 2" in found["block of 100"] and triton.next_power_of_2(100) == 128


def test_print_works_under_the_interpreter(found):
    assert says(17, "debug one: `print` works there")
    assert found["printed"] == "seen [0 1 2 3]\n"


def test_without_a_mask_the_last_program_writes_to_somebody_else_s_memory(found):
    assert says(17, "the last program reads somebody else's memory, or writes to it")
    assert found["written"] == [5, 8]


def test_the_softmax_s_gradient_passes_gradcheck_in_fp64(found):
    assert says(17, "`torch.autograd.gradcheck` in fp64 finds most mistakes in such a pair")
    assert found["gradcheck"] is True


def test_a_descriptor_gives_zeros_outside_and_wants_rows_of_16_bytes(found):
    assert says(17, "what is outside the matrix comes as zero", "rows must begin at multiples of 16 bytes")
    assert found["beyond"] == 64 and "16-byte aligned" in found["rows of 20 bytes"]


def test_tiles_are_timed_once_for_each_new_key_and_what_does_not_fit_is_skipped(found):
    assert says(17, "Triton times them once for each new key", "Autotuning skips what does not fit")
    counts, best, grids = found["tuned"]
    assert counts == [3, 3, 6] and best == 8
    assert says(17, "so the grid is a function of the constants that it chose") and 16 in grids


def test_the_error_says_what_the_lesson_quotes():
    from triton.runtime.errors import OutOfResources

    assert says(17, "`OutOfResources: out of resource: shared memory`")
    assert str(OutOfResources(288 * 1024, 227 * 1024, "shared memory")).startswith(
        "out of resource: shared memory"
    )


def test_products_of_fp32_take_tf32_unless_told_otherwise():
    from triton.backends.nvidia.compiler import CUDAOptions
    from triton.language import dot

    assert says(17, "Given fp32 blocks it takes TF32 (lesson 14)", '`input_precision="ieee"`')
    assert CUDAOptions().default_dot_input_precision == "tf32"
    assert "ieee" in CUDAOptions().allowed_dot_input_precisions
    assert inspect.signature(dot).parameters["input_precision"].default is None


def test_numbers_are_told_apart_by_kind():
    from triton._C.libtriton import native_specialize_impl
    from triton.backends.nvidia.compiler import CUDABackend

    assert says(17, "only by kind: 1, multiples of 16, all others, and those from $2^{31}$ on")

    def kind(number):
        return native_specialize_impl(CUDABackend, number, False, True, True)

    assert kind(1) == ("constexpr", 1)
    assert kind(16) == kind(4096) != kind(17) == kind(4097)
    assert kind(2**31 - 1)[0] == "i32" and kind(2**31)[0] == "i64"


class Clock:
    """A GPU's events, by counting what happens."""

    log: list[str] = []

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        Clock.log.append("event")

    def elapsed_time(self, end):
        return 10.0


def test_do_bench_warms_up_clears_l2_and_times_with_events(monkeypatch):
    assert says(17, "It warms up, clears L2 before each run, and times on the GPU with events")
    Clock.log = []

    class Device:
        Event, synchronize = Clock, staticmethod(lambda: None)

    class Driver:
        get_device_interface = staticmethod(lambda: Device)
        get_empty_cache_for_benchmark = staticmethod(lambda: "L2")
        clear_cache = staticmethod(lambda cache: Clock.log.append(f"clear {cache}"))

    monkeypatch.setattr(type(triton.runtime.driver), "active", property(lambda self: Driver))
    median = triton.testing.do_bench(lambda: Clock.log.append("run"), rep=100, return_mode="median")
    assert median == 10.0
    timed = Clock.log[Clock.log.index("event", Clock.log.index("event") + 1) + 1 :]  # after the estimate
    assert timed[0] == "run"  # a warm-up, not timed
    measured = timed[timed.index("clear L2") :]
    assert measured == ["clear L2", "event", "run", "event"] * (len(measured) // 4) and len(measured) > 8
    assert inspect.signature(triton.testing.do_bench).parameters["return_mode"].default == "mean"


def test_what_else_is_named_is_there():
    from triton.compiler.compiler import CompiledKernel

    assert says(17, "`kernel.n_spills`", "`tl.range(..., warp_specialize=True)`", "`torch.library.triton_op`")
    assert "n_spills" in inspect.getsource(CompiledKernel)
    assert "warp_specialize" in inspect.signature(triton.language.range.__init__).parameters
    assert callable(machine.torch().library.triton_op)
    assert says(17, "Triton ships with NVIDIA's assembler")
    assert (Path(triton.__file__).parent / "backends/nvidia/bin/ptxas").exists()


def test_a_model_chooses_which_configurations_are_timed():
    """As the autotuner does before it compiles any; the estimate is lesson 17's."""
    from engine.one_gpu import tiling
    from kernels.matmul import matmul_kernel

    assert says(17, "Triton takes such a model in `prune_configs_by`", "only the `top_k` best are compiled")
    chip = tiling.chip("h100-sxm")

    def estimate(BLOCK_M, BLOCK_N, BLOCK_K, num_stages, num_warps, m, n, k, **rest):
        tile = tiling.Tile(BLOCK_M, BLOCK_N, BLOCK_K, num_stages, num_warps)
        return float(tiling.times(m, n, k, tile, chip).total_s)

    configs = [
        triton.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": 64, "GROUP": 8}, num_stages=3, num_warps=8)
        for m, n in ((64, 64), (128, 256), (128, 128))
    ]
    tuned = triton.autotune(configs, ["m"], prune_configs_by={"perf_model": estimate, "top_k": 2})
    tuner = tuned(matmul_kernel)
    tuner.nargs = {"m": 4096, "n": 4096, "k": 4096}
    kept = [config.kwargs for config in tuner.prune_configs({})]
    assert [(each["BLOCK_M"], each["BLOCK_N"]) for each in kept] == [(128, 256), (128, 128)]


def test_the_profiler_is_there():
    assert says(17, "Triton's own profiler, *Proton* (`triton.profiler`)")
    assert (Path(triton.__file__).parent / "profiler" / "scope.py").exists()
