"""No two pages give the same quantity different values: what pages and figures ask of the engine about a
machine
is asked with that machine's own rate, and what they say about it is compared."""

import ast
import functools
import importlib
import inspect
import pkgutil
import re
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import engine.executed
import engine.mechanism
from course import lesson_code, lessons, numbers
from course.fences import table
from engine import catalog
from engine.base import units
from engine.executed import data_parallel, fully_sharded, zero
from engine.mechanism import collectives, context_parallel, hiding, matmul, memory, start_ups, walls, wires
from tests import states
from tests.lessons.reading import Lesson
from widgets.training.ddp_overlap import DdpOverlap
from widgets.training.fsdp_timeline import FsdpTimeline
from widgets.training.zero_stages import ZeroStages

PAGES = sorted(f"{page.name}.md" for page in lessons.pages())
# what takes the rate of a GPU at work; whoever asks it must give the rate that this GPU has everywhere
AT_A_RATE = [
    (hiding, "tokens_to_hide"),
    (data_parallel, "simulate_step"),
    (data_parallel, "step"),
    (fully_sharded, "transformer_layer"),
    (fully_sharded, "layer"),
    (zero, "arithmetic_s"),
]
RATES = {matmul.product_flops_per_s(gpu): key for key, gpu in catalog.all_gpus().items()}
PASSES = {"backward_flops", "forward_flops"}  # timed while they run: MFU is an average of steps

AT_AN_MFU = {"run_time_s", "achieved_flops_per_s", "gpu_hours"}


def computed(page: Lesson) -> None:
    """Computes all that a page does: its numbers, its tables, and through them its names."""
    with lessons.on(page.source):
        for source in page.computed:
            numbers._value(numbers.form(source)["expression"])  # what is kept from before asks nothing
        for fence in page.source.fences:
            if fence.kind == "table":
                table.render(fence.source)


def asked_by(page: Lesson, monkeypatch) -> list[tuple[str, dict, float]]:
    """(function, arguments, result) of each call of AT_A_RATE that the page's own expressions make."""
    calls = []

    def listening(function):
        def call(*given, **named):
            bound = inspect.signature(function).bind(*given, **named)
            bound.apply_defaults()
            result = function(*given, **named)
            calls.append((function.__name__, bound.arguments, result))
            return result

        return call

    with monkeypatch.context() as patch:
        for module, name in AT_A_RATE:
            patch.setattr(module, name, listening(getattr(module, name)))
        lesson_code.loaded.cache_clear()  # names are kept, too
        computed(page)
    lesson_code.loaded.cache_clear()
    return calls


def strange_rates(calls: list) -> list[str]:
    """Calls at a rate that no GPU of the catalogue has."""
    return [
        f"{name} at {arguments['flops_per_s'] / 1e12:.4g} TFLOP/s"
        for name, arguments, _ in calls
        if arguments["flops_per_s"] not in RATES
    ]


@pytest.fixture(scope="module")
def asked():
    """The questions of each page whose text names one of these functions."""
    names = [name for _, name in AT_A_RATE]
    with pytest.MonkeyPatch.context() as patch:
        read = {page: Lesson(page) for page in PAGES}
        return {
            page: asked_by(lesson, patch)
            for page, lesson in read.items()
            if any(f".{name}(" in lesson.text + lesson.source.code for name in names)
        }


def test_every_page_computes_passes_at_the_rate_of_its_gpu(asked):
    """Lesson 04 did it at 0.4 of the peak, lesson 01 at 0.65, and their rules contradicted each other.
    Lesson 02 counts buckets with a round rate, of which their number does not depend."""
    assert {"01-why-distributed.md", "04-data-parallel.md", "05-fsdp-and-zero.md"} <= set(asked)
    counting = {"02-collectives.md"}
    found = {page: strange_rates(calls) for page, calls in asked.items() if page not in counting}
    assert not any(found.values()), found


