"""Opik's own engine runs the metric over the scores of a task."""

from __future__ import annotations

import asyncio
import math
from typing import Any, List

import pytest

from .judge import Judge

pytest.importorskip("opik", reason="opik is not installed")
from opik.evaluation.metrics.score_result import ScoreResult

from prism_judge.adapters.opik import PersonaFidelity


def run(output: Any, **given: Any) -> List[ScoreResult]:
    metric = PersonaFidelity(persona_id="poirot", track=False)
    found = metric.score(output=output, **given)
    again = asyncio.run(metric.ascore(output=output, **given))
    assert [(one.name, one.scoring_failed) for one in found] == [(one.name, one.scoring_failed) for one in again]
    return found


def test_there_is_a_result_for_s_prism_and_each_dimension(judge: Judge) -> None:
    found = {one.name: one.value for one in run("[0.9 0.8 0.7]", input="Who did it?")}
    assert found == {
        "prism": pytest.approx(0.8),
        "prism_task_framing": 0.9,
        "prism_interpersonal_stance": 0.8,
        "prism_linguistic_style": 0.7,
    }


def test_an_item_names_its_persona(judge: Judge) -> None:
    run("Yes.", input=[{"role": "user", "content": "Who did it?"}], persona_id="marple")
    assert {body["persona_id"] for body in judge.asked("ScoreGroup")} == {"marple"}


def test_what_cannot_be_judged_says_so(judge: Judge) -> None:
    found = run("[error internal]")
    assert len(found) == 4
    assert all(one.scoring_failed and math.isnan(one.value) for one in found)
