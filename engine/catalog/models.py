"""Models: what their layers are made of, and their exact parameter counts.

A model is groups of layers (``engine.catalog.layers``) between an embedding and an output layer. An entry
of the catalogue, a config.json and the controls of a page say it in short keys, ``ModelSizes``, which
``described`` alone turns into groups.

The quantities below take a model, a choice among several (a symbol of a page, ``catalog.models_together``) or
a ``mechanism.shape.Shape``, and ask the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from engine.base import check, hashing, ops
from engine.base.types import Real
from engine.catalog import stored
from engine.catalog.layers import (
    DenseMlp,
    ExpertsMlp,
    GroupedAttention,
    LatentAttention,
    LayerGroup,
    Window,
    divisors,
)
from engine.catalog.mixers import (
    CompressedAttention,
    IndexedAttention,
    Indexer,
    LinearAttention,
    Mixer,
    NoAttention,
    ShortConvolution,
    StateSpace,
)
from engine.catalog.towers import Tower

NUMBER = (int, float, np.number)
# the kinds of a layer's parts by the names that a table may give them
ATTENTIONS: dict[str, type] = {
    "grouped": GroupedAttention,
    "latent": LatentAttention,
    "linear": LinearAttention,
    "state space": StateSpace,
    "convolution": ShortConvolution,
    "indexed": IndexedAttention,
    "compressed": CompressedAttention,
    "none": NoAttention,
}
MLPS: dict[str, type] = {"dense": DenseMlp, "experts": ExpertsMlp}
# no model has more of the first than of the second
AT_MOST = {
    "windowed_layers": "layers",
    "first_dense_layers": "layers",
    "top_k": "experts",
    "kv_heads": "heads",
}
LATENT = ("nope_dim", "v_dim")  # the widths that a head needs where keys and values are kept as latents


def contradiction(shape: Mapping[str, float]) -> str:
    """In words, what in a model's numbers cannot stand beside the rest; "" if all of them can."""
    for name, most in AT_MOST.items():
        if shape[name] > shape[most]:
            return f"{name} must be at most {most} ({shape[most]:.0f}), got {shape[name]:.0f}"
    for name in LATENT:
        if shape["kv_lora"] > 0 and shape[name] < 1:
            return f"{name} must be at least 1 where kv_lora is above 0, got {shape[name]:.0f}"
    return ""


