"""What the compiler wrote, run by node: many functions in one process, numbers to the last bit."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import ROOT
from widgets.kit.drawing.scripts import SCRIPTS
from widgets.kit.page import module

# each job is a function of controls, and the states to try; a number is handed over as its bits
RUN = """
import * as numbers from "./widget/numbers.js";
import fs from "fs";
const bits = new DataView(new ArrayBuffer(8));
const number = text => { bits.setBigUint64(0, BigInt("0x" + text)); return bits.getFloat64(0); };
const text = value => { bits.setFloat64(0, +value); return bits.getBigUint64(0).toString(16); };
const plain = value => typeof value === "string" ? value : typeof value !== "object" ? text(value)
  : ArrayBuffer.isView(value) || Array.isArray(value) ? Array.from(value, plain)
  : Object.fromEntries(Object.entries(value).map(([name, each]) => [name, plain(each)]));
const jobs = JSON.parse(fs.readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(jobs.map(([source, states]) => {
  const made = new Function(...Object.keys(numbers), `return ${source}`);
  const compute = made(...Object.values(numbers))(null);
  return states.map(state => {
    const controls = Object.fromEntries(Object.entries(state).map(([name, value]) => [name, number(value)]));
    try { return plain(compute(controls)); }
    catch (error) { return { error: String(error.message ?? error) }; }
  });
})));
"""


def bits(value: float) -> str:
    """A double as the sixteen digits of its bits."""
    return struct.pack(">d", value).hex()


def read(value):
    """What node handed back, as Python's own; a column as an array."""
    if isinstance(value, dict):
        return {name: each if name == "error" else read(each) for name, each in value.items()}
    if isinstance(value, list):
        return np.array([read(each) for each in value], dtype=float)
    return struct.unpack(">d", bytes.fromhex(value.rjust(16, "0")))[0]


def assets(folder: Path) -> Path:
    """A folder with the scripts that compiled code stands on, as a built site has them."""
    for name in ("widget", "widgets", "js"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "widgets" / "shared.js").write_text(module.shared(lessons={}), encoding="utf-8")
    theme = ROOT / "site" / "theme" / "assets"
    for script in (*(theme / "widget").glob("*.js"), *SCRIPTS.values()):
        shutil.copyfile(script, folder / "widget" / script.name)
    for script in (theme / "js").glob("*.js"):
        shutil.copyfile(script, folder / "js" / script.name)
    return folder


def executed(folder: Path, script: str, given):
    """What a script prints as JSON, given something as JSON."""
    node = shutil.which("node")
    if not node:
        pytest.fail("The compiler's tests need node (apt-get install nodejs).", pytrace=False)
    (assets(folder) / "run.mjs").write_text(script, encoding="utf-8")
    done = subprocess.run([node, folder / "run.mjs"], input=json.dumps(given), capture_output=True, text=True)
    assert not done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout)


def run(jobs: list[tuple[str, list[dict]]], folder: Path) -> list[list[dict]]:
    """The answers of each function (its source, as writer.function gives it) in each of its states."""
    sent = [(source, [{k: bits(v) for k, v in state.items()} for state in states]) for source, states in jobs]
    return [[read(answer) for answer in answers] for answers in executed(folder, RUN, sent)]


class Script:
    """Runs an asynchronous function of the page's, as a browser's page does."""

    def __init__(self, folder: Path):
        self.folder = folder

    def evaluate(self, function: str, given):
        """What the function gives; it finds the site's scripts at their addresses."""
        here = function.replace('"/assets/', '"./').replace("`/assets/", "`./")
        script = (
            'import fs from "fs";\n'
            f"const found = await ({here})(new Function('return ' + fs.readFileSync(0, 'utf8'))());\n"
            "process.stdout.write(JSON.stringify(found));\n"
        )
        return executed(self.folder, script, given)
