"""What a layer and a loss of PyTorch's operators keep, held against PyTorch, which runs them: a layer as
transformers writes it, and losses as its trainers do. On the CPU, with tensors too small to take a moment."""

import weakref

import pytest

from engine import catalog
from engine.catalog import models
from engine.mechanism import memory
from engine.mechanism.adapters import Adapter

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make recorder adds it")
functional = torch.nn.functional
python_dispatch = pytest.importorskip("torch.utils._python_dispatch")

TOKENS, HIDDEN, WIDTH, HEADS, KV_HEADS, SIZE, RANK = 64, 96, 160, 6, 2, 16, 4
NARROW = torch.bfloat16
# beside the closed form: rsqrt of each norm, and the tables of a rotation, which all layers share
ROW, TABLES = 4, 2 * 2 * SIZE


def like(key: str) -> models.Model:
    """A small model with the layers of a large one; its norms of queries and keys are those of its heads."""
    normed = catalog.model(key).layers[0].attention.extra_params > 0
    sizes = {"hidden": HIDDEN, "ffn": WIDTH, "heads": HEADS, "kv_heads": KV_HEADS, "head_dim": SIZE}
    return models.resized(catalog.model(key), extra_params_per_layer=2 * SIZE * normed, **sizes)


def norm(x, weight):
    """RMSNorm in fp32, as models of transformers have it."""
    wide = x.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return weight * wide.to(x.dtype)