def test_the_tokens_that_hide_are_the_same_on_every_page(asked):
    """By GPU, ring, gradient and share of experts; at least two pages speak of 64 H100s in whole nodes."""
    values: dict[tuple, dict[str, set[float]]] = {}
    for page, calls in asked.items():
        for name, arguments, result in calls:
            if name == "tokens_to_hide":
                of = {key: arguments[key] for key in arguments if key != "flops_per_s"}
                machine = RATES.get(arguments["flops_per_s"], "?"), *sorted(of.items())
                values.setdefault(machine, {}).setdefault(page, set()).add(round(float(result), 6))
    for machine, by_page in values.items():
        assert len(set.union(*by_page.values())) == 1, (machine, by_page)
    whole_nodes = [
        by_page
        for (gpu, *of), by_page in values.items()
        if RATES[matmul.product_flops_per_s(catalog.gpu("h100-sxm"))] == gpu
        and dict(of)["ranks"] == 64
        and dict(of)["wire_bytes_per_s"] == 400e9
        and dict(of)["gradient_bytes"] == 2
    ]
    assert whole_nodes and len(whole_nodes[0]) >= 3


def test_a_rate_of_its_own_would_be_found(monkeypatch):
    """Lesson 05's rule as it was, at 0.4 of the peak, beside what the page computes today."""
    page = Lesson("05-fsdp-and-zero.md")
    own = "hiding.tokens_to_hide(64, cards, flops_per_s=0.4 * h100.bf16_flops_per_s)"
    page.computed = [*page.computed, f"{own} | tokens"]
    assert strange_rates(asked_by(page, monkeypatch)) == ["tokens_to_hide at 395.6 TFLOP/s"]


# -- MFU is for whole steps ----------------------------------------------------------------------------------
def passes_at_an_mfu(expression: str) -> list[str]:
    """Calls that time a forward or backward pass at a share of the peak that is an average of steps."""
    found = []
    for call in ast.walk(ast.parse(expression.strip())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute | ast.Name):
            name = call.func.attr if isinstance(call.func, ast.Attribute) else call.func.id
            inner = {node.attr for node in ast.walk(call) if isinstance(node, ast.Attribute)}
            if name in AT_AN_MFU and inner & PASSES:
                found.append(ast.unparse(call))
    return found


def expressions(page: Lesson) -> list[str]:
    shown = [numbers.form(source)["expression"] for source in page.computed]
    return [*shown, *(each.source for each in page.source.code_contents.definitions)]


@pytest.mark.parametrize("page", PAGES)
def test_no_pass_is_timed_at_an_mfu(page):
    read = Lesson(page)
    assert not [call for expression in expressions(read) for call in passes_at_an_mfu(expression)]


def test_a_pass_at_an_mfu_would_be_found():
    """Lesson 03's exercise and lesson 02's envelope, as they were."""
    assert passes_at_an_mfu("flops.run_time_s(flops.backward_flops(70e9, tokens=8192), gpus=1, mfu=0.65)")
    assert passes_at_an_mfu("flops.backward_flops(p, 1) / flops.run_time_s(flops.forward_flops(p, 1))")
    assert not passes_at_an_mfu("flops.run_time_s(flops.training_flops(70e9, 1), gpus=1, mfu=0.4)")


# -- one sum, and the times that it is given -----------------------------------------------------------------
GRADIENT_BYTES = 140e9  # of 70B in bf16
OF_A_SUM = [
    (collectives, "ring_all_reduce_s", "buffer_bytes", 1.0),
    (collectives, "two_level_all_reduce_s", "buffer_bytes", 1.0),
    (start_ups, "ring_through_s", "buffer_bytes", 1.0),
    (walls, "allreduce_s", "params", 2.0),
]


def times_of_the_sum(page: Lesson, monkeypatch) -> set[float]:
    """Seconds that a page gives for the AllReduce of these bytes over more than one GPU."""
    found: set[float] = set()

    def listening(function, argument: str, each: float):
        def call(*given, **named):
            bound = inspect.signature(function).bind(*given, **named)
            bound.apply_defaults()
            result = function(*given, **named)
            if np.ndim(result) == 0 and bound.arguments[argument] * each == GRADIENT_BYTES:
                found.add(float(result))
            return result

        return call

    with monkeypatch.context() as patch:
        for module, name, argument, each in OF_A_SUM:
            patch.setattr(module, name, listening(getattr(module, name), argument, each))
        lesson_code.loaded.cache_clear()
        computed(page)
    lesson_code.loaded.cache_clear()
    return found


