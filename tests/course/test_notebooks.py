"""The lessons as notebooks: nothing of a page is lost, every link leads somewhere, every cell of every
notebook runs, and answers are judged as on the page."""

import html
import json
import re
from functools import cache
from types import SimpleNamespace

import nbformat
import pytest
from IPython.core.displayhook import DisplayHook
from IPython.core.interactiveshell import InteractiveShell
from jinja2 import Environment, FileSystemLoader
from nbclient import NotebookClient
from panel.viewable import Viewer

from course import lessons, own_page, settings
from course.output.notebooks import reader, snippets, verdict, write
from course.output.notebooks.packed import unpack
from engine import puzzles
from tests.fuzz.cases import anything_typed
from tests.lessons.reading import Lesson

NAMES = [lesson.name for lesson in lessons.numbered()]
IN_JUPYTER = {"text/html", "application/vnd.holoviews_exec.v0+json"}  # the forms in which a figure is sent
JUDGE = """async tried => {
  const { judge } = await import("/assets/js/verdict.js");
  return tried.map(([about, text]) => Object.values(judge(text, about)));
}"""
OFF_BY = """async tried => {
  const { offBy, saidAndTrue } = await import("/assets/widget/guess.js");
  return tried.map(([value, about]) =>
    `${offBy(value, about.truth, about.family)} ${saidAndTrue(value, about)}`);
}"""


@cache
def notebook(site, name):
    return nbformat.read(site / "notebooks" / f"{name}.ipynb", as_version=4)


def cells(site, name, kind):
    return [cell for cell in notebook(site, name).cells if kind in cell.metadata.get("tags", ())]


def text(site, name) -> str:
    """All text that can be read in a notebook without running it."""
    return "\n\n".join(cell.source for cell in notebook(site, name).cells if cell.cell_type == "markdown")


def answers(site, name) -> dict:
    [begin] = cells(site, name, "begin")
    return unpack(re.search(r'read\("""\n(.+?)\n"""\)', begin.source, re.DOTALL)[1])


def article(site, name) -> str:
    page = (site / name / "index.html").read_text(encoding="utf-8")
    return re.search(r"<article.*?</article>", page, re.DOTALL)[0]


# -- what stands in it ---------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_has_what_its_page_has(site, name):
    """Formulas, tables, boxes, numbers, pictures, figures, programs, exercises, predictions and puzzles."""
    page, lesson, words = article(site, name), Lesson(f"{name}.md"), text(site, name)
    nbformat.validate(notebook(site, name))
    assert len({cell.id for cell in notebook(site, name).cells}) == len(notebook(site, name).cells)
    plain = re.sub(
        r'<figure class="widget".*?</figure>|<details class="given".*?</details>', "", page, flags=re.DOTALL
    )
    plain = re.sub(r'<div class="answers".*?</div>', "", plain, flags=re.DOTALL)
    lost = [
        latex
        for latex in re.findall(r'<math alttext="([^"]+)"', plain)
        if " ".join(html.unescape(latex).split()).replace("|", r"\vert ") not in words.replace("|", r"\vert ")
    ]
    assert lost == []
    shown = words.replace("\\", "")
    numbers = {
        html.unescape(n).replace("\xa0", " ")
        for n in re.findall(r'<span class="n" [^>]*>([^<]+)</span>', plain)
    }
    assert [number for number in numbers if number not in shown.replace("\xa0", " ")] == []
    assert len(re.findall(r"^[> ]*\|(?: :?-+:? \|)+$", words, re.MULTILINE)) == plain.count("<table")
    assert words.count("](data:image/svg+xml;base64,") == plain.count('class="wide-form"')
    assert len(cells(site, name, "figure")) == len(lesson.widgets()) == page.count("data-widget=")
    assert len(cells(site, name, "prediction")) == page.count('class="widget-predict"')
    assert len(cells(site, name, "puzzle")) == page.count("data-puzzle=")
    assert words.count("> **Exercise ") == len(lesson.exercises()) == len(answers(site, name)["exercises"])
    programs = (
        len(cells(site, name, "program"))
        + len(re.findall("^[> ]*```", words, re.MULTILINE)) // 2
        - page.count("data-solution")
    )
    assert programs == plain.count('<div class="highlight"')