# -- a model -------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Model:
    """A decoder-only transformer: groups of layers, and what stands before, between and behind them."""

    key: str
    name: str
    layers: tuple[LayerGroup, ...]
    hidden: int
    vocab: int
    tied: bool = False  # input embedding and output layer are one matrix
    max_context: int = 2048
    max_positions: int = 0  # learned position embeddings; 0 for rotary and ALiBi
    rotary_base: int = 0  # of rotary position embeddings; 0 for others, and where it is not known
    norm_bias: bool = False  # LayerNorm has one, RMSNorm has none
    small_epsilon: bool = False  # a norm adds 1e-6 to the mean square, not 1e-5
    final_norm: bool = True
    embedding_norm: bool = False
    parallel_block: bool = False  # attention and MLP side by side (PaLM): half the tensor-parallel AllReduces
    dropout: bool = False  # trained with dropout: its masks are kept for the backward pass
    extra_params: int = 0  # parts outside the decoder that the published count includes
    checkpoint: str = ""  # its repository on Hugging Face; empty where there is none
    chat: str = ""  # … of what was made of it for chat, where it does not chat itself
    access: str = ""  # "gated" where one has to ask for it
    stored: str = ""  # the formats of its weights there (``catalog.stored``); empty where all are in 16 bits
    family: str = ""
    year: int = 0
    published_params: float = 0.0
    published_active_params: float = 0.0
    counted_params: int = 0  # by a library that builds the model, to the last one
    mtp_modules: int = 0  # that predict further tokens; in no count
    tower: Tower | None = None  # that reads pictures; its parameters are in ``extra_params``
    also: tuple[str, ...] = ()  # names of checkpoints that have this shape
    inferred: tuple[str, ...] = ()  # fields that no source names, found from a sibling and held by the count
    source: str = ""
    checked: str = ""
    note: str = ""
    # what one looks up, found once: how many layers it has; the attention of the first, of those that read a
    # cache where there are some; the MLP of layers without experts, and the experts of those with some
    depth: Real = field(init=False, repr=False, compare=False, default=0)
    attention: Any = field(init=False, repr=False, compare=False, default=None)
    dense: Any = field(init=False, repr=False, compare=False, default=None)
    moe: Any = field(init=False, repr=False, compare=False, default=None)
    mixes: bool = field(init=False, repr=False, compare=False, default=False)  # has a kind of ``mixers``
    hashed: int | None = field(init=False, repr=False, compare=False, default=None)

    __hash__ = hashing.once

    def __post_init__(self) -> None:
        self._check()
        if not self.layers:
            raise ValueError("layers must be at least one group of layers, got none")
        first, others = self.layers[0], self.layers[1:]
        plain = [group.mlp for group in self.layers if not group.mlp.routed]
        dense = [mlp for mlp in plain if not _is_none(mlp.width)]
        moe = [group.mlp for group in self.layers if group.mlp.routed]
        with check.trusted():
            # one without any width, or any experts, for a kind of block that no layer has
            dense.append(DenseMlp(self.hidden, 0, first.mlp.gated, first.mlp.biases))
            moe.append(ExpertsMlp(self.hidden, 0, 0, 0, gated=first.mlp.gated, biases=first.mlp.biases))
        object.__setattr__(self, "depth", first.count + sum(group.count for group in others))
        mixers = [is_mixer(group.attention) for group in self.layers]
        reads = (group.attention for group, mixes in zip(self.layers, mixers) if not mixes)
        object.__setattr__(self, "attention", next(reads, first.attention))
        object.__setattr__(self, "mixes", True in mixers)
        object.__setattr__(self, "dense", dense[0])
        object.__setattr__(self, "moe", moe[0])

    def _check(self) -> None:
        if check.is_trusted():
            return
        check.whole(hidden=self.hidden, vocab=self.vocab, max_context=self.max_context)
        check.whole(
            0, max_positions=self.max_positions, rotary_base=self.rotary_base, extra_params=self.extra_params
        )
        check.between(
            0,
            1,
            tied=self.tied,
            norm_bias=self.norm_bias,
            small_epsilon=self.small_epsilon,
            final_norm=self.final_norm,
            embedding_norm=self.embedding_norm,
            parallel_block=self.parallel_block,
            dropout=self.dropout,
        )

    @property
    def total_params(self) -> Real:
        """Every parameter (``parameters``)."""
        return parameters(self)

    @property
    def active_params(self) -> Real:
        """Parameters used for one token of text (``active_parameters``)."""
        return active_parameters(self)

    def cache_bytes_per_token(self, bytes_per_value: Real = 2.0) -> Real:
        """Bytes that a further token of a long context takes in all caches. Layers with a window are not in
        it, because what they keep stops growing (``window_bytes_per_sequence``)."""
        grows = sum(count * kind.cached for count, (kind, window) in attended(self) if window is None)
        return grows * bytes_per_value

    def window_bytes_per_sequence(self, bytes_per_value: Real = 2.0) -> Real:
        """Bytes that a sequence keeps at most in the caches of layers with a window."""
        most = (
            (count * kind.cached, window) for count, (kind, window) in attended(self) if window is not None
        )
        return sum(values * window.tokens for values, window in most) * bytes_per_value

    @property
    def state_bytes_per_sequence(self) -> Real:
        """Bytes that a sequence keeps whatever its length: the states of linear attention and state spaces,
        and the windows of compressed attention."""
        return state_bytes(self)

    def weight_bytes(self, formats: str | None = None) -> Real:
        """Bytes of the weights as the checkpoint stores them, or in other ``formats``
        (``catalog.stored``)."""
        return weight_bytes(self, self.stored if formats is None else formats)

    @property
    def heads(self) -> Real:
        """Heads of queries."""
        return self.attention.heads

    @property
    def kv_heads(self) -> Real:
        """Heads of keys and values."""
        return self.attention.kv_heads

    @property
    def head_dim(self) -> Real:
        """Width of a head."""
        return self.attention.head_dim

    @property
    def gated(self) -> Real:
        """Whether an MLP has a gate, and so three matrices and not two."""
        return self.layers[0].mlp.gated

    @property
    def biases(self) -> Real:
        """Whether every linear layer has a bias (the output layer has none)."""
        return self.layers[0].mlp.biases

    @property
    def norms(self) -> Real:
        """Norms of a layer."""
        return self.layers[0].norms

    @property
    def ffn(self) -> Real:
        """Width of a dense MLP."""
        return self.dense.width

    @property
    def experts(self) -> Real:
        """Routed experts of a layer that has some."""
        return self.moe.experts

    @property
    def top_k(self) -> Real:
        """Routed experts that a token meets in such a layer."""
        return self.moe.top_k

    @property
    def expert_ffn(self) -> Real:
        """Width of a routed expert."""
        return self.moe.width

    @property
    def expert_hidden(self) -> Real:
        """Width at which a token reaches its routed experts: that of their latent where they have one."""
        return self.moe.inside

    @property
    def shared_experts(self) -> Real:
        """Experts of a layer that every token meets."""
        return self.moe.shared_experts

    @property
    def shared_ffn(self) -> Real:
        """Width of each of them."""
        return self.moe.shared_width