def unexplained(times: set[float], rows: list[float]) -> list[float]:
    """Those that no row of lesson 03's table gives, to the digits that are shown."""
    return [time for time in times if not any(time == pytest.approx(row, rel=0.02) for row in rows)]


@pytest.fixture(scope="module")
def explained():
    """The seconds in the table of *One sum, many times*."""
    section = (
        Lesson("03-interconnect.md")
        .text.split("### One sum, many times")[1]
        .split("\n## ")[0]
        .split("\n### ")[0]
    )
    [fence] = re.findall(r"``` table\n(.*?)```", section, re.DOTALL)
    with lessons.on(Lesson("03-interconnect.md").source):
        cells = re.findall(r"<td[^>]*>(.*?)</td>", table.render(fence), re.DOTALL)
    return [
        float(text) for cell in cells if re.fullmatch(r"[\d.]+", text := re.sub(r"<[^>]*>", "", cell).strip())
    ]


@pytest.mark.parametrize("page", ["01-why-distributed.md", "02-collectives.md", "03-interconnect.md"])
def test_each_time_of_the_sum_of_a_70b_gradient_is_in_the_table_that_explains_them(
    page, explained, monkeypatch
):
    """Three lessons gave 0.7, 5.51 and 1.16 s for what read as the same thing."""
    times = times_of_the_sum(Lesson(page), monkeypatch)
    assert times and len(explained) >= 6
    assert not unexplained(times, explained)


def test_another_time_would_be_found(explained):
    assert unexplained({2.8}, explained) == [2.8]


# -- memory of one job ---------------------------------------------------------------------------------------
def test_the_70b_on_64_gpus_holds_on_both_pages_what_the_engine_says():
    """Lesson 01's sum, lesson 05's, and the estimate: each is the one before and what is said to be added."""
    one, five = Lesson("01-why-distributed.md"), Lesson("05-fsdp-and-zero.md")
    ours = one.value("a_64th + stored_inputs + max(one_layer, logits) + memory.FRAMEWORK_BYTES")
    by_hand, layers = five.value("by_hand_70b"), five.value("layers_70b")
    rebuilt = five.value("memory.layer_activation_bytes(llama_70b, seq=8192, micro_batch=1)")
    assert by_hand - 2 * layers - rebuilt == pytest.approx(ours, rel=1e-9)
    assert five.value("envelope").terms.total_bytes == pytest.approx(by_hand - layers, rel=2e-3)


# -- a machine's figures come from the catalogue, or are said ------------------------------------------------
OF_A_MACHINE = {
    "peak_flops_per_s",
    "flops_per_s",
    "bytes_per_s",
    "wire_bytes_per_s",
    "link_bytes_per_s",
    "nic_bytes_per_s",
    "hbm_bytes_per_s",
    "memory_bytes_per_s",
    "hbm_bytes",
    "launch_s",
    "alpha_s",
    "link_alpha_s",
    "nic_alpha_s",
    "mfu",
    "dollars_per_gpu_hour",
}  # arguments of the engine's formulas
RANKS = (*(2**power for power in range(1, 15)), 384)
ROOMS = (engine.mechanism, engine.executed)