def test_links_lead_to_notebooks_and_headings_in_them(site):
    headings = {
        name: {
            re.sub(r"\\(.)", r"\1", found).replace(" ", "-")
            for found in re.findall(r"^#{1,3} (.+)$", text(site, name), re.MULTILINE)
        }
        for name in NAMES
    }
    seen = set()
    for name in NAMES:
        prose = re.sub("(?s)```.+?```|`[^\n]+?`", "", text(site, name))
        for where in re.findall(r"\]\(((?!data:)[^)\s]+)\)", prose):
            file, _, heading = where.partition("#")
            if re.match("https?://|mailto:", where):
                continue
            assert file.endswith(".ipynb") or not file, (name, where)
            of = file.removesuffix(".ipynb") or name
            plain = heading.replace("$", "")
            assert not heading or plain in {each.replace("$", "") for each in headings[of]}, (name, where)
            seen.add(of)
    assert seen == set(NAMES)


def test_a_page_links_to_its_notebook_and_where_it_is_public_to_colab_and_binder(site):
    assert all(f'href="../notebooks/{name}.ipynb" download' in article(site, name) for name in NAMES)
    env = Environment(loader=FileSystemLoader(own_page.THEME), autoescape=True)
    env.filters["url"] = lambda address: f"../{address}"
    page = SimpleNamespace(url="03-interconnect/")

    def links(repository):
        config = SimpleNamespace(extra=SimpleNamespace(repository=repository))
        macros = env.get_template("partials/lesson.html").make_module({"config": config})
        return re.findall(r'href="([^"]+)"', str(macros.notebook(page)))

    assert links("") == ["../notebooks/03-interconnect.ipynb"]
    assert links("some/course")[1:] == [
        "https://colab.research.google.com/github/some/course/blob/notebooks/03-interconnect.ipynb",
        "https://mybinder.org/v2/gh/some/course/notebooks?urlpath=lab/tree/03-interconnect.ipynb",
    ]


@pytest.mark.parametrize(
    ("home", "repository", "where"),
    [
        ("http://localhost:5006/", "", "http://localhost:5006/wheel/system_ml_course-"),
        ("http://localhost:5006/", "some/course", "git+https://github.com/some/course"),
        ("https://some.edu/ml/", "some/course", "https://some.edu/ml/wheel/system_ml_course-"),
        ("https://some.edu/ml/", "", "https://some.edu/ml/wheel/system_ml_course-"),
    ],
)
def test_the_first_cell_installs_the_package_from_where_the_course_is(
    site, monkeypatch, home, repository, where
):
    given = {"site_url": home, "extra": {"repository": repository}}
    monkeypatch.setattr(settings, "_all", lambda: given)
    monkeypatch.setattr(lessons, "numbered", lambda: [lessons.read("03-interconnect.md")])
    made = write.files(site)
    listed = made.get("notebooks/requirements.txt", "")
    assert listed.count(f"system-ml-course[widgets] @ {where}") == bool(repository)
    first, install = json.loads(made["notebooks/03-interconnect.ipynb"])["cells"][1:3]
    assert install["metadata"]["tags"] == ["install"]
    assert f'"system-ml-course[widgets] @ {where}' in "".join(install["source"])
    local = "as long as that is open there" in "".join(first["source"])
    assert local == (home.startswith("http://localhost") and not repository)


# -- run -----------------------------------------------------------------------------------------------------
class Shown(DisplayHook):
    """Stores the value of a cell's last line, in the forms that a notebook receives. Only ``to_draw`` figures
    are drawn, because each takes seconds, mostly in Panel, and tests/widgets/kit/test_panel.py draws them
    all."""

    def write_output_prompt(self):
        pass

    def compute_format_data(self, result):
        if not isinstance(result, Viewer):
            return super().compute_format_data(result)
        self.shell.user_ns["to_draw"] -= 1
        if self.shell.user_ns["to_draw"] >= 0:
            return super().compute_format_data(result)
        return {"figure": result}, {}

    def write_format_data(self, format_dict, md_dict=None):
        self.shell.user_ns["shown"] = format_dict

    def finish_displayhook(self):
        pass


