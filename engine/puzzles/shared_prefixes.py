"""A prefix cache: how many tokens of each request's prompt have been computed before."""

from engine.puzzles.judging import Slip, box, one_for_each, picture, shown, whole
from engine.serving.prefix_cache import PrefixCache

TITLE = "a cache of prefixes"
LESSON = "11b-the-server"
STATEMENT = """
Each request is `(tokens, prompt)`: its prompt **and** the answer it got as one list of numbers, and how many of them are the prompt. After a
request, keys and values of all its tokens stay in the cache, which has room for everything. Keys and values of a token depend on all tokens before
it. Return for each request, in order, how many tokens of its prompt need no prefill because they are held. The last token of a prompt is
computed in any case: its output is the first token of the answer.
"""
FUNCTION = "held"
START = '''def held(requests):
    """How many tokens of each prompt are in the cache."""
    cache, found = set(), []
    for tokens, prompt in requests:
        found.append(len([token for token in tokens[:prompt] if token in cache]))
        cache.update(tokens)
    return found
'''
HINTS = (
    "The same token after other tokens has other keys and values. So only the beginning of a prompt can be found, up to the first token that "
    "differs.",
    "Keep a tree: from each place, the tokens that have followed there. A dict of dicts will do, with the root for the beginning.",
    "Walk down the tree along the prompt and count until a token has no branch. Then walk along all the tokens and add what is missing. "
    "At most prompt - 1 count.",
)
SOLUTION = '''def held(requests):
    """How many tokens of each prompt are in the cache."""
    root, found = {}, []
    for tokens, prompt in requests:
        node, known = root, 0
        while known < prompt - 1 and tokens[known] in node:
            node = node[tokens[known]]
            known += 1
        found.append(known)
        node = root
        for token in tokens:
            node = node.setdefault(token, {})
    return found
'''
OPEN = (
    "Room is never endless. Give the cache room for so many tokens, and drop the leaf that was used longest ago. How much room do three "
    "conversations in turn need before the second turn of each finds the first?"
)
KEPT = "        for token in tokens:\n            node = node.setdefault(token, {})\n"

CASES = (  # each word is a request: a letter for each token of the prompt, a stroke, those of the answer
    "sysab|cd sysabcde|f sysxy|z",
    "abc|d abc|e abc|d",
    "sysa|b tab|s sysa|b",
    "abcdef|g abcxyz|h abcd|e abcxyzhk|l",
    "a|b ab|c b|c abcb|a",
    "sysone|two syst|wo sysonetwothree|four sys|one sysonetwo|x",
)
ROOM = 10**6  # tokens: more than there are


def run(function):
    """Run the reader's function for the first row of requests; returns the result in words, and the
    figure."""
    requests = parsed(CASES[0])
    found = held_of(function, requests)
    said = [
        f"{found[at]} of the {requests[at][1]} tokens of “{CASES[0].split()[at].split('|')[0]}”"
        for at in range(len(found))
    ]
    return f"Each letter a token: {', '.join(said)} are held.", drawn(CASES[0].split(), found)


def check(function):
    """Check the reader's function for all rows of requests; a Slip at the first wrong answer."""
    for text in CASES:
        requests = parsed(text)
        found, cache = held_of(function, requests), PrefixCache(ROOM)
        for at in range(len(requests)):
            tokens, prompt = requests[at]
            wanted = min(cache.serve(tuple(tokens)), prompt - 1)
            if found[at] != wanted:
                raise Slip(
                    explained(text.split(), at, found[at], wanted), drawn(text.split(), found, at, wanted)
                )
    words, picture = run(function)
    return f"Right, for {len(CASES)} rows of requests. {words}", picture


def parsed(text):
    """(tokens, length of the prompt) of each word, a token for each letter."""
    halves = [word.split("|") for word in text.split()]
    return [([ord(letter) for letter in prompt + answer], len(prompt)) for prompt, answer in halves]


def held_of(function, requests):
    """The reader's answers, one number for each request."""
    given = [(list(tokens), prompt) for tokens, prompt in requests]
    call, count = f"{FUNCTION}(requests)", len(requests)
    found = one_for_each(function(given), call, "a list with a number for each request", count, "requests")
    for each in found:
        if not whole(each):
            raise Slip(f"Each entry must be how many tokens are held, a whole number; {shown(each)} is none.")
    return found


def explained(words, at, found, wanted):
    """The words that explain why another number is right."""
    prompt = words[at].split("|")[0]
    if found == len(prompt) and wanted == len(prompt) - 1:
        why = "The last token of a prompt is computed in any case."
    elif found > wanted:
        why = "What is held counts up to the first token that differs: later ones have other keys and values, though they look alike."
    elif at and common(prompt, words[at - 1]) == found:
        why = "Not only the request before may hold it, but an earlier one, too."
    elif found == max([0] + [common(prompt, word.split("|")[0]) for word in words[:at]]):
        why = "The tokens of answers are held as well as those of prompts."
    else:
        why = f"An earlier request begins with the same {wanted} tokens, prompt or answer, and that is what is held."
    return (
        f"Each letter a token, the prompt before the stroke: after {', '.join(words[:at]) or 'nothing'}, the request {words[at]} gives {wanted}, and you "
        f"have {found}. {why}"
    )


def common(one, word):
    """The length of the common beginning of two words."""
    other = word.replace("|", "")
    count = 0
    while count < min(len(one), len(other)) and one[count] == other[count]:
        count += 1
    return count


def drawn(words, found, wrong=-1, wanted=0):
    """The picture of each request, with a box for each token: held, computed or written. If an answer is
    wrong, the tokens between the reader's and the right number are marked."""
    lines = []
    for at in range(len(words)):
        prompt, answer = words[at].split("|")
        boxes = []
        for place in range(len(prompt) + len(answer)):
            look = "plain" if place >= len(prompt) else "link" if place < found[at] else "compute"
            if at == wrong and min(found[at], wanted) <= place < max(found[at], wanted):
                look = "wrong"
            boxes.append(box(place, place + 1, (prompt + answer)[place], look))
        lines.append((f"{at}", boxes))
    key = {"link": "held", "compute": "computed", "plain": "of the answer"}
    if wrong >= 0:
        key["wrong"] = "held, but not counted" if found[wrong] < wanted else "counted, but not held"
    return picture(lines, key, "The tokens of each request in turn, and which of its prompt are held.")