# -- the short keys ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class ModelSizes:
    """What a model's layers are made of, in short keys, for a decoder whose layers have one attention, with
    and without one window, and one dense MLP, one mixture of experts or both. A part that it lacks is 0 or
    False."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int  # width of the dense MLP; 0 where every layer has experts instead
    gated: bool = True  # SwiGLU and its relatives have three matrices; a plain MLP has two
    biases: bool = False  # a bias on every linear layer (not on the output layer)
    qkv_bias: bool = False  # a bias on query, key and value alone
    norms_per_layer: int = 2
    # multi-head latent attention (DeepSeek); kv_lora 0 means ordinary attention
    q_lora: int = 0
    kv_lora: int = 0
    rope_dim: int = 0
    nope_dim: int = 0
    v_dim: int = 0
    # mixture of experts; experts 0 means dense
    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0
    shared_ffn: int = 0  # width of each shared expert
    expert_groups: int = 0  # the router picks some groups before it picks experts; 0 where it does not
    top_groups: int = 0
    first_dense_layers: int = 0
    moe_every: int = 1  # 2: every second layer has experts (Llama 4 Maverick)
    router_bias: bool = False
    # attention over a window of the most recent tokens, in some of the layers
    window: int = 0
    windowed_layers: int = 0
    chunked: bool = False  # the window does not slide: the sequence is cut into chunks of it (Llama 4)
    extra_params_per_layer: int = 0  # query and key norms, attention sinks, … (the entry's note says which)

    def __post_init__(self) -> None:
        if check.is_trusted():
            return
        check.whole(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.kv_heads,
            head_dim=self.head_dim,
            moe_every=self.moe_every,
            norms_per_layer=self.norms_per_layer,
        )
        check.whole(
            0,
            ffn=self.ffn,
            experts=self.experts,
            top_k=self.top_k,
            expert_ffn=self.expert_ffn,
            expert_groups=self.expert_groups,
            top_groups=self.top_groups,
            shared_experts=self.shared_experts,
            shared_ffn=self.shared_ffn,
            first_dense_layers=self.first_dense_layers,
            q_lora=self.q_lora,
            kv_lora=self.kv_lora,
            rope_dim=self.rope_dim,
            nope_dim=self.nope_dim,
            v_dim=self.v_dim,
            window=self.window,
            windowed_layers=self.windowed_layers,
            extra_params_per_layer=self.extra_params_per_layer,
        )
        check.between(
            0,
            1,
            gated=self.gated,
            biases=self.biases,
            qkv_bias=self.qkv_bias,
            router_bias=self.router_bias,
            chunked=self.chunked,
        )
        check.one_of(divisors(self.heads), kv_heads=self.kv_heads)
        if wrong := contradiction(vars(self)):
            raise ValueError(wrong)

    def groups(self) -> tuple[LayerGroup, ...]:
        """The groups of layers that these sizes describe."""
        attention = self._attention()
        dense = DenseMlp(self.hidden, self.ffn, self.gated, self.biases)
        moe = ExpertsMlp(
            self.hidden,
            self.experts,
            self.top_k,
            self.expert_ffn,
            self.shared_experts,
            self.shared_ffn,
            self.expert_groups,
            self.top_groups,
            self.router_bias,
            self.gated,
            self.biases,
        )
        return tuple(
            LayerGroup(
                count,
                attention,
                moe if routed else dense,
                Window(self.window, self.chunked) if windowed else None,
                self.norms_per_layer,
                place,
            )
            for windowed, routed, count, place in self._counts()
        )

    def _attention(self) -> Any:
        more = self.biases, self.qkv_bias, self.extra_params_per_layer

        def grouped():
            return GroupedAttention(self.hidden, self.heads, self.kv_heads, self.head_dim, *more)

        def latent():
            widths = self.kv_lora, self.rope_dim, self.nope_dim, self.v_dim, self.q_lora
            return LatentAttention(self.hidden, self.heads, *widths, *more, self.head_dim)

        if isinstance(self.kv_lora, NUMBER):
            return latent() if self.kv_lora > 0 else grouped()
        return ops.select(ops.where(self.kv_lora > 0, 1.0, 0.0), (grouped(), latent()))

    def _counts(self) -> list[tuple[bool, bool, Real, Real]]:
        """(with a window, with experts, how many layers, the place of the first) for each kind of layer that
        there is, or for symbols may be.

        Layers without a window stand at the end of equal stretches, as in Gemma, gpt-oss and Llama 4; those
        with experts at the end of each ``moe_every`` behind the dense ones. Of symbols only the totals are
        known, so the fewest kinds are assumed to be both.
        """
        dense, whole = _is_none(self.experts), _is_none(self.windowed_layers) or _is_none(self.window)
        if dense and whole:
            return [(False, False, self.layers, 0)]
        windowed = 0 if whole else self.windowed_layers
        numbers = self.layers, self.experts, windowed, self.window, self.first_dense_layers, self.moe_every
        if all(isinstance(number, NUMBER) for number in numbers):
            return self._placed(int(self.layers), int(windowed))
        windowed = ops.where(self.window > 0, windowed, 0)
        routed = ops.floor((self.layers - self.first_dense_layers) / self.moe_every)
        routed = 0 if dense else ops.where(self.experts > 0, routed, 0)
        both = 0 if dense or whole else ops.minimum(routed, windowed)
        at = self.first_dense_layers + self.moe_every - 1
        counts = [(False, False, self.layers - windowed - routed + both, 0)]
        counts += [] if dense else [(False, True, routed - both, at)]
        counts += [] if whole else [(True, False, windowed - both, 0)]
        return counts + ([] if dense or whole else [(True, True, both, at)])

    def _placed(self, layers: int, windowed: int) -> list[tuple[bool, bool, Real, Real]]:
        first, every, whole = self.first_dense_layers, self.moe_every, layers - windowed
        stretch = layers // whole if whole else layers + 1
        found: dict[tuple[bool, bool], list[int]] = {}
        for place in range(layers):
            ends = place % stretch == stretch - 1 and place < stretch * whole
            routed = self.experts > 0 and place >= first and (place - first) % every == every - 1
            found.setdefault((not ends, routed), []).append(place)
        return [(*kind, len(places), places[0]) for kind, places in found.items()]


@dataclass(frozen=True)
class Grouping:
    """Instead of short keys: the tables of a model's groups of layers, from which ``group_from`` makes
    them."""

    groups: list[dict]
    layers: int = 0  # as many as the groups have, where it is given


SIZES = tuple(ModelSizes.__annotations__)
# a model's fields beside its layers
FOUND = ("depth", "attention", "dense", "moe", "mixes", "hashed")
OWN = tuple(name for name in Model.__annotations__ if name not in ("layers", *FOUND))
# the numbers that describe a model, by name, and whether they are whole or truths
KINDS = {
    name: kind
    for name, kind in (Model.__annotations__ | ModelSizes.__annotations__).items()
    if kind in ("int", "bool") and name not in FOUND
}


LISTS = ("also", "inferred")


def _is_none(number: Real) -> bool:
    """Whether a number is known to be 0."""
    return isinstance(number, NUMBER) and number == 0


def described(key: str, name: str, **given: Any) -> Model:
    """A model from the short keys of ``ModelSizes`` and the fields of ``Model``; or, with ``groups``, from
    tables of layers as ``group_from`` reads them."""
    given = {one: tuple(value) if one in LISTS else _whole(value) for one, value in given.items()}
    if isinstance(given.get("tower"), dict):
        given["tower"] = Tower(**given["tower"])
    if "groups" in given:
        layers = tuple(group_from(given["hidden"], table) for table in given["groups"])
        count = sum(group.count for group in layers)
        if given.get("layers", count) != count:
            raise ValueError(f"layers must be the {count} of all groups, got {given['layers']}")
        rest = {one: value for one, value in given.items() if one not in ("groups", "layers")}
        return Model(key=key, name=name, layers=layers, **rest)
    sizes = ModelSizes(**{one: value for one, value in given.items() if one in SIZES})
    rest = {one: value for one, value in given.items() if one not in SIZES or one == "hidden"}
    return Model(key=key, name=name, layers=sizes.groups(), **rest)


def _whole(value: Any) -> Any:
    """A whole number as an int; anything else as it is."""
    is_whole = isinstance(value, (float, np.number)) and np.isfinite(value) and value == np.floor(value)
    return int(value) if is_whole else value


def group_from(hidden: int, table: Mapping[str, Any]) -> LayerGroup:
    """A group of layers from a table: ``count``, ``attention`` and ``mlp`` (each a table with its ``kind``
    and the fields of that kind), and where they differ from the usual ``window``, ``chunked``, ``norms`` and
    ``first``. ValueError for a kind or a field that is not known."""
    given = dict(table)
    parts = {name: _part(name, hidden, given.pop(name, {}), kinds) for name, kinds in OF_A_GROUP.items()}
    window, chunked = given.pop("window", 0), given.pop("chunked", False)
    unknown = [name for name in given if name not in ("count", "norms", "first")]
    if unknown or "count" not in given:
        raise ValueError(
            "a group of layers must have count, attention and mlp, and may have window, chunked, norms and "
            f"first; got {', '.join(table)}"
        )
    check.whole(count=given["count"])
    return LayerGroup(window=Window(window, chunked) if window else None, **parts, **given)


OF_A_GROUP = {"attention": ATTENTIONS, "mlp": MLPS}


def _part(name: str, hidden: int, table: Mapping[str, Any], kinds: Mapping[str, type]) -> Any:
    given = dict(table)
    kind = given.pop("kind", "")
    if kind not in kinds:
        raise ValueError(f"the kind of {name} must be one of {', '.join(kinds)}; got {kind!r}")
    allowed = [each.name for each in fields(kinds[kind]) if each.name != "hidden"]
    unknown = [name for name in given if name not in allowed]
    if unknown:
        raise ValueError(f"{kind} {name} may have {', '.join(allowed)}; got {unknown[0]!r}")
    if "over" in given:
        given["over"] = _part(name, hidden, given["over"], kinds)
    if "indexer" in given:
        rank = given["over"].q_lora or hidden
        given["indexer"] = Indexer(hidden=hidden, **({"query_rank": rank} | given["indexer"]))
    return kinds[kind](hidden=hidden, **given)


OF_MOE = ("experts", "top_k", "expert_ffn", "shared_experts", "shared_ffn")


def sizes_of(model: Model) -> dict[str, Any]:
    """The short keys that describe a model's layers; ValueError for one that they cannot describe."""
    undescribed = f"{model.key} has layers that the short keys of a model do not describe"
    if model.mixes:
        raise ValueError(undescribed)
    attention, moe = model.attention, model.moe
    window = next((group.window for group in model.layers if group.window), None)
    first, every = expert_places(model)
    found: dict[str, Any] = {
        name: getattr(model, name)
        for name in ("hidden", "heads", "kv_heads", "head_dim", "gated", "biases", *OF_MOE)
    }
    found |= {
        name: getattr(attention, name) for name in ("qkv_bias", "q_lora", "kv_lora", "rope_dim", *LATENT)
    }
    found |= {
        "layers": model.depth,
        "norms_per_layer": model.norms,
        "ffn": model.ffn,
        "expert_groups": moe.groups,
        "top_groups": moe.top_groups,
        "router_bias": moe.router_bias,
        "first_dense_layers": first,
        "moe_every": every,
        "window": window.tokens if window else 0,
        "windowed_layers": sum(group.count for group in model.layers if group.window),
        "chunked": window.chunked if window else False,
        "extra_params_per_layer": attention.extra_params,
    }
    try:
        same = ModelSizes(**found).groups() == model.layers
    except ValueError:
        same = False
    if not same:
        raise ValueError(undescribed)
    return found


