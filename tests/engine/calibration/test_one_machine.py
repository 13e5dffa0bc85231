"""Times and rates of hardware are written down only in the catalogue and in the calibration, so that the
whole engine uses one description of a machine. This test finds numbers with names of such quantities anywhere
else in the engine."""

import ast
from pathlib import Path

import engine

ROOT = Path(engine.__file__).parent
WHERE_THEY_BELONG = ("calibration", "catalog", "validation")  # the last holds what others published
UNITS = ("_s", "_per_s")

ALLOWED = {
    # bounds of requests or searches, which are not properties of hardware
    "mechanism/hiding.py SLOWEST_CARD_BYTES_PER_S": "where the rule of tokens ends",
    "serving/deployment/load.py MOST_PER_S": "the most requests that are asked about",
    "serving/deployment/load.py ANY_S": "a limit that everything keeps",
    "step/layout.py LEAST_NIC_BYTES_PER_S": "the slowest card that is not refused as a slip",
    "serving/pools.py NEVER_S": "stands for no end",
    "one_gpu/measure.py LONGEST_S": "for how long `make measure` may run",
    "base/bar.py EVERY_S": "how often a bar is drawn",
    "puzzles/puzzle_files.py LIMIT_S": "how long a reader's code may run",
    "puzzles/save_often.py YEAR_S": "a unit of time, in a file that the pages take out on its own",
    "api.py checkpoint_s": "what goodput assumes of a job unless it is told",
    "api.py restart_s": "the same",
    "__main__.py PATIENCE_S": "how long a command waits for a pipe",
    "mechanism/hierarchy.py SHORTEST_S": "below which no product is drawn, whatever its bytes",
    "frameworks/vllm.py PCIE_BYTES_PER_S": "up to which a link between cards counts as PCIe",
    # the job of sixteen ranks in which a reader looks for a fault; how long things take there is not asked
    "executed/incident.py START_S": "the latency of its collectives",
    "executed/incident.py DATA_S": "a batch for its ranks",
    "executed/incident.py WRITE_S": "a copy to the host",
    "executed/incident.py ISSUE_S": "between two calls of its hosts",
    "executed/incident.py SHORTEST_S": "the shortest piece that is drawn",
    # defaults of a picture or a function, which its callers replace by their own machine's
    "mechanism/placement.py nic_bytes_per_s": "a node that is drawn, with 400 Gb/s cards",
    "serving/pools.py wire_bytes_per_s": "a wire between instances; a fleet names its own",
    "serving/under_traffic.py wire_bytes_per_s": "a wire between instances; a fleet names its own",
}


ARITHMETIC = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop)
NO_RATES = (0, 1, None, False, float("inf"))  # values that mean "none" or "does not count"


def is_written_down(node) -> bool:
    """Whether this is a number, or arithmetic of nothing but numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and node.value not in NO_RATES
    return isinstance(node, (ast.BinOp, ast.UnaryOp)) and all(
        isinstance(part, ARITHMETIC) for part in ast.walk(node)
    )


def named(tree):
    """Names with the values that they are assigned: constants, fields and arguments' defaults."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
            yield node.target.id, node.value
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    yield target.id, node.value
        elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
            given = node.args.posonlyargs + node.args.args
            last = given[len(given) - len(node.args.defaults) :]
            yield from ((each.arg, default) for each, default in zip(last, node.args.defaults, strict=True))
            alone = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
            yield from ((each.arg, default) for each, default in alone if default is not None)


def private_rates(source: str) -> list[str]:
    return [
        name
        for name, node in named(ast.parse(source))
        if name.lower().endswith(UNITS) and is_written_down(node)
    ]


def test_no_module_has_a_rate_or_a_latency_of_its_own():
    found = {
        f"{path.relative_to(ROOT).as_posix()} {name}"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] not in WHERE_THEY_BELONG
        for name in private_rates(path.read_text(encoding="utf-8"))
    }
    assert found == set(ALLOWED)


def test_a_private_rate_is_noticed():
    assert private_rates("ALPHA_S = 5e-6") == ["ALPHA_S"]
    assert private_rates("def f(x, nic_bytes_per_s=400e9 / 8, *, launch_s=3 * 1e-6): pass") == [
        "nic_bytes_per_s",
        "launch_s",
    ]
    assert private_rates("class Wire:\n    bytes_per_s: float = 9e11") == ["bytes_per_s"]


def test_what_is_asked_for_or_empty_is_left_alone():
    assert private_rates("step_s = 0.0\nrate_per_s = gpu.hbm_bytes_per_s\nlayers = 80\nnever_s = 1e400") == []
