"""The static pictures: every one is drawn in both arrangements; its texts do not overlap and are legible, its
numbers are the engine's, and its text alternative is complete. A fence with an unknown picture or argument
stops the build."""

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from markdown import Markdown

from course import lessons
from course.diagrams import (
    along_k,
    behind_backward,
    between_neighbours,
    cache_pages,
    dealt_to_nodes,
    down_to_the_kernel,
    draft_and_check,
    expert_exchange,
    exposed_part,
    folded_meshes,
    four_numbers,
    four_programs,
    gathers_behind_passes,
    held_over_time,
    hops_in_a_row,
    kept_prefix,
    memory_timeline,
    narrow_in_wide_out,
    nested_mesh,
    no_hole_large_enough,
    once_to_a_node,
    one_kernel_of_five,
    one_program,
    one_storage,
    one_works,
    packed_documents,
    pieces_in_turn,
    prefix_tree,
    rails,
    refilled_seats,
    replicas,
    room_in_all,
    round_trips,
    saved_in_background,
    schedule,
    slowest_stage,
    spare_experts,
    token_owners,
    two_halves,
    two_numberings,
    two_phases,
    two_pools,
    virtual_stages,
    waves,
    who_waits,
    whole_on_each,
    zero_shares,
)
from course.drawing import looks, text
from course.drawing.picture import NARROW, WIDE, Picture
from course.fences import diagram as fence
from engine import catalog
from engine.base import units
from engine.catalog import models
from engine.executed import flash_attention, pipeline_schedules, ranks, ranks_operations
from engine.executed.spare_experts import copies
from engine.mechanism import memory, mesh, pipeline, placement, reliability
from engine.one_gpu.memory_timeline import GROUPS, of_steps, on_gpu
from tests import machine
from widgets.kit.drawing import tokens

SCHEDULES = tuple(pipeline.SCHEDULES)
CASES = [(name, {}) for name in fence.names() if name != "schedule"]
CASES += [("schedule", {"schedule": key}) for key in SCHEDULES]
FORMS = [(name, given, width) for (name, given), width in itertools.product(CASES, (WIDE, NARROW))]
GROUNDS = ("paper", "panel")


def drawn(name: str, given: dict, width: float) -> Picture:
    return fence.drawing(name)(width, **given)


def numbers_in(words: str) -> list[str]:
    return re.findall(r"\d[\d,.]*", words)


@pytest.mark.parametrize(("name", "given", "width"), FORMS)
def test_no_text_meets_another_or_the_edge(name, given, width):
    picture = drawn(name, given, width)
    assert picture.labels and picture.marks
    for label in picture.labels:
        assert label.left >= -0.5 and label.right <= width + 0.5
        assert text.SIZE / 2 <= label.y <= picture.height
    for one, other in itertools.combinations(picture.labels, 2):
        assert not one.meets(other), f"{one.words!r} lies on {other.words!r}"


@pytest.mark.parametrize(("name", "given", "width"), FORMS)
def test_a_text_on_a_mark_lies_within_it(name, given, width):
    picture = drawn(name, given, width)
    for label in picture.labels:
        if label.on:
            assert any(
                mark.look == label.on
                and mark.left - 0.01 <= label.left
                and label.right <= mark.right + 0.01
                and mark.top <= label.y <= mark.bottom
                for mark in picture.marks
            ), label.words


@pytest.mark.parametrize(("name", "given", "width"), FORMS)
def test_every_mark_lies_within_its_picture(name, given, width):
    for mark in drawn(name, given, width).marks:
        assert -0.01 <= mark.left < mark.right <= width + 0.01 and mark.top >= 0


@pytest.mark.parametrize(("name", "given", "width"), FORMS)
def test_the_words_for_who_cannot_see_it_hold_every_label(name, given, width):
    """Those of the wide arrangement are on the page; a phone's labels are in them, too."""
    told = drawn(name, given, WIDE)
    words = " ".join([told.title, told.about, *told.told])
    words = re.sub(r"\s+", " ", words)
    for label in drawn(name, given, width).labels:
        for word in label.words.split():
            assert word.strip(":;,").lower() in words.lower(), f"{label.words!r} is not told"


def test_both_arrangements_say_the_same():
    for name, given in CASES:
        wide, narrow = drawn(name, given, WIDE), drawn(name, given, NARROW)
        assert wide.title == narrow.title and wide.told == narrow.told


@pytest.mark.parametrize("theme", looks.THEMES)
@pytest.mark.parametrize("name", looks.LOOKS)
def test_a_look_is_seen_and_its_text_is_read(name, theme):
    """3:1 by its fill or its outline, 4.5:1 for the text on it. The ground of a picture is the page, or a
    card."""
    fill, line = looks.fill(name, theme), looks.line(name, theme)
    for ground in GROUNDS:
        colour = tokens.palette(theme)[ground]
        assert max(looks.contrast(fill, colour), looks.contrast(line, colour)) >= 3
    assert looks.contrast(looks.ink(name, theme), fill) >= 4.5


@pytest.mark.parametrize("theme", looks.THEMES)
@pytest.mark.parametrize("name", looks.INKS)
def test_a_text_on_the_page_is_read(name, theme):
    assert all(
        looks.contrast(looks.ink(name, theme), tokens.palette(theme)[ground]) >= 4.5 for ground in GROUNDS
    )