def in_short_keys(model: Model) -> bool:
    """Whether the short keys describe a model's layers."""
    try:
        sizes_of(model)
    except ValueError:
        return False
    return True


def resized(model: Model, **sizes: Any) -> Model:
    """The model with some of its short keys changed."""
    rest = {name: getattr(model, name) for name in OWN}
    return described(**(rest | sizes_of(model) | sizes))


# -- what a model's groups have in common --------------------------------------------------------------------
def _views(model: Any, name: str, part_of: Callable[[LayerGroup], Any]) -> tuple[tuple[Real, Any], ...]:
    """(how many layers, what they have) for each different ``part_of`` a group; of a choice among models,
    for everything that any of them has, with no layers where the chosen one has none. A Shape has them at
    hand."""
    known = getattr(model, "views", None)
    if known is not None:
        return known[name]
    if not hasattr(type(model), "__each__"):
        return _different(model, part_of)
    slots: dict[Any, Any] = {}
    ops.each(model, lambda one: _collect(slots, _different(one, part_of)))
    return ops.each(model, lambda one: _spread(slots, one, _different(one, part_of)))


def _different(model: Model, part_of: Callable[[LayerGroup], Any]) -> tuple[tuple[Real, Any], ...]:
    found: list[tuple[Real, Any]] = []
    for group in model.layers:
        part = part_of(group)
        same = next((i for i, (_, other) in enumerate(found) if other is part or other == part), None)
        if same is None:
            found.append((group.count, part))
        else:
            found[same] = found[same][0] + group.count, part
    return tuple(sorted(found, key=lambda each: _later(each[1])))


