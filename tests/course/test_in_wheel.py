"""Names of modules in the wheel: what is rewritten, what is refused, and where."""

import ast

import pytest

from course import in_wheel

DOCSTRING = '''"""Run ``python -m engine plan``, which is ``engine.plan``; or in Python::

    import engine
    from engine import catalog

``engine.base.units`` is a module, an ``engine.Job`` a class."""'''
IN_THE_WHEEL = '''"""Run ``python -m system_ml plan``, which is ``system_ml.plan``; or in Python::

    import system_ml
    from system_ml.engine import catalog

``system_ml.engine.base.units`` is a module, a ``system_ml.Job`` a class."""'''


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import engine", "from system_ml import engine"),
        ("import engine, widgets", "from system_ml import engine, widgets"),
        ("import engine.base.units as u", "import system_ml.engine.base.units as u"),
        (
            "from engine.a import (\n    b,  # é\n    c,\n)",
            "from system_ml.engine.a import (\n    b,  # é\n    c,\n)",
        ),
        ("from widgets.kit.widget import Widget", "from system_ml.widgets.kit.widget import Widget"),
        ("if x:\n    y = 'é'; import engine", "if x:\n    y = 'é'; from system_ml import engine"),
        (DOCSTRING, IN_THE_WHEEL),
        ('x = ["-m", "engine.one_gpu.measure"]', 'x = ["-m", "system_ml.engine.one_gpu.measure"]'),
        ('x = "engine.launch.", "course."', 'x = "system_ml.engine.launch.", "system_ml.course."'),
        (
            'f"course.fences.{kind}"; f"engine.{x}"',
            'f"system_ml.course.fences.{kind}"; f"system_ml.engine.{x}"',
        ),
        ('import_module("engine")', 'import_module("system_ml.engine")'),
        ('find_spec("widgets.kit")', 'find_spec("system_ml.widgets.kit")'),
    ],
)
def test_a_module_is_rewritten(before, after):
    assert in_wheel.of_module(before) == after
    assert in_wheel.of_module(after) == after, "what is rewritten stays as it is"


@pytest.mark.parametrize(
    "code",
    [
        "import panel, engineering\nimport coursework",
        'ROOT / "engine" / "catalog", "engine/catalog/gpus.toml"',
        '"when initializing the engine. See course.css, /engine.plan, my.engine.plan"',
    ],
)
def test_what_only_looks_like_a_module_stays(code):
    assert in_wheel.of_module(code) == code


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import engine\nprint(engine.plan(1))", "import system_ml\nprint(system_ml.plan(1))"),
        ("from engine import Job, plan", "from system_ml import Job, plan"),
        ("from engine import catalog, plan", "from system_ml.engine import catalog, plan"),
        ("import engine as e\ne.plan", "import system_ml.engine as e\ne.plan"),
        ("engine = motor()\nengine.plan()", "engine = motor()\nengine.plan()"),
    ],
)
def test_in_a_program_the_package_stands_for_the_engine(before, after):
    assert in_wheel.of_program(before) == after


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("\nimport engine.base.units", "2: write `from … import …` instead of `import engine.base.units`"),
        ("import os, engine", "1: write `from"),
        ("\n\nfrom tests import cases", "3: the wheel has no tests"),
        ('\nx = "see\\nengine.plan"', "2: this string names a module"),
        ('\nx = ("python -m "\n     "engine")', "2: this string names a module"),
        ('\nx = f"engine.plan {engine.plan}"', "2: compute what stands in the string's braces"),
    ],
)
def test_what_cannot_be_rewritten_is_refused_with_its_line(code, words):
    ast.parse(code)
    with pytest.raises(in_wheel.Refused) as said:
        in_wheel.of_module(code)
    assert str(said.value).startswith(words)


@pytest.mark.parametrize("code", ["import engine\nengine.executed", "import engine\nprint(engine)"])
def test_a_program_uses_public_names(code):
    with pytest.raises(in_wheel.Refused, match="2: import by its own name"):
        in_wheel.of_program(code)


@pytest.fixture
def tree(tmp_path):
    """A repository with an empty engine, empty widgets and an empty course."""
    for part in in_wheel.PARTS:
        (tmp_path / part).mkdir()
        (tmp_path / part / "__init__.py").touch()
    return tmp_path


def test_the_package_holds_code_data_and_texts_by_their_new_names(tree):
    written = {
        "engine/gpus.toml": 'name = "the engine"',
        "widgets/README.md": "For whoever has the sources.",
        "widgets/GRAMMAR.md": "See `engine.base.program`.",
        "course/page.py": "import mkdocs",
    }
    for name, text in written.items():
        (tree / name).write_text(text)
    (tree / "widgets/picture.png").write_bytes(b"\x89PNG\xff")
    made = dict(in_wheel.files(tree))
    assert set(made) == {
        *(
            "__init__.py",
            "__main__.py",
            "py.typed",
            "engine/__init__.py",
            "engine/gpus.toml",
            "widgets/__init__.py",
        ),
        *("widgets/GRAMMAR.md", "widgets/picture.png", "course/__init__.py", "course/page.py"),
    }
    assert (
        made["engine/gpus.toml"] == b'name = "the engine"' and made["widgets/picture.png"] == b"\x89PNG\xff"
    )
    assert made["widgets/GRAMMAR.md"] == b"See `system_ml.engine.base.program`."
    assert made["course/page.py"].endswith(b'_extras.need("build"); import mkdocs')


def test_data_that_names_a_module_is_refused_with_file_and_line(tree):
    (tree / "widgets" / "readers.toml").write_text('name = "a"\nreader = "engine.base.units"\n')
    with pytest.raises(in_wheel.Refused, match=r"^widgets/readers\.toml:2: data names a module"):
        list(in_wheel.files(tree))


def test_what_an_extra_brings_is_asked_for_before_its_first_import_on_the_same_line():
    code = '"""Makes a page."""\n\nimport re\n\nfrom jinja2 import Template\nimport mkdocs'
    made = in_wheel.of_module(code, extra="build").splitlines()
    assert made[4].endswith('extras.need("build"); from jinja2 import Template')
    assert [*made[:4], made[5]] == [*code.splitlines()[:4], "import mkdocs"]
    assert in_wheel.of_module("import re", extra="build") == "import re"
