"""Small functions as people write them, from one that compiles whole to one that does not at all, and each one's mend.

They are data: record/graph_breaks.py runs them through Dynamo and ships their source. Lines are short to fit
the figure.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def mlp(x, w1, w2):
    h = F.gelu(x @ w1)
    h = F.dropout(h, 0.1)
    y = h @ w2
    return F.layer_norm(x + y, (8,))


def reads_value(x, w):
    h = F.relu(x @ w)
    largest = h.abs().max().item()
    h = h / largest
    return F.softmax(h, dim=-1)


def reads_value_mended(x, w):
    h = F.relu(x @ w)
    largest = h.abs().max()
    h = h / largest
    return F.softmax(h, dim=-1)


def branch(x, w):
    h = x @ w
    if h.mean() > 0:
        h = F.relu(h)
    else:
        h = F.gelu(h)
    return F.layer_norm(h, (8,))


def branch_mended(x, w):
    h = x @ w
    h = torch.cond(h.mean() > 0,
                   lambda h: F.relu(h),
                   lambda h: F.gelu(h), (h,))
    return F.layer_norm(h, (8,))


def prints(x, w):
    h = F.gelu(x @ w)
    print("mean", h.mean())
    h = F.layer_norm(h, (8,))
    return h @ w


def prints_mended(x, w):
    h = F.gelu(x @ w)
    mean = h.mean()
    h = F.layer_norm(h, (8,))
    return h @ w, mean  # print it outside


def mask(x, w):
    h = x @ w
    kept = h[h > 0]
    kept = kept.sqrt()
    return kept.sum() / kept.numel()


def mask_mended(x, w):
    h = x @ w
    keep = h > 0
    kept = torch.where(keep, h, 0.0).sqrt()
    return kept.sum() / keep.sum()


def norm_of(h):
    n = h.norm()
    if n.isnan():
        raise ValueError("not a number")
    return h / n


def helper(x, w):
    h = F.gelu(x @ w)
    h = norm_of(h)
    return h @ w


def norm_of_mended(h):
    n = h.norm()
    bad = n.isnan()  # checked outside
    return h / n, bad


def helper_mended(x, w):
    h = F.gelu(x @ w)
    h, bad = norm_of_mended(h)
    return h @ w, bad


@torch.compiler.disable  # like C code
def my_kernel(h):
    return h * torch.sigmoid(h)


def extension(x, w):
    h = F.layer_norm(x @ w, (8,))
    h = my_kernel(h)
    return F.gelu(h @ w)


@torch.library.custom_op(
    "course::my_operator", mutates_args=())
def my_operator(h: Tensor) -> Tensor:
    return h * torch.sigmoid(h)


@my_operator.register_fake
def shape(h):
    return torch.empty_like(h)


def extension_mended(x, w):
    h = F.layer_norm(x @ w, (8,))
    h = my_operator(h)
    return F.gelu(h @ w)


def loops(x, w):
    h = F.gelu(x @ w)
    for row in h:
        if row.max() > 1:
            h = h / row.max()
    return F.softmax(h, dim=-1)


def loops_mended(x, w):
    h = F.gelu(x @ w)
    most = h.amax(-1).clamp(min=1)
    h = h / most.prod()
    return F.softmax(h, dim=-1)


def layer(x, w):
    return F.layer_norm(F.gelu(x @ w), (8,))


def layers(x, w):
    for _ in range(3):
        x = layer(x, w)
        if x.max() > 9:
            x = x / 9
    return x


def layer_mended(x, w):
    return F.layer_norm(F.gelu(x @ w), (8,))


def layers_mended(x, w):
    for _ in range(3):
        x = layer_mended(x, w)
        big = x.max() > 9
        x = torch.where(big, x / 9, x)
    return x


def tolerated(x, w):
    h = F.gelu(x @ w)
    try:
        hs = [f(h) for f in (F.relu, F.silu)]
    except RuntimeError:
        hs = []
    a = sum(hs).detach().numpy()
    return torch.from_numpy(a + 1) @ w


HISTORY = []


def remembers(x, w):
    h = F.gelu(x @ w)
    HISTORY.append(h.mean())
    h = F.layer_norm(h, (8,))
    return h @ w


def remembers_mended(x, w):
    h = F.gelu(x @ w)
    mean = h.mean()
    h = F.layer_norm(h, (8,))
    return h @ w, mean  # append outside


def lengths(x, w):
    h = x @ w
    h = F.softmax(h, dim=0)
    return h.sum(-1)


def lengths_mended(x, w):  # the caller said
    h = x @ w  # mark_dynamic(x, 0)
    h = F.softmax(h, dim=0)
    return h.sum(-1)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.step = 0

    def forward(self, x, w):
        self.step += 1
        h = F.gelu(x @ w)
        return h * min(1, self.step / 100)


class CounterMended(torch.nn.Module):
    def __init__(self):
        super().__init__()
        at = torch.zeros(())
        self.register_buffer("step", at)

    def forward(self, x, w):
        self.step += 1
        h = F.gelu(x @ w)
        ramp = self.step / 100
        return h * ramp.clamp(max=1)


def number(x, w, rate):
    h = F.gelu(x @ w)
    h = h * rate
    return F.layer_norm(h, (8,))


def number_mended(x, w, rate):  # a tensor
    h = F.gelu(x @ w)
    h = h * rate
    return F.layer_norm(h, (8,))
