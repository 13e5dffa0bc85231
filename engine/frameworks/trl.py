"""TRL's trainers that hold more than one model: GRPO and DPO.

Names and defaults: huggingface/trl trl/trainer/grpo_config.py and dpo_config.py at v0.17 (GRPO: prompts of
512 tokens and answers of 256, beta 0.04 with a reference model, ``vllm_mode`` server, a share of 0.3 where
vLLM is colocated, logits of the answers alone), and docs/source/vllm_integration.md; releases up to 0.15
gave vLLM a device of its own (``vllm_device``). From memory, not at a commit. DPO reads the chosen and the
rejected answer in one pass, so a micro-batch has twice the sequences.
"""

from __future__ import annotations

from dataclasses import replace

from engine.catalog.models import Model
from engine.frameworks import hugging_face, rollouts
from engine.frameworks.described import Role
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure
from engine.frameworks.hugging_face import HuggingFace
from engine.frameworks.settings import ANY_TEXT, FLAG, NUMBER, TEXT, Draft, Entry, Field

GRPO = {
    "num_generations": Field("answers"),
    "max_prompt_length": Field("prompt"),
    "max_completion_length": Field("answer"),
    "use_vllm": Field("engine", FLAG),
    "vllm_mode": Field("engine_place", TEXT),
    "vllm_device": Field("engine_device", ANY_TEXT),
    "vllm_gpu_memory_utilization": Field("share", NUMBER),
    "vllm_tensor_parallel_size": Field("engine_tp"),
    "vllm_enable_sleep_mode": Field("sleeps", FLAG),
    "beta": Field("beta", NUMBER),
    "precompute_ref_log_probs": Field("precomputed", FLAG),
    "rl": Field("method", TEXT),
    "trainer.model": Field("model", TEXT),
}
FIELDS = hugging_face.FIELDS | GRPO
OF_GRPO = {"num_generations", "max_completion_length", "vllm_mode"}
METHODS = ("grpo", "dpo")
PROMPT, ANSWER, BETA, SHARE = 512, 256, 0.04, 0.3  # GRPO's defaults
CALLS = hugging_face.CALLS | {"GRPOConfig": "", "DPOConfig": ""}
CALLS |= {"GRPOTrainer": "trainer.", "DPOTrainer": "trainer."}


def method_in(words: list[str]) -> str:
    """The method in the name of a script, such as run_dpo.py."""
    for word in words:
        name = word.rsplit("/", 1)[-1].lower()
        for method in METHODS:
            if method in name and (name.endswith(".py") or name == method):
                return method
    return ""


class Trl(HuggingFace):
    """Scripts and files of GRPO and DPO."""

    key = "trl"
    name = "TRL"
    place = 36
    fields = FIELDS
    calls = CALLS
    can = None
    beside = ("hugging_face",)

    def claims(self, command: Command) -> Claim:
        """A script of one of the methods, or GRPO's flags."""
        named = method_in(command.words)
        if named:
            return Claim(Sure.FLAGS, command.script)
        return Claim(Sure.FLAGS if command.flags & OF_GRPO else Sure.NOT, command.script)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A file with GRPO's keys, or a program that calls one of the trainers."""
        called = {entry.key.split(".")[0] for entry in entries}
        if notation == "program":
            mine = called & {"GRPOConfig", "GRPOTrainer", "DPOConfig", "DPOTrainer"}
            return Sure.OWN_KEYS if mine else Sure.NOT
        tops = {entry.key.rsplit(".", 1)[-1] for entry in entries}
        return Sure.OWN_KEYS if tops & OF_GRPO and notation != "toml" else Sure.NOT

    def entries(self, found: list[Entry], bare: list[Entry], words: list) -> list[Entry]:
        """The flags, and which method the script's name says."""
        named = method_in([word.text for word in words])
        place = next((word for word in words if method_in([word.text])), None)
        if not named or place is None:
            return found
        return [*found, Entry("rl", named, "", place.line, *place.span())]

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """A file of Accelerate's or DeepSpeed's."""
        d.read(entries, self.fields, self.unmodelled)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """The trainer's own, with the models beside it."""
        preference = d.given("method") == "dpo"
        engine = bool(d.given("engine")) and not preference
        device = (d.given("engine_device") or "").lower()
        where = (d.given("engine_place") or ("device" if device else "server")).lower()
        if engine and where == "device":
            if gpus > 1:
                gpus -= 1
                d.assume("GPUs that train", gpus, "vLLM has one of its own (vllm_device)")
            where = "server"
        if engine and where not in ("server", "colocate"):
            d.refuse(f"ValueError: vllm_mode must be server or colocate, got {where[:40]!r}", "engine_place")
        prompt, answer = d.given("prompt"), d.given("answer")
        if preference:
            found = self.trained(d, shape, gpus)
        else:
            prompt = prompt or d.get("prompt", PROMPT)
            answer = answer or d.get("answer", ANSWER)
            d.ask("seq")
            d.assume("seq", prompt + answer, "a prompt and its answer")
            found = self.trained(d, shape, gpus)
        job, layout = found.job, found.layout
        assert job is not None and layout is not None
        if preference:  # the chosen and the rejected answer, one behind the other
            layout = replace(layout, micro_batch=2 * layout.micro_batch)
            software = replace(job.software, loss="chosen")
            job = replace(job, global_batch=2 * job.global_batch, software=software)
        else:
            of_answers = rollouts.answers_share(prompt, answer)
            software = replace(job.software, loss="chosen", loss_share=of_answers)
            job = replace(job, seq=prompt + answer, software=software)
        roles: list[Role] = []
        ranks = layout.dp * layout.cp if layout.zero > 2 else 1
        weight = d.given("beta") if d.given("beta") is not None else (0.1 if preference else BETA)
        if weight and job.adapter is None and not d.given("precomputed"):
            roles.append(rollouts.reference(d, shape, ranks))
        if engine and where == "colocate":
            share = d.get("share", SHARE)
            tp = d.given("engine_tp") or 1
            roles.append(rollouts.rollout(d, shape, tp, share, bool(d.given("sleeps"))))
        d.ask("answers", "share", "engine_tp", "sleeps")
        handed = rollouts.handed(job, layout) if engine else 0.0
        return found._replace(job=job, layout=layout, roles=tuple(roles), handed=handed)


FRAMEWORK: Framework = Trl()