def turned(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Fused(torch.autograd.Function):
    """Fused attention: it keeps queries, keys, values and its output."""

    @staticmethod
    def forward(ctx, q, k, v):
        out = torch.empty_like(q)
        ctx.save_for_backward(q, k, v, out)
        return out

    @staticmethod
    def backward(ctx, *gradients):
        q, k, v, _ = ctx.saved_tensors
        return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


class Matrix:
    """A weight, and its adapter if it has one; then the weight is frozen."""

    def __init__(self, k: int, n: int, adapter: Adapter | None) -> None:
        self.weight = torch.randn(n, k, dtype=NARROW, requires_grad=adapter is None)
        self.adapter = adapter
        if adapter:
            self.a = torch.randn(RANK, k, dtype=NARROW, requires_grad=True)
            self.b = torch.randn(n, RANK, dtype=NARROW, requires_grad=True)

    def __call__(self, x):
        out = functional.linear(x, self.weight)
        if not self.adapter:
            return out
        dropped = torch.native_dropout(x, 0.5, True)[0] if self.adapter.dropout else x
        return out + functional.linear(functional.linear(dropped, self.a), self.b) * 2.0


def matrices(adapter: Adapter | None) -> dict[str, Matrix]:
    """Those of a layer, by name."""
    sizes = {
        "q": (HIDDEN, HEADS * SIZE),
        "k": (HIDDEN, KV_HEADS * SIZE),
        "v": (HIDDEN, KV_HEADS * SIZE),
        "o": (HEADS * SIZE, HIDDEN),
        "gate": (HIDDEN, WIDTH),
        "up": (HIDDEN, WIDTH),
        "down": (WIDTH, HIDDEN),
    }
    return {name: Matrix(*size, adapter) for name, size in sizes.items()}


def saved_bytes(normed: bool, adapter: Adapter | None) -> int:
    """What autograd saves of a layer's forward pass, without its weights; each storage once."""
    of = matrices(adapter)
    weights = [
        torch.ones(size, dtype=NARROW, requires_grad=adapter is None) for size in (HIDDEN, HIDDEN, SIZE, SIZE)
    ]
    held = {
        each.untyped_storage()._cdata
        for one in of.values()
        for each in vars(one).values()
        if torch.is_tensor(each)
    }
    held |= {each.untyped_storage()._cdata for each in weights}
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage._cdata not in held:
            saved[storage._cdata] = storage
        return tensor

    def heads(x):
        return x.view(1, TOKENS, -1, SIZE).transpose(1, 2)

    x = torch.randn(1, TOKENS, HIDDEN, dtype=NARROW, requires_grad=True) * 1.0
    cos = sin = torch.ones(TOKENS, SIZE, dtype=NARROW)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = norm(x, weights[0])
        q, k, v = heads(of["q"](y)), heads(of["k"](y)), heads(of["v"](y))
        if normed:
            q, k = norm(q, weights[2]), norm(k, weights[3])
        out = Fused.apply(turned(q, cos, sin), turned(k, cos, sin), v)
        x = x + of["o"](out.transpose(1, 2).reshape(1, TOKENS, -1))
        y = norm(x, weights[1])
        x = x + of["down"](functional.silu(of["gate"](y)) * of["up"](y))
    return sum(storage.nbytes() for storage in saved.values())


ADAPTERS = {"whole": None, "adapted": Adapter(RANK), "with dropout": Adapter(RANK, dropout=0.5)}


@pytest.mark.parametrize("key", ["llama3.1-8b", "qwen3-8b"])
@pytest.mark.parametrize("adapter", ADAPTERS.values(), ids=ADAPTERS)
def test_a_layer_keeps_what_autograd_saves(key, adapter):
    """To the byte, but for a norm's rows and the rotation's tables."""
    normed = key.startswith("qwen3")
    rows = 2 + (HEADS + KV_HEADS) * normed
    saved = saved_bytes(normed, adapter) - TOKENS * (ROW * rows + TABLES // 2)
    assert saved == TOKENS * sum(memory.layer_values(like(key), 0, adapter=adapter, eager=True))


class Peak(python_dispatch.TorchDispatchMode):
    """The most bytes that tensors made under it have at once."""

    def __init__(self) -> None:
        super().__init__()
        self.live: dict[int, int] = {}
        self.most = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(result):
            if torch.is_tensor(tensor) and tensor.untyped_storage()._cdata not in self.live:
                storage = tensor.untyped_storage()
                self.live[storage._cdata] = storage.nbytes()
                weakref.finalize(storage, self.live.pop, storage._cdata, None)
        self.most = max(self.most, sum(self.live.values()))
        return result


def plain(logits, words):
    """transformers' ForCausalLMLoss."""
    return functional.cross_entropy(logits.float().view(-1, logits.shape[-1]), words.view(-1))


def chosen(logits, words):
    """TRL's selective_log_softmax of logits in fp32, over a temperature."""
    wide = logits.float() / 0.9
    picked = torch.gather(wide, -1, words.unsqueeze(-1)).squeeze(-1)
    return (picked - torch.stack([torch.logsumexp(row, -1) for row in wide])).sum()


def widened(logits, words):
    """torchtune's CEWithChunkedOutputLoss: logits come in chunks."""
    return sum(
        functional.cross_entropy(one.float(), word, reduction="sum") for one, word in zip(logits, words)
    )


@pytest.mark.parametrize("loss", [plain, chosen, widened])
def test_a_loss_takes_so_many_bytes_of_each_logit(loss):
    rows, seq, words, chunks = 4, 128, 4096, 8
    inputs = torch.randn(rows, seq, 2, dtype=NARROW, requires_grad=True)
    head, answers = torch.randn(words, 2, dtype=NARROW), torch.randint(0, words, (rows, seq))
    with Peak() as peak:
        if loss is widened:
            parts = inputs.view(-1, 2).tensor_split(chunks)
            result = loss(
                [functional.linear(part, head) for part in parts], answers.view(-1).tensor_split(chunks)
            )
        else:
            result = loss(functional.linear(inputs, head), answers)
        result.backward()
    model = models.resized(catalog.model("llama3.1-8b"), vocab=words)
    ours = memory.loss_bytes(model, seq, rows, loss=loss.__name__, chunks=chunks, pytorch=True)
    assert peak.most == pytest.approx(ours, rel=0.02)


def test_a_rebuilt_layer_takes_what_it_keeps_and_the_gradients_of_its_mlp():
    """Its backward pass, as PyTorch allocates it: the closed form is within a tenth of the peak."""
    model = like("llama3.1-8b")
    weights = [torch.ones(HIDDEN, dtype=NARROW, requires_grad=True) for _ in range(2)]
    of = matrices(None)
    tokens = 4096

    def heads(x):
        return x.view(1, tokens, -1, SIZE).transpose(1, 2)

    x = torch.randn(1, tokens, HIDDEN, dtype=NARROW, requires_grad=True)
    gradient = torch.ones(1, tokens, HIDDEN, dtype=NARROW)
    with Peak() as peak:
        y = norm(x, weights[0])
        out = Fused.apply(heads(of["q"](y)), heads(of["k"](y)), heads(of["v"](y)))
        z = x + of["o"](out.transpose(1, 2).reshape(1, tokens, -1))
        del y, out
        y = norm(z, weights[1])
        result = z + of["down"](functional.silu(of["gate"](y)) * of["up"](y))
        del y, z
        result.backward(gradient)
    ours = sum(memory.layer_values(model, 0, eager=True)) + memory.passing_per_token(model, 0, tokens, 1)
    assert peak.most / tokens == pytest.approx(ours, rel=0.1)


def test_written_scores_take_so_many_bytes_each():
    """transformers' eager_attention_forward: what is kept of a score, to the byte, and what is there at most
    in its backward pass."""
    seq, model = 512, like("llama3.1-8b")
    of_all = (torch.randn(1, HEADS, seq, SIZE, dtype=NARROW, requires_grad=True) for _ in range(3))
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.nbytes() >= HEADS * seq * seq:  # the others are queries, keys and values
            saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor), Peak() as peak:
        q, k, v = of_all
        scores = torch.matmul(q, k.transpose(2, 3)) * SIZE**-0.5
        scores = scores + torch.zeros(1, 1, seq, seq, dtype=NARROW)
        scores = functional.softmax(scores, dim=-1, dtype=torch.float32).to(NARROW)
        result = torch.matmul(scores, v)
        del scores
        result.backward(torch.ones_like(result))
    written = memory.kept_per_token(model, seq, 1, 1, memory.NO_RECOMPUTE, 0, 0, eager=True)
    fused = memory.kept_per_token(model, seq, 1, 1, memory.NO_RECOMPUTE, 1, 0, eager=True)
    assert sum(saved.values()) == seq * (written - fused)
    ours = seq * (written - fused + memory.passing_per_token(model, 0, seq, 0))
    assert peak.most == pytest.approx(ours, rel=0.05)