@pytest.mark.parametrize("theme", looks.THEMES)
@pytest.mark.parametrize("name", looks.LINES)
def test_a_line_is_seen(name, theme):
    palette = tokens.palette(theme)
    assert all(looks.contrast(palette[name], palette[ground]) >= 3 for ground in GROUNDS)


@pytest.mark.parametrize("theme", looks.THEMES)
def test_a_forward_is_told_from_a_backward(theme):
    assert looks.contrast(looks.fill("forward", theme), looks.fill("backward", theme)) >= 1.8


def test_the_style_sheet_has_every_look_in_both_themes():
    css = looks.css()
    for name, theme in itertools.product(looks.LOOKS, looks.THEMES):
        assert f"--d-{name}: {looks.fill(name, theme)};" in css and f".m-{name} " in css
    assert css.index('"default"') < css.index('"slate"')


# -- numbers -------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("key", SCHEDULES)
def test_a_strip_is_the_executed_schedule(key, width):
    """Each block's place is its time on one scale, its number is its micro-batch; nothing else is drawn."""
    picture = schedule.draw(width, key)
    each_s = (0.02, 0.02, 0.02)  # the clock of the lesson's figure
    run = pipeline_schedules.by_key(key, 4, 8, 2 if key == "interleaved" else 1, *each_s)
    columns = ("stage", "kind", "batch", "start_s", "end_s")
    wanted = {
        tuple(float(value) for value in row)
        for row in zip(*(run[column] for column in columns))
        if row[0] >= 0
    }
    blocks = [mark for mark in picture.marks if "batch" in mark.about]
    assert {tuple(float(mark.about[column]) for column in columns) for mark in blocks} == wanted
    whole = [mark for mark in blocks if sum(other.about == mark.about for other in blocks) == 1]
    scales = {round((m.right - m.left) / (m.about["end_s"] - m.about["start_s"]), 6) for m in whole}
    assert len(scales) == 1
    for mark in whole:
        on = [
            one.words
            for one in picture.labels
            if mark.left <= one.left and one.right <= mark.right and mark.top < one.y < mark.bottom
        ]
        assert on == [str(int(mark.about["batch"]) + 1)]
    held = [units.number(float(value), 2) for value in run["held"][:4]]
    assert [one.words for one in picture.labels if one.right == width and one.words != "held"] == held
    assert units.human(float(run["bubble"]), "percent") in picture.labels[0].words
    assert units.human(float(run["step_s"]), "seconds") in picture.labels[0].words


def test_all_strips_have_one_scale():
    found = set()
    for key in SCHEDULES:
        mark = next(mark for mark in schedule.draw(WIDE, key).marks if "batch" in mark.about)
        found.add(round((mark.right - mark.left) / (mark.about["end_s"] - mark.about["start_s"]), 6))
    assert len(found) == 1


@pytest.mark.parametrize("key", held_over_time.SCHEDULES)
def test_what_is_held_over_time_is_what_the_schedule_holds(key):
    run = schedule.executed(key)
    changes = held_over_time.steps(run)
    assert max(held for _, held in changes) == run.held[0]
    assert (
        changes[-1][1] == 0
        and sum(later > held for (_, held), (_, later) in itertools.pairwise(changes)) == 8
    )
    tops = [mark for mark in held_over_time.draw(WIDE).marks if "held" in mark.about]
    assert {round((mark.bottom - mark.top) / mark.about["held"], 6) for mark in tops} == {held_over_time.UNIT}


def test_the_memory_of_a_step_is_drawn_to_scale():
    """The bands lie on each other: from the floor to the most of each is what that group holds at its most,
    or less where bands below it are at their least then."""
    picture = memory_timeline.draw(WIDE)
    bands = [mark for mark in picture.marks if "group" in mark.about]
    assert [mark.about["group"] for mark in bands[:5]] == list(reversed(GROUPS))
    weights = bands[4]
    high = (weights.bottom - weights.top) / memory_timeline.GB_HIGH
    assert high == pytest.approx(weights.about["most_bytes"] / 1e9, rel=0.02)
    tallest = (bands[0].bottom - bands[0].top) / memory_timeline.GB_HIGH
    assert tallest == pytest.approx(on_gpu().allocated_bytes.max() / 1e9, rel=0.02)
    leaking = (bands[5].bottom - bands[5].top) / memory_timeline.GB_HIGH
    assert leaking == pytest.approx(
        of_steps(3, 8192, keeps_scores=True).allocated_bytes.max() / 1e9, rel=0.02
    )


def test_one_node_works_at_a_time():
    blocks = sorted(
        (m.about["start_s"], m.about["end_s"]) for m in one_works.draw(WIDE).marks if "batch" in m.about
    )
    assert len(blocks) == 2 * one_works.NODES
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(blocks))
    words = one_works.draw(WIDE).labels[0].words
    assert numbers_in(words) == [str(catalog.model("llama3.1-405b").depth), "16"]


