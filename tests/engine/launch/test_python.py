"""Python sources, read without running them."""

import random
import time

from engine.launch import python
from engine.launch.reading import notation_of
from engine.launch.texts import Source

NOTEBOOK = """
from unsloth import FastLanguageModel
from trl import SFTTrainer, SFTConfig
max_seq_length: int = 2 * 1024  # any
shared = dict(optim="adamw_8bit", bf16=True)
model, tokenizer = FastLanguageModel.from_pretrained(
    "unsloth/llama-3-8b", max_seq_length = max_seq_length, dtype=torch.bfloat16, load_in_4bit = True,
)
trainer = SFTTrainer(model=model, args=SFTConfig(
    per_device_train_batch_size=args.batch, **shared, output_dir=f"out-{max_seq_length}",
    gradient_checkpointing_kwargs={"use_reentrant": False}, fsdp="full_shard" " auto_wrap",
    target_modules=["q_proj", 'v_proj'],
))
model.gradient_checkpointing_enable()
"""


def read(text):
    found, unknown = python.read(Source("x", text))
    return {e.key: e for e in found}, [e.key for e in unknown]


def test_calls_and_the_literals_in_them():
    found, unknown = read(NOTEBOOK)
    values = {key: e.value for key, e in found.items()}
    assert values["FastLanguageModel.from_pretrained.0"] == "unsloth/llama-3-8b"
    assert values["FastLanguageModel.from_pretrained.max_seq_length"] == "2048"
    assert values["FastLanguageModel.from_pretrained.dtype"] == "bfloat16"
    assert values["SFTConfig.optim"] == "adamw_8bit" and values["SFTConfig.bf16"] == "true"
    assert values["SFTConfig.gradient_checkpointing_kwargs.use_reentrant"] == "false"
    assert values["SFTConfig.fsdp"] == "full_shard auto_wrap"
    assert values["SFTConfig.target_modules"] == '["q_proj", "v_proj"]'
    assert "gradient_checkpointing_enable" in values
    assert {"SFTConfig.per_device_train_batch_size", "SFTConfig.output_dir"} <= set(unknown)


def test_a_place_is_that_of_the_literal():
    found, _ = read("n = 4096\nf(max_length=n, name='a', b=2*n)\n")
    text = "n = 4096\nf(max_length=n, name='a', b=2*n)\n"
    bounds = {key: text[e.start : e.stop] for key, e in found.items() if e.start >= 0}
    assert bounds == {"f.max_length": "4096", "f.name": "a"} and found["f.b"].value == "8192"


def test_a_name_that_is_no_literal_is_not_known():
    found, unknown = read("n = 4\nn = compute()\nf(a=n)\nf(b=4 if x else 2)\n")
    assert "f.a" not in found and unknown == ["f.a", "f.b"]


def test_what_is_a_program():
    assert notation_of(NOTEBOOK) == "program"
    assert notation_of("args = TrainingArguments(\n    bf16=True,\n)\n") == "program"
    assert notation_of("#!/bin/bash\nexport A=1\npython train.py --bf16 True\n") == "shell"
    assert notation_of("cfg.model.x = 4\n") == "python"
    assert notation_of("A=(1 2)\ntorchrun train.py\n") == "shell"


def test_no_program_takes_long():
    doubled = "d = dict(a=1, b=2)\n" + "d = dict(x=d, y=d)\n" * 200 + "f(**d)\n"
    pieces = (
        "(",
        "f(",
        "a=",
        "'",
        '"""',
        "x = [",
        "{",
        "f(a=1,",
        "\\\n",
        "a.b",
        "f()",
        "1+",
        "a = 1\nf(a)\n",
    )
    for text in (doubled, *(each * (200_000 // len(each)) for each in pieces)):
        began = time.process_time()
        python.read(Source("x", text))
        assert time.process_time() - began < 2


def test_no_spoilt_program_breaks_it():
    rng = random.Random(1)
    for _ in range(500):
        text = NOTEBOOK
        for _ in range(rng.randrange(1, 8)):
            a = rng.randrange(len(text) + 1)
            b = min(len(text), a + rng.choice((1, 3, 20, 200)))
            piece = rng.choice(
                ("(", ")", "'", '"""', "=", "**", ",", "\n", ":", "[", "{", "}", "f'", "\\", "é", "-")
            )
            text = rng.choice((text[:a] + text[b:], text[:a] + piece + text[a:], text[:b] + text[a:]))
        python.read(Source("x", text))
        notation_of(text)
