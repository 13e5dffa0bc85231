"""The numbers of the second page of lesson 11, The server."""

import numpy as np

from engine.base.types import Real
from engine.catalog import gpu, link, model, price
from engine.serving import decoding, drafts, prefix_cache
from engine.serving.hosted import Hosted
from engine.step import layout

llama = model("llama3-70b")  # Llama 3 70B
tiny = model("llama3.2-1b")  # Llama 3.2 1B, a draft for the 70B
h100 = layout.machine(gpu("h100-sxm"))  # an H100 of a DGX node
on_h100 = Hosted(llama, gpu("h100-sxm"))  # Llama 3 70B on eight of them, in bf16 unless said
a_token = on_h100.token  # a step, which brings each user a token
room_for = on_h100.room  # the room that the weights leave to users, and what each takes
reading = on_h100.prompt  # reading prompts
# a replica where the next prompt follows every answer that ends; with values of one byte products are in fp8
kept_full = on_h100.kept_full


def gain_by_drafts(users: int) -> float:
    """How many times as fast users of 8k are served with three drafted tokens, each accepted seven times in
    ten."""
    return drafts.speculative_gain(
        llama, draft=tiny, at=h100, tp=8, batch=users, context=8192, accepted=0.7, drafted=3
    )


def short_gain(users: int) -> float:
    """The same for users of 2,304 tokens."""
    return drafts.speculative_gain(
        llama, draft=tiny, at=h100, tp=8, batch=users, context=2304, accepted=0.7, drafted=3
    )


def unhurried(tp: list[int]) -> Real:
    """Tokens per second and GPU if a token may take a fifth of a second."""
    return decoding.steady_within(
        0.2,
        kept_full(users=decoding.USERS[None, :], tp=np.array([tp]).T),
        llama,
        h100,
        tp=np.array(tp),
        prompt=2048,
        output=256,
    ).tokens_per_s_per_gpu


def users_in_time(tp: int, stored_bytes: float = 1.0, prompt: int = 2048) -> float:
    """The most users of the last exercise that get their tokens in time."""
    return np.max(
        np.where(
            kept_full(
                users=np.arange(1.0, 300), prompt=prompt, output=512, tp=tp, stored_bytes=stored_bytes
            ).token_s
            <= 0.05,
            np.arange(1.0, 300),
            0,
        )
    )


def reading_share(users: int) -> float:
    """The share of its time in which a full replica of the last exercise reads prompts."""
    return (
        users
        * reading(prompt=2048, tp=2, weight_bytes=1.0).total_s
        / (512 * kept_full(users=users, output=512, tp=2, stored_bytes=1.0).token_s)
    )


# requests of 100 conversations that take turns
chats = prefix_cache.turns(prefix_cache.Chats(100, 8, 1000, 100, 300), 800)
mean_prompt = np.mean([turn.prompt for turn in chats[200:]])  # the mean of their prompts


def speed_ups(accepted: float) -> Real:
    """What one, two, three … drafted tokens gain, if each costs a tenth of a step."""
    return drafts.speculative_speed_up(accepted=accepted, drafted=np.arange(1.0, 30), draft_cost=0.1)


def not_found_s(found: float) -> float:
    """Seconds to read what a cache does not find of a prompt of mean length."""
    return reading(prompt=float(np.round(mean_prompt * (1 - found)))).total_s