def _later(part: Any) -> int:
    """Layers without a window stand before those with one, dense ones before those with experts."""
    if isinstance(part, tuple):
        return max(_later(each) for each in part)
    return int(isinstance(part, (Window, ExpertsMlp)))


def _named(parts: tuple[tuple[Real, Any], ...]) -> list[tuple[Any, tuple[Real, Any]]]:
    """Each part by what it is, and by which it is of several such."""
    families = [_family(part) for _, part in parts]
    return [((family, families[:i].count(family)), parts[i]) for i, family in enumerate(families)]


def _family(part: Any) -> Any:
    """What two parts have in common of which models that are chosen from have one or the other."""
    if isinstance(part, tuple):
        return tuple(_family(each) for each in part)
    if part is None or isinstance(part, NUMBER):
        return ""
    if isinstance(part, Window):
        return "window"
    found: list[str] = []
    ops.each(part, lambda one: found.append(one.family) or 0.0)
    return found[0]


def _collect(slots: dict[Any, Any], parts: tuple[tuple[Real, Any], ...]) -> float:
    for slot, (_, part) in _named(parts):
        slots.setdefault(slot, part)
    return 0.0


def _spread(slots: dict[Any, Any], model: Model, parts: tuple[tuple[Real, Any], ...]) -> tuple[Any, ...]:
    own = dict(_named(parts))
    return tuple(own.get(slot) or (0, _lacking(model, part)) for slot, part in slots.items())


