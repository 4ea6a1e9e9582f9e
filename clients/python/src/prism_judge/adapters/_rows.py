"""A row of an evaluation: what was asked, what was answered, and by whom."""

from __future__ import annotations

from typing import Mapping, Optional

from ..errors import InvalidInputError
from ._batch import Batch
from ._settings import Settings, Who


def batch(settings: Settings, inputs: object, outputs: object, *labels: object) -> Batch:
    """Of what evaluation hosts pass around. The first of ``labels`` and ``inputs`` that is a mapping with
    ``persona_id`` or ``persona`` names the persona."""
    who = next(filter(None, map(_who, (*labels, inputs))), Who())
    return Batch.of(settings, [_prompt(inputs)], [_reply(outputs)], who.persona_id, who.persona, lane="batch")


def _who(place: object) -> Optional[Who]:
    if not isinstance(place, Mapping):
        return None
    return Who.of(place.get("persona_id"), place.get("persona"), "persona")


def _prompt(inputs: object) -> object:
    """The dialogue before the reply: a text or messages, or a mapping with ``messages`` or with one text."""
    if not isinstance(inputs, Mapping):
        return "" if inputs is None else inputs
    if "messages" in inputs:
        return inputs["messages"]
    texts = {key: value for key, value in inputs.items() if key not in ("persona_id", "persona") and value is not None}
    if len(texts) != 1:
        found = ", ".join(map(str, texts)) or "nothing"
        raise InvalidInputError("inputs", f"it must have messages or one text, and has {found}")
    return next(iter(texts.values()))


def _reply(outputs: object) -> object:
    """The reply: a text, a message, messages, or the answer of a chat completion."""
    if isinstance(outputs, Mapping):
        choices = outputs.get("choices")
        if choices:
            return choices[0]["message"]
        for key in ("messages", "content", "response", "output"):
            if key in outputs:
                return outputs if key == "content" else outputs[key]
        raise InvalidInputError(
            "outputs", f"it has no content, response, output or messages, only {', '.join(map(str, outputs))}"
        )
    return outputs
