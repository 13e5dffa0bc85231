"""The mutants of ``make mutants``: what is explained in bench/equivalents.toml is one of them still."""

from bench import mutants, mutations


def test_every_explained_change_is_a_mutant_of_its_file():
    """``explained`` exits with the entry whose line is there no longer, which would stop ``make mutants``."""
    assert all(len(why) > 20 for why in mutants.explained().values())


def test_a_change_is_known_by_its_code_and_not_by_a_comment():
    [plain], [told] = (mutations.of("a.py", f"size = 3{words}\n") for words in ("", "  # of a block"))
    assert plain.change == told.change == "size = 3  ->  size = 4"
    assert told.source == "size = 4  # of a block\n"