def _lacking(model: Model, part: Any) -> Any:
    """What stands for a part that a model has in no layer."""
    if isinstance(part, tuple):
        return tuple(_lacking(model, each) for each in part)
    family = _family(part)
    if family == GroupedAttention.family:
        return model.attention
    if family == DenseMlp.family:
        return model.dense
    return model.moe if family == ExpertsMlp.family else part


class Together:
    """Several models, or parts of them, as one whose numbers are arrays."""

    def __init__(self, several: Sequence[Any]) -> None:
        self._several = list(several)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return together([getattr(one, name) for one in self._several])

    def __each__(self, function: Callable[[Any], Any]) -> Any:
        return together([function(one) for one in self._several])


def together(values: list[Any]) -> Any:
    """The values of several models: numbers as an array, tuples element by element."""
    if all(isinstance(value, (bool, *NUMBER)) for value in values):
        return np.array(values)
    if all(type(value) is tuple and len(value) == len(values[0]) for value in values):
        return tuple(together(list(column)) for column in zip(*values))
    if all(isinstance(value, str) or value is None for value in values):
        return values[0] if len(set(values)) == 1 else tuple(values)
    return Together(values)


def attentions(model: Any) -> tuple[tuple[Real, Any], ...]:
    """(how many layers, their attention) for each different attention."""
    return _views(model, "attentions", lambda group: group.attention)


