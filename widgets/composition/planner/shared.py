"""What the parts of the planner's picture share: the controls that they read, which layouts have a dot, and
where each part lies."""

from engine.frameworks.registry import able
from engine.launch import own_job
from engine.step import cloud, page_search
from engine.step.constraints import RANGED, AxisLimits
from widgets.kit.drawing import planned
from widgets.kit.drawing.panels import Panel, Place
from widgets.kit.own_job import CLUSTER_FIELDS, MODEL_FIELDS

# what the frameworks to choose from can run; one that has further models by name differs in nothing here
LIMITED = AxisLimits(able=tuple(each for each in able("any") if not each.names))
COUNTED = own_job.counted(LIMITED.able)
RANGES = [f"{axis}_{end}" for axis in RANGED for end in ("from", "to")]
WITHIN = ("framework", *RANGES, "zero_stage", "most_chunks", "recomputation")
JOB = (
    *("model", "gpus", "gpu", "batch_tokens", "seq", "recipe", "precision", "leave"),
    *WITHIN,
    *MODEL_FIELDS,
    *CLUSTER_FIELDS,
)
TOP, FRONT = page_search.TOP, cloud.FRONT
DRAWN = TOP + FRONT  # layouts with a dot
RANKS = [str(place + 1) for place in range(TOP)]
CHOICES = {
    rank: (f"{rank}, the fastest" if rank == "1" else f"{rank} of the next best", float(i))
    for i, rank in enumerate(RANKS)
} | {
    letter: (f"{letter} of the front, leanest first", float(TOP + i))
    for i, letter in enumerate("abcdefghijklmnop"[:FRONT])
}
TERMS = [*planned.TERMS, "memory", "no difference"]

# The picture's parts, by their sides in pixels: the cloud, the chosen layout, and the rows of the next best
WIDE, NARROW = 640, 1120
PARTS = {"wide": (278, 606, 258, 630, 0, 226), "narrow": (762, 1086, 330, 702, 0, 306)}
UP = {
    width: [(low / height, high / height) for low, high in zip(sides[::2], sides[1::2])]
    for (width, sides), height in zip(PARTS.items(), (WIDE, NARROW))
}
CLOUD, CHOSEN, MESH, NEXT, LOSSES, EDGE = (
    Panel(name, Place(wide, UP["wide"][part]), Place(narrow, UP["narrow"][part]))
    for name, part, wide, narrow in (
        ("cloud", 0, (0.075, 0.585), (0.155, 0.97)),
        ("chosen", 1, (0.645, 0.995), (0.0, 0.985)),
        ("mesh", 1, (0.745, 0.995), (0.24, 0.985)),
        ("next", 2, (0.0, 1.0), (0.0, 1.0)),
        ("losses", 2, (0.36, 0.76), (0.0, 0.74)),
        ("edge", 0, (0.075, 0.585), (0.155, 0.97)),
    )
)
MOMENT = 1e-12  # seconds: less than any step
