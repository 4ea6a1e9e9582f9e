"""The metric is one of Ragas: its batches run it."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List

import pytest

from .judge import Judge

pytest.importorskip("ragas", reason="ragas is not installed")

from prism_judge.adapters.ragas import PersonaFidelity

ROWS: List[Dict[str, Any]] = [
    {"user_input": "Who did it?", "response": "[0.9 0.8 0.7]"},
    {"user_input": "Who did it?", "response": "[error internal]"},
    {"user_input": [{"role": "user", "content": "Who did it?"}], "response": "[0.1 0.4 0.1]", "persona_id": "marple"},
]


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_batch_is_judged(judge: Judge, asynchronous: bool) -> None:
    metric = PersonaFidelity(persona_id="poirot")
    first, second, third = asyncio.run(metric.abatch_score(ROWS)) if asynchronous else metric.batch_score(ROWS)
    assert (first.value, third.value) == (pytest.approx(0.8), pytest.approx(0.2))
    assert first.traces["output"]["task_framing"] == 0.9
    assert (second.value, second.reason) == (None, "internal: as the text wants it")
    assert {body["persona_id"] for body in judge.asked("ScoreGroup")} == {"poirot", "marple"}
