"""The course as it is put in front of readers: behind nginx with several processes, with headers, limits and
closed doors."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import pytest
import yaml
from tornado.httpclient import HTTPClientError

from bench import servers
from bench.reader import Lost, Reader
from tests import machine, states
from tests.browser.hands import Hand, lessons
from tests.browser.server import Server, run
from tests.conftest import ROOT
from widgets.kit.page import headers
from widgets.kit.server.answer_cache import packed
from widgets.kit.widget import all_widgets

LESSON = next(iter(lessons()))
DEPLOY = ROOT / "deploy"
COMMAND = "panel serve site/live.py --plugins widgets.kit.server.plugin"


@pytest.fixture(scope="module")
def cluster(site):
    """nginx with the shipped configuration before two processes: (address, processes)."""
    machine.nginx()
    with servers.behind_nginx(2) as found:
        yield found


@pytest.fixture(params=["served", "nginx"])
def host(request):
    """The address of each of the two ways to serve."""
    return (
        request.getfixturevalue("cluster")[0]
        if request.param == "nginx"
        else request.getfixturevalue("served")
    )


# -- readers -------------------------------------------------------------------------------------------------
def sockets(process) -> int:
    """How many sockets a process holds."""
    folder = Path(f"/proc/{process.pid}/fd")
    return sum(os.readlink(entry).startswith("socket:") for entry in folder.iterdir())


async def drag(address: str, number: int, moves: int) -> Reader:
    """A reader who moves one widget through some states and finds in each answer what Python says."""
    slug, cls = list(all_widgets().items())[number % len(all_widgets())]
    reader = Reader(f"reader{number}")
    await reader.open(address)
    for state in states.some(states.around(cls), moves):
        widget = cls()
        widget.set_raw(state)
        assert (await reader.ask(slug, state))["text"] == packed(widget.shown()).text, slug
        await asyncio.sleep(0.2)
    return reader


@pytest.mark.skipif(sys.platform != "linux", reason="counts sockets in /proc")
def test_readers_behind_nginx_are_spread_and_stay_where_they_are(cluster):
    address, processes = cluster

    async def meet():
        before = [sockets(process) for process in processes]
        readers = await asyncio.gather(*(drag(address, number, 5) for number in range(20)))
        taken = [sockets(process) - held for process, held in zip(processes, before)]
        assert sum(taken) >= 20 and min(taken) >= 3, taken
        held = [sockets(process) for process in processes]
        again = [Reader("the same page") for _ in range(6)]
        for reader in again:
            await reader.open(address)
        new = [sockets(process) - one for process, one in zip(processes, held)]
        assert max(new) >= 6 > min(new) and min(new) <= 1, (
            f"one page's sockets went to several processes: {new}"
        )
        for reader in (*readers, *again):
            reader.close()

    run(meet())


def test_only_the_own_pages_may_open_a_socket(host):
    async def meet():
        for origin in ("https://elsewhere.example", "null", host.rstrip("/") + ".elsewhere.example"):
            with pytest.raises(HTTPClientError, match="403"):
                await Reader("stranger").open(host, origin)
        friend = Reader("friend")
        await friend.open(host)
        friend.close()

    run(meet())


def test_a_full_process_says_so():
    async def meet(address):
        readers = [Reader(f"{number}") for number in range(2)]
        for reader in readers:
            await reader.open(address)
        with pytest.raises(HTTPClientError, match="503"):
            await Reader("one too many").open(address)
        readers[0].close()
        for _ in range(50):
            try:
                await readers[0].open(address)
                break
            except HTTPClientError:
                await asyncio.sleep(0.1)
        slug, cls = next(iter(all_widgets().items()))
        assert "text" in await readers[0].ask(slug, states.default(cls))
        with pytest.raises(Lost):  # a question of a megabyte
            await readers[1].ask("x" * 2**20, {})

    with servers.running(*servers.SERVE, env={"COURSE_PAGES": "2"}) as (address, _):
        run(meet(address))


# -- closed doors --------------------------------------------------------------------------------------------
SECRETS = ("hatchling", "site_name:", "root:x:", "def main", "Index of", "Directory listing")
TARGETS = [
    "/../pyproject.toml",
    "/../../../../etc/passwd",
    "/%2e%2e/pyproject.toml",
    "/%2e%2e%2f%2e%2e%2fpyproject.toml",
    "/..%2f..%2fpyproject.toml",
    "/..%5c..%5cpyproject.toml",
    "/assets/../../../pyproject.toml",
    "//etc/passwd",
    "/%2fetc%2fpasswd",
    "/%252e%252e/pyproject.toml",
    "/.%00./pyproject.toml",
    "/index.html%00.js",
    "/assets/",
    "/assets/widget/",
    "/.git/config",
    "http://elsewhere.example/",
    "http://elsewhere.example/../../pyproject.toml",
    "/" + "a" * 7000,
    "/" + "a/" * 3000,
    "/" + "%2e%2e/" * 500 + "etc/passwd",
    "/live",
    "/live/",
    "/live/autoload.js",
    "/live/metadata",
    "/static/js/bokeh.js",
    "/_headers",
    "/\u00e9\u00e8",
    "/<script>alert(1)</script>",
    "/%3Cscript%3Ealert(1)%3C/script%3E",
    "*",
    "",
    "/ HTTP/1.1 extra",
]


def raw(address: str, target: str) -> tuple[int, str]:
    """Status and text of the answer to a request line that no well-meaning client would send."""
    host, port = re.match(r"http://([\w.]+):(\d+)/", address).groups()
    with socket.create_connection((host, int(port)), timeout=10) as line:
        line.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        parts = []
        while part := line.recv(65536):
            parts.append(part)
    answer = b"".join(parts).decode(errors="replace")
    return int(answer.split()[1]) if answer else 400, answer


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[:40] or "empty")
def test_nothing_but_the_site_is_given_out(host, target):
    status, answer = raw(host, target)
    assert status in (200, 400, 403, 404, 414) and not any(secret in answer for secret in SECRETS)
    assert status != 200 or "elsewhere" in target, "only an address with another host's name may lead home"
    assert "<script>alert" not in answer


# -- headers -------------------------------------------------------------------------------------------------
PAGES = [
    "",
    f"{LESSON}/",
    "memory_stack/",
    "planner/",
    "assets/js/course.js",
    "assets/widget/view.js",
    "assets/fonts/course-serif.woff2",
    headers.FRAME,
    "assets/widgets/memory_stack.js?v=1",
    "search/search_index.json",
    "no-such-page/",
]


def given(address: str, path: str) -> dict[str, str]:
    done = subprocess.run(
        ["curl", "-s", "-D", "-", "-o", "/dev/null", address + path],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line]
    assert len({name.lower() for name, _ in lines}) == len(lines), f"said twice: {lines}"
    return {name.lower(): value for name, value in lines}


@pytest.mark.parametrize("path", PAGES)
def test_each_way_of_serving_says_the_same_headers(host, path):
    found = given(host, path)
    expected = headers.of(path.split("?")[0], versioned="?v=" in path)
    if path.startswith("no-such"):
        expected.pop("Cache-Control")
    assert {name: found.get(name.lower()) for name in expected} == expected


def test_what_has_not_changed_is_not_sent_again(host):
    for path in (f"{LESSON}/", "assets/bokeh.min.js"):
        known = given(host, path)
        ask = (
            ["-H", f"If-None-Match: {known['etag']}"]
            if "etag" in known
            else ["-H", f"If-Modified-Since: {known['last-modified']}"]
        )
        done = subprocess.run(
            ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *ask, host + path],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "304", path


def test_pages_and_scripts_go_packed_over_the_wire(host):
    for path in (f"{LESSON}/", "assets/bokeh.min.js"):
        sizes = [
            int(
                subprocess.run(
                    ["curl", "-s", "-o", "/dev/null", "-w", "%{size_download}", *ask, host + path],
                    capture_output=True,
                    text=True,
                    check=True,
                ).stdout
            )
            for ask in ([], ["-H", "Accept-Encoding: gzip"])
        ]
        assert sizes[1] < 0.4 * sizes[0], path


def matches(rule: str, address: str) -> bool:
    """Whether a rule of a _headers file is for an address: ``*`` is anything, ``:page`` one name."""
    pattern = re.sub(r":\w+", "[^/]+", re.escape(rule).replace(r"\*", ".*").replace(r"\:", ":"))
    return re.fullmatch(pattern, address) is not None


def test_the_file_of_headers_says_what_the_servers_say(site):
    rules, page = {}, None
    for line in (site / "_headers").read_text().splitlines():
        if line.startswith("  "):
            name, value = line.strip().split(": ", 1)
            rules[page][name] = value
        else:
            page = line
            rules[page] = {}
    assert len(rules) <= 60, "Cloudflare Pages takes a hundred rules, and more lessons are to come"
    assert not any(rule.strip("/") in all_widgets() for rule in rules), "a figure more needs no rule more"
    policy = "Content-Security-Policy"
    assert rules["/*"] | {policy: headers.POLICY} == headers.ALWAYS
    folders = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    for folder in folders:
        address = "/" if folder == "." else f"/{folder}/"
        said = headers.of(address.lstrip("/"), versioned=False)[policy]
        met = [rules[rule][policy] for rule in rules if policy in rules[rule] and matches(rule, address)]
        # all of them hold: a weaker one beside it takes nothing away; the last is the one for hosts that take one
        assert met[-1] == said and set(met) <= {said, headers.POLICY}, address
    frame = [rule for rule in rules if policy in rules[rule] and matches(rule, f"/{headers.FRAME}")]
    assert frame == [f"/{headers.FRAME}"], "a second policy would take from the frame what it needs"
    assert rules[f"/{headers.FRAME}"] == {
        "Content-Security-Policy": headers.of(headers.FRAME, versioned=False)["Content-Security-Policy"]
    }


def test_no_page_holds_a_script_of_its_own(site):
    """So that the policy can forbid them all; data may stand there."""
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        frame = page.relative_to(site).as_posix() == headers.FRAME
        assert (headers.OF_THE_FRAME if frame else headers.META) in text, page
        inline = [
            attributes
            for attributes, code in re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
            if code.strip()
        ]
        if frame:
            assert inline == [""] and headers.DIGEST in text  # the one, which the policy names by its digest
            continue
        data = re.compile(r'type="application/(ld\+)?json"')
        assert all(data.search(attributes) for attributes in inline), (page, inline)
        tags = re.sub(r'"[^"]*"', '""', text)  # a value may speak of anything
        assert not re.findall(r"<[^>]+\son[a-z]+=", tags), page


def test_no_page_meets_its_own_policy(visit, cluster, static):
    """Widgets draw and move, colours switch, the search finds, a picture is saved; the console stays
    empty."""
    for address in (cluster[0], static):
        window = visit()
        window.forgive("ERR_ABORTED")  # the test leaves pages while they still ask
        page = window.go(address + LESSON)
        hand = Hand(page, lessons()[LESSON][0])
        hand.drag(
            next(
                name
                for name, control in hand.cls.controls().items()
                if control.kind == "number" and not control.more
            ),
            3,
        )
        page.locator("label[for^=__palette]:visible").click()
        page.locator(".md-search__input").fill("bandwidth")
        page.locator(".md-search__input").press("Shift")  # Material looks when a key comes up
        page.locator(".md-search-result__item").first.wait_for()
        for path in ("", "planner/", "roofline/", "book/"):
            page.goto(address + path)
            page.wait_for_load_state("networkidle")


def test_only_a_widgets_own_page_is_shown_inside_another_site(browser, cluster, static):
    page = browser.new_page()
    page.goto(f"{static}assets/css/lesson.css")  # any document of another origin
    page.evaluate(
        """addresses => { for (const address of addresses) document.body.append(Object.assign(document.createElement("iframe"), { src: address })); }""",
        [f"{cluster[0]}memory_stack/", f"{cluster[0]}{LESSON}/"],
    )
    widget, lesson = (page.frame_locator(f"iframe >> nth={i}") for i in range(2))
    widget.locator("figure.widget[data-state=live]").wait_for()
    assert lesson.locator(".kicker, .md-content").count() == 0
    page.close()


def test_a_process_that_dies_takes_no_reader_with_it(cluster):
    """Its readers lose their socket, open another and go on: a question holds the whole state. The test is the
    last with this cluster."""
    address, processes = cluster

    async def meet():
        readers = await asyncio.gather(*(drag(address, number, 2) for number in range(8)))
        processes[0].kill()
        lost = 0
        for reader in readers:
            slug, cls = next(iter(all_widgets().items()))
            try:
                await reader.ask(slug, states.default(cls))
            except (Lost, OSError):
                lost += 1
                await reader.open(address)
                assert "text" in await reader.ask(slug, states.default(cls))
            reader.close()
        assert 0 < lost < 8

    run(meet())


# -- the files -----------------------------------------------------------------------------------------------
def documents(path: Path) -> list[dict]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def test_the_kubernetes_manifest_fits_together():
    found = {
        (document["kind"], document["metadata"]["name"]): document
        for document in documents(DEPLOY / "kubernetes" / "course.yaml")
    }
    pod = found["Deployment", "course"]["spec"]["template"]
    service, container = found["Service", "course"]["spec"], pod["spec"]["containers"][0]
    assert (
        service["selector"]
        == pod["metadata"]["labels"]
        == found["Deployment", "course"]["spec"]["selector"]["matchLabels"]
    )
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (
        service["ports"][0]["targetPort"] in ports
        and f"EXPOSE {ports['http']}" in (DEPLOY / "Containerfile").read_text()
    )
    assert service["sessionAffinity"] == "ClientIP"
    for probe, path in {
        "startupProbe": "health",
        "readinessProbe": "ready",
        "livenessProbe": "health",
    }.items():
        assert container[probe]["httpGet"] == {"path": f"/live/{path}", "port": "http"}
    patience_s = [container["livenessProbe"][name] for name in ("periodSeconds", "failureThreshold")]
    assert patience_s[0] * patience_s[1] >= 120  # a busy process is not restarted, a dead one is
    assert (
        container["resources"]["limits"].keys() == {"cpu", "memory"}
        and pod["spec"]["securityContext"]["runAsNonRoot"] is True
    )
    origin = next(entry["value"] for entry in container["env"] if entry["name"] == "BOKEH_ALLOW_WS_ORIGIN")
    for name, path in (("course", "/"), ("course-live", "/live")):
        ingress = found["Ingress", name]["spec"]
        assert ingress["tls"][0]["hosts"] == [origin] == [rule["host"] for rule in ingress["rules"]]
        rule = ingress["rules"][0]["http"]["paths"][0]
        assert rule["path"] == path and rule["backend"]["service"] == {
            "name": "course",
            "port": {"name": service["ports"][0]["name"]},
        }


def test_the_workflow_builds_what_it_publishes_with_pinned_actions():
    [flow] = documents(ROOT / ".github" / "workflows" / "pages.yml")
    jobs = flow["jobs"]
    assert (
        jobs.pop("tests") == {"uses": "./.github/workflows/tests.yml"} and "tests" in jobs["build"]["needs"]
    )
    steps = [step for job in jobs.values() for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name) for name in used)
    assert [step["run"] for step in steps if "run" in step] == ["make site"]
    assert next(step["with"]["path"] for step in steps if "upload" in step.get("uses", "")) == "build/static"
    assert flow["permissions"] == {"contents": "read"}


def test_the_workflow_tries_the_wheel_on_each_python_that_is_declared():
    [flow] = documents(ROOT / ".github" / "workflows" / "tests.yml")
    matrix = flow["jobs"]["installed"]["strategy"]["matrix"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [line.rsplit(" ", 1)[1] for line in project["classifiers"] if "Python ::" in line]
    assert matrix["python"] == named and project["requires-python"] == f">={named[0]}"
    assert [system.split("-")[0] for system in matrix["system"]] == ["ubuntu", "macos", "windows"]
    run = [step.get("run", "") for job in flow["jobs"].values() for step in job["steps"]]
    assert any("podman build -f deploy/Containerfile" in line for line in run) and "make manifest" in run


def test_the_container_is_small_of_privilege_and_complete():
    text = re.sub(r"\\\n\s*", "", (DEPLOY / "Containerfile").read_text())
    lines = [
        line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")
    ]
    words = [word for word, _ in lines]
    assert set(words) <= {
        "FROM",
        "WORKDIR",
        "COPY",
        "RUN",
        "ARG",
        "USER",
        "ENV",
        "EXPOSE",
        "HEALTHCHECK",
        "CMD",
    }
    images = [rest.split()[0] for word, rest in lines if word == "FROM"]
    assert all(re.search(r":[\w.-]+@sha256:[0-9a-f]{64}$", image) for image in images)
    assert "--require-hashes -r deploy/requirements.txt" in text
    assert (
        words.index("USER") > max(i for i, word in enumerate(words) if word == "FROM")
        and dict(lines)["USER"] != "root"
    )
    allowed = {
        line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")
    }
    for rest in (rest for word, rest in lines if word == "COPY" and not rest.startswith("--from")):
        for source in rest.split()[:-1]:
            assert (ROOT / source).exists() and source in allowed, source
    assert (
        COMMAND.split() == yaml.safe_load(dict(lines)["CMD"])[2:7]
        and "/live/health" in dict(lines)["HEALTHCHECK"]
    )


def test_the_unit_starts_the_plain_command():
    unit = DEPLOY / "systemd" / "course@.service"
    text = re.sub(r"\\\n\s*", "", unit.read_text())
    assert COMMAND in text and {"[Unit]", "[Service]", "[Install]"} <= set(text.splitlines())
    if shutil.which("systemd-analyze"):
        said = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True).stderr
        assert [line for line in said.splitlines() if "course" in line and "not executable" not in line] == []


# -- python -m course.serve ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("flags", "how"), [([], signal.SIGINT), ([], signal.SIGTERM), (["--static"], signal.SIGINT)], ids=str
)
def test_serve_hands_out_the_course_and_ends_without_a_word(site, flags, how):
    port = Server.free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "course.serve", "--port", str(port), *flags],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )  # a job in the background ignores it
    said = server.stdout.readline()
    assert f"is open on http://localhost:{port}/" in said, server.stderr.read()
    with urlopen(f"http://localhost:{port}/01-why-distributed/", timeout=20) as page:
        assert (b'name="course-server"' in page.read()) == (not flags)
        assert page.headers["Content-Security-Policy"].startswith(headers.POLICY)
    os.killpg(server.pid, how)  # as a terminal does: to all of them
    _, fault = server.communicate(timeout=20)
    assert server.returncode == 0 and "Traceback" not in fault
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0
