"""A service as a whole: a router, two pools, the caches beside them, and the way of one request."""

from __future__ import annotations

from course.drawing.picture import Picture

REPLICAS = 3
STEPS = (
    "1  The router knows which replica holds which prefix, and how busy each is.",
    "2  What no cache holds of the prompt is read.",
    "3  The prompt's cache is copied to the decode pool.",
    "4  The answer is written, a token a step.",
    "5  The cache stays for the next turn, or moves to the host.",
    "6  A prompt that is nearly all found skips the prefill pool.",
)
HIGH = 34.0


def draw(width: float) -> Picture:
    picture = Picture(
        "The way of a request: router, prefill pool, copy of the cache, decode pool, store of caches.",
        "A router above two pools of three replicas each; arrows with the numbers of six steps; below, the "
        "memory of the hosts, with which both pools exchange caches.",
        width,
    )
    third = width / 3
    pool = third * 1.3
    right = width - pool
    picture.box((width - third * 1.2) / 2, 4, third * 1.2, HIGH, "plain", "router")
    middle, top = width / 2, 78.0
    out, back = 0.12 * width, 0.88 * width
    for left, name, look in ((0.0, "2  prefill pool", "forward"), (right, "4  decode pool", "hbm")):
        each = pool / REPLICAS
        for replica in range(REPLICAS):
            picture.box(left + replica * each, top, each - 4, HIGH, look, pool=name)
        picture.text(left + pool / 2, top + HIGH + 13, name, anchor="middle", bold=True)
    foot = top + HIGH
    picture.arrow((middle - 30, 4 + HIGH), (middle - 30, 56), (out, 56), (out, top - 2))
    picture.text(out - 8, 64, "1", anchor="end", ink="ink-soft")
    picture.arrow((middle + 30, 4 + HIGH), (middle + 30, 56), (back, 56), (back, top - 2))
    picture.text(back + 8, 64, "6", ink="ink-soft")
    picture.arrow((pool, top + HIGH / 2), (right - 2, top + HIGH / 2), ink="network", thick=2)
    picture.text((pool + right) / 2, top + HIGH / 2 + 14, "3", anchor="middle", ink="ink-soft")
    low = foot + 54
    picture.box(0, low, width - 2, HIGH, "plain", "host memory, disks: caches that wait")
    picture.arrow((0.06 * width, low), (0.06 * width, foot + 2), ink="network")
    picture.arrow((0.94 * width, foot), (0.94 * width, low - 2), ink="network")
    picture.text(0.94 * width - 8, foot + 36, "5", anchor="end", ink="ink-soft")
    y = low + HIGH + 14
    for line in STEPS:
        y = picture.paragraph(0, y, line, width) + 2
    picture.tell("router; 2  prefill pool; 4  decode pool; host memory, disks: caches that wait", *STEPS)
    return picture