@cache
def known() -> np.ndarray:
    """What the catalogue and the fits say of GPUs, wires, nodes and prices."""
    gpus, found = list(catalog.all_gpus().values()), [0.0]
    for gpu in gpus:
        found += [gpu.bf16_flops_per_s, gpu.fp16_flops_per_s, gpu.fp8_flops_per_s]
        found += [gpu.hbm_bytes, memory.capacity_bytes(gpu), gpu.hbm_bytes_per_s, gpu.link_bytes_per_s]
        found += [matmul.product_flops_per_s(gpu), start_ups.link_hop_s(gpu), start_ups.start_s(gpu)]
        chip, net = matmul.chip(gpu), wires.wires(gpu)
        found += [chip.matmul_flops_per_s, chip.memory_bytes_per_s, chip.launch_s]
        found += [context_parallel.flash_flops_per_s(gpu, 128)]
        found += [net.link_bytes_per_s, *(cards * net.nic_bytes_per_s for cards in range(1, 9))]
    for link in catalog.all_links().values():
        ports = [link.bytes_per_s * number for number in range(1, 9)]
        found += [*ports, link.bytes_per_s / 8, start_ups.hop_s(link)]  # or one port for a node of eight
        found += [data_parallel.tree_alpha_s(ranks, start_ups.hop_s(link)) for ranks in RANKS]
    for node in catalog.all_nodes().values():
        found += [node.outgoing_bytes_per_s, start_ups.mean_hop_s(node)]
        found += [start_ups.mean_hop_s(node, ranks) for ranks in RANKS if ranks % 8 == 0]
    found += [catalog.price(price.gpu).dollars_per_hour for price in catalog.all_prices().values()]
    return np.array(found)


def figures_given(page: Lesson, monkeypatch) -> set[tuple[str, str, float]]:
    """(function, argument, number) of each figure of a machine that the page itself hands to a formula."""
    given: set[tuple[str, str, float]] = set()

    def listening(function, signature):
        @functools.wraps(function)
        def call(*positional, **named):
            if not sys._getframe(1).f_code.co_filename.startswith(str(Path(engine.__file__).parent)):
                bound = signature.bind(*positional, **named).arguments
                for name in OF_A_MACHINE & bound.keys():
                    if np.ndim(bound[name]) == 0:
                        given.add((function.__name__, name, float(bound[name])))
            return function(*positional, **named)

        return call

    with monkeypatch.context() as patch:
        for room in ROOMS:
            for found in pkgutil.iter_modules(room.__path__):
                module = importlib.import_module(f"{room.__name__}.{found.name}")
                for name, function in vars(module).copy().items():
                    if inspect.isfunction(function) and function.__module__ == module.__name__:
                        signature = inspect.signature(function)
                        if OF_A_MACHINE & signature.parameters.keys():
                            patch.setattr(module, name, listening(function, signature))
        lesson_code.loaded.cache_clear()
        computed(page)
    lesson_code.loaded.cache_clear()
    return given


def as_read(page: Lesson) -> str:
    """The page's words with its numbers in them, without spaces."""
    with lessons.on(page.source):
        words = re.sub(r"`#!n (.*?)`", lambda found: numbers.evaluate(found[1]), page.text)
    return "".join(words.split())


def forms_of(name: str, value: float) -> set[str]:
    """How a page may print it: in its unit, a rate of arithmetic also as a share of a GPU's peak."""
    if name == "mfu":
        return {f"{100 * value:.0f}%"}
    if "dollars" in name:
        return {f"${value:g}"}
    if "flops" in name:
        peaks = np.array(
            [gpu.bf16_flops_per_s for gpu in catalog.all_gpus().values() if gpu.bf16_flops_per_s]
        )
        shares = [share for share in np.round(value / peaks, 9) if share == round(share, 2)]
        return {units.human(value, "flops_per_s"), *(f"{100 * share:.0f}%" for share in shares)}
    kind = "bytes" if name == "hbm_bytes" else "bytes_per_s" if "bytes" in name else "seconds"
    return {units.human(value, kind)}


def unsaid(page: Lesson, given: set[tuple[str, str, float]]) -> list[str]:
    """Those that neither the catalogue has nor the page says."""
    read, found = as_read(page), []
    for function, name, value in sorted(given):
        listed = np.isclose(known(), value, rtol=1e-9, atol=0).any()
        if not listed and not any("".join(form.split()) in read for form in forms_of(name, value)):
            found.append(f"{function}: {name} = {value:g}")
    return found