def attended(model: Any) -> tuple[tuple[Real, tuple[Any, Any]], ...]:
    """(how many layers, (their attention, its window or None)) for each different pair."""
    return _views(model, "attended", lambda group: (group.attention, group.window))


def is_mixer(attention: Any) -> bool:
    """Whether attention is of a kind of ``catalog.mixers``, which says itself what it does with a context."""
    return _family(attention) == Mixer.family


def has_mixers(model: Any) -> bool:
    """Whether any layer's attention is of a kind of ``catalog.mixers``."""
    return any(is_mixer(kind) for _, kind in attentions(model))


def has_untimed(model: Any) -> bool:
    """Whether any layer's attention is of a kind of which no kernel was timed over a whole sequence, forward
    and backward."""
    kinds = [kind for _, kind in attentions(model) if is_mixer(kind)]
    return any(kind.kernels and not (kind.timed and kind.both_timed) for kind in kinds)


def state_bytes(model: Any) -> Real:
    """Bytes that a sequence keeps in all layers, whatever its length."""
    return sum(count * kind.state_bytes for count, kind in attentions(model) if is_mixer(kind))


def weight_bytes(model: Model, formats: str) -> Real:
    """Bytes of a model's weights, stored in these formats (``catalog.stored``). Norms, biases, routers,
    indexers and towers take 2 bytes a value; so do weights of what is left out there."""
    kinds = stored.parsed(formats)
    parts = {
        "experts": routed_parameters(model),
        "shared": sum(count * mlp.shared.matrices for count, mlp in mlps(model) if is_routed(mlp)),
        "dense": sum(count * mlp.matrices for count, mlp in mlps(model) if not is_routed(mlp)),
        "output": sum(
            count * kind.heads * kind.value_dim * model.hidden for count, kind in attentions(model)
        ),
        "ends": (1 if model.tied else 2) * model.vocab * model.hidden,
    }
    parts["attention"] = sum(count * kind.matrices for count, kind in attentions(model)) - parts["output"]
    others = parameters(model) - sum(parts.values())
    return 2.0 * others + sum(stored.BYTES[kinds[part]] * count for part, count in parts.items())


def bytes_of_a_weight(model: Model, formats: str) -> float:
    """Bytes that a value of a layer takes on average in these formats (``catalog.stored``); embedding and
    output layer aside, which stay in 16 bits."""
    ends = embedding_parameters(model) + head_parameters(model)
    return float((weight_bytes(model, formats) - 2.0 * ends) / (parameters(model) - ends))


def mlps(model: Any) -> tuple[tuple[Real, Any], ...]:
    """(how many layers, their feed-forward block) for each different one; dense ones first."""
    return _views(model, "mlps", lambda group: group.mlp)


def blocks(model: Any) -> tuple[tuple[Real, tuple[Any, Any, Any]], ...]:
    """(how many layers, (attention, feed-forward block, norms)) for each different kind; dense ones
    first."""
    return _views(model, "blocks", lambda group: (group.attention, group.mlp, group.norms))


def of_kind(attention: Any) -> list[tuple[Real, Any, Any]]:
    """(1 where an attention is of a kind, one of that kind, an example of it) for each kind that it may be:
    a symbolic choice may be several."""
    kinds: dict[Any, Any] = {}
    ops.each(attention, lambda one: kinds.setdefault(type(one), one) and 0.0)
    if len(kinds) < 2:
        return [(1.0, attention, example) for example in kinds.values()]

    def only(kind, example):
        there = ops.each(attention, lambda one: 1.0 if type(one) is kind else 0.0)
        return there, ops.each(attention, lambda one: one if type(one) is kind else example), example

    return [only(kind, example) for kind, example in kinds.items()]


def moe_layers(model: Any) -> Real:
    """How many layers route their tokens to experts."""
    return sum(count for count, mlp in mlps(model) if is_routed(mlp))


def dense_layers(model: Any) -> Real:
    """How many layers have one ordinary MLP."""
    return sum(count for count, mlp in mlps(model) if not is_routed(mlp))


def routed_parameters(model: Any) -> Real:
    """Parameters of all routed experts of all layers."""
    return sum(count * (mlp.parameters - mlp.unrouted) for count, mlp in mlps(model))


def is_routed(mlp: Any) -> bool:
    """Whether a feed-forward block routes its tokens to experts."""
    return _family(mlp) == ExpertsMlp.family


