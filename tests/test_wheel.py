"""The wheel, installed in environments of its own: it brings one name, plans and validates with numpy alone,
says what a part needs, and with its extras shows every figure and serves the course.

The environments need no network: what the wheel requires is linked into them from the tests' own.
WHEEL=… tests a wheel that was made elsewhere, as the workflow does on each system and Python. Use
--noconftest with it, because tests/conftest.py needs packages that are installed only for development.
"""

import json
import os
import re
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from email import message_from_bytes
from importlib import metadata
from pathlib import Path
from typing import NamedTuple
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import engine
from engine.base import extras

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ELSEWHERE = "WHEEL" in os.environ
WAYS = [("with_widgets", []), ("bare", [])]  # tests/browser/test_deploy.py tries the other way in the clone
WAYS += [("with_widgets", ["--static"])] if ELSEWHERE else []
SERVED = {  # address -> words that are found there
    "": "System ML",
    "01-why-distributed/": "Why distributed at all?",
    "memory_stack/": 'data-widget="memory_stack"',
    "assets/widgets/memory_stack.js": "export",
}
NAME = PROJECT["name"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
WINDOWS = sys.platform == "win32"
OURS = (
    "engine",
    "widgets",
    "course",
)  # the names in the repository, which are other people's packages elsewhere


@pytest.fixture(scope="module")
def wheel(request, tmp_path_factory) -> Path:
    """The wheel of this tree with the built course in it, or the one that the environment names."""
    if ELSEWHERE:
        return Path(os.environ["WHEEL"]).resolve()
    request.getfixturevalue("site")
    return made(ROOT, tmp_path_factory.mktemp("wheel"))


def made(tree: Path, folder: Path) -> Path:
    command = [*PIP, "wheel", str(tree), "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run(command, check=True, stderr=subprocess.PIPE)
    [wheel] = folder.glob("*.whl")
    return wheel


# -- environments --------------------------------------------------------------------------------------------
def required(*extras: str) -> set[str]:
    """The distributions that the wheel requires with these extras, and all that those require in turn."""
    ahead = [(Requirement(f"{PROJECT['name']}[{','.join(extras)}]"), "")]
    found, seen = set(), set()
    while ahead:
        requirement, asked = ahead.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": asked}):
            continue
        name = canonicalize_name(requirement.name)
        for extra in ("", *requirement.extras):
            if (name, extra) not in seen:
                seen.add((name, extra))
                ahead += [(each, extra) for each in requirements_of(name)]
        found.add(name)
    return found - {PROJECT["name"]}


def requirements_of(name: str) -> list[Requirement]:
    """What a distribution declares, with extras as markers; what we declare is read from pyproject.toml."""
    if name != PROJECT["name"]:
        return [Requirement(line) for line in metadata.requires(name) or []]
    optional = PROJECT["optional-dependencies"]
    ours = [Requirement(line) for line in PROJECT["dependencies"]]
    for extra, lines in optional.items():
        ours += [Requirement(f"{line.partition(';')[0]}; extra == '{extra}'") for line in lines]
    return ours


def link(name: str, into: Path) -> None:
    """Make an installed distribution importable from another folder, too."""
    found = metadata.distribution(name)
    for entry in {Path(str(file)).parts[0] for file in found.files or []} - {"..", "__pycache__"}:
        source, target = Path(str(found.locate_file(entry))).resolve(), into / entry
        if target.exists() or not source.exists():
            continue
        if not WINDOWS:
            target.symlink_to(source)
        elif source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy(source, target)


class Environment(NamedTuple):
    """An environment in which the wheel is installed."""

    folder: Path
    packages: Path  # where its modules are
    python: str

    def arguments(self, folder: Path) -> dict:
        """The arguments for subprocess that run a command in a folder outside of this tree."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables = environment | {"PYTHONDONTWRITEBYTECODE": "1"}
        return {"cwd": folder, "env": variables, "text": True, "encoding": "utf-8"}

    def run(self, folder: Path, *command: str) -> subprocess.CompletedProcess:
        return subprocess.run(command, capture_output=True, **self.arguments(folder))

    def said(self, folder: Path, *command: str) -> str:
        """What a command prints."""
        done = self.run(folder, *command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def computed(self, folder: Path, code: str) -> str:
        """What a program prints."""
        return self.said(folder, self.python, "-c", code).strip()

    @property
    def system_ml(self) -> str:
        """The command as pip has put it there."""
        names = ("system-ml", "system-ml.exe")
        [script] = [file for file in self.folder.glob("*/system-ml*") if file.name in names]
        return str(script)


def environment(folder: Path, wheel: Path | None, *extras: str) -> Environment:
    """A new environment with the wheel, or without one, and what these extras require, and nothing else."""
    venv.create(folder, with_pip=False)
    base = {"base": str(folder), "platbase": str(folder)}
    packages = Path(sysconfig.get_path("purelib", "venv", base))
    python = Path(sysconfig.get_path("scripts", "venv", base), "python.exe" if WINDOWS else "python")
    for name in required(*extras):
        link(name, packages)
    if wheel:
        asked = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
        command = [*PIP, "--python", str(python), "install", "--no-index", "--no-compile", asked]
        subprocess.run(command, check=True, stderr=subprocess.PIPE)
    return Environment(folder, packages, str(python))


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory) -> Environment:
    return environment(tmp_path_factory.mktemp("bare"), wheel)


@pytest.fixture(scope="module")
def with_widgets(wheel, tmp_path_factory) -> Environment:
    return environment(tmp_path_factory.mktemp("widgets"), wheel, "widgets")


@pytest.fixture(scope="module")
def with_all(wheel, tmp_path_factory) -> Environment:
    return environment(tmp_path_factory.mktemp("all"), wheel, "all")


# -- with numpy alone ----------------------------------------------------------------------------------------
def test_it_brings_one_name(wheel, bare, tmp_path):
    version = PROJECT["version"]
    about = f"system_ml_course-{version}.dist-info"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"system_ml", about}
    assert "system_ml/py.typed" in names
    record = (bare.packages / about / "RECORD").read_text(encoding="utf-8").splitlines()
    installed = {line.split("/")[0] for line in record if not line.startswith("..")}
    assert installed == {"system_ml", about}
    found = f"import importlib.util as of; print([name for name in {OURS} if of.find_spec(name)])"
    assert bare.computed(tmp_path, found) == "[]"


def test_it_needs_numpy_and_what_completes_words_in_a_shell(bare, tmp_path):
    assert required() == {"numpy", "argcomplete"}
    there = "from importlib import metadata; print(*sorted(each.name for each in metadata.distributions()))"
    assert bare.computed(tmp_path, there) == f"argcomplete numpy {NAME}"


ESTIMATE = """
job = {package}.Job(global_batch=512, seq=8192)
found = {package}.estimate("llama3-8b", "h100-sxm", job, {package}.Layout(gpus=64, tp=2))
"""


def test_it_is_what_the_repository_s_engine_is(bare, tmp_path):
    code = f"import system_ml\n{ESTIMATE.format(package='system_ml')}\nprint(found)"
    known = {"engine": engine}
    exec(ESTIMATE.format(package="engine"), known)
    assert bare.computed(tmp_path, code) == str(known["found"])
    for each in (engine.__all__, engine.__version__):
        code = "import system_ml; print(system_ml.__all__, [system_ml.__version__], dir(system_ml))"
        assert repr(each) in bare.computed(tmp_path, code)


def test_what_a_part_needs_is_said(bare, tmp_path):
    for module, extra in {
        "widgets": "widgets",
        "widgets.foundations.roofline": "widgets",
        "course.build": "build",
        "course.fences.widget": "build",
    }.items():
        done = bare.run(tmp_path, bare.python, "-c", f"import system_ml.{module}")
        error = done.stderr.strip().splitlines()[-1]
        assert "Missing: this part of System ML needs panel, bokeh, param" in error, done.stderr
        assert error.endswith(f': pip install "{NAME}[{extra}]"')
    done = bare.run(tmp_path, bare.system_ml, "serve", "--watch")
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert done.stderr.endswith(f'pip install "{NAME}[widgets]"\n')


ASKED = "estimate --model llama3-8b --gpu h100-sxm --gpus 64 --global-batch 512 --seq 8192 --tp 2 --json"
PLAN = "plan --model llama3-8b --gpu h100-sxm --gpus 64 --global-batch 512 --seq 8192 --json"


def test_it_says_what_it_is_and_under_which_licences(wheel):
    with zipfile.ZipFile(wheel) as packed:
        [name] = [each for each in packed.namelist() if each.endswith(".dist-info/METADATA")]
        said = message_from_bytes(packed.read(name))
        licences = {Path(each).name for each in packed.namelist() if ".dist-info/licenses/" in each}
    assert said["License-Expression"] == "BSD-3-Clause AND CC-BY-4.0 AND OFL-1.1"
    assert licences == {"LICENSE", "LICENSE-CONTENT", "OFL.txt"}
    assert said["Author"] and said["Keywords"] and "Typing :: Typed" in said.get_all("Classifier")
    assert said.get_all("Project-URL", []) == [] or "REPOSITORY" in os.environ or "SITE_URL" in os.environ


def test_it_names_the_repository_that_the_build_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("REPOSITORY", "someone/course")
    monkeypatch.syspath_prepend(str(ROOT))
    hook = runpy.run_path(str(ROOT / "hatch_build.py"))["Addresses"](str(ROOT), {})
    metadata: dict = {}
    hook.update(metadata)
    assert metadata["urls"]["Repository"] == "https://github.com/someone/course"


def test_its_command_has_the_version_of_the_project(wheel, bare, tmp_path):
    version = PROJECT["version"]
    assert wheel.name.startswith(f"system_ml_course-{version}-")
    assert bare.said(tmp_path, bare.system_ml, "--version") == f"system-ml {version}\n"


@pytest.mark.parametrize("words", [ASKED, PLAN, "validate --json"], ids=lambda words: words.split()[0])
def test_its_command_answers_by_each_of_its_names(bare, tmp_path, words):
    said = json.loads(bare.said(tmp_path, bare.system_ml, *words.split()))
    again = json.loads(bare.said(tmp_path, bare.python, "-m", "system_ml", *words.split()))
    for each in (said, again) if words == PLAN else ():
        assert each.pop("search_s") > 0 and each.pop("layouts_per_s") > 0
    assert said and said == again


@pytest.mark.skipif(ELSEWHERE, reason="asks pyright, which is installed only for development")
def test_a_type_checker_reads_its_annotations(bare, tmp_path):
    (tmp_path / "asks.py").write_text(
        f"import system_ml\n{ESTIMATE.format(package='system_ml')}\nreveal_type(found.step_s)\nfound.step_x\n"
    )
    pyright = [sys.executable, "-m", "pyright", "--pythonpath", bare.python, "--outputjson", "asks.py"]
    found = json.loads(bare.run(tmp_path, *pyright).stdout)["generalDiagnostics"]
    said = [each["message"] for each in found]
    assert said[0] == 'Type of "found.step_s" is "float"'
    assert "step_x" in said[1] and "Estimate" in said[1] and len(said) == 2


@pytest.mark.skipif(
    ELSEWHERE, reason="asks a site that is served, for which the tests' own conftest is needed"
)
def test_a_notebook_s_first_cell_installs_it_from_the_site(request, tmp_path):
    """Taken from a notebook as it is built, but for the address at which this site is served."""
    site, address = request.getfixturevalue("site"), request.getfixturevalue("static")
    notebook = json.loads((site / "notebooks" / "03-interconnect.ipynb").read_text(encoding="utf-8"))
    [cell] = [each for each in notebook["cells"] if each["metadata"].get("tags") == ["install"]]
    [asked] = re.findall(r'%pip install -q "(.+?)"', "".join(cell["source"]))
    name, _, where = asked.partition(" @ ")
    packed = where[where.index("wheel/") :]
    assert name == f"{NAME}[widgets]" and [path.name for path in (site / "wheel").iterdir()] == [packed[6:]]
    there = environment(tmp_path / "fresh", None, "widgets")
    command = [*PIP, "--python", there.python, "install", "--no-index", f"{name} @ {address}{packed}"]
    subprocess.run(command, check=True, stderr=subprocess.PIPE)
    assert there.computed(tmp_path, COMPONENT).startswith("At batch 64, decode reaches")


# -- with its extras -----------------------------------------------------------------------------------------
COMPONENT = """
from system_ml.widgets.foundations.roofline import Roofline
figure = Roofline(batch=64)
print(figure.live.headline)
"""


def test_a_figure_is_a_component(with_widgets, tmp_path):
    assert with_widgets.computed(tmp_path, COMPONENT).startswith("At batch 64, decode reaches")


EVERY_WIDGET = """
import system_ml
from system_ml.course import widget_html
from system_ml.widgets.kit.page import module
from system_ml.widgets.kit.widget import all_widgets

html = widget_html.figure(all_widgets()["memory_stack"](), "w-memory_stack")
print(len(all_widgets()), "<figure" in html, system_ml.__file__)
print(module.module(all_widgets()["memory_stack"]))
"""


def test_every_widget_can_be_imported_and_shown(with_all, tmp_path):
    said, _, script = with_all.computed(tmp_path, EVERY_WIDGET).partition("\n")
    count, shown, where = said.split(" ", 2)
    modules = [file for file in (ROOT / "widgets").glob("[a-z]*/[a-z]*.py") if file.parent.name != "kit"]
    assert (int(count), shown) == (len(modules), "True") and Path(where).is_relative_to(with_all.packages)
    published = with_all.packages / "system_ml/course/packed/static/assets/widgets/memory_stack.js"
    assert script.strip() == published.read_text(encoding="utf-8").strip()


EVERY_MODULE = """
import importlib, pkgutil, sys
import system_ml

for part in ("engine", "widgets", "course"):
    package = importlib.import_module(f"system_ml.{part}")
    for one in pkgutil.walk_packages(package.__path__, f"system_ml.{part}."):
        try:
            importlib.import_module(one.name)
        except ModuleNotFoundError as missing:
            print(missing.name)
"""
# in no extra for readers: for making pictures and books, for watching sources, and what notebooks have
FOR_DEVELOPERS = {"playwright", "pypdf", "watchfiles", "IPython"}


def test_every_module_finds_what_it_imports(with_all, tmp_path):
    missing = {name.partition(".")[0] for name in with_all.computed(tmp_path, EVERY_MODULE).splitlines()}
    assert missing <= FOR_DEVELOPERS


def test_an_example_in_a_page_asks_for_our_package_and_no_stranger_s(with_widgets, tmp_path):
    """Panel reads a script's imports, and the page then installs packages of these names from the index."""
    examples = sorted((with_widgets.packages / "system_ml" / "examples").glob("*.py"))
    assert {path.name for path in examples} == {path.name for path in (ROOT / "examples").glob("*.py")}
    for example in examples:
        imported = re.findall(r"^(?:from|import) (\w+)", example.read_text(encoding="utf-8"), re.MULTILINE)
        assert {"system_ml"} <= set(imported) <= {"panel", "system_ml", *sys.stdlib_module_names}
    one = examples[-1]
    command = [with_widgets.python, "-m", "panel", "convert", str(one), "--to", "pyodide-worker"]
    with_widgets.said(tmp_path, *command, "--out", str(tmp_path))
    worker = (tmp_path / one.with_suffix(".js").name).read_text(encoding="utf-8")
    [listed] = re.findall(r"micropip\.install\(\[(.+?)\]\)", worker)
    assert "'system_ml'" in listed and not any(f"'{name}'" in listed for name in OURS), listed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize(("which", "flags"), WAYS, ids=str)
def test_its_command_serves_the_course_and_says_that_a_port_is_in_use(request, tmp_path, which, flags):
    """With numpy alone it hands out the files, and says what would put Python behind the figures."""
    installed = request.getfixturevalue(which)
    is_live = which == "with_widgets" and not flags
    command = [installed.system_ml, "serve", "--port", str(free_port()), *flags]
    apart = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP} if WINDOWS else {}
    where, pipe = installed.arguments(tmp_path), subprocess.PIPE
    server = subprocess.Popen(command, stdout=pipe, stderr=pipe, **where, **apart)
    try:
        if which == "bare":
            assert f'pip install "{NAME}[widgets]"' in server.stdout.readline()
        opened = re.search(r"is open on (http://localhost:\d+/)", server.stdout.readline())
        assert opened, server.stderr.read()
        for path, words in SERVED.items():
            with urlopen(opened[1] + path, timeout=30) as got:
                assert words in got.read().decode("utf-8")
                kind = got.headers["Content-Type"]
                assert kind.startswith("text/javascript" if path.endswith(".js") else "text/html")
        with pytest.raises(HTTPError) as missing:
            urlopen(f"{opened[1]}nowhere/", timeout=30)
        assert missing.value.code == 404 and "System ML" in missing.value.read().decode("utf-8")
        if is_live:
            with urlopen(f"{opened[1]}live/health", timeout=30) as got:
                assert got.read() == b"well"
        again = subprocess.run(command, capture_output=True, timeout=60, **where)
        assert again.returncode == 2 and again.stdout == "" and again.stderr.count("\n") == 1
        assert "is in use" in again.stderr
    finally:
        server.send_signal(signal.CTRL_BREAK_EVENT if WINDOWS else signal.SIGTERM)
        _, fault = server.communicate(timeout=30)
    assert server.returncode == 0 and "Traceback" not in fault
    assert list(tmp_path.iterdir()) == []


# -- what it is made of --------------------------------------------------------------------------------------
@pytest.mark.skipif(
    ELSEWHERE, reason="makes a wheel, for which only the tests' own installation has what it takes"
)
def test_without_a_build_the_wheel_has_the_rest_and_says_so(tmp_path):
    """Somebody who installs a fresh clone gets such a wheel."""
    tree, target = tmp_path / "tree", tmp_path / "target"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "hatch_build.py"):
        shutil.copy(ROOT / name, tree)
    for name in OURS:
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    with zipfile.ZipFile(made(tree, tmp_path)) as packed:
        assert not any("course/packed" in name for name in packed.namelist())
        packed.extractall(target)
    serve = [sys.executable, "-m", "system_ml", "serve"]
    where = {"cwd": tmp_path, "env": os.environ | {"PYTHONPATH": str(target)}}
    done = subprocess.run(serve, capture_output=True, text=True, **where)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.count("\n") == 1
    assert "does not have the built course" in done.stderr


