"""A script is read as a shell would read it, with each word's place, and never run."""

import shutil
import subprocess

import pytest

from engine.launch import shell
from engine.launch.texts import Source
from tests.cases import in_one_test


def words(text: str) -> list[list[str]]:
    return [[word.text for word in command] for command in shell.read(Source("x.sh", text)).commands]


SCRIPTS = {
    "a continued line": "run --a 1 \\\n  --b 2\n",
    "variables": 'A=4\nB=${A}x\nexport C="$A $B"\nrun --a $A --b "${B}" --c "$C" --d $C\n',
    "defaults": "run ${A:-7} ${B-8} ${C:=9}\n",
    "arithmetic": "A=8\nB=$((A*2+1))\nrun $B $(( (A + 2) / 3 )) $((A%3)) $((-1+2))\n",
    "expr": 'A=8\nB=$(expr 16 / $A)\nrun $B "$(expr 2 \\* 3)" $(expr 7 - 2) --n=$( expr $A % 3 )\n',
    "arrays": 'A=(--x 1\n  --y "2 3" # why\n  --z)\nA+=(--w)\nrun "${A[@]}" ${A[1]} ${#A[@]}\n',
    "appending": 'A="--x 1"\nA+=" --y 2"\nrun $A\n',
    "quotes": "run 'a $b' \"c 'd' \\\"e\\\"\" f\\ g ''\n",
    "several": "cd /tmp; run 1 && run 2 || run 3 | run 4\n",
    "comments": "# no\nrun a#b '#' # yes\n",
    "redirections": "run a > /dev/null 2>&1 < /dev/null\n",
    "a prefix": "X=1 Y=2 run $Z a\n",
    "windows": "A=4\r\nrun --a $A\r\n",
}
RUN = 'run() { for w in "$@"; do printf "%s\\037" "$w"; done; printf "\\036"; }\ncd() { :; }\n'


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_words_are_those_of_bash(name):
    """Each script is also given to bash, with a function that prints what it gets."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash here")
    text = SCRIPTS[name]
    done = subprocess.run(
        [bash, "-c", RUN + text.replace("\r", "")], capture_output=True, text=True, timeout=20
    )
    heard = [each.split("\037")[:-1] for each in done.stdout.split("\036")[:-1]]
    read = [command[1:] for command in words(text) if command[0] == "run"]
    known = {"several": [["1"], ["2"], ["3"], ["4"]], "redirections": [["a"]]}
    if name == "a prefix":  # what is not set is unknown here, and nothing there
        read = [[w for w in read[0] if w]]
    assert read == known.get(name, heard)


def test_every_word_knows_where_its_value_is_written():
    text = "TP=8\nARGS=(\n  --tp $TP\n  --pp 4\n)\nrun ${ARGS[@]}\n"
    command = shell.read(Source("x.sh", text)).commands[0]
    assert [(w.text, w.line) for w in command[1:]] == [("--tp", 3), ("8", 1), ("--pp", 4), ("4", 4)]
    assert [text[slice(*w.span())] for w in command[1:]] == ["--tp", "8", "--pp", "4"]


def test_a_part_of_a_text_has_the_lines_and_places_of_the_whole():
    whole = "one\ntwo\nrun --x 5\n"
    part = Source("x", whole[8:], 3, 8, whole)
    value = shell.read(part).commands[0][2]
    assert value.line == 3 and whole[slice(*value.span())] == "5"


def test_what_only_running_could_tell_is_unknown_and_said_once():
    script = shell.read(
        Source("x.sh", "run --a $(nproc) --b $1 --c $HOME_OF --d ${NO[0]} --e `date` --f $HOME_OF\n")
    )
    assert [w.known for w in script.commands[0][1:]] == [True, False] * 6
    told = [str(fault) for fault in script.unknown]
    assert len(told) == 4 and all(line.startswith("x.sh:1: ") and "is not known" in line for line in told)


def test_a_comment_between_continued_lines_ends_the_command():
    """The trap that bash has: what follows is another command."""
    script = shell.read(Source("x.sh", "run --a 1 \\\n# --b 2 \\\n --c 3\n"))
    assert [[w.text for w in c] for c in script.commands] == [["run", "--a", "1"], ["--c", "3"]]
    assert [str(f) for f in script.faults] == [
        "x.sh:3: the comment in line 2 ends the command: what follows it is not passed to it"
    ]


def test_a_here_document_is_a_text_of_its_own():
    script = shell.read(Source("x.sh", 'N=8\ncat <<EOF > ds.json\n{"a": $N}\nEOF\nrun 1\n'))
    assert [(s.text, s.first_line, s.file) for s in script.written] == [('{"a": 8}', 3, "ds.json")]
    assert [[w.text for w in c] for c in script.commands] == [["cat"], ["run", "1"]]


@pytest.mark.parametrize(
    "text", ["A=x\n" + "A=$A$A\n" * 60 + "run $A\n", "A=(1 2)\n" + "A=(${A[@]} ${A[@]})\n" * 40]
)
def test_variables_that_double_end(text):
    script = shell.read(Source("x.sh", text))
    assert any("grow without end" in str(fault) for fault in script.faults)


@in_one_test(
    "text, value",
    [
        ("1+2*3", 7),
        ("(1+2)*3", 9),
        ("7/2", 3),
        ("7%4", 3),
        ("N*2", 10),
        ("$N/${N}", 1),
        ("2-3", -1),
        ("1/0", None),
        ("", None),
        ("(1", None),
        ("1 2", None),
        ("x", None),
        ("2**3", None),
        ("9" * 40, None),
    ],
)
def test_arithmetic(text, value):
    assert shell.arithmetic(text, lambda name: 5 if name == "N" else None) == value


def test_a_blank_behind_a_backslash_ends_the_command():
    script = shell.read(Source("x.sh", "run --a 1 \\ \n --c 3\nrun \\ # why\n --d\n"))
    ends = "ends the command: what follows it is not passed to it"
    assert [str(f) for f in script.faults] == [
        f"x.sh:2: the blank behind the backslash in line 1 {ends}",
        f"x.sh:4: the blank behind the backslash in line 3 {ends}",
    ]


def test_what_is_set_before_a_command_is_kept_with_it():
    script = shell.read(Source("x.sh", "A=1 B=2 run x\nenv -u C A=3 run y\nrun z\n"))
    assert [{name: word.text for name, word in one.items()} for one in script.before] == [
        {"A": "1", "B": "2"},
        {"A": "3"},
        {},
    ]


def test_of_a_loop_the_first_turn_is_read_and_said_where_it_is_used():
    command = shell.read(Source("x.sh", "for N in 2 4; do\n  run --n $N\ndone\n")).commands[1]
    assert command[2].text == "2" and command[2].known
    assert str(command[2].why) == "x.sh:1: of the loop over N its first turn is read, with 2"


def test_a_word_that_is_a_script_keeps_the_places_of_its_words():
    text = "X=9\nbash -c 'A=4\n  run --a $A \\\n  --b 7 --x $X && other'\n"
    outer = shell.read(Source("x.sh", text))
    inner = shell.within("x.sh", outer.commands[0][2], outer.variables)
    assert [[w.text for w in c] for c in inner.commands] == [
        ["run", "--a", "4", "--b", "7", "--x", "9"],
        ["other"],
    ]
    values = [inner.commands[0][at] for at in (2, 4, 6)]
    assert [(text[slice(*w.span())], w.line) for w in values] == [("4", 2), ("7", 4), ("9", 1)]


def test_alternatives_of_a_variable():
    assert words("A=1\nrun ${A:+--x} ${B:+--y} ${A:?must be set} ${A?}\n") == [["run", "--x", "1", "1"]]


def test_a_here_document_in_quotes_keeps_its_variables():
    script = shell.read(
        Source("x.sh", "N=8\ncat > a.yaml <<'EOF'\nn: $N\nEOF\ntee b.yaml <<EOF\nn: $N\nEOF\n")
    )
    assert [(s.file, s.text) for s in script.written] == [("a.yaml", "n: $N"), ("b.yaml", "n: 8")]


@pytest.mark.parametrize(
    "inside", ["expr 16 / $(nproc)", "expr 1 / 0", "expr a : b", "exprs 1 + 1", "expr", "$A"]
)
def test_what_expr_makes_of_other_things_is_unknown(inside):
    script = shell.read(Source("x.sh", f"run --a $({inside})\n"))
    assert [word.known for word in script.commands[0]] == [True, True, False]