@pytest.fixture
def shell(package, monkeypatch):
    """An IPython shell as in a notebook's kernel, in this process."""
    monkeypatch.syspath_prepend(package)
    InteractiveShell.clear_instance()
    yield InteractiveShell.instance(displayhook_class=Shown)
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs_and_every_figure_is_shown(site, name, shell):
    """In one process for all notebooks, since a kernel takes seconds to start. One of them draws a figure."""
    said = {"prediction": "^Type ", "exercise": r"^\*\*.+\*\* Type .+ first\.$", "puzzle": "^Not yet. "}
    shell.user_ns["to_draw"] = int(name == NAMES[0])
    for cell in notebook(site, name).cells:
        if cell.cell_type != "code":
            continue
        shell.user_ns["shown"] = {}
        shell.run_cell(cell.source).raise_error()
        [kind], shown = cell.metadata.tags, shell.user_ns["shown"]
        if kind == "figure":
            drawn = shell.user_ns["to_draw"] == 0
            assert set(shown) >= (IN_JUPYTER if drawn else {"figure"}), cell.source
        elif kind in said:
            assert re.search(said[kind], shown["text/markdown"], re.MULTILINE), cell.source


def test_a_real_kernel_runs_a_notebook_and_hands_over_figures_as_jupyter_wants_them(
    site, package, monkeypatch, tmp_path
):
    monkeypatch.setenv("PYTHONPATH", str(package))
    run = nbformat.from_dict(notebook(site, "03-interconnect"))
    [asked] = [cell for cell in run.cells if cell.source.startswith("exercise(1")]
    label = re.search(r'"(.+?)": ""', asked.source)[1]
    right = answers(site, "03-interconnect")["exercises"]["1"][label]
    asked.source = asked.source.replace(': ""', f': "{right["shown"]}"', 1)
    NotebookClient(run, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    figures = [cell for cell in run.cells if "figure" in cell.metadata.get("tags", ())]
    assert figures
    for figure in figures:
        [shown] = [output.data for output in figure.outputs if "text/html" in output.get("data", {})]
        assert set(shown) >= IN_JUPYTER and "embed_document" in shown["text/html"]
    [said] = [output.data["text/markdown"] for output in asked.outputs]
    assert said.startswith(f"**{right['label']}:** Right: {right['shown']}.")


def test_a_cell_says_what_it_needs_and_an_error_in_it_is_an_error(capsys, shell):
    reader.needs("no_such_library gpu torchrun", "made = 1")
    assert "made" not in shell.user_ns
    assert "Not run. This cell needs no_such_library, which is not installed" in capsys.readouterr().out
    reader.needs("numpy", "made = 2")
    assert shell.user_ns["made"] == 2
    with pytest.raises(ZeroDivisionError):
        reader.needs("numpy", "1 / 0")


# -- programs ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("code", "needs"),
    [
        ("import numpy as np\nx = np.ones(3)", ()),
        ("import torch\ndef f():\n    return other(torch.cuda.Stream())", ("torch",)),
        ("import torch\nx = torch.ones(3, device='cuda')", ("torch", "gpu")),
        ("import torch\nd = 'cuda' if torch.cuda.is_available() else 'cpu'", ("torch",)),
        ("import os\nrank = int(os.environ['RANK'])", ("torchrun",)),
        ("from vllm import LLM\nx = above(LLM)", ("triton", "vllm")),
        ("for step in steps:\n    train(step)", None),
        ("x = 1 +", None),
    ],
)
def test_what_a_program_needs(code, needs):
    known = {"above": ("triton",)}
    found = snippets.as_cell(code, code, known)
    assert found == (None if needs is None else snippets.Snippet(code, needs))
    assert ("x" in known) == (found is not None and "x =" in code)


def test_an_excerpt_of_a_kernel_comes_with_the_imports_of_its_file():
    code = "@triton.jit\ndef kernel(x, n: tl.constexpr):\n    pass"
    found = snippets.as_cell(code, '--8<-- "kernels/vector_add.py:kernel"', {})
    assert found.needs == ("triton",) and "import triton.language as tl" in found.cell


