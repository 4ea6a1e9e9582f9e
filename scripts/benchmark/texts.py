"""Deterministic prose from texts of our own: the same seed gives the same words on every machine."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

PEER = Path(__file__).resolve().parent.parent / "peers" / "llama_cpp"


def _sentences() -> list[str]:
    paragraphs = json.loads((PEER / "paragraphs.json").read_text(encoding="utf-8"))
    dialogues = json.loads((PEER / "dialogues.json").read_text(encoding="utf-8"))
    texts = paragraphs + [dialogue[reply] for dialogue in dialogues for reply in ("aligned", "off")]
    return [sentence for text in texts for sentence in re.split(r"(?<=[.!?])\s+", text) if len(sentence.split()) > 2]


SENTENCES = _sentences()


class Prose:
    """An endless stream of sentences; two texts of one stream share a beginning only by chance."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def words(self, count: int) -> str:
        """A text of exactly `count` words."""
        words: list[str] = []
        while len(words) < count:
            words += self._random.choice(SENTENCES).split()
        return " ".join(words[:count])

    def choice(self, values: list[str]) -> str:
        """One of `values`."""
        return self._random.choice(values)