@pytest.mark.parametrize("page", states.daily(PAGES))
def test_a_figure_of_a_machine_is_the_catalogues_or_is_said(page, monkeypatch, compiled):
    """What a formula is told of a GPU, a wire, an MFU or a price has one value for all pages, unless the page
    prints its own. Lesson 02 counts buckets with a round rate, of which their number does not depend."""
    read = Lesson(page)
    found = unsaid(read, figures_given(read, monkeypatch))
    if page == "02-collectives.md":
        found.remove("simulate_step: flops_per_s = 1e+15")
    assert not found


@pytest.mark.parametrize(
    ("own", "fault"),
    [
        (
            "collectives.ring_all_reduce_s(1e9, 8, 450e9, alpha_s=9.6e-6)",
            "ring_all_reduce_s: alpha_s = 9.6e-06",
        ),
        ("cost.run_dollars(1e6, 2.5)", "run_dollars: dollars_per_gpu_hour = 2.5"),
        (
            "flops.run_time_s(1e21, gpus=8, peak_flops_per_s=1e15, mfu=0.4)",
            "run_time_s: peak_flops_per_s = 1e+15",
        ),
        (
            "walls.allreduce_s(70e9, ranks=64, wire_bytes_per_s=370e9)",
            "allreduce_s: wire_bytes_per_s = 3.7e+11",
        ),
    ],
)
def test_a_figure_of_its_own_would_be_found(own, fault, monkeypatch):
    """Lesson 02's old start-up, another price, a round peak, a rate that is neither sold nor reached."""
    page = Lesson("05-fsdp-and-zero.md")
    page.computed = [own]
    assert fault in unsaid(page, figures_given(page, monkeypatch))


# -- prices --------------------------------------------------------------------------------------------------
ROOT = Path(engine.__file__).parent.parent
SEARCHED = ("engine", "widgets", "course", "lessons", "examples")
TYPED_PRICE = re.compile(
    r"""(?:\bprice|dollars_per_gpu_hour|price_per_hour|dollars_per_hour)["']?\s*[=:]\s*[0-9]"""
    r"""|--price\s+[0-9]"""
    r"""|Number\(\s*"[^"]*(?:[Pp]rice|GPU-hour)[^"]*",\s*[0-9]"""
    r"""|`\#!n\s[0-9.]+\s\|\s\$`[^.`]{0,20}hour"""
)
LISTED = ("engine/catalog/prices.toml", "engine/validation/published")


def typed_prices() -> list[str]:
    """Every place where a price of a GPU-hour is written down instead of asked for."""
    found = []
    for room in SEARCHED:
        for file in sorted((ROOT / room).rglob("*")):
            name = file.relative_to(ROOT).as_posix()
            if file.suffix in (".py", ".md", ".toml", ".yml") and not name.startswith(LISTED):
                text = file.read_text(encoding="utf-8")
                found += [f"{name}: {each[0]}" for each in TYPED_PRICE.finditer(text)]
    return found


def test_every_price_is_asked_of_the_one_list():
    assert not typed_prices()


@pytest.mark.parametrize(
    "text",
    [
        "price = 1.9",
        '"price": 2,',
        "cost.run_dollars(hours, dollars_per_gpu_hour=3)",
        "price_per_hour=2.5",
        "--price 3 --overhead",
        'Number(\n        "A GPU-hour",\n        3,',
        "at `#!n 2.5 | $` for a GPU-hour",
        "512 H100s at `#!n 3 | $` an hour",
    ],
)
def test_a_typed_price_would_be_found(text):
    assert TYPED_PRICE.search(text)


