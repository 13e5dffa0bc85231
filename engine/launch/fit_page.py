"""A report as a page shows it: plain values in, plain values out.

The page without a server runs this very module, translated (``widgets/kit/compiler/modules``).
"""

from __future__ import annotations

from dataclasses import replace

from engine import catalog
from engine.catalog.hardware import Gpu
from engine.launch import changes, over_a_step, reading, shown
from engine.launch.verdict import ALSO, Report, check_launch

# what may be said of a GPU and fabric of one's own
OWN = (
    "hbm_bytes",
    "hbm_bytes_per_s",
    "bf16_flops_per_s",
    "link_bytes_per_s",
    "nic_bytes_per_s",
    "gpus_per_node",
    "tdp_w",
)


def answer(files: list, gpu: str = "", gpus: int = 0, own: dict | None = None, also: tuple = ALSO) -> dict:
    """The report on files, each a list of its name and its text.

    ``gpu`` is a key of the catalogue or empty, ``gpus`` 0 where the texts say how many, ``own`` what differs
    from the catalogue's GPU, with "host_bytes" of a node's host where that is said, and ``also`` what is
    wanted beside the verdict: "changes" and "best".
    """
    texts = [(name, text) for name, text in files]
    host_bytes = own["host_bytes"] if own and "host_bytes" in own else None
    found = check_launch(texts, _gpu(gpu, own or {}), gpus or None, also, host_bytes)
    over = over_a_step.of_report(found) if "changes" in also else None
    return {
        "headline": shown.headline(found),
        "about": shown.about(found),
        "rate": shown.rate(found),
        "reachWords": shown.reach(found),
        "fits": found.fits,
        "close": found.close,
        "server": bool(found.launch and found.launch.server),
        "edits": [change.texts for change in found.changes],
        "noEdit": shown.NO_EDIT if shown.hopeless(found) else "",
        "gains": [shown.gained(change) for change in found.changes],
        "bestHeadline": shown.best_headline(found),
        "bestText": found.best_text,
        "over": over.as_dict() if over else None,
        "overWords": over_a_step.words(over, found.capacity_bytes) if over else "",
        "text": "\n".join(shown.lines(found, over)),
        "open": [_is_open(found, one.name) for one in found.assumed],
        **found.as_dict(),
    }


def corrected(files: list, gpus: int, name: str, value: str) -> list | None:
    """The files with an assumed value written into them, each a list of its name and its text; None where
    none can hold it."""
    texts = [(file, text) for file, text in files]
    found = changes.corrected(reading.read(texts, gpus or None), name, value)
    return None if found is None else [[file, text] for file, text in found.items()]


def _is_open(found: Report, name: str) -> bool:
    """Whether an assumed value has a key that a reader could set."""
    return found.launch is not None and len(changes.keys_of(found.launch, name)) > 0


def _gpu(key: str, own: dict) -> Gpu | str | None:
    """The GPU that is meant; None where nobody says."""
    given = {name: own[name] for name in OWN if name in own}
    if not given:
        return key or None
    like = catalog.gpu(key)
    if "gpus_per_node" in given:
        given["gpus_per_node"] = int(given["gpus_per_node"])
    if "bf16_flops_per_s" in given and like.bf16_flops_per_s:  # the other formats keep their ratio to it
        faster = given["bf16_flops_per_s"] / like.bf16_flops_per_s
        given["fp16_flops_per_s"] = faster * like.fp16_flops_per_s
        given["fp8_flops_per_s"] = faster * like.fp8_flops_per_s
    whole = {"reported_bytes": 0.0} if "hbm_bytes" in given else {}
    return replace(like, **whole, **given)
