"""An animation runs only when asked; it plays, pauses, steps and is scrubbed; who asks for less motion gets
whole frames."""

import pytest
from playwright.sync_api import expect

from tests.browser.hands import Hand
from widgets.kit.widget import all_widgets

PLAYERS = [
    (slug, name)
    for slug, cls in sorted(all_widgets().items())
    for name, control in cls.controls().items()
    if control.kind == "player"
]
pytestmark = pytest.mark.parametrize(("slug", "name"), PLAYERS)


class Player:
    def __init__(self, page, slug, name):
        self.hand, self.name, self.page = Hand(page, slug), name, page
        self.control = self.hand.cls.controls()[name]
        self.play, self.pause, self.step = (
            self.hand.button(f"{word}: {self.control.label}") for word in ("Play", "Pause", "Step")
        )

    def at(self) -> float:
        return self.hand.at(self.name)

    def end(self) -> float:
        """Where this run ends; it may depend on the other controls."""
        return float(self.control.grid[int(self.hand.handle(self.name).get_attribute("max"))])

    def positions(self, count: int, wait_ms: int = 60) -> list[float]:
        """Where the scrubber stands, read so many times."""
        found = []
        for _ in range(count):
            found.append(self.at())
            self.page.wait_for_timeout(wait_ms)
        return found


@pytest.fixture
def player(glance, static, slug, name):
    return Player(glance().go(f"{static}{slug}/"), slug, name)


@pytest.mark.of_the_kit
def test_it_waits_until_it_is_asked(player):
    assert set(player.positions(6)) == {min(player.control.default, player.end())}
    expect(player.play).to_be_visible()


@pytest.mark.of_the_kit
def test_it_plays_to_the_end_in_its_time(player):
    picture = player.hand.pixels()
    player.play.click()
    expect(player.pause).to_be_visible()
    seen = player.positions(4, wait_ms=max(60, 500 * player.control.seconds))
    assert seen == sorted(seen) and seen[0] < seen[-1] < player.end()
    assert player.hand.pixels() != picture
    for _ in range(2):  # the rest at four times the speed: tests have no time to watch
        player.hand.button(f"Speed: {player.control.label}").click()
    expect(player.play).to_be_visible(timeout=1000 * player.end() * player.control.seconds + 30_000)
    assert player.at() == player.end()
    player.hand.says(**{player.name: player.end()})


@pytest.mark.of_the_kit
def test_it_pauses_steps_and_is_scrubbed(player):
    player.play.click()
    player.page.wait_for_timeout(1300 * player.control.seconds)
    player.pause.click()
    paused = player.at()
    assert 0 < paused < player.end() and set(player.positions(4)) == {paused}
    player.step.click()
    assert player.at() == int(paused + 1e-9) + 1
    player.hand.says(**{player.name: player.at()})
    value = player.hand.drag(player.name, int(player.hand.handle(player.name).get_attribute("max")) // 3)
    player.hand.says(**{player.name: value})
    player.play.click()
    player.hand.drag(player.name, 0)  # a hand on the scrubber stops the run
    expect(player.play).to_be_visible()
    assert set(player.positions(4)) == {0.0}


@pytest.mark.of_the_kit
def test_less_motion_means_whole_frames(glance, static, slug, name):
    player = Player(glance(reduced_motion="reduce").go(f"{static}{slug}/"), slug, name)
    start = player.at()  # the default may stand between two frames; from there on it goes by whole ones
    handle = player.hand.handle(player.name)
    moved = [handle.element_handle(), handle.input_value()]
    player.play.click()
    player.page.wait_for_function("([handle, before]) => handle.value !== before", arg=moved)
    seen = set(player.positions(12)) - {start}
    assert all(value == int(value) for value in seen)


@pytest.mark.of_the_kit
def test_the_animation_is_no_part_of_the_address(player):
    player.hand.drag(player.name, 1)
    player.page.wait_for_timeout(400)
    assert "?" not in player.page.url


@pytest.mark.of_the_kit
def test_the_speed_can_be_chosen(player):
    faster = player.hand.button(f"Speed: {player.control.label}")
    for shown in ("2×", "4×", "0.5×"):
        faster.click()
        assert faster.text_content() == shown
    player.hand.drag(player.name, 0)
    player.play.click()
    began = player.page.evaluate("performance.now()")
    player.page.wait_for_timeout(1500)
    at, usual = (
        player.at(),
        (player.page.evaluate("performance.now()") - began) / 1000 / player.control.seconds,
    )
    assert 0 < at < 0.7 * usual + float(player.control.grid[1]), "half the speed is not half as far"
