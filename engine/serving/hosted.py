"""A model on GPUs of one kind, asked one thing at a time: a step, a prompt, the room, a replica kept full."""

from __future__ import annotations

from typing import NamedTuple

from engine.base.types import Real
from engine.catalog.hardware import Gpu
from engine.catalog.models import Model
from engine.serving import decoding, inference
from engine.serving.decoding import DecodeSeconds, FullReplica, Room
from engine.serving.inference import StepTime
from engine.step import layout
from engine.step.layout import Machine


class Hosted(NamedTuple):
    """A model on GPUs of one kind, as their usual nodes have them. Unless an argument says otherwise eight of
    them share a copy of it, and weights and caches are stored in bf16."""

    model: Model
    gpu: Gpu

    def machine(self, weight_bytes: float = 2.0) -> Machine:
        """The GPU in its node, whose products are in fp8 if a stored weight has one byte. Weights of four
        bits are widened to bf16 before they are multiplied."""
        return layout.machine(self.gpu, "fp8" if weight_bytes == 1 else "bf16")

    def token(
        self, users: Real, context: Real, tp: Real = 8, kv_value_bytes: float = 2.0, weight_bytes: float = 2.0
    ) -> DecodeSeconds:
        """A step, which writes one token for each user."""
        at = self.machine(weight_bytes)
        return decoding.split(self.model, at, tp, users, context, kv_value_bytes, weight_bytes)

    def room(
        self, context: Real, tp: Real = 8, kv_value_bytes: float = 2.0, weight_bytes: float = 2.0
    ) -> Room:
        """What the weights take of each GPU, and how many users of this context fit beside them."""
        return decoding.room(self.model, self.gpu, tp, context, kv_value_bytes, weight_bytes)

    def prompt(self, prompt: Real, tp: Real = 8, weight_bytes: float = 2.0, prompts: Real = 1) -> StepTime:
        """Reading one prompt, or several of one length together."""
        at = self.machine(weight_bytes)
        return inference.prefill(self.model, at, tp=tp, batch=prompts, prompt=prompt)

    def kept_full(
        self, users: Real, prompt: Real = 2048, output: Real = 256, tp: Real = 8, stored_bytes: float = 2.0
    ) -> FullReplica:
        """A replica where the next prompt follows every answer that ends. Weights and caches have the same
        bytes a value."""
        return decoding.steady(
            self.model,
            self.machine(stored_bytes),
            tp=tp,
            batch=users,
            prompt=prompt,
            output=output,
            kv_value_bytes=stored_bytes,
            weight_bytes=stored_bytes,
        )
