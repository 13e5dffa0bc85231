"""``lacks`` finds a wrong number in a sentence that is worded as before, and no fault in one worded anew."""

from tests.cases import in_one_test
from tests.said import lacks


@in_one_test(
    "text, parts",
    [
        ("State on each GPU: 48 GB, 60 % of the HBM", ("48 GB", "60 %", "HBM")),
        ("60 % of the HBM (48 GB) are state.", ("48 GB", "60 %", "HBM")),
        ("stages must be from 2 to 16, got '99'", ("stages", 2, 16, "'99'")),
        ("saves 3.35 TB/s, or −5 %", ("3.35 TB/s", "−5 %")),
    ],
)
def test_what_is_there_is_found_in_any_order(text, parts):
    assert lacks(text, *parts) == []


@in_one_test(
    "text, part",
    [
        ("160 % of the HBM", "60 %"),
        ("0.60 %", "60 %"),
        ("1,024 GPUs", "24 GPUs"),
        ("48 GB/s on the wire", "48 GB"),
        ("48.5 GB", "48"),
        ("stage 16", "stage 1"),
        ("−5 %", "5 %"),
        ("sharded", "shard"),
    ],
)
def test_a_part_of_a_number_or_of_a_word_is_not_enough(text, part):
    assert lacks(text, part) == [part]