def test_zero_shares_are_the_engines():
    params = models.parameters(catalog.model("llama3-8b"))
    picture = zero_shares.draw(WIDE)
    amounts = [
        units.human(float(memory.sharded_state_bytes(params, catalog.recipe("bf16-adam"), 4, stage)), "bytes")
        for stage in range(4)
    ]
    assert [one.words for one in picture.labels if "on each" in one.words] == [
        f"{it} on each" for it in amounts
    ]
    for stage, rank in itertools.product(range(4), range(4)):
        filled = [
            m
            for m in picture.marks
            if m.look == "hbm" and m.about.get("stage") == stage and m.about["rank"] == rank
        ]
        per_parameter = sum(mark.about["held"] for mark in filled)
        assert per_parameter * params == pytest.approx(zero_shares.held_bytes(stage))
    assert all(len(numbers_in(one.words)) <= 1 for one in picture.labels)


def test_owners_of_blocks_share_the_work_that_is_drawn():
    """Cells that the mask lets through, counted in the picture, against the closed form (which knows single
    tokens)."""
    picture = token_owners.draw(WIDE)
    for order, _ in token_owners.ORDERS:
        cells = [mark for mark in picture.marks if mark.about.get("order") == order]
        work = [0.0] * token_owners.RANKS
        for cell in cells:
            work[cell.about["rank"]] += {"forward": 1.0, "compute-pale": 0.5, "idle": 0.0}[cell.look]
        assert len(cells) == token_owners.BLOCKS**2
        assert [each / sum(work) for each in work] == pytest.approx(token_owners.shares(order), abs=1e-4)
    shown = [one.words for one in picture.labels if "%" in one.words]
    assert shown == [
        f"{rank}: {units.human(share, 'percent', 2)}"
        for order, _ in token_owners.ORDERS
        for rank, share in enumerate(token_owners.shares(order))
    ]


def test_tokens_reach_the_experts_that_they_chose():
    picture = expert_exchange.draw(WIDE)
    experts = [mark for mark in picture.marks if "load" in mark.about]
    assert [mark.about["load"] for mark in experts] == expert_exchange.loads()
    assert sum(expert_exchange.loads()) == expert_exchange.RANKS * expert_exchange.TOKENS
    assert [words for words in (one.words for one in picture.labels) if words.endswith(("token", "tokens"))][
        1:
    ] == [f"{load} token{'' if load == 1 else 's'}" for load in expert_exchange.loads()]


def test_two_phases_last_as_long_as_the_engine_says():
    read_s, token_s = two_phases.times_s()
    picture = two_phases.draw(WIDE)
    blocks = [mark for mark in picture.marks if "end_s" in mark.about]
    assert blocks[0].about["end_s"] == read_s and len(blocks) == 1 + two_phases.ANSWER
    assert (blocks[0].right - blocks[0].left) / (blocks[1].right - blocks[1].left) == pytest.approx(
        read_s / token_s
    )
    words = " ".join(one.words for one in picture.labels)
    assert units.human(read_s, "seconds") in words and units.human(token_s, "seconds") in words


def test_an_all_reduce_ends_with_every_sum_on_every_rank():
    """Each table against numpy: the parts that a rank holds, scattered sums, all sums."""
    parts = np.random.default_rng(0).integers(1, 9, (two_halves.RANKS, two_halves.RANKS))
    sums = parts.sum(axis=0)
    value = {
        f"{letter}{rank}": parts[rank, at] for at, letter in enumerate(two_halves.CHUNKS) for rank in range(4)
    }
    value |= {f"Σ{letter}": sums[at] for at, letter in enumerate(two_halves.CHUNKS)}
    held = [
        [[value.get(two_halves.holds(state, rank, chunk), 0) for chunk in range(4)] for rank in range(4)]
        for state in range(3)
    ]
    assert np.array_equal(held[0], parts)
    assert np.array_equal(held[1], np.diag(sums)) and np.array_equal(held[2], np.tile(sums, (4, 1)))


def test_a_row_has_a_box_for_each_hop_that_waits():
    """Executed: a ring of n ranks is busy for 2(n − 1) steps."""
    marks = hops_in_a_row.draw(WIDE).marks
    for ranks_there in hops_in_a_row.RANKS:
        run = ranks_operations.all_reduce(ranks.example(ranks_there, ranks_there))
        drawn = [
            mark for mark in marks if mark.about == mark.about | {"ranks": ranks_there, "algorithm": "ring"}
        ]
        assert len(drawn) == run.busy_steps == 2 * (ranks_there - 1)
    assert "64 ranks, tree: 12 hops, 32.4 µs" in hops_in_a_row.draw(WIDE).told


def test_a_rail_has_one_leaf_and_a_gpu_in_each_node():
    marks = rails.draw(WIDE).marks
    for rail in range(rails.PER_NODE):
        levels = [mark.about["level"] for mark in marks if mark.about.get("rail") == rail]
        assert sorted(levels) == ["gpu", "gpu", "leaf"]
    assert len({mark.look for mark in marks if mark.about.get("rail") == rails.MARKED}) == 1


def test_a_mesh_has_every_rank_once_where_its_coordinates_put_it():
    nodes = [mark for mark in nested_mesh.draw(WIDE).marks if "ranks" in mark.about]
    assert sorted(rank for node in nodes for rank in node.about["ranks"]) == list(range(nested_mesh.GPUS))
    size = mesh.sizes(nested_mesh.GPUS, tp=nested_mesh.TENSOR, pp=nested_mesh.STAGES)
    stride = mesh.strides(size)
    for node in nodes:
        for at, rank in enumerate(node.about["ranks"]):
            assert placement.coordinate(rank, size.tp, stride.tp) == at
            assert placement.coordinate(rank, size.pp, stride.pp) == node.about["stage"]
            assert placement.coordinate(rank, size.dp, stride.dp) == node.about["replica"]


