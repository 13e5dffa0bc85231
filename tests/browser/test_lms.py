"""A lesson in a learning system: a package's page in a frame of a SCORM system, and launched by a cmi5 one. Both
systems are stand-ins that write down what they are told."""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64encode
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import expect

from course.output.lms import package
from tests.browser.conftest import SLOW

LESSON, CHOICE, NUMBER = "01-why-distributed", "memory_wall", "memory_stack"
STATE = "State of 13B"
NEAR_NINE = (
    """({ dataset: { low, high }, max }) => Math.round(max * Math.log(9 / low) / Math.log(high / low))"""
)
API = """<!doctype html><title>A learning system</title><link rel="icon" href="data:,"><script>
  // a moment, a span of time, as the standard writes them
  const FORMS = [[/timestamp$/, /^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{1,2}Z$/], [/session_time$/, /^PT\\d+(\\.\\d{1,2})?S$/]];
  const values = JSON.parse(sessionStorage.values ?? '{"cmi.learner_id": "ada", "cmi.completion_status": "unknown", "cmi.scaled_passing_score": "0.05"}');
  const calls = [];
  let state = "not begun";
  const note = (name, ...given) => { calls.push([name, ...given]); };
  window.API_1484_11 = {
    Initialize: text => { note("Initialize", text); if (state !== "not begun") return "false"; state = "running"; return "true"; },
    Terminate: text => { note("Terminate", text); if (state !== "running") return "false"; state = "left"; sessionStorage.values = JSON.stringify(values); return "true"; },
    GetValue: name => name === "cmi.interactions._count" ? String(new Set(Object.keys(values).filter(key => key.startsWith("cmi.interactions.")).map(key => key.split(".")[2])).size)
      : values[name] ?? "",
    SetValue: (name, value) => { note("SetValue", name, value); if (state !== "running" || typeof value !== "string" || FORMS.some(([of, form]) => of.test(name) && !form.test(value))) return "false"; values[name] = value; return "true"; },
    Commit: text => { note("Commit", text); return "true"; },
    GetLastError: () => "0", GetErrorString: () => "", GetDiagnostic: () => "",
  };
</script><iframe src="%s/index.html" style="width: 1200px; height: 800px"></iframe>"""


API_12 = """<!doctype html><title>An older system</title><link rel="icon" href="data:,"><script>
  const FORMS = [
    [/interactions\\.\\d+\\.time$/, /^\\d\\d:\\d\\d:\\d\\d(\\.\\d{1,2})?$/], [/session_time$/, /^\\d{4}:\\d\\d:\\d\\d(\\.\\d{1,2})?$/],
    [/lesson_status$/, /^(passed|completed|failed|incomplete|browsed|not attempted)$/], [/result$/, /^(correct|wrong|unanticipated|neutral)$/],
    [/suspend_data$/, /^[^]{0,4096}$/], [/\\.type$/, /^(true-false|choice|fill-in|matching|performance|sequencing|likert|numeric)$/],
    [/(pattern|student_response)$/, /^[^]{0,255}$/],
  ];
  const values = JSON.parse(sessionStorage.values ?? '{"cmi.core.student_id": "ada", "cmi.core.lesson_status": "not attempted"}');
  const calls = [], refused = [];
  let state = "not begun";
  window.API = {
    LMSInitialize: () => { if (state !== "not begun") return "false"; state = "running"; return "true"; },
    LMSFinish: () => { if (state !== "running") return "false"; state = "left"; sessionStorage.values = JSON.stringify(values); return "true"; },
    LMSGetValue: name => name === "cmi.interactions._count" ? String(Object.keys(values).filter(key => /^cmi.interactions.\\d+.id$/.test(key)).length) : values[name] ?? "",
    LMSSetValue: (name, value) => {
      calls.push(["SetValue", name, value]);
      if (state !== "running" || typeof value !== "string" || FORMS.some(([of, form]) => of.test(name) && !form.test(value))) { refused.push([name, value]); return "false"; }
      values[name] = value;
      return "true";
    },
    LMSCommit: () => "true", LMSGetLastError: () => "0", LMSGetErrorString: () => "", LMSGetDiagnostic: () => "",
  };
</script><iframe src="%s/index.html" style="width: 1200px; height: 800px"></iframe>"""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


