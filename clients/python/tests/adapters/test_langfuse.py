"""Langfuse's own ``run_experiment`` runs the evaluator; nothing is sent to a Langfuse server."""

from __future__ import annotations

from typing import Any, Dict, Iterator

import pytest

from prism_judge import ItemError

from .judge import Judge

pytest.importorskip("langfuse", reason="langfuse is not installed")
from langfuse import Langfuse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from prism_judge.adapters.langfuse import persona_evaluator, scores


class Nowhere(SpanExporter):
    def export(self, spans: Any) -> SpanExportResult:
        return SpanExportResult.SUCCESS


@pytest.fixture
def langfuse() -> Iterator[Langfuse]:
    made = Langfuse(
        public_key="pk",
        secret_key="sk",
        base_url="http://127.0.0.1:9",
        tracer_provider=TracerProvider(),
        span_exporter=Nowhere(),
    )
    yield made
    made.shutdown()


def run(langfuse: Langfuse, reply: str, **arguments: Any) -> Dict[str, Any]:
    item = {"input": "Who did it?", "expected_output": None, "metadata": {"persona_id": "marple"}}
    result = langfuse.run_experiment(
        name="persona", data=[item], task=lambda **given: reply, evaluators=[persona_evaluator(**arguments)]
    )
    return {one.name: one for one in result.item_results[0].evaluations}


def test_an_experiment_has_numbers_and_categories(judge: Judge, langfuse: Langfuse) -> None:
    found = run(langfuse, "[0.9 0.8 0.1]", persona_id="poirot")
    assert found["prism_s"].value == pytest.approx(0.6)
    assert (found["prism_s"].data_type, found["prism_status"].data_type) == ("NUMERIC", "CATEGORICAL")
    assert found["prism_status"].value == "ok"
    assert found["prism_task_framing_label"].value == "aligned"
    assert found["prism_linguistic_style_label"].value == "contradictory"
    assert {body["persona_id"] for body in judge.asked("ScoreGroup")} == {"marple"}


def test_what_cannot_be_judged_has_a_status_and_no_number(judge: Judge, langfuse: Langfuse) -> None:
    found = run(langfuse, "[error deadline_exceeded]")
    assert {name: one.value for name, one in found.items()} == {"prism_status": "deadline_exceeded"}


def test_scores_are_arguments_of_create_score(langfuse: Langfuse, judge: Judge) -> None:
    for score in scores(ItemError("internal", "the model failed"), "judge"):
        langfuse.create_score(trace_id="0" * 32, **score)
        assert score["name"] == "judge_status"