def test_bars_of_traffic_are_to_scale_and_add_up():
    picture = round_trips.draw(WIDE)
    bars = [mark for mark in picture.marks if "amount" in mark.about]
    longest = max(bars, key=lambda mark: mark.about["amount"])
    for mark in bars:
        share = mark.about["amount"] / longest.about["amount"]
        assert mark.right - mark.left == pytest.approx(max(1.0, share * (longest.right - longest.left)))
    closed = flash_attention.standard_bytes(round_trips.TOKENS, round_trips.HEAD_DIM)
    assert round_trips.moved_bytes(round_trips.APART) == closed
    least = flash_attention.once_bytes(round_trips.TOKENS, round_trips.HEAD_DIM)
    assert round_trips.moved_bytes(round_trips.AT_LEAST) == least
    shown = " ".join(one.words for one in picture.labels)
    for amount in (closed, least, *(mark.about["amount"] for mark in bars)):
        assert units.human(amount, "bytes") in shown


def test_a_prompt_lasts_as_long_as_the_engine_says():
    read_s, token_s = two_pools.times_s()
    picture = two_pools.draw(WIDE)
    read = next(mark for mark in picture.marks if mark.about.get("took_s"))
    token = next(mark for mark in picture.marks if mark.look == "hbm" and mark.top == read.top)
    assert (read.right - read.left) / (token.right - token.left) == pytest.approx(read_s / token_s)
    assert read.about["took_s"] == read_s
    assert any(units.human(read_s, "seconds") in one.words for one in picture.labels)


def test_replicas_share_out_the_whole_batch():
    parts = replicas.parts()
    assert parts[0][0] == 1 and all(last + 1 == first for (_, last), (first, _) in itertools.pairwise(parts))
    shown = [numbers_in(one.words) for one in replicas.draw(WIDE).labels if " to " in one.words]
    assert shown == [[str(first), str(last)] for first, last in parts]


# -- the picture refuses what cannot be read -----------------------------------------------------------------
def test_a_text_without_room_is_refused():
    picture = Picture("t", "a")
    with pytest.raises(ValueError, match="its box 10"):
        picture.box(0, 0, 10, 10, "plain", "far too long")
    with pytest.raises(ValueError, match="cut by the edge"):
        picture.text(WIDE - 5, 20, "outside")
    picture.text(0, 20, "one")
    with pytest.raises(ValueError, match="'two' lies on 'one'"):
        picture.text(5, 24, "two")
    with pytest.raises(ValueError, match="no look 'pink'"):
        picture.box(0, 40, 10, 10, "pink")
    with pytest.raises(ValueError, match="the figures' font has no 漢"):
        picture.text(0, 60, "漢")


# -- the fence -----------------------------------------------------------------------------------------------
WRONG = {
    "an unknown diagram": ("name: nothing\ncaption: c", "there is no diagram 'nothing'", 0),
    "an unknown argument": ("name: replicas\ncaption: c\nranks: 3", "replicas has no argument 'ranks'", 2),
    "an unknown value": ("name: schedule\nschedule: fast\ncaption: c", "fast", 0),
    "no argument": ("name: schedule\ncaption: c", "schedule needs a line 'schedule: …'", 0),
    "no caption": ("name: replicas", "needs a line 'caption: …'", 0),
    "a number that cannot be computed": ("name: replicas\ncaption: '`#!n nonsense`'", "nonsense", None),
    "no YAML": ("name: [1", "not YAML", None),
}


def html(lines: str) -> str:
    return Markdown(extensions=["course.fences"]).convert(f"``` diagram\n{lines}\n```\n")


@pytest.mark.parametrize("what", WRONG)
def test_a_faulty_fence_is_refused_with_its_place(what, tmp_path, monkeypatch):
    lines, words, line = WRONG[what]
    (tmp_path / "lessons").mkdir()
    (tmp_path / "lessons" / "09-x.md").write_text(
        f"# A page\n\n``` diagram\n{lines}\n```\n", encoding="utf-8"
    )
    monkeypatch.setattr(lessons.fault, "__defaults__", (tmp_path / "lessons",))
    with pytest.raises(lessons.LessonFault) as stopped:
        html(lines)
    place = re.match(r"lessons/09-x\.md:(\d+): ", str(stopped.value))
    assert place and words in str(stopped.value), stopped.value
    assert line is None or int(place[1]) == 4 + line


def test_a_figure_has_both_arrangements_a_title_and_its_words():
    found = html("name: schedule\nschedule: zb-h1\ncaption: Look *here*.")
    assert found.count("<svg") == 2 and found.count("<title") == found.count("<desc") == 2
    ids = re.findall(r' id="([^"]+)"', found)
    assert len(ids) == len(set(ids))
    for names in re.findall(r'aria-(?:labelledby|describedby)="([^"]+)"', found):
        assert names in ids
    assert "<li>stage 1" in found and "Look <em>here</em>." in found
    assert "<script" not in found
    wide, narrow = re.findall(r'viewBox="0 0 (\d+) (\d+)"', found)  # the space reserved for each
    [style] = re.findall(r' style="([^"]+)"', found)
    assert style == f"--wide: {' / '.join(wide)}; --narrow: {' / '.join(narrow)}"


