"""A page may compute these functions: the widgets' compiler follows each of them."""

from engine.base import check
from engine.calibration import attention, exchange, grouped, known, products
from tests.cases import in_one_test
from widgets.kit.compiler.graph import Graph
from widgets.kit.compiler.symbols import Symbol, control


def rates(kind, key, gpu="gb200"):
    return known.known(kind, key, gpu).rates


@in_one_test(
    "operation",
    [
        lambda a, b: products.gemm_s(a, b, 4096.0, rates("gemm", "bf16")),
        lambda a, b: products.gemm_s(a, b, 4096.0, rates("gemm", "bf16"), weight_bytes=b),
        lambda a, b: grouped.experts_s(
            a, a, 256.0, b, 7168.0, 2048.0, 1.0, rates("experts", "bf16.cutlass"), weight_bytes=b
        ),
        lambda a, b: products.quantise_s(a, b, rates("quantise", "tensor")),
        lambda a, b: attention.prefill_s(
            a, b, 32.0, 8.0, 128.0, known.attention("prefill", "gb200").rates, window=a
        ),
        lambda a, b: attention.decode_s(
            a, b, 32.0, 8.0, 128.0, known.attention("decode", "a100-80").rates, window=a
        ),
        lambda a, b: attention.latent_decode_s(a, b, 16.0, rates("latent", "decode.bf16")),
        lambda a, b: attention.latent_prefill_s(a, b, 16.0, rates("latent", "prefill.bf16")),
        lambda a, b: grouped.experts_s(a, a, 256.0, b, 7168.0, 2048.0, 1.0, rates("experts", "bf16.cutlass")),
        *(
            lambda a, b, o=o: exchange.collective_s(o, a, b, rates("collective", "nccl"))
            for o in exchange.OPERATIONS
        ),
        lambda a, b: exchange.mapped_all_reduce_s(a, b, rates("mapped_all_reduce", "vllm")),
        lambda a, b: exchange.rows_s(a, b, rates("dispatch", "normal"), a),
        lambda a, b: exchange.send_s(a + b, rates("send", "one node", "h100-sxm")),
    ],
)
def test_the_compiler_follows_it(operation):
    graph = Graph()
    with check.trusted():
        assert isinstance(operation(control(graph, "a"), control(graph, "b")), Symbol)