class Records(BaseHTTPRequestHandler):
    """A learning record store of another origin. It asks for the token that it gave out, once."""

    def log_message(self, *_):
        pass

    def reply(self, status, body=None):
        self.send_response(status)
        self.send_header("Access-Control-Allow-Origin", self.headers.get("Origin", "*"))
        self.send_header("Access-Control-Allow-Methods", "GET, POST, PUT, OPTIONS")
        self.send_header(
            "Access-Control-Allow-Headers", "authorization, content-type, x-experience-api-version"
        )
        self.send_header(
            "Content-Length", str(len(text := b"" if body is None else json.dumps(body).encode()))
        )
        self.end_headers()
        self.wfile.write(text)

    def taken(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")

    def do_OPTIONS(self):
        self.reply(204)

    def do_POST(self):
        if self.path.startswith("/fetch"):
            self.server.tokens += 1
            return self.reply(200, {"auth-token": TOKEN} if self.server.tokens == 1 else {"error-code": "1"})
        return self.write("POST")

    def do_PUT(self):
        self.write("PUT")

    def write(self, method):
        self.server.asked.append((method, self.path, dict(self.headers), self.taken()))
        self.reply(204 if method == "PUT" else 200, None if method == "PUT" else ["an-id"])

    def do_GET(self):
        self.server.asked.append(("GET", self.path, dict(self.headers), None))
        if "LMS.LaunchData" in self.path:
            return self.reply(200, LAUNCH)
        return self.reply(404, {})


TOKEN = b64encode(b"ada:secret").decode()
ACTOR = {"objectType": "Agent", "account": {"homePage": "https://school.example", "name": "ada"}}
SESSION = {"https://w3id.org/xapi/cmi5/context/extensions/sessionid": "s-1"}
LAUNCH = {
    "contextTemplate": {"extensions": SESSION, "contextActivities": {"grouping": [{"id": "urn:course"}]}},
    "launchMode": "Normal",
    "moveOn": "Completed",
    "masteryScore": 0.05,
}


@contextmanager
def running(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


@pytest.fixture(scope="module")
def packages(site, tmp_path_factory):
    """Where each package lies unpacked, on a server."""
    folder = tmp_path_factory.mktemp("lms")
    for name, files in package.packages(site).items():
        for path, contents in files.items():
            place = folder / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(contents)
    (folder / package.SCORM / "system.html").write_text(API % LESSON, encoding="utf-8")
    (folder / package.SCORM_12 / "system.html").write_text(API_12 % LESSON, encoding="utf-8")
    with running(partial(Quiet, directory=str(folder))) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def learn(page) -> None:
    """A learner predicts a choice and a number, gets an exercise wrong and then right, and reads to the end."""
    page.locator(f"#w-{CHOICE} [data-answer=right]").click()
    slider = page.locator(f"#w-{NUMBER} [data-guess] input")
    slider.fill(str(slider.evaluate(NEAR_NINE)))
    page.locator(f"#w-{NUMBER} [data-guess] button").click()
    for text in ("104 GB", "three", "208 GB"):
        page.get_by_label(STATE, exact=True).fill(text)
        page.get_by_label(STATE, exact=True).press("Enter")
    expect(page.locator(".answer", has=page.get_by_label(STATE, exact=True))).to_have_attribute(
        "data-verdict", "right"
    )
    page.get_by_role("button", name="Mark as read", exact=True).click()


def interactions(calls: list) -> list[dict]:
    """What was set of each interaction, in order."""
    found: dict[int, dict] = {}
    for call in calls:
        if call[0] == "SetValue" and call[1].startswith("cmi.interactions."):
            _, _, number, name = call[1].split(".", 3)
            found.setdefault(int(number), {})[name] = call[2]
    return [found[number] for number in sorted(found)]


def test_a_scorm_system_is_told_of_predictions_exercises_and_the_end(visit, packages):
    window = visit(predictions=True)
    window.forgive("ERR_ABORTED", "favicon")
    page = window.page
    page.goto(f"{packages}{package.SCORM}/system.html")
    frame = page.frame(url=f"**/{LESSON}/index.html")
    learn(frame)
    page.wait_for_function("() => values['cmi.completion_status'] === 'completed'")
    calls, values = page.evaluate("[calls, values]")
    assert calls[0] == ["Initialize", ""] and calls.count(["Initialize", ""]) == 1
    choice, number, wrong, right = interactions(calls)
    assert choice["id"].startswith(f"prediction.{CHOICE}.") and choice["type"] == "choice"
    assert (choice["learner_response"], choice["correct_responses.0.pattern"]) == ("c", "c")
    assert choice["result"] == "correct" and choice["description"].startswith("Predict first.")
    low, high = map(float, number["correct_responses.0.pattern"].split("[:]"))
    assert (number["type"], number["result"]) == ("numeric", "correct")
    assert low < float(number["learner_response"]) < high and low < 9 < high
    assert (wrong["id"], wrong["type"]) == (right["id"], right["type"])
    assert right["id"] == "exercise.exercise-the-least-number-of-h100s.0" and right["type"] == "fill-in"
    assert [one["learner_response"] for one in (wrong, right)] == ["104 GB", "208 GB"]
    assert [one["result"] for one in (wrong, right)] == ["incorrect", "correct"]
    assert right["correct_responses.0.pattern"] == "208 GB" and STATE in right["description"]
    fields = frame.locator(".admonition.exercise form.answer").count()
    assert float(values["cmi.score.scaled"]) == pytest.approx(1 / fields)
    assert values["cmi.score.raw"] == str(round(100 / fields)) and values["cmi.score.max"] == "100"
    asking = frame.locator("figure.widget [data-predict]").count()
    assert float(values["cmi.progress_measure"]) == pytest.approx(4 / (fields + asking + 1))
    assert values["cmi.success_status"] == "passed"  # from the share that the system has asked for
    assert values["cmi.exit"] == "suspend" and calls[-1][0] == "Commit"

    page.evaluate("document.querySelector('iframe').src = 'about:blank'")  # the learner leaves
    page.wait_for_function("() => state === 'left'")
    last = page.evaluate("calls.slice(-3)")
    assert last[0][1] == "cmi.session_time" and last[0][2].startswith("PT")
    assert last[1:] == [["Commit", ""], ["Terminate", ""]]

    page.goto(f"{packages}{package.SCORM}/system.html")  # and comes back: nothing is told twice
    frame = page.frame(url=f"**/{LESSON}/index.html")
    expect(frame.locator("[data-lesson-end]")).to_contain_text("your learning system is told")
    page.wait_for_function("calls.some(([name]) => name === 'Commit')")
    assert interactions(page.evaluate("calls")) == []
    frame.locator("#w-three_walls [data-answer=right]").click()
    page.wait_for_function("() => 'cmi.interactions.4.result' in values")
    assert interactions(page.evaluate("calls"))[0]["id"].startswith("prediction.three_walls.")


def test_a_system_of_scorm_12_is_told_the_same_in_its_own_words(browser, packages):
    """It refuses what the older standard has no form for: ranges, moments with a day, long texts."""
    context = browser.new_context()  # a learner of its own
    page, faults = context.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.goto(f"{packages}{package.SCORM_12}/system.html")
    learn(page.frame(url=f"**/{LESSON}/index.html"))
    page.wait_for_function("() => values['cmi.core.lesson_status'] === 'completed'")
    calls, values = page.evaluate("[calls, values]")
    choice, number, wrong, right = interactions(calls)
    assert (choice["type"], choice["student_response"], choice["result"]) == ("choice", "c", "correct")
    assert (number["type"], number["result"]) == ("numeric", "correct") and float(
        number["student_response"]
    ) > 0
    assert [one["result"] for one in (wrong, right)] == ["wrong", "correct"]
    assert right["correct_responses.0.pattern"] == "208 GB" and 0 < int(values["cmi.core.score.raw"]) < 100
    page.evaluate("document.querySelector('iframe').src = 'about:blank'")  # the learner leaves
    page.wait_for_function("() => state === 'left'")
    assert page.evaluate("refused") == [] and page.evaluate("calls.at(-1)[1]") == "cmi.core.session_time"
    page.goto(f"{packages}{package.SCORM_12}/system.html")  # and comes back: nothing is told twice
    page.frame(url=f"**/{LESSON}/index.html").locator("#w-three_walls [data-answer=right]").click()
    page.wait_for_function("() => 'cmi.interactions.4.result' in values")
    assert interactions(page.evaluate("calls"))[0]["id"].startswith("prediction.three_walls.")
    assert faults == []
    context.close()


# Of a weekly run (.github/workflows/every.yml), which fetches the library: a folder with its built scripts
AGAIN = os.environ.get("SCORM_AGAIN")
PLAYER = """<!doctype html><title>scorm-again</title><link rel="icon" href="data:,"><script src="%(script)s"></script><script>
  const api = new %(kind)s({ autocommit: false, logLevel: 5 }), asked = [], refused = [];
  window.%(name)s = new Proxy(api, { get: (of, key) => typeof of[key] !== "function" ? of[key] : (...given) => {
    const said = of[key](...given);
    if (key.endsWith("SetValue")) asked.push(given);
    if (key.endsWith("SetValue") && String(said) !== "true") refused.push([...given, String(of[key.replace("SetValue", "GetLastError")]())]);
    return said;
  } });
</script><iframe src="%(lesson)s/index.html" style="width: 1200px; height: 800px"></iframe>"""
KEPT = """() => {
  const { cmi } = api, { raw } = (cmi.core ?? cmi).score;
  return [asked, refused, cmi.interactions.childArray.map(({ _result }) => _result), raw];
}"""
PLAYERS = {
    package.SCORM: ("scorm2004.min.js", "Scorm2004API", "API_1484_11"),
    package.SCORM_12: ("scorm12.min.js", "Scorm12API", "API"),
}


@pytest.mark.skipif(not AGAIN, reason="SCORM_AGAIN names no folder with scorm-again's scripts")
@pytest.mark.parametrize("name", PLAYERS)
def test_scorm_again_refuses_nothing_and_keeps_the_marks(browser, site, name, tmp_path):
    """A learner's lesson in an open implementation of the standards, and what that has kept afterwards."""
    for path, contents in package.packages(site)[name].items():
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(contents)
    script, kind, given = PLAYERS[name]
    shutil.copy(Path(AGAIN, script), tmp_path)
    player = PLAYER % {"script": script, "kind": kind, "name": given, "lesson": LESSON}
    (tmp_path / "player.html").write_text(player, encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    with running(partial(Quiet, directory=str(tmp_path))) as server:
        page.goto(f"http://127.0.0.1:{server.server_port}/player.html")
        learn(page.frame(url=f"**/{LESSON}/index.html"))
        page.wait_for_function("asked.some(([, value]) => value === 'completed')")
        asked, refused, told, score = page.evaluate(KEPT)
    context.close()
    assert len(asked) > 20 and refused == []
    assert told[:2] == ["correct", "correct"] and told[2] != told[3] == "correct" and len(told) == 4
    assert 0 < float(score) <= 100


def test_another_learner_at_the_same_browser_begins_with_nothing(visit, packages):
    window = visit(predictions=True)
    window.forgive("ERR_ABORTED", "favicon")
    page = window.page
    page.goto(f"{packages}{package.SCORM}/glossary/index.html")
    page.evaluate(
        "localStorage.setItem('course.read', JSON.stringify(['01-why-distributed'])); localStorage.setItem('other', 'stays')"
    )
    page.goto(f"{packages}{package.SCORM}/system.html")
    page.wait_for_function("calls.some(([name]) => name === 'Commit')")
    assert page.evaluate("values['cmi.completion_status']") == "incomplete"
    assert page.evaluate("[localStorage.getItem('course.read'), localStorage.getItem('other')]") == [
        None,
        "stays",
    ]


def test_a_cmi5_system_gets_its_statements_in_order(browser, packages):
    """In a window of its own making: this page is meant to ask another host, the one that launched it."""
    with running(Records) as records:
        records.asked, records.tokens = [], 0
        store = f"http://127.0.0.1:{records.server_port}/"
        launch = {
            "endpoint": f"{store}xapi", "fetch": f"{store}fetch?key=1", "actor": json.dumps(ACTOR), "registration": "r-1",
            "activityId": f"urn:au:{LESSON}",
        }  # fmt: skip
        context = browser.new_context()
        page, faults = context.new_page(), []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda message: (
                message.type == "warning" and SLOW not in message.text and faults.append(message.text)
            ),
        )
        page.goto(f"{packages}{package.CMI5}/{LESSON}/index.html?{urlencode(launch)}")
        expect(page.locator(f"#w-{CHOICE}")).to_have_attribute("data-state", "asked")
        assert page.evaluate("location.search") == ""  # a link that is copied names nobody
        learn(page)
        told = lambda: [body for method, path, _, body in records.asked if path.startswith("/xapi/statements")]  # fmt: skip
        for _ in range(1200):  # a minute: a busy machine is no failure
            if any(one["verb"]["display"]["en"] == "completed" for one in told()):
                break
            page.wait_for_timeout(50)
        page.goto("about:blank")
        for _ in range(1200):
            if told()[-1]["verb"]["display"]["en"] == "terminated":
                break
            page.wait_for_timeout(50)
        context.close()
    assert faults == [] and records.tokens == 1
    said = told()
    verbs = [one["verb"]["display"]["en"] for one in said]
    assert verbs == ["initialized", *["answered"] * 4, "passed", "completed", "terminated"]
    for one in said:
        assert one["actor"] == ACTOR and one["context"]["registration"] == "r-1"
        assert one["context"]["extensions"].items() >= SESSION.items()
        assert one["context"]["contextActivities"]["grouping"] == [{"id": "urn:course"}]
    kinds = {
        one["verb"]["display"]["en"]: [
            each["id"].rpartition("/")[2] for each in one["context"]["contextActivities"].get("category", [])
        ]
        for one in said
    }
    assert kinds["initialized"] == kinds["terminated"] == ["cmi5"] and kinds["passed"] == kinds[
        "completed"
    ] == ["cmi5", "moveon"]
    assert kinds["answered"] == []
    choice, number, wrong, right = [one for one in said if one["verb"]["display"]["en"] == "answered"]
    about = choice["object"]["definition"]
    assert about["interactionType"] == "choice" and about["correctResponsesPattern"] == ["c"]
    assert [each["id"] for each in about["choices"]] == ["a", "b", "c"]
    assert choice["result"] == {"response": "c", "success": True}
    assert number["object"]["definition"]["interactionType"] == "numeric" and number["result"]["success"]
    assert [one["result"] for one in (wrong, right)] == [
        {"response": "104 GB", "success": False},
        {"response": "208 GB", "success": True},
    ]
    done = next(one for one in said if one["verb"]["display"]["en"] == "completed")
    assert done["result"]["completion"] is True and done["object"]["id"] == f"urn:au:{LESSON}"
    for _, path, headers, _ in records.asked:
        assert headers["Authorization"] == f"Basic {TOKEN}" and headers["X-Experience-API-Version"] == "1.0.3"
        assert "agent=" in path or path.startswith("/xapi/statements")
    states = [
        parse_qs(urlsplit(path).query)["stateId"][0]
        for method, path, _, _ in records.asked
        if "state?" in path
    ]
    assert states[0] == "LMS.LaunchData" and "system-ml" in states


def test_a_page_that_nobody_launched_tells_nobody(visit, packages):
    for name in (package.SCORM, package.CMI5):
        page = visit(predictions=True).go(f"{packages}{name}/{LESSON}/")
        learn(page)
        assert page.evaluate("localStorage.getItem('course-lms.learner')") is None
        expect(page.locator("[data-lesson-end]")).to_contain_text("nobody else is told")
