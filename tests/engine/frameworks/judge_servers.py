"""What we export for servers, judged by the servers' own parsers and the classes that check what was parsed.

Neither vLLM nor SGLang can be installed beside the other, nor beside what the tests need, so this is a
program and no test: ``python -m tests.engine.frameworks.judge_servers vllm`` in an environment that has vLLM
and numpy (no GPU is needed). The weekly run does it with the first and the last release that exports are
written for. It prints what was refused, and exits 1 if anything was.

Left out: what the servers check once they have the model's configuration and a GPU.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from itertools import chain

from engine import catalog
from engine.launch.commands import commands
from engine.serving.deployment import Deployment, Limits, Load, finder
from engine.step.layout import Machine

# model, GPU, load, limits, formats of weights and of caches: one pool and two, dense models and experts, on
# one node and on several, every format, with and without a prefix cache and a limit on pauses
CASES = [
    ("llama3.1-8b", "h100-sxm", Load(40, 1000, 200), Limits(1.0, 0.03), ("bf16",), ("bf16",)),
    ("llama3.1-8b", "a100-80", Load(40, 1000, 200, 0.5, 0.5), Limits(1.0, 0.03), ("bf16",), ("bf16",)),
    ("llama3-70b", "h100-sxm", Load(8, 2000, 200, 0.6, 0.6), Limits(1.0, 0.05), ("bf16",), ("bf16",)),
    ("llama3-70b", "h100-sxm", Load(8, 2000, 200, 0.6, 0.6), Limits(1.0, 0.05, 0.9, 0.05), None, ("fp8",)),
    ("llama3-70b", "h100-sxm", Load(8, 2000, 200, 0.6, 0.6), Limits(1.0, 0.05, 0.9, 0.025), None, ("bf16",)),
    ("llama3.1-405b", "h100-sxm", Load(2, 2000, 200), Limits(4.0, 0.2), ("bf16",), ("bf16",)),
    ("deepseek-v3", "h100-sxm", Load(50, 2000, 300, 0.6, 0.6), Limits(3.0, 0.1), ("fp8",), ("bf16",)),
    ("deepseek-v3", "h200", Load(400, 2000, 300, 0.6, 0.6), Limits(3.0, 0.1), ("fp8",), ("bf16",)),
    ("gpt-oss-120b", "h100-sxm", Load(20, 3000, 500), Limits(1.0, 0.03), ("int4",), ("bf16",)),
    ("qwen3-32b", "h200", Load(10, 4000, 500, prefix_share=0.5), Limits(1.0, 0.04), None, ("fp8",)),
    ("qwen3-235b-a22b", "h200", Load(60, 2000, 300), Limits(2.0, 0.06), ("bf16",), ("bf16",)),
    ("qwen3-235b-a22b", "h200", Load(60, 2000, 300), Limits(2.0, 0.06), ("fp8",), ("bf16",)),
    ("mixtral-8x7b", "h100-sxm", Load(40, 1000, 200), Limits(1.0, 0.03), ("int4",), ("bf16",)),
    ("llama3-70b", "b200", Load(20, 6000, 500, prefix_share=0.5), Limits(2.0, 0.05), None, ("fp8",)),
]


def found() -> list[Deployment]:
    """The cheapest deployment of each case, and the best of another kind: with and without pools apart."""
    all_of_them = []
    for model, gpu, load, limits, formats, caches in CASES:
        at = Machine.of(gpu)
        for pools in (True, False):
            try:
                plan = finder.deploy(
                    catalog.model(model), at, load, limits, None, formats, caches, pools, (), 3.0, 3
                )
            except ValueError as reason:  # one pool alone may keep no such limits
                print(f"{model}, pools {pools}: {reason}")
                continue
            all_of_them += [plan.best, *plan.runners_up]
    return list({repr(one): one for one in all_of_them}.values())


def as_bash_runs(text: str, starts: str, later: str) -> list[list[str]]:
    """The words of each command of a script that begins with ``starts``, on the first node of a replica, or
    on one that comes after it."""
    plain = text.replace("\\\n", " ")
    if later:
        plain = re.sub(r"\$\{LATER:\+([^}]*)\}", r"\1", plain).replace("${LATER:-0}", later)
        plain = re.sub(r"\$\(\((\d+) \* LATER\)\)", lambda got: str(int(got[1]) * int(later)), plain)
    else:
        plain = re.sub(r"\$\{LATER:\+[^}]*\}", "", plain).replace("${LATER:-0}", "0")
    plain = re.sub(r"\$\{FIRST:\?[^}]*\}", "10.0.0.1", plain)
    plain = re.sub(r"\$\{CHECKPOINT:\?[^}]*\}", "mine/model", plain)
    plain = re.sub(r"\$\(\((\d+) \+ [^)]*\)\)", r"\1", plain)
    lines = [line.strip() for line in plain.splitlines() if not line.strip().startswith("#")]
    commands_of = [line[line.index(starts) + len(starts) :] for line in lines if starts in line]
    return [shlex.split(line.removesuffix(" &")) for line in commands_of]


def judge_vllm() -> Callable[[list[str]], None]:
    """What parses a line as ``vllm serve`` does, and builds what checks it; raises what that raises."""
    os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")  # else its parser asks for a device that it knows
    from vllm.config import KVTransferConfig, ParallelConfig, SchedulerConfig  # pyright: ignore[reportMissingImports]
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory  # pyright: ignore[reportMissingImports]
    from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS  # pyright: ignore[reportMissingImports]
    from vllm.platforms import current_platform  # pyright: ignore[reportMissingImports]
    from vllm.utils.argparse_utils import FlexibleArgumentParser  # pyright: ignore[reportMissingImports]

    try:
        from vllm.entrypoints.common import cli_args  # pyright: ignore[reportMissingImports]
    except ImportError:  # until 0.20
        from vllm.entrypoints.openai import cli_args  # pyright: ignore[reportMissingImports]

    parser = cli_args.make_arg_parser(FlexibleArgumentParser(exit_on_error=False))
    type(current_platform).is_cuda_alike = lambda _: True  # as on the machine that it is for
    type(current_platform).is_cuda = lambda _: True
    type(current_platform).device_count = classmethod(lambda _: 8)

    def judge(words: list[str]) -> None:
        args = parser.parse_args(words)
        cli_args.validate_parsed_serve_args(args)
        dual = ("deepep_low_latency", "deepep_high_throughput")
        assert args.quantization is None or args.quantization in QUANTIZATION_METHODS, args.quantization
        assert not args.enable_dbo or args.all2all_backend in dual, "config/vllm.py of 0.33, line 2200"
        SchedulerConfig(
            max_model_len=args.max_model_len,
            is_encoder_decoder=False,
            max_num_batched_tokens=args.max_num_batched_tokens,
            max_num_seqs=args.max_num_seqs,
            enable_chunked_prefill=args.enable_chunked_prefill,
        )
        here = args.data_parallel_size_local
        ParallelConfig(
            tensor_parallel_size=args.tensor_parallel_size,
            pipeline_parallel_size=args.pipeline_parallel_size,
            data_parallel_size=args.data_parallel_size,
            data_parallel_size_local=args.data_parallel_size if here is None else here,
            data_parallel_rank=args.data_parallel_start_rank or 0,
            enable_expert_parallel=args.enable_expert_parallel,
            all2all_backend=args.all2all_backend or "allgather_reducescatter",
            enable_dbo=args.enable_dbo,
            enable_eplb=args.enable_eplb,
            nnodes=args.nnodes,
            node_rank=args.node_rank,
            master_addr=args.master_addr,
        )
        if args.kv_transfer_config:
            told = args.kv_transfer_config
            told = json.loads(told) if isinstance(told, str) else told
            config = told if isinstance(told, KVTransferConfig) else KVTransferConfig(**told)
            assert config.kv_connector in KVConnectorFactory._registry, config.kv_connector

    return judge


def judge_sglang() -> Callable[[list[str]], None]:
    """What parses a line as ``sglang.launch_server`` does, and keeps what it says."""
    from sglang.srt.server_args import ServerArgs  # pyright: ignore[reportMissingImports]

    parser = ArgumentParser(exit_on_error=False)
    ServerArgs.add_cli_args(parser)

    def judge(words: list[str]) -> None:
        args = parser.parse_args(words)
        if args.enable_dp_attention:
            assert args.tp_size % args.dp_size == 0, "arg_groups/parallel_hook.py of 0.5.23, line 326"
        ranks = args.tp_size * args.pp_size * (1 if args.enable_dp_attention else args.dp_size)
        assert ranks % args.nnodes == 0 and args.node_rank < args.nnodes, words

    return judge


STARTS = {"vllm": "vllm serve ", "sglang": "python -m sglang.launch_server "}
JUDGES = {"vllm": judge_vllm, "sglang": judge_sglang}


def main(program: str) -> int:
    """Judge every deployment that is found; returns an exit status."""
    deployments, judge = found(), JUDGES[program]()
    refused, seen = 0, 0
    for of in deployments:
        text = commands(of, program)
        lines = chain(
            as_bash_runs(text, STARTS[program], ""),
            as_bash_runs(text, STARTS[program], "1") if "LATER" in text else [],
        )
        for words in lines:
            seen += 1
            try:
                judge(words)
            except (Exception, SystemExit) as reason:  # a parser that is refused ends the program
                refused += 1
                print(f"REFUSED {' '.join(words)}\n  {type(reason).__name__}: {reason}")
    print(f"{len(deployments)} deployments, {seen} commands of {program}, {refused} refused")
    return 1 if refused or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