# -- the pictures with which lessons open -------------------------------------------------------------------
def first_picture(page):
    """The source between a lesson's question and its opening case."""
    between = page.text[page.text.index("{ .question }") : page.text.index("!!! case")]
    return [
        fence.kind for fence in lessons.Lesson(page.name, f"# X\n\n{between}", page.file, page.path).fences
    ]


def test_every_lesson_opens_with_one_picture():
    assert [page.name for page in lessons.numbered() if first_picture(page) != ["diagram"]] == []


def test_the_state_is_as_long_as_it_has_bytes():
    marks = whole_on_each.draw(WIDE).marks
    cell = next(mark for mark in marks if mark.about.get("gpu") == 0)
    state = next(mark for mark in marks if mark.about.get("held") == memory.state_bytes(70e9))
    assert (state.right - state.left) / (cell.right - cell.left) == pytest.approx(1.12e12 / 80e9)
    assert sum("gpu" in mark.about for mark in marks) == 64


def test_the_puzzle_of_lesson_01_has_the_numbers_of_its_answer_and_not_the_answer():
    """The same state and cells as ``whole_on_each``; nothing is past a limit yet."""
    answer = {
        mark.about["held"]: mark.right - mark.left
        for mark in whole_on_each.draw(WIDE).marks
        if "held" in mark.about
    }
    marks = room_in_all.draw(WIDE).marks
    [state] = [mark for mark in marks if "held" in mark.about]
    assert state.right - state.left == pytest.approx(answer[memory.state_bytes(70e9)])
    assert sum("gpu" in mark.about for mark in marks) == 64 and not any(mark.look == "past" for mark in marks)


@pytest.mark.parametrize("opening", [room_in_all, two_numberings])
def test_an_opening_picture_does_not_answer_its_case(opening):
    """Lesson 01 asks where the memory went, lesson 03 what changed; these words are the answers."""
    picture = opening.draw(WIDE)
    said = " ".join([picture.title, picture.about, *picture.told]).lower()
    assert not re.search("each gpu (needs|for)|does not fit|data parallel|nvlink|infiniband|wire", said)
    assert not {mark.look for mark in picture.marks} & {"past", "link", "network"}


def test_the_two_numberings_take_what_the_lesson_says():
    numbered = {per_node: two_numberings.group_s(per_node) for per_node in two_numberings.TITLES}
    assert numbered[8] == pytest.approx(1.49, rel=0.01) and numbered[1] == pytest.approx(13.4, rel=0.01)
    members = [mark for mark in two_numberings.draw(WIDE).marks if mark.about["member"]]
    assert len(members) == 16 and len({mark.top for mark in members[:8]}) == 1
    assert len({mark.left for mark in members[8:]}) == 1


def test_the_numbers_around_1_are_those_of_torch():
    torch = machine.torch()
    for kind, dtype in zip(between_neighbours.SHOWN[1:3], (torch.float16, torch.bfloat16)):
        found = between_neighbours.numbers(kind)
        assert torch.tensor(found, dtype=torch.float64).to(dtype).double().tolist() == found.tolist()
        between = (found[1:] + found[:-1]) / 2
        assert not set(torch.tensor(between).to(dtype).double().tolist()) & set(between.tolist())
        asked = torch.tensor(1 + between_neighbours.UPDATE, dtype=torch.float64).to(dtype).double().item()
        assert between_neighbours.kept(kind) == asked


def test_the_memory_is_the_replay_s():
    run, marks = no_hole_large_enough.replayed(), no_hole_large_enough.draw(WIDE).marks
    row_bytes = 80e9 / 16

    def drawn(look):
        of_rows = [mark for mark in marks if mark.look == look and "row" in mark.about]
        return sum(mark.right - mark.left for mark in of_rows) / WIDE * row_bytes

    assert drawn("hbm") == pytest.approx(run["allocated_bytes"], rel=0.01)
    assert drawn("idle") == pytest.approx(run["reserved_bytes"]) and run["failed"] == 1
    asked = sum(mark.about["size"] for mark in marks if mark.look == "past")
    assert asked == pytest.approx(run["wanted_bytes"], rel=1e-6) and run["largest_bytes"] < asked
    assert 80e9 - run["reserved_bytes"] < asked < 80e9 - run["allocated_bytes"]


def test_a_token_s_launches_are_the_played_ones():
    eager, captured = who_waits.played(0), who_waits.played(1)
    assert eager["kernels"] == captured["kernels"] and captured["total_s"] < 0.6 * eager["total_s"]
    marks = [
        mark for mark in who_waits.draw(WIDE).marks if mark.look == "compute" and not mark.about["captured"]
    ]
    assert len(marks) == sum(start < who_waits.SPAN_S for start in eager["start_s"])


def test_the_cpu_s_time_is_the_measured_one_and_the_lesson_s():
    """The lesson's table of loops on an H100 has 13.2 and 3.42 µs for a side of 256."""
    issue_s, run_s = down_to_the_kernel.times_s()
    assert issue_s == pytest.approx(13.2e-6, rel=0.01) and run_s == pytest.approx(3.42e-6, rel=0.01)


