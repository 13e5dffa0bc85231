"""Wrong answers to the puzzle *softmax in one pass over tiles*, each with some of the words that it gets."""

from engine.puzzles.tiled_softmax import SOLUTION, START

WRONG = {
    "without the maximum": (START, "as exp of anything above 709 is"),
    "two passes": (
        "import math\n\ndef attention(tiles):\n    largest = max(score for tile in tiles for score, value in tile)\n"
        "    total = weighted = 0.0\n    for tile in tiles:\n        for score, value in tile:\n"
        "            total += math.exp(score - largest)\n            weighted += math.exp(score - largest) * value\n    return weighted / total\n",
        "a second time",
    ),
    "kept in a list": (
        SOLUTION.replace("    largest, total", "    tiles = list(tiles)\n    largest, total"),
        "more than one tile at a time",
    ),
    "never rescaled": (
        SOLUTION.replace("total * rescale, weighted * rescale, score", "total, weighted, score"),
        "must be",
    ),
    "only the total is rescaled": (SOLUTION.replace("weighted * rescale", "weighted"), "must be"),
    "the wrong way round": (
        SOLUTION.replace("math.exp(largest - score)", "math.exp(score - largest)"),
        "no number",
    ),
    "not divided": (SOLUTION.replace("weighted / total", "weighted"), "must be"),
    "hidden scores count": (
        SOLUTION.replace("            if score == -math.inf:\n                continue\n", ""),
        "no number",
    ),
    "the first tile alone": (SOLUTION.replace("    return", "        break\n    return"), "must be"),
    "only the sum is rescaled": (
        SOLUTION.replace("total * rescale", "total"),
        "sums relative to the same maximum, from the first score to the last?",
    ),
    "a maximum for each tile": (
        SOLUTION.replace("    for tile in tiles:\n", "    for tile in tiles:\n        largest = -math.inf\n"),
        "what was summed before is lost",
    ),
    "begun anew with each tile": (
        SOLUTION.replace(
            "    for tile in tiles:\n",
            "    for tile in tiles:\n        largest, total, weighted = -math.inf, 0.0, 0.0\n",
        ),
        "what was summed before is lost",
    ),
    "a largest that is at least 0": (
        SOLUTION.replace("largest, total, weighted = -math.inf", "largest, total, weighted = 0.0"),
        "ZeroDivisionError",
    ),
    "the smallest for the largest": (
        SOLUTION.replace("score > largest", "score < largest").replace(
            "largest, total, weighted = -math.inf", "largest, total, weighted = math.inf"
        ),
        "What is -inf - (-inf)?",
    ),
    "the last score is the largest": (
        SOLUTION.replace("score > largest", "True"),
        "a number became too large, as exp of anything above 709 is",
    ),
    "the maximum is not kept": (
        SOLUTION.replace("weighted * rescale, score", "weighted * rescale, largest"),
        "What is -inf - (-inf)?",
    ),
    "rescaled after adding": (
        SOLUTION.replace(
            "            if score > largest:\n                rescale = math.exp(largest - score)\n                total, weighted, largest = total * rescale, weighted * rescale, score\n            weight = math.exp(score - largest)\n            total += weight\n            weighted += weight * value\n",
            "            largest = max(largest, score)\n            weight = math.exp(score - largest)\n            total += weight\n            weighted += weight * value\n",
        ),
        "sums relative to the same maximum, from the first score to the last?",
    ),
    "the mean of the means": (
        "import math\n\ndef attention(tiles):\n    means = []\n    for tile in tiles:\n        seen = [entry for entry in tile if entry[0] > -math.inf]\n        if not seen:\n            continue\n        m = max(score for score, value in seen)\n        t = sum(math.exp(score - m) for score, value in seen)\n        means.append(sum(math.exp(score - m) * value for score, value in seen) / t)\n    return sum(means) / len(means)\n",
        "a tile with larger scores weighs more",
    ),
    "no softmax at all": (
        "def attention(tiles):\n    total = weighted = 0.0\n    for tile in tiles:\n        for score, value in tile:\n            total += 1\n            weighted += value\n    return weighted / total\n",
        "the softmax weighs the values by their scores",
    ),
    "weighted by the scores": (
        SOLUTION.replace("weight = math.exp(score - largest)", "weight = score"),
        "sums relative to the same maximum, from the first score to the last?",
    ),
    "the value of the largest": (
        "import math\n\ndef attention(tiles):\n    best = (-math.inf, 0.0)\n    for tile in tiles:\n        for score, value in tile:\n            if score > best[0]:\n                best = (score, value)\n    return best[1]\n",
        "softmax gives the others their share",
    ),
    "score for value": (
        SOLUTION.replace("weight * value", "weight * score"),
        "sums relative to the same maximum, from the first score to the last?",
    ),
    "tiles by their place": (
        SOLUTION.replace("for tile in tiles:", "for tile in [tiles[0], tiles[1]]:"),
        "they come one after the other",
    ),
    "hidden scores as 0": (
        SOLUTION.replace("                continue\n", "                score = 0.0\n"),
        "Are both sums relative to the same maximum?",
    ),
    "both sums": (
        SOLUTION.replace("return weighted / total", "return weighted, total"),
        "divide the two sums",
    ),
    "turned over": (
        SOLUTION.replace("weighted / total", "total / weighted"),
        "divide the values' sum by the weights'",
    ),
    "nothing": (
        SOLUTION.replace("    return weighted / total\n", "    weighted / total\n"),
        "Does it end with a return?",
    ),
    "kept tiles": (
        SOLUTION.replace(
            "    for tile in tiles:\n",
            "    kept = []\n    for tile in tiles:\n        kept.append(tile)\n        for old in kept[:-1]:\n            len(list(old))\n",
        ),
        "when the next tile is read, the one before is gone",
    ),
}
