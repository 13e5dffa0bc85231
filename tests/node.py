"""Runs the page's own scripts and compiled programs in node, and exchanges numbers exactly, bit by bit."""

from __future__ import annotations

import atexit
import json
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from tests import machine
from tests.conftest import ROOT
from widgets.kit.compiler.modules.bundle import RUNTIME
from widgets.kit.drawing.scripts import SCRIPTS
from widgets.kit.page import module

# each job is a function of controls and the states to try; numbers are passed as their bits
RUN = """async jobs => {
  const numbers = await import("/assets/widget/numbers.js");
  const bits = new DataView(new ArrayBuffer(8));
  const number = text => { bits.setBigUint64(0, BigInt("0x" + text)); return bits.getFloat64(0); };
  const text = value => { bits.setFloat64(0, +value); return bits.getBigUint64(0).toString(16); };
  const plain = value => typeof value === "string" ? value : typeof value !== "object" ? text(value)
    : ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value, plain)
    : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
  return jobs.map(([source, states]) => {
    const made = new Function(...Object.keys(numbers), `return ${source}`);
    const compute = made(...Object.values(numbers))(null);
    return states.map(state => {
      const named = Object.entries(state).map(([name, value]) => [name, number(value)]);
      try { return plain(compute(Object.fromEntries(named))); }
      catch (error) { return { error: String(error.message ?? error) }; }
    });
  });
}"""
# reads functions and their arguments line by line, and writes their results
ANSWERS = """
import readline from "readline";
for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  const [code, given] = JSON.parse(line);
  let said;
  try { said = { found: (await eval(code)(new Function(`return ${given}`)())) ?? null }; }
  catch (error) { said = { failed: String(error?.stack ?? error) }; }
  process.stdout.write(`${JSON.stringify(said)}\\n`);
}
"""


def bits(value: float) -> str:
    """A double as the sixteen digits of its bits."""
    return struct.pack(">d", value).hex()


def read(value):
    """A result of node as a Python value; a column becomes an array."""
    if isinstance(value, dict):
        return {name: each if name == "error" else read(each) for name, each in value.items()}
    if isinstance(value, list):
        return np.array([read(each) for each in value], dtype=float)
    return struct.unpack(">d", bytes.fromhex(value.rjust(16, "0")))[0]


def assets(folder: Path) -> Path:
    """A folder with the scripts that compiled code imports, at the same places as in a built site."""
    for name in ("widget", "widgets", "js", "fit"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "widgets" / "shared.js").write_text(module.shared(lessons={}), encoding="utf-8")
    (folder / "widgets" / "answers.js").write_text(module.judging(), encoding="utf-8")
    theme = ROOT / "site" / "theme" / "assets"
    for script in (*(theme / "widget").glob("*.js"), *SCRIPTS.values()):
        shutil.copyfile(script, folder / "widget" / script.name)
    for script in RUNTIME.values():
        shutil.copyfile(script, folder / "fit" / script.name)
    for script in (theme / "js").glob("*.js"):
        shutil.copyfile(script, folder / "js" / script.name)
    return folder


class Script:
    """Runs asynchronous functions of the page's, one after the other, as a browser's page does."""

    def __init__(self, folder: Path):
        node = machine.node()
        (assets(folder) / "answers.mjs").write_text(ANSWERS, encoding="utf-8")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([node, folder / "answers.mjs"], text=True, encoding="utf-8", **pipes)

    def evaluate(self, function: str, given):
        """The result of the function, which can import the site's scripts by their addresses."""
        here = function.replace('"/assets/', '"./').replace("`/assets/", "`./")
        # a number that JSON cannot express, such as infinity, is written in JavaScript's notation
        self.process.stdin.write(json.dumps([f"({here})", json.dumps(given)]) + "\n")
        self.process.stdin.flush()
        said = json.loads(self.process.stdout.readline())
        assert "failed" not in said, said["failed"][:2000]
        return said["found"]


@cache
def page() -> Script:
    """One running node for all tests of this process, because starting node takes longer than most
    answers."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    script = Script(Path(folder.name))
    atexit.register(script.process.kill)
    return script


def run(jobs: list[tuple[str, list[dict]]]) -> list[list[dict]]:
    """The answers of each function (its source, as writer.function gives it) in each of its states."""
    sent = [(source, [{k: bits(v) for k, v in state.items()} for state in states]) for source, states in jobs]
    return [[read(answer) for answer in answers] for answers in page().evaluate(RUN, sent)]
