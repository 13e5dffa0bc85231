"""What the course is built from is named so that nobody can put something else in its place."""

from __future__ import annotations

import hashlib
import json
import re

import yaml

from course.output import sbom
from tests.conftest import ROOT

FLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_every_action_is_named_by_its_commit():
    for path in (*FLOWS, ROOT / "deploy" / "check" / "action.yml"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if (used := re.search(r"uses: (\S+)", line)) and not used[1].startswith("./"):
                assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", used[1]), (path.name, line)
                assert re.search(r"# v\d+\.\d+\.\d+$", line), (path.name, line)


def test_every_image_is_named_by_its_digest():
    texts = [path.read_text(encoding="utf-8") for path in (*FLOWS, ROOT / "deploy" / "Containerfile")]
    images = re.findall(r"^(?:FROM|\s+container:) (\S+)", "\n".join(texts), re.MULTILINE)
    assert len(images) >= 4 and all(re.search(r"@sha256:[0-9a-f]{64}$", image) for image in images), images


def test_the_container_installs_what_constraints_say_with_digests():
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    locked = sbom.components(sbom.LOCKED.read_text(encoding="utf-8"))
    named = {each["name"]: each for each in locked}
    assert {"numpy", "bokeh", "panel", "mkdocs", "brython", "hatchling"} <= set(named)
    for name, each in named.items():
        assert each["hashes"] and all(len(digest["content"]) == 64 for digest in each["hashes"]), name
        assert pinned.get(name, each["version"]) == each["version"], name


def test_a_wheel_is_listed_with_its_parts(tmp_path):
    wheel = tmp_path / "system_ml-1.2.3-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")
    sbom.main(str(tmp_path))
    [path] = tmp_path.glob("*.cdx.json")
    made = json.loads(path.read_text(encoding="utf-8"))
    own = made["metadata"]["component"]
    assert (made["bomFormat"], own["name"], own["version"]) == ("CycloneDX", "system-ml", "1.2.3")
    assert own["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(b"a wheel").hexdigest()}]
    assert {each["purl"] for each in made["components"]} == set(made["dependencies"][0]["dependsOn"])


def test_what_is_pinned_is_looked_after():
    looked = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    assert {each["package-ecosystem"] for each in looked} == {"pip", "github-actions", "docker"}
    weekly = yaml.safe_load((ROOT / ".github" / "workflows" / "every.yml").read_text(encoding="utf-8"))
    assert "make audit" in [step.get("run") for step in weekly["jobs"]["audit"]["steps"]]
    assert weekly[True]["schedule"]  # YAML reads "on" as true


PROMISE = re.compile(r"\(`(tests/[\w/]+\.py)(?:::(\w+))?`\)")


def test_each_promise_of_security_names_a_test_that_is_there():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    named = PROMISE.findall(text)
    assert len(named) > 8
    for path, test in named:
        source = (ROOT / path).read_text(encoding="utf-8")
        assert not test or f"def {test}(" in source, (path, test)
    promised = text[text.index("## What is promised") : text.index("## Which versions")]
    for line in re.findall(r"^- .*(?:\n  .*)*", promised, re.MULTILINE):
        assert PROMISE.search(line), f"no test holds this: {line}"
