"""ms-swift: ``swift sft`` and its relatives, the Trainer's arguments with its own beside them.

Names and defaults: modelscope/ms-swift swift/arguments (sft_args.py, tuner_args.py, base_args), swift/
trainers/arguments.py and swift/config/*.json at commit 3602360a (August 2026): LoRA of rank 8 on all linear
layers with a dropout of 0.05, a batch of 1, checkpoints on, bf16, steps of 16 sequences, whole texts unless
max_length is given. Without DeepSpeed a model that is trained whole has no fp32 copy
(examples/train/reranker: 4 × 47 GB for a Qwen3 4B on each GPU). Its DeepSpeed files have names: zero2,
zero3_offload. ``--train_type`` became ``--tuner_type`` in release 4.

Left out: weights of a vision tower that are trained (``--freeze_vit false``), and every ``swift rlhf`` but
GRPO, which are refused. ``megatron sft`` is read by ``megatron_swift``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from engine.catalog.models import Model
from engine.catalog.recipes import Recipe
from engine.frameworks import hugging_face, peft, rollouts
from engine.frameworks.framework import Claim, Command, Framework, Meant, Sure
from engine.frameworks.hugging_face import HuggingFace
from engine.frameworks.settings import FLAG, NUMBER, TEXT, Draft, Entry, Field
from engine.mechanism.adapters import ALL_LINEAR

if TYPE_CHECKING:
    from engine.frameworks.described import Launch
    from engine.mechanism.adapters import Adapter

OWN = {
    "model": Field("model", TEXT),
    "model_id_or_path": Field("model", TEXT),
    "tuner_type": Field("tuner", TEXT),
    "train_type": Field("tuner", TEXT),
    "sft_type": Field("tuner", TEXT),
    "lora_rank": Field("rank"),
    "target_modules": Field("targets", TEXT),
    "max_length": Field("seq"),
    "max_pixels": Field("pixels"),
    "max_pixel": Field("pixels"),  # the parser takes the head of a name
    "attn_impl": Field("attention", TEXT),
    "torch_dtype": Field("loaded_dtype", TEXT),
    "quant_bits": Field("bits"),
    "quant_method": Field("method", TEXT),
    "bnb_4bit_use_double_quant": Field("double", FLAG),
    "sequence_parallel_size": Field("ulysses"),
    "padding_free": Field("unpadded", FLAG),
    "zero_hpz_partition_size": Field("shard"),
    "freeze_vit": Field("frozen_tower", FLAG),
    "freeze_aligner": Field("frozen_aligner", FLAG),
    "freeze_llm": Field("frozen", FLAG),
    "rlhf_type": Field("rlhf", TEXT),
    "use_vllm": Field("engine", FLAG),
    "vllm_mode": Field("engine_place", TEXT),
    "vllm_gpu_memory_utilization": Field("share", NUMBER),
    "vllm_tensor_parallel_size": Field("engine_tp"),
    "sleep_level": Field("sleep_level"),
    "offload_model": Field("trained_leaves", FLAG),
    "offload_optimizer": Field("optimizer_leaves", FLAG),
    "num_infer_workers": Field("engine_workers"),
    "move_model_batches": Field("handed"),
    "max_completion_length": Field("answer"),
    "num_generations": Field("answers"),
    "beta": Field("beta", NUMBER),
    "task_type": Field("task", TEXT),
    "tuner_backend": Field("backend", TEXT),
    "model_name": Field("called", TEXT),  # what the model is taught to call itself
}
PARTLY = "training some of the weights is not modelled"
OPTIMIZER = "this optimizer is not modelled"
RLHF = "pairs and the models beside the trained one are modelled for GRPO alone"
GRPO = "grpo"
ANSWER, BETA, SHARE = 512, 0.04, 0.9  # GRPO's defaults (swift/arguments/rlhf_args.py), from memory
ULYSSES = "sequence parallelism of this trainer is not modelled"
TASK = "a head other than that of a language model is not modelled"
UNMODELLED = {
    "freeze_parameters_ratio": PARTLY,
    "freeze_parameters": PARTLY,
    "trainable_parameters": PARTLY,
    "use_galore": OPTIMIZER,
    "lisa_activated_layers": PARTLY,
    "deepspeed_autotp_size": "DeepSpeed's AutoTP in training is not modelled",
    "device_map": "layers spread over GPUs by a device map are not modelled",
}
UNMODELLED |= {key: why for key, why in hugging_face.UNMODELLED.items() if key not in OWN}
WORDS = ("sft", "pt", "rlhf")
CAUSAL = "causal_lm"
NEEDS = ("tuner", "frozen_tower")
RANK, BATCH, LONG = 8, 16, 2048  # LONG where nobody says how long a text is
DROPPED = 0.05  # of an adapter's inputs
FLASH = ("flash_attn", "flash_attention_2", "flash_attention_3", "flash_attention_4")


class MsSwift(HuggingFace):
    """Its command."""

    key = "ms_swift"
    name = "ms-swift"
    place = 39
    fields = hugging_face.FIELDS | OWN
    unmodelled = UNMODELLED
    lightens = (*HuggingFace.lightens, RLHF, ULYSSES)
    calls = {}
    environment = {"MAX_PIXELS": Field("pixels")}
    can = None
    beside = ("hugging_face",)
    usual_micro = 1
    usual_batch = BATCH

    def claims(self, command: Command) -> Claim:
        """``swift sft``, or the Python file behind it."""
        words = command.words
        for at, word in enumerate(words):
            bare, follows = word.split("/")[-1], words[at + 1] if at + 1 < len(words) else ""
            if bare == "swift" and follows in WORDS:
                return Claim(Sure.NAMED, at + 2)
            if bare in ("sft.py", "pt.py") and "swift" in word:
                return Claim(Sure.NAMED, at + 1)
        return Claim(Sure.NOT)

    def owns(self, notation: str, entries: list[Entry]) -> int:
        """A YAML that says how it is tuned."""
        mine = {key for key, field in OWN.items() if field.name in NEEDS}
        tops = {entry.key for entry in entries}
        return Sure.OWN_KEYS if notation == "yaml" and tops & mine else Sure.NOT

    def entries(self, found: list[Entry], bare: list[Entry], words: list) -> list[Entry]:
        """Its flags; ``rlhf`` is one, too."""
        return with_method(found, words, "rlhf_type")

    def read_beside(self, d: Draft, entries: list[Entry]) -> None:
        """A DeepSpeed JSON or Accelerate's file."""
        d.read(entries, hugging_face.FIELDS, hugging_face.UNMODELLED)

    def sharding(self, d: Draft, ranks: int) -> tuple[int, int]:
        """By DeepSpeed's file, whose name may stand for it."""
        if (d.given("rlhf") or GRPO).lower() != GRPO:
            d.lacks("rlhf", RLHF)
        if d.given("frozen"):
            d.lacks("frozen", PARTLY)
        if (d.given("task") or CAUSAL).lower() != CAUSAL:
            d.lacks("task", TASK)
        if (d.given("backend") or "peft").lower() != "peft":
            d.lacks("backend", "adapters of another library are not modelled here")
        if (d.given("ulysses") or 1) > 1:
            d.lacks("ulysses", ULYSSES)
        if (d.given("fsdp") or "").lower() == "fsdp2":
            return hugging_face.sharding(d, ranks, True)
        return hugging_face.sharding(d, ranks)

    def read(self, d: Draft, shape: Model, gpus: int) -> Meant:
        """The trainer's own; under GRPO with the reference and the engine beside it."""
        found = self.trained(d, shape, gpus)
        if (d.given("rlhf") or "").lower() != GRPO or found.job is None or found.layout is None:
            return found
        answer = d.get("answer", ANSWER)
        prompt = found.job.seq  # --max_length is the prompt's, and the answer goes behind it
        of_answers = rollouts.answers_share(prompt, answer)
        software = replace(found.job.software, loss="chosen", loss_share=of_answers)
        job = replace(found.job, seq=prompt + answer, software=software)
        roles = []
        ranks = gpus if found.layout.zero > 2 else 1
        leaves = bool(d.given("trained_leaves"))
        beta = d.given("beta")
        if (BETA if beta is None else beta) and job.adapter is None:
            roles.append(rollouts.reference(d, shape, ranks, leaves))
        if d.given("engine") and (d.given("engine_place") or "colocate").lower() == "colocate":
            share, tp = d.get("share", SHARE), d.given("engine_tp") or 1
            roles.append(rollouts.rollout(d, shape, tp, share, bool(d.given("sleep_level"))))
        d.ask(
            "optimizer_leaves",
            "engine_workers",
            "answers",
            "engine_place",
            "engine_tp",
            "share",
            "sleep_level",
        )
        handed = rollouts.handed(job, found.layout, d.given("handed") or 1) if d.given("engine") else 0.0
        return Meant(found.gpus, found.precision, job, found.layout, None, tuple(roles), leaves, handed)

    def length(self, d: Draft) -> int:
        """Tokens of a sequence."""
        for name in ("packed", "unpadded"):
            if d.given(name) and d.given("attention") not in (None, *FLASH):
                d.refuse(
                    f'ValueError: The "{d.settings[name].key}" feature requires a flash attention '
                    "implementation.",
                    "attention",
                )
        return d.get("seq", LONG, "no --max_length: as long as the longest text")

    def limits(self, d: Draft) -> bool:
        """Not without ``max_length``: it is the model's own then (swift/llm/template/base.py, 005674fa)."""
        return False

    def checkpointed(self, d: Draft) -> bool:
        """Unless it is told otherwise."""
        return d.get("checkpointing", True, "ms-swift's default")

    def recipe(self, d: Draft, zero: int) -> tuple[str, Recipe]:
        """In the type that the model is loaded in, bf16 unless it is said."""
        loaded = (d.given("loaded_dtype") or "bfloat16").lower()
        half = bool(d.given("fp16")) or (loaded == "float16" and not d.given("bf16"))
        if loaded == "float32" and not half and not d.given("bf16"):
            return hugging_face.recipe(d)
        if not half and not d.given("bf16"):
            d.assume("precision", "bf16", "the type that most models are stored in")
        found = hugging_face.state(d)[1]
        if not ("zero" in d.settings or d.given("deepspeed_file") or self.tunes(d) != "full"):
            found = hugging_face.without_master(found)
        return "fp16" if half else "bf16", found

    def tunes(self, d: Draft) -> str:
        """What is trained: "lora", "full" or something else."""
        return d.get("tuner", "lora", "ms-swift's default").lower()

    def adapter(self, d: Draft, shape: Model) -> Adapter | None:
        """LoRA on all linear layers, unless another way of tuning is given."""
        kind = self.tunes(d)
        bits, method = d.given("bits"), (d.given("method") or "bnb").lower()
        if bits not in (None, 4) or (bits and method != "bnb"):
            peft.leave(d, "bits", peft.QUANTISED)
        if kind == "full":
            if bits == 4:
                peft.leave(d, "bits", peft.QUANTISED)
            return None
        if kind not in ("lora", "qlora"):
            peft.leave(d, "tuner", peft.ADAPTER)
            return None
        usual = peft.Usual(RANK, (ALL_LINEAR,), rest="fp32", dropout=DROPPED)
        return peft.made(d, shape, usual, bits == 4 and method == "bnb", "tuner")

    def edit(self, name: str, value: object, launch: Launch) -> list[tuple[str, str | None]]:
        """Stages of DeepSpeed by the name of its file."""
        if name == "zero" and not any(one.name in ("zero", "strategy") for one in launch.settings):
            key = hugging_face.KEYS["deepspeed_file"]
            return [(key, f"zero{value}" if value else None)]
        return hugging_face.edit(name, value, launch)


def with_method(found: list[Entry], words: list, key: str) -> list[Entry]:
    """A command's flags; its word ``rlhf`` asks for DPO where none of them says a method."""
    for word in words[:8]:
        if word.text == "rlhf" and not any(one.key == key for one in found):
            return [*found, Entry(key, "dpo", "", word.line)]
    return found


FRAMEWORK: Framework = MsSwift()