@pytest.mark.skipif(
    ELSEWHERE, reason="makes a wheel, for which only the tests' own installation has what it takes"
)
def test_what_cannot_be_renamed_stops_the_wheel_with_file_and_line(tmp_path):
    for name in ("pyproject.toml", "README.md", "hatch_build.py"):
        shutil.copy(ROOT / name, tmp_path)
    for name in OURS:
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "engine/base/strange.py").write_text('"""Imports."""\n\nimport engine.base.units\n')
    with pytest.raises(subprocess.CalledProcessError) as stopped:
        made(tmp_path, tmp_path)
    assert b"engine/base/strange.py:3: write `from " in stopped.value.stderr


def test_an_editable_installation_has_the_clone_s_own_names(tmp_path):
    """As `make` makes it: ``import engine`` is the folder of the clone."""
    names = ("system-ml", NAME)
    found = {each.value for each in metadata.entry_points(group="console_scripts") if each.name in names}
    assert ELSEWHERE or found == {"course.command:main"}
    assert Path(engine.__file__).parent == ROOT / "engine"


@pytest.mark.parametrize("extra", extras.NEEDED)
def test_an_extra_is_asked_for_by_what_its_libraries_bring(extra):
    brings = metadata.packages_distributions()
    there = {canonicalize_name(name) for module in extras.NEEDED[extra] for name in brings.get(module, ())}
    declared = {canonicalize_name(Requirement(line).name) for line in PROJECT["optional-dependencies"][extra]}
    assert declared - {PROJECT["name"]} <= there <= required(extra)


def test_what_is_pinned_lies_within_what_is_declared():
    """The versions used for building and testing are among the allowed ones; `make floors` tries the oldest
    of these."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.lower().split("==") for line in lines if "==" in line)
    extras = [line for name, extra in PROJECT["optional-dependencies"].items() for line in extra]
    declared = [Requirement(line) for line in [*PROJECT["dependencies"], *extras]]
    apart = [line for name in ("bench", "frameworks") for line in PROJECT["optional-dependencies"][name]]
    unpinned = {Requirement(line).name for line in apart}  # other people's programs, installed beside ours
    for one in declared:
        if one.name not in unpinned | {PROJECT["name"]}:
            version = pinned[one.name.lower()]
            assert one.specifier.contains(version), f"{one} does not allow the pinned {version}"
            assert {clause.operator for clause in one.specifier} & {">=", "=="}, f"{one} has no floor"
