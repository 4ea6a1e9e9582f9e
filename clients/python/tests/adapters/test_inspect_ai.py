"""Inspect's own ``eval`` runs the scorer over a mock model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Callable, List

import pytest

from .judge import Judge

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed")
import inspect_ai
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from prism_judge.adapters.inspect_ai import persona_fidelity


def run(folder: Path, replies: List[str], metadata: Any = None, **arguments: Any) -> Any:
    outputs = [ModelOutput.from_content("mockllm/model", reply) for reply in replies]
    for output in outputs:
        # The mock model would fetch a tokenizer to count for itself.
        output.usage = ModelUsage()
    model = get_model("mockllm/model", custom_outputs=outputs)
    samples = [Sample(input="Who did it?", id=place, metadata=metadata) for place in range(len(replies))]
    task = inspect_ai.Task(dataset=samples, scorer=persona_fidelity(**arguments))
    [log] = inspect_ai.eval(task, model=model, log_dir=str(folder), display="none", max_samples=1)
    assert log.status == "success", log.error
    return read_eval_log(log.location)


def metrics(log: Any, name: str) -> Any:
    [score] = [score for score in log.results.scores if score.name == name]
    return score.metrics


def test_a_score_has_s_prism_and_the_dimensions(judge: Judge, tmp_path: Path) -> None:
    log = run(tmp_path, ["[0.9 0.8 0.7]", "[0.1 0.4 0.1]"], persona_id="poirot")
    assert metrics(log, "s_prism")["mean"].value == pytest.approx(0.5)
    assert metrics(log, "interpersonal_stance")["mean"].value == pytest.approx(0.6)
    [score] = log.samples[0].scores.values()
    assert score.value["s_prism"] == pytest.approx(0.8)
    assert score.explanation == "weakest: linguistic style"
    assert judge.asked("ScoreGroup")[0]["context"] == [{"speaker": "User", "text": "Who did it?"}]


def test_a_sample_names_its_persona(judge: Judge, tmp_path: Path, expected: Callable[..., float]) -> None:
    log = run(tmp_path, ["Yes."], {"persona_id": "marple"}, persona_id="poirot")
    wanted = expected("Yes.", [("User", "Who did it?")], persona_id="marple")
    assert metrics(log, "s_prism")["mean"].value == pytest.approx(wanted)


@pytest.mark.parametrize(("reply", "reason"), [("[error internal]", "grader_failed"), ("", "no_response")])
def test_what_cannot_be_judged_is_unscored(judge: Judge, tmp_path: Path, reply: str, reason: str) -> None:
    log = run(tmp_path, ["[0.9 0.8 0.7]", reply], persona_id="poirot")
    assert metrics(log, "s_prism")["mean"].value == pytest.approx(0.8)
    [score] = log.samples[1].scores.values()
    assert math.isnan(score.value)
    assert score.reason == reason


def test_the_scorer_can_be_made_again_from_a_log(judge: Judge, tmp_path: Path) -> None:
    log = run(tmp_path, ["[0.9 0.8 0.7]"], persona_id="poirot")
    again = inspect_ai.score(log, persona_fidelity(persona_id="marple"), action="overwrite", display="none")
    assert {body["persona_id"] for body in judge.asked("ScoreGroup")} == {"poirot", "marple"}
    assert metrics(again, "s_prism")["mean"].value == pytest.approx(0.8)