def test_one_kernel_moves_a_fifth_of_five():
    assert one_kernel_of_five.taken_s(5) == pytest.approx(5 * one_kernel_of_five.taken_s(1))
    assert one_kernel_of_five.taken_s(1) == pytest.approx(2 * 4096 * 8192 * 2 / 2.479e12)


def test_a_program_s_bands_meet_in_its_tile():
    marks = {next(iter(mark.about.items())): mark for mark in one_program.draw(WIDE).marks if mark.about}
    a, b, c = marks["reads", "A"], marks["reads", "B"], marks["writes", "C"]
    assert (a.top, a.bottom, b.left, b.right) == pytest.approx((c.top, c.bottom, c.left, c.right))
    assert one_program.counted() == (2048 // 128, 4096 // 256)


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_the_ladder_s_rungs_are_as_far_apart_as_their_rates(width):
    """Compute, HBM, NVLink, InfiniBand of an H100, one way each; a factor of ten is one length everywhere."""
    rates = [mark.about["rate"] for mark in four_numbers.draw(width).marks]
    gpu = catalog.gpu("h100-sxm")
    assert rates == [
        gpu.bf16_flops_per_s,
        gpu.hbm_bytes_per_s,
        catalog.link("nvlink4").bytes_per_s,
        catalog.link("ib-ndr").bytes_per_s,
    ]
    places = [(mark.left + mark.right) / 2 for mark in four_numbers.draw(width).marks]
    assert np.diff(places) == pytest.approx(np.diff(np.log10(rates)) * four_numbers.place(1e11, width))
    told = " ".join(four_numbers.draw(width).told)
    assert "295 FLOP for each byte" in told and "7.44 times less" in told and "9 times less" in told


def test_every_diagram_is_shown_on_a_page_and_every_page_that_has_one_shows_it_once():
    shown = [
        (options["name"], options.get("schedule") or options.get("lit"))
        for page in lessons.pages()
        for options in page.options("diagram")
    ]
    assert len(shown) == len(set(shown)) and {name for name, _ in shown} == set(fence.names())
    assert {key for name, key in shown if key and name == "schedule"} == set(SCHEDULES)


def test_gathers_and_passes_are_the_executed_step_on_one_scale():
    """All tasks of both runs. With enough tokens only the first gather and the last scatter are exposed."""
    picture, scales = gathers_behind_passes.draw(WIDE), set()
    for each in gathers_behind_passes.TOKENS:
        run = gathers_behind_passes.executed(each)
        blocks = [mark for mark in picture.marks if mark.about.get("tokens") == each and "kind" in mark.about]
        wanted = sorted((kind, start, end) for kind, _, start, end in gathers_behind_passes.tasks(run))
        assert sorted((m.about["kind"], m.about["start_s"], m.about["end_s"]) for m in blocks) == wanted
        assert len(blocks) == 5 * gathers_behind_passes.LAYERS
        scales |= {round((m.right - m.left) / (m.about["end_s"] - m.about["start_s"]), 6) for m in blocks}
        assert any(units.human(float(run["total_s"]), "seconds") in one.words for one in picture.labels)
    assert len(scales) == 1
    enough, few = (gathers_behind_passes.executed(tokens) for tokens in gathers_behind_passes.TOKENS)
    first = gathers_behind_passes.tasks(enough)[0]
    assert enough["exposed_s"] == pytest.approx(2 * (first[3] - first[2]))
    assert few["exposed_share"] > 1 / 3


def test_an_all_reduce_hides_but_for_its_last_piece_or_queues_up():
    """With enough tokens each piece is sent when it is ready; with half of them the wire never rests."""
    enough, few = behind_backward.run(behind_backward.ENOUGH), behind_backward.run(behind_backward.TOO_FEW)
    piece_s = enough.end_s[0] - enough.start_s[0]
    assert enough.start_s == pytest.approx(enough.ready_s) and enough.exposed_s == pytest.approx(piece_s)
    assert few.start_s[1:] == pytest.approx(few.end_s[:-1]) and few.exposed_s > 3 * piece_s
    drawn = [mark for mark in behind_backward.draw(WIDE).marks if mark.look == "network"]
    assert len(drawn) == 2 * behind_backward.PIECES + 1  # and the key
    widths = [mark.right - mark.left for mark in drawn[:-1]]
    assert widths == pytest.approx([widths[0]] * len(widths)), "one scale"


# -- those of the glossary -----------------------------------------------------------------------------------
def test_a_product_s_digits_fit_the_accumulator():
    """8 · 8 digits are 16, and fp32 has 24 (IEEE 754)."""
    marks = Counter(mark.top for mark in drawn("narrow_in_wide_out", {}, WIDE).marks)
    assert list(marks.values()) == [8, 8, 16, 24, 8] == [count for _, count, _ in narrow_in_wide_out.rows()]


def test_split_k_does_the_same_steps_on_more_multiprocessors():
    whole, split = along_k.programs(1), along_k.programs(along_k.PARTS)
    for running in (whole, split):
        steps = Counter()
        for tile, count in running:
            steps[tile] += count
        assert dict(steps) == dict.fromkeys(range(1, along_k.TILES + 1), along_k.STEPS)
    assert len(whole) == along_k.TILES < len(split) == along_k.MULTIPROCESSORS
    assert along_k.STEPS // along_k.PARTS + along_k.ADDING < along_k.STEPS  # worth it, as it is drawn


def test_what_is_exposed_is_what_outlasts_the_computation():
    marks = {mark.look: mark for mark in drawn("exposed_part", {}, WIDE).marks}
    assert marks["past"].left == marks["compute"].right == marks["network"].right
    assert exposed_part.exposed() == 1.5  # 3.5 + 4 - 6
    assert (marks["past"].right - marks["past"].left) / WIDE == pytest.approx(1.5 / 7.5)


@pytest.mark.parametrize("chunks", [1, virtual_stages.CHUNKS])
def test_virtual_stages_hold_each_layer_once_and_follow_one_another(chunks):
    runs = virtual_stages.runs(chunks)
    held = [layer for mine in runs for first, last in mine for layer in range(first, last + 1)]
    assert sorted(held) == list(range(1, virtual_stages.LAYERS + 1))
    in_order = [runs[gpu][chunk] for chunk in range(chunks) for gpu in range(virtual_stages.GPUS)]
    assert all(before[1] + 1 == after[0] for before, after in itertools.pairwise(in_order))


def test_a_later_request_computes_only_its_own_rest():
    marks = [mark for mark in drawn("kept_prefix", {}, WIDE).marks if "block" in mark.about]
    computed = [mark for mark in marks if mark.look == "forward"]
    assert len(marks) - len(computed) == kept_prefix.SHARED
    assert len(computed) == kept_prefix.SHARED + kept_prefix.FIRST + kept_prefix.SECOND


def test_refilled_seats_serve_the_same_requests_in_fewer_steps():
    """As the engine's server runs them: four at once, each for as many steps as it has tokens, in order."""
    ways = refilled_seats.in_batches(), refilled_seats.refilled()
    for stays in ways:
        assert [stay.ends - stay.begins for stay in stays] == [*refilled_seats.LENGTHS]
        for step in range(refilled_seats.last_step(stays)):
            seats = [stay.seat for stay in stays if stay.begins <= step < stay.ends]
            assert len(seats) == len(set(seats)) <= refilled_seats.SEATS
    assert [refilled_seats.last_step(stays) for stays in ways] == [9 + 7, 11]
    assert [stay.begins for stay in ways[1]] == sorted(stay.begins for stay in ways[1])


def test_pages_are_given_out_as_tokens_come_and_two_requests_share_their_beginning():
    pages, tables = cache_pages.given()
    for name, held in cache_pages.TOKENS.items():
        assert sum(pages[place].used for place in tables[name]) == held
        assert len(tables[name]) == -(-held // cache_pages.PAGE)
    assert tables["B"][: cache_pages.SHARED] == tables["C"][: cache_pages.SHARED]
    assert len(pages) == len({place for table in tables.values() for place in table}) < cache_pages.POOL


def test_the_tree_of_prefixes_is_the_engine_s_and_finds_what_was_said_before():
    cache, asked, names = prefix_tree.run()
    assert [each.found for each in asked] == [0, 1000, 1400, 0]
    held = {names[node.tokens[0]]: len(node.tokens) for node in cache.nodes()}
    drawn_ = {mark.about["tokens"] for mark in prefix_tree.draw(WIDE).marks}
    assert held["system prompt"] == 1000 and set(held.values()) == drawn_
    assert sum(held.values()) == 1000 + 400 + 400 + 400 + 800


def test_a_check_of_four_drafts_takes_a_step_and_the_drafts():
    step_s, draft_s = draft_and_check.times_s()
    took = [mark.about["took_s"] for mark in draft_and_check.draw(WIDE).marks if "took_s" in mark.about]
    assert took == [step_s] * 3 + [draft_s] * 4 + [step_s] and 4 * draft_s < step_s
    fates = [mark.about["fate"] for mark in draft_and_check.draw(WIDE).marks if "fate" in mark.about]
    assert fates == ["kept", "kept", "replaced", "unused", "unused"]


def test_a_transpose_is_the_same_storage_in_another_order():
    """What PyTorch has in the lesson's snippet: strides (3, 1) and (1, 3) over six elements."""
    picture = one_storage.draw(WIDE)
    views = {
        name: [mark.about["element"] for mark in picture.marks if mark.about.get("view") == name]
        for name, *_ in one_storage.VIEWS
    }
    assert views == {"x": [0, 1, 2, 3, 4, 5], "y = x.t()": [0, 3, 1, 4, 2, 5]}
    for name, sizes, strides in one_storage.VIEWS:
        places = np.add.outer(strides[0] * np.arange(sizes[0]), strides[1] * np.arange(sizes[1]))
        assert views[name] == places.ravel().tolist()


def test_cut_into_pieces_an_mlp_sends_behind_its_products_and_each_piece_waits_for_its_tokens():
    parts = pieces_in_turn.times()
    waited, tasks = pieces_in_turn.waited_for(parts), pieces_in_turn.in_pieces(parts)
    assert pieces_in_turn.end_s(waited) == pytest.approx(sum(parts))
    # all that is sent is hidden, and no more than the arithmetic can be saved
    assert pieces_in_turn.end_s(tasks) == pytest.approx(parts.first_s + parts.last_s)
    at = {(task.kind, task.piece): task for task in tasks}
    for piece in range(2, pieces_in_turn.RANKS + 1):
        assert at["first", piece].start_s >= at["gather", piece].end_s
    for piece in range(1, pieces_in_turn.RANKS):
        assert at["scatter", piece].start_s >= at["last", piece].end_s
    assert sum(t.end_s - t.start_s for t in tasks if t.kind == "gather") == pytest.approx(parts.gather_s)


def test_two_layers_moved_from_the_output_layer_shorten_every_turn_by_the_exercise_s_share():
    even, moved = (slowest_stage.stage_s(layers) for _, layers in slowest_stage.CASES)
    assert sum(map(sum, even)) == pytest.approx(sum(map(sum, moved)))  # the same model
    pace = [max(map(sum, times)) for times in (even, moved)]
    assert 1 - pace[1] / pace[0] == pytest.approx(0.135, abs=0.001)  # 1 - 9 / 10.41
    marks = [mark for mark in slowest_stage.draw(WIDE).marks if mark.look == "idle"]
    assert len(marks) == 3 + 2 + 1  # one stage sets the first pace, two of them the second; and the key


def test_packed_documents_are_uneven_in_one_zigzag_and_even_in_a_zigzag_each():
    whole, each = (packed_documents.shares(way) for _, way in packed_documents.WAYS)
    assert each == pytest.approx([0.25] * 4, abs=1e-4)
    assert max(whole) == whole[3] == pytest.approx(1.74 * 0.25, rel=0.01)  # "nearly three quarters more"
    # counted by hand, in halves of a block's square: 9² + 4² + 3² of 16²
    assert packed_documents.seen_share() == pytest.approx((81 + 16 + 9) / 256, rel=1e-4)
    held = [packed_documents.held(rank, True) for rank in range(packed_documents.RANKS)]
    assert sorted(np.concatenate(held)) == list(range(packed_documents.TOKENS))


def test_one_spare_place_on_each_gpu_makes_a_server_even():
    rows = spare_experts.loads()
    for _, spare in spare_experts.WAYS:
        assert sum(spare_experts.of_gpus(spare)) == pytest.approx(sum(rows))  # no choice is dropped
        assert sum(copies(rows, spare)) == spare_experts.EXPERTS + spare
    assert spare_experts.fullest(0) > 1.5 > 1.05 > spare_experts.fullest(spare_experts.GPUS)


def test_folded_or_not_a_stage_holds_each_expert_once():
    whole = [name for held in folded_meshes.held(True) for name in held.split("\n")]
    assert whole == [f"E{expert}" for expert in range(folded_meshes.EXPERTS)]
    parts = Counter(folded_meshes.held(False))
    assert set(parts.values()) == {folded_meshes.TENSOR} and "¼" in next(iter(parts))


def test_sent_once_one_copy_crosses_and_nvlink_delivers_the_rest():
    assert once_to_a_node.copies(False) == (3, 0) and once_to_a_node.copies(True) == (1, 3)
    arrows = once_to_a_node.draw(WIDE).marks
    assert sum(mark.look == "hbm" and "gpu" in mark.about for mark in arrows) == 2 * len(
        once_to_a_node.CHOSEN
    )


def test_dealt_out_one_by_one_a_tensor_group_is_on_every_node():
    for _, cyclic in dealt_to_nodes.WAYS:
        every = [rank for node in range(dealt_to_nodes.NODES) for rank in dealt_to_nodes.ranks(node, cyclic)]
        assert sorted(every) == list(range(dealt_to_nodes.NODES * dealt_to_nodes.EACH))
    assert dealt_to_nodes.nodes_of_group(False) == 1
    assert dealt_to_nodes.nodes_of_group(True) == dealt_to_nodes.NODES


def test_saved_in_the_background_a_failure_undoes_less_though_the_last_copy_is_still_on_its_way():
    waited, copied = saved_in_background.WAYS
    for way in saved_in_background.WAYS:
        kept, fails = saved_in_background.kept_s(way), saved_in_background.FAILS_S
        assert 0 < kept < fails and kept in [start for start, _ in saved_in_background.saves(way)]
        assert fails - kept < saved_in_background.interval_s(way) + saved_in_background.WRITING_S
    mtbf_s = reliability.mean_time_between_failures_s(saved_in_background.GPUS)
    assert saved_in_background.interval_s(copied) == pytest.approx(np.sqrt(2 * 3 * mtbf_s))
    assert saved_in_background.kept_s(copied) > saved_in_background.kept_s(waited)


def test_the_waves_are_those_of_the_opening_case():
    """By hand: 256 tiles are 132 and 124, 272 are 132, 132 and 8; each wave is as high as it is full."""
    marks = waves.draw(WIDE).marks
    assert [mark.about["tiles"] for mark in marks if "tiles" in mark.about] == [132, 124, 132, 132, 8]
    full = max(mark.bottom - mark.top for mark in marks)
    for mark in marks:
        share = mark.about.get("tiles", mark.about.get("idle")) / 132
        assert mark.bottom - mark.top == pytest.approx(share * full)


def test_the_last_program_has_two_elements_that_exist():
    marks = four_programs.draw(WIDE).marks
    assert [mark.about["program"] for mark in marks if "program" in mark.about] == [0, 1, 2, 3]
    assert [mark.about["lane"] for mark in marks if "lane" in mark.about] == list(range(48, 64))
    assert [mark.about["mask"] for mark in marks if "mask" in mark.about] == [True] * 2 + [False] * 14