# -- names ---------------------------------------------------------------------------------------------------
def scalars_by_words() -> dict[tuple[str, str], dict[str, float]]:
    """(name, what it is said to be) -> its number on each page that has it."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for page in (Lesson(name) for name in PAGES):
        for given in page.source.code_contents.definitions:
            value = page.value(given.name)
            if isinstance(value, int | float | np.floating):
                found.setdefault((given.name, given.says), {})[page.name] = float(value)
    return found


def test_one_name_with_one_explanation_is_one_number():
    """On all pages; some names are on several, or this test would say nothing."""
    shared = {key: pages for key, pages in scalars_by_words().items() if len(pages) > 1}
    assert len(shared) >= 5
    assert not {key: pages for key, pages in shared.items() if len(set(pages.values())) > 1}


# -- start-ups -----------------------------------------------------------------------------------------------
def own_start_ups(text: str) -> list[str]:
    """Lines that tell a start-up and take it from a link's entry instead of from ``start_ups``."""
    return [line for line in text.splitlines() if "start-up" in line.lower() and ".latency_s" in line]


@pytest.mark.parametrize("page", PAGES)
def test_a_start_up_is_the_same_on_every_page(page):
    """Lesson 01's machine had 0.76 µs for a hop over NVLink, the sheet of numbers 3.4."""
    assert not own_start_ups(Lesson(page).text)


def test_a_start_up_of_its_own_would_be_found():
    assert own_start_ups("| Start-up of a hop, NVLink | `#!n dgx.link.latency_s | µs` |")


# -- conventions ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES)
def test_the_logits_of_an_ordinary_loss_are_ten_bytes_on_every_page(page):
    """Lesson 04 charged four where 01 and 05 charge ten, and its design fitted."""
    assert "output_layer_bytes" not in Lesson(page).text


@pytest.mark.parametrize(("tp", "recompute"), [(1, "full"), (4, "none")])
def test_the_days_of_the_plan_follow_from_its_mfu(tp, recompute):
    """The plan affords its tokens at 40 % by 6PD; at another MFU of this kind its days are in proportion."""
    page = Lesson("numbers.md")
    run = f'run(tp={tp}, recompute="{recompute}")'
    days = page.value(f"run_s({run})") / units.DAY
    assert days * page.value(f"{run}.mfu_of_6pd()") == pytest.approx(0.4 * page.value("days"))


@pytest.mark.parametrize("page", ["01-why-distributed.md", "05-fsdp-and-zero.md", "numbers.md"])
def test_a_page_that_prints_the_engines_mfu_says_that_it_counts_attention(page):
    """Lesson 01 says it for all that follow; the other two print both."""
    text = Lesson(page).text
    assert re.search(r"MFU[^.]{0,80}attention|attention[^.]{0,80}MFU", text, re.DOTALL)
    assert (".mfu()" in text) == (".mfu_of_6pd()" in text)


def test_one_step_has_one_mfu_on_both_pages():
    """A 70B with a sequence of 8,192 on each GPU, in lesson 05 on 64 and on the sheet on 512."""
    shared = Lesson("05-fsdp-and-zero.md").value("envelope.mfu_of_6pd()")
    assert shared == pytest.approx(Lesson("numbers.md").value("run().mfu_of_6pd()"), abs=5e-3)


# -- figures -------------------------------------------------------------------------------------------------
def test_figures_and_pages_speak_of_the_same_tokens():
    """64 H100s in whole nodes: the readouts of both lessons' figures, and the first number of either box."""
    rate = matmul.product_flops_per_s(catalog.gpu("h100-sxm"))
    rule = hiding.tokens_to_hide(64, 400e9, rate)
    overlap = DdpOverlap(ranks=64, wire_bytes_per_s=400e9)
    assert overlap.needed_tokens() == rule
    assert ZeroStages(ranks=64, network=50e9).hides_from() in ("1.58k tokens", ("1.58k tokens", False))
    without_start_ups = FsdpTimeline(ranks=64, wire_bytes_per_s=400e9, alpha_s=1e-7)
    assert without_start_ups.needed_tokens() == pytest.approx(rule, rel=0.01)
    boxes = {
        "01-why-distributed.md": "enough_tokens",
        "04-data-parallel.md": "tokens_to_hide(ranks=64, wire_bytes_per_s=cards)",
        "05-fsdp-and-zero.md": "tokens_to_hide(cards)",
    }
    said = {page: Lesson(page).shows(part) for page, part in boxes.items()}
    assert set(said.values()) == {units.human(float(round(rule)), "count")} == {"1,585"}, said