# slots of a batch of 32 that work while others wait for the longest
slots_at_work = 1 / np.sum(1 / np.arange(1, 33))
# the best number of drafted tokens if 0.6 of them are accepted
best_drafted_06 = 1 + np.argmax(speed_ups(accepted=0.6))
best_gain_06 = np.max(speed_ups(accepted=0.6))  # its gain
# the best number of drafted tokens if 0.9 of them are accepted
best_drafted_09 = 1 + np.argmax(speed_ups(accepted=0.9))
best_gain_09 = np.max(speed_ups(accepted=0.9))  # its gain
# replicas of TP 4 for a thousand users in bf16
replicas_bf16 = np.ceil(1000 / users_in_time(tp=4, stored_bytes=2.0))
gpus_bf16 = 4 * np.ceil(1000 / users_in_time(tp=4, stored_bytes=2.0))  # their GPUs
gpus_tp_2 = 2 * np.ceil(1000 / users_in_time(tp=2))  # GPUs for a thousand users at TP 2 in fp8
seats_tp_2 = gpus_tp_2 / 2 * users_in_time(tp=2)  # their seats
gpus_tp_4 = 4 * np.ceil(1000 / users_in_time(tp=4))  # GPUs for a thousand users at TP 4 in fp8
# dollars of a million tokens in the design
design_dollars = decoding.dollars_per_million(
    price("h100-sxm").dollars_per_hour,
    kept_full(users=79, output=512, tp=2, stored_bytes=1.0).tokens_per_s_per_gpu,
)
unhurried_rates = unhurried(tp=[16, 8, 4, 2])  # the rates of TP 16, 8, 4 and 2
BATCH = 32  # requests that the case's server collects
# tokens a second of a batch of 32 with 2,176 tokens each, without prompts
of_a_batch = BATCH / a_token(users=BATCH, context=2176).total_s
together_s = reading(prompt=2048, prompts=BATCH).total_s  # reading all of its prompts
# from its prompts to the end of its longest answer, which has as many mean lengths as the sum on the page
whole_batch_s = together_s + 256 / slots_at_work * a_token(users=BATCH, context=2176).total_s
batch_read_s = reading(prompt=2048).total_s  # reading one prompt of 2,048 tokens
prompts_part_s = 64 / 256 * batch_read_s  # what a token of 64 users pays for prompts, if read one by one
room_in_tokens = 8192 * room_for(context=8192).users  # cached tokens for which the node has room
pcie = link("pcie5").bytes_per_s  # a PCIe 5 link of 16 lanes
card = link("ib-ndr").bytes_per_s  # an InfiniBand card of 400 Gb/s
DISK = 7e9  # bytes a second of an NVMe disk on four lanes of PCIe 4, a little under its lanes' 7.9 GB/s
# the cache that eight H100s make in a second while they read prompts of 2,048 tokens
made_bytes_per_s = decoding.user_bytes(llama, context=2048) / batch_read_s
pcie_over_made = 8 * pcie / made_bytes_per_s  # eight PCIe links over that
chat_room = room_for(context=2304)  # the room for chats of 2,304 tokens


def fetched_s(wire: float) -> float:
    """Seconds in which the cache of 32,768 tokens comes over a wire."""
    return decoding.user_bytes(llama, context=32768) / wire


def empty_share(tokens: int) -> float:
    """The mean share of a chat's pages that is empty, when it ends after 512 tokens on average."""
    empty = (tokens - 1) / 2
    return empty / (512 + empty)


# mean accepted lengths that were measured with 1, 2, 4 and 8 drafted tokens; below each, the first one's rule
MEASURED = {
    "DeepSeek-V4-Pro, its MTP head": (1.79, 2.27, 2.54, 2.58),
    "Kimi K2.5, EAGLE-3": (1.83, 2.43, 3.24, 3.77),
    "GLM-5.2, MTP": (1.84, 2.50, 3.33, 4.06),
    "Qwen3.5 397B, MTP": (1.93, 2.73, 3.97, 5.21),
}


def by_rule(first: float) -> list[float]:
    """Tokens a step for 1, 2, 4 and 8 drafts, if every one is kept as often as the first."""
    return [
        float(drafts.tokens_per_verification(accepted=first - 1, drafted=n)) for n in (1.0, 2.0, 4.0, 8.0)
    ]


ACCEPTED = [*MEASURED.items(), ("the last, by its first acceptance", by_rule(1.93))]  # rows of the table
FOUND = 1000  # tokens of the system prompt, which need no reading
left_read_s = reading(prompt=2048 - FOUND).total_s  # reading what is left of the prompt
# requests a second of 128 users where the system prompt is found, over those where nothing is
prefix_gain = kept_full(users=128).token_s / (
    kept_full(users=128).token_s - 128 / 256 * (batch_read_s - left_read_s)
)
