"""What one address may hold, and that it leaves room for others."""

import asyncio

import pytest

from tests.browser.server import run
from widgets.kit.server import peers
from widgets.kit.server.peers import Peers, network
from widgets.kit.server.session import Actions


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_of_ipv6_the_network_counts(address, name):
    assert network(address) == name


def test_an_address_takes_only_its_share(monkeypatch):
    monkeypatch.setattr(peers, "LINGER_S", 0.01)

    async def meet():
        all_of_them = Peers(most=5, most_of_one=2)
        one, other = all_of_them.at("10.0.0.1"), all_of_them.at("10.0.0.2")
        assert all_of_them.at("10.0.0.1") is one is not other
        for _ in range(2):
            assert all_of_them.refusal(one) is None
            all_of_them.opened(one)
        assert "one address" in all_of_them.refusal(one) and all_of_them.refusal(other) is None
        all_of_them.closed(one)
        assert all_of_them.pages == 1 and "one address" in all_of_them.refusal(
            one
        )  # its session is still here
        await asyncio.sleep(0.05)
        assert all_of_them.refusal(one) is None
        for number in range(4):
            all_of_them.opened(all_of_them.at(f"10.0.1.{number}"))
        assert "readers" in all_of_them.refusal(other)

    run(meet())


def test_an_address_of_which_nothing_is_left_is_forgotten():
    all_of_them = Peers()
    for number in range(1000):
        all_of_them.at(f"10.0.0.{number}")
    assert not all_of_them.known


def test_however_much_one_asks_the_others_wait_for_one_of_it():
    async def meet():
        all_of_them, order = Peers(), []

        async def ask(address: str, count: int) -> None:
            peer = all_of_them.at(address)
            for _ in range(count):
                await peer.turn()
                order.append(address)

        one = all_of_them.at("loud")
        await asyncio.gather(*(ask("loud", 1) for _ in range(200)), *(ask(f"{i}", 1) for i in range(5)))
        assert one and all(order.index(f"{i}") <= 12 for i in range(5)), order[:20]

    run(meet())


def test_who_ran_the_last_action_lets_others_go_first():
    actions, one, other = Actions(), object(), object()
    assert actions.refusal(one) is None
    assert "not over" in actions.refusal(other)
    actions.over()
    assert "waiting" in actions.refusal(one)
    assert actions.refusal(other) is None
    actions.over()
    for _ in range(2):  # alone, it may as often as it likes
        assert actions.refusal(other) is None
        actions.over()
