"""The command ``system-ml``: all that ``python -m engine`` answers, the course itself, and completion.

system-ml serve                  the course on http://localhost:5006/
system-ml plan --model …         as python -m engine plan …
system-ml mcp                    the engine and the lessons for programs that use tools
system-ml completion bash        what completes these words in a shell
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable

import argcomplete
from argcomplete.shell_integration import shellcode

from course import serve
from course.agent import rpc
from engine import __main__ as numbers
from engine import catalog, puzzles
from engine.arguments import Parser, parser, refused
from engine.base import edition, extras
from engine.frameworks import registry
from engine.mechanism.collectives import OPERATIONS
from engine.mechanism.memory import RECOMPUTE
from engine.mechanism.pipeline import SCHEDULES

NAME = "system-ml"
# what to write, and into which file, so that each shell completes
SHELLS = {
    "bash": 'eval "$(system-ml completion bash)"   in ~/.bashrc',
    "zsh": 'autoload -Uz compinit && compinit && eval "$(system-ml completion zsh)"   in ~/.zshrc',
    "fish": "system-ml completion fish | source   in ~/.config/fish/config.fish",
}
# the words that may follow a flag, where the parser itself does not list them; names of the catalogue are
# looked up only when a shell asks
WORDS: dict[str, Callable[[], Iterable[str]]] = {
    "--model": catalog.all_models,
    "--gpu": catalog.all_gpus,
    "--nic": catalog.all_links,
    "--recipe": catalog.all_recipes,
    "--op": lambda: OPERATIONS,
    "--software": catalog.all_software,
    "--recompute": lambda: RECOMPUTE,
    "--schedule": lambda: SCHEDULES,
    "--export": registry.servers,
}


def run_serve(args: argparse.Namespace) -> None:
    """``serve``: the built course on this machine."""
    serve.run(args)


def run_completion(args: argparse.Namespace) -> None:
    """``completion``: print the lines that make a shell complete this command."""
    numbers.printed(shellcode([NAME], shell=args.shell))


def run_mcp(_: argparse.Namespace) -> None:
    """``mcp``: the Model Context Protocol on standard input and output."""
    rpc.serve()


OWN = {"serve": run_serve, "mcp": run_mcp, "completion": run_completion}


def commands() -> Parser:
    """The engine's commands, and those of the course."""
    top = parser(f"{NAME}: the course on training and serving large models, and its engine.", NAME)
    top.add_argument("--version", action="version", version=f"{NAME} {edition.version()}")
    said = "the course in your browser, with Python behind its figures"
    serve.add_flags(top.commands.add_parser("serve", help=said, description=said, allow_abbrev=False))
    said = "the engine and a search of the lessons for an assistant, over the Model Context Protocol (stdio)"
    top.commands.add_parser("mcp", help=said, description=said, allow_abbrev=False)
    said = "what completes the words of this command in a shell"
    where = "; ".join(SHELLS.values())
    sub = top.commands.add_parser("completion", help=said, description=f"{said}: {where}")
    sub.add_argument("shell", choices=tuple(SHELLS))
    for each in top.commands.choices.values():
        _complete(each)
    return top


def _complete(sub: Parser) -> None:
    """Tell argcomplete what may follow each flag; for a flag without such words it would offer files."""
    for action in sub._actions:
        words = next((WORDS[flag] for flag in action.option_strings if flag in WORDS), None)
        if action.dest == "name":
            words = puzzles.names
        if words:
            action.completer = lambda words=words, **_: list(words())  # type: ignore[attr-defined]


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    numbers.speak_utf8()
    top = commands()
    argcomplete.autocomplete(top)  # answers and ends here if it is a shell that asks
    args = top.parse_args(arguments)
    prog = f"{NAME} {args.command}"
    if args.command not in OWN:
        return numbers.answer(args, prog)
    try:
        OWN[args.command](args)
    except (ValueError, extras.Missing) as error:
        return refused(prog, error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