# -- what is said --------------------------------------------------------------------------------------------
@cache
def asked(site):
    """Every number that a notebook asks for."""
    return [
        about
        for name in NAMES
        for exercise in answers(site, name)["exercises"].values()
        for about in exercise.values()
    ]


def test_a_notebook_asks_what_the_page_asks(site):
    pages = sum(article(site, name).count('<form class="answer"') for name in NAMES)
    assert len(asked(site)) == pages > 200
    page = html.unescape(article(site, "05-fsdp-and-zero"))
    assert all(
        f'data-expected="{about["expected"]!r}"' in page
        for about in answers(site, "05-fsdp-and-zero")["exercises"]["1"].values()
    )


def test_an_answer_is_judged_as_on_the_page(site, script):
    """Each field, with what is right, what slips give, and what anybody types."""
    typed = [text for text, *_ in anything_typed(40)] + ["", "3", "1e9", "40 %", "0.5", "-1", "12 TB"]
    factors = (1, 1.02, 1.2, 1.6, 2, 3, 8, 1e3, 1 / 60, 1.024, 20)
    tried = []
    for at, about in enumerate(asked(site)):
        own = [f"{about['expected'] * by / about['scale']:.{3 + at % 9}g}" for by in factors]
        texts = [*own, f"{own[at % len(own)]} {about['unit']}", about["shown"], *typed[at % 7 :: 7]]
        tried += [(about, text) for text in texts]
    found = script.evaluate(JUDGE, tried)
    apart = [
        (about["label"], text, list(here), there)
        for (about, text), there in zip(tried, found, strict=True)
        if list(here := verdict.judge(text, verdict.Asked(**about))) != there
    ]
    assert apart[:3] == [] and len(tried) > 4000
    said = [there[2] for there in found]
    assert sum(there[0] for there in found) > 400 and len(set(said)) > 300


def test_a_guess_is_judged_as_on_the_page(site, script):
    guesses = [
        about["number"]
        for name in NAMES
        for about in answers(site, name)["predictions"].values()
        if "number" in about
    ]
    assert len(guesses) > 10
    tried = [
        (about["truth"] * by, about)
        for about in guesses
        for by in (0.01, 0.5123, 0.8, 0.95, 1, 1.04, 1.5, 2.2, 30)
    ]
    said = script.evaluate(OFF_BY, tried)
    for (value, about), words in zip(tried, said, strict=True):
        typed = f"{value / about['scale']!r}"
        if about["family"] == "percent" and value < about["scale"]:
            continue  # a number alone below 1 % is a share
        assert verdict.guessed(typed, **about).said == words
    assert verdict.guessed("-3", **guesses[0]).said == "It is more than zero."


def test_a_choice_is_told_right_from_wrong(site):
    [begin] = cells(site, "05-fsdp-and-zero", "begin")
    packed = re.search(r'read\("""\n(.+?)\n"""\)', begin.source, re.DOTALL)[1]
    page = reader.read(packed)
    said = {letter: page.predict("zero_stages", letter) for letter in "abcd"}
    assert said["b"].startswith("**Right.** It sends") and page.predict("zero_stages", " B ") == said["b"]
    assert all(said[letter].startswith("**Not quite.** It sends") for letter in "acd")
    with pytest.raises(
        ValueError, match="there is no prediction 'zero' in this notebook; there are fsdp_timeline"
    ):
        page.predict("zero", "b")
    with pytest.raises(ValueError, match="there is no question 'Stage 1'"):
        page.exercise(1, {"Stage 1": "3 GB"})


def test_a_puzzle_is_judged_and_an_error_in_it_is_placed():
    of = puzzles.puzzle("one_f_one_b")
    assert reader.puzzle("one_f_one_b", of.SOLUTION).startswith("**Right.**")
    broken = of.SOLUTION.split("\n", 1)[0] + "\n    return 1 / 0\n"
    said = reader.puzzle("one_f_one_b", broken)
    assert said.startswith("Not yet. Line 3 of the cell: ZeroDivisionError")  # below the line with %%puzzle