def expert_places(model: Model) -> tuple[Real, Real]:
    """How many dense layers stand before the first with experts, and one of how many has experts from there
    on."""
    routed = [group for group in model.layers if group.mlp.routed]
    if not routed:
        return 0, 1
    count, place = sum(group.count for group in routed), routed[0].first
    even = ops.floor(model.depth / (place + 1.0)) == count  # the last of each so many
    return ops.where(even, 0, place), ops.where(even, place + 1, 1)


def attention_matrices(model: Any) -> Real:
    """Weights of one layer's attention matrices (no biases, no norms), of the first kind of layer."""
    return attentions(model)[0][1].matrices


def expert_parameters(model: Any) -> Real:
    """Parameters of one routed expert; 0 in a dense model."""
    return next((mlp.expert.parameters for _, mlp in mlps(model) if is_routed(mlp)), 0)


def _norm(model):
    """One norm over the hidden width: a scale, and a shift in LayerNorm."""
    return model.hidden * (1 + model.norm_bias)


def layer_parameters(model: Any) -> Real:
    """Parameters of one layer, of the first kind: a dense one where the model has some."""
    attention, mlp, norms = blocks(model)[0][1]
    return attention.parameters + norms * _norm(model) + mlp.parameters


def layer_tensors(model: Any) -> Real:
    """Parameters of a dense layer's tensors on the last axis, in the order in which the backward pass
    finishes them: MLP down, up, gate (0 where there is none), output, value, key, query; then biases, norms
    and the rest.

    For ordinary attention; a fused projection counts as three tensors.
    """
    h, d = model.hidden, model.head_dim
    tensors = (
        model.ffn * h,
        model.ffn * h,
        model.gated * model.ffn * h,
        model.heads * d * h,
        model.kv_heads * d * h,
        model.kv_heads * d * h,
        model.heads * d * h,
    )
    return np.stack([*tensors, layer_parameters(model) - sum(tensors)], axis=-1)


def embedding_parameters(model: Any) -> Real:
    """Input embedding, learned positions and the norm after them."""
    return (model.vocab + model.max_positions) * model.hidden + ops.where(
        model.embedding_norm > 0, _norm(model), 0
    )


def head_parameters(model: Any) -> Real:
    """The final norm, and the output layer where it is a separate matrix."""
    return ops.where(model.final_norm > 0, _norm(model), 0) + ops.where(
        model.tied > 0, 0, model.vocab * model.hidden
    )


def parameters(model: Any) -> Real:
    """Every parameter of the model, exactly: embeddings + layers + head.

    Counts everything that is trained in the decoder; ``extra_params`` adds what a published count includes
    beyond it.
    """
    ends = embedding_parameters(model) + head_parameters(model) + model.extra_params
    return ends + sum(
        count * (attention.parameters + norms * _norm(model) + mlp.parameters)
        for count, (attention, mlp, norms) in blocks(model)
    )


def active_parameters(model: Any) -> Real:
    """Parameters used for one token of text: the decoder, with only top_k of the routed experts in each layer
    that has some.

    Counts the input embedding; some reports leave it out (gpt-oss, DeepSeek-V2-Lite).
    """
    ends = embedding_parameters(model) + head_parameters(model)
    return ends + sum(
        count * (attention.parameters + norms * _norm(model) + mlp.active)
        for count, (attention, mlp, norms) in blocks(model)
    )


def typical(params: Real) -> Model:
    """A GPT-like shape with about this many parameters, for sliders over the size of a model; its number of
    layers need not be whole.

    Width 128 times the layers, heads of 128, MLP four times the width, so 12·L·h² = params (the proportions
    of GPT-3 175B, Llama 8B and 405B); dropout on, so that its activations are Korthikanti's 34·s·b·h·L.
    Leaves out the two vocabulary matrices, which would add 1 % at 405B, 15 % at 7B and half as much again at
    1B.
    """
    check.positive(params=params)
    layers = (params / (12 * 128**2)) ** (1 / 3)
    hidden = 128 * layers
    with check.trusted():  # real models are checked for whole numbers, this one is not
        return described(
            key="typical",
            name="typical",
            layers=layers,
            hidden=hidden,
            heads=layers,
            kv_heads=layers,
            head_dim=128,
            ffn=4 * hidden,
            vocab=128256,
            gated=False,
            dropout=True,
        )
