"""The numbers of the page Examination."""

from functools import cache

from engine.catalog import gpu, models
from engine.exam import examination
from engine.exam.examination import Paper
from engine.mechanism import memory

worked = examination.spec(1917)  # the worked spec
# the parameters of all its experts
experts_all = worked.model.depth * worked.model.experts * models.expert_parameters(worked.model)


def tried(tp: int = 1, pp: int = 1) -> Paper:
    """One of its layouts with eight expert ranks, as the engine costs it."""
    return examination.by_hand(1917, tp=tp, pp=pp, ep=8)


def weights(tp: int, pp: int = 2) -> float:
    """Bytes of weights on the fullest GPU."""
    return tried(tp, pp).parts_bytes[0][1]


def activations(tp: int, pp: int = 2) -> float:
    """Bytes of its activations."""
    return tried(tp, pp).parts_bytes[0][4]


def layout_in_words(axes: tuple[int, ...], paper: Paper) -> str:
    """The split of a paper's layout, and whether its experts are cut."""
    cut = ", experts cut" if paper.layouts.expert_tp[0] > 1 else ""
    context = f" × CP {axes[2]}" if axes[2] > 1 else ""
    return f"TP {axes[0]} × PP {axes[1]}{context}, ZeRO {axes[4]}{cut}"


def pace_of(paper: Paper) -> str:
    """The points for a paper's pace."""
    return f"{examination.pace_points(paper.ratio):.0f} of 10" if paper.fits else "does not fit"


# -- what single sentences say -------------------------------------------------------------------------------
usable_bytes = memory.capacity_bytes(gpu("h100-sxm"))  # memory of an H100 that software can fill
# parameters that spec 4711 multiplies by
multiplied_4711 = examination.multiplied_params(examination.spec(4711))
# what attention costs there, in parameters
attention_4711 = examination.attention_params(examination.spec(4711))


@cache
def experts_share() -> float:
    """The experts' share of the step with TP 2."""
    return examination.shares(tried(tp=2))[4]


@cache
def state_1917() -> float:
    """State of TP 2 × PP 2."""
    return sum(examination.by_hand(1917, tp=2, pp=2, ep=8).parts_bytes[0][1:4])


# its weights, and as much for gradients
weights_1917 = examination.by_hand(1917, tp=2, pp=2, ep=8).parts_bytes[0][1]
activations_1917 = examination.by_hand(1917, tp=2, pp=2, ep=8).parts_bytes[0][4]  # its activations
# all that it uses, with the software's own
used_1917 = examination.used_bytes(examination.by_hand(1917, tp=2, pp=2, ep=8))
# parameters of the input embedding of spec 1917
embedding_1917 = models.embedding_parameters(examination.spec(1917).model)
# what attention costs there, in parameters
attention_1917 = examination.attention_params(examination.spec(1917))
# what its gradients take of the step with four context ranks and two stages
context_waits = examination.shares(examination.by_hand(1917, pp=2, cp=4, ep=8))[5]
counted_1917 = examination.counted_params(examination.spec(1917))  # parameters that count
days_1917 = examination.estimate_days(examination.spec(1917), 0.45)  # days at a guessed MFU
cut_further = tried(tp=8, pp=4).ratio  # the step of TP 8 × PP 4 over the best
