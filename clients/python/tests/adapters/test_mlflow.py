"""MLflow's own ``evaluate`` runs the scorer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Dict, List

import pytest

from .judge import Judge

mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")

from prism_judge.adapters.mlflow import PersonaFidelity  # noqa: E402

NAMES = ["prism", "prism_task_framing", "prism_interpersonal_stance", "prism_linguistic_style"]


def run(folder: Path, rows: List[Dict[str, Any]], **arguments: Any) -> Any:
    mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
    mlflow.set_experiment("persona")
    return mlflow.genai.evaluate(data=rows, scorers=[PersonaFidelity(**arguments)])


def row(reply: Any, **expectations: Any) -> Dict[str, Any]:
    asked = {"messages": [{"role": "user", "content": "Who did it?"}]}
    return {"inputs": asked, "outputs": reply, "expectations": expectations}


def test_evaluate_has_the_means_of_s_prism_and_the_dimensions(judge: Judge, tmp_path: Path) -> None:
    result = run(tmp_path, [row("[0.9 0.8 0.7]"), row("[0.1 0.4 0.1]")], persona_id="poirot")
    assert result.metrics["prism/mean"] == pytest.approx(0.5)
    assert result.metrics["prism_interpersonal_stance/mean"] == pytest.approx(0.6)
    assert judge.asked("ScoreGroup")[0]["context"] == [{"speaker": "User", "text": "Who did it?"}]


def test_a_row_names_its_persona(judge: Judge, tmp_path: Path) -> None:
    run(tmp_path, [row("Yes.", persona_id="marple")], persona_id="poirot")
    assert {body["persona_id"] for body in judge.asked("ScoreGroup")} == {"marple"}


def test_what_cannot_be_judged_is_an_error_and_has_no_value(judge: Judge) -> None:
    scorer = PersonaFidelity(persona_id="poirot")
    found = scorer.run(inputs={"question": "Who did it?"}, outputs="[error deadline_exceeded]")
    assert [feedback.name for feedback in found] == NAMES
    assert {feedback.value for feedback in found} == {None}
    assert {feedback.error_code for feedback in found} == {"DEADLINE_EXCEEDED"}


def test_a_failed_row_is_not_in_the_means(judge: Judge, tmp_path: Path) -> None:
    result = run(tmp_path, [row("[0.9 0.8 0.7]"), row("[error internal]")], persona_id="poirot")
    assert result.metrics["prism/mean"] == pytest.approx(0.8)


def test_the_answer_of_a_chat_completion_is_a_reply(judge: Judge) -> None:
    answer = {"choices": [{"message": {"role": "assistant", "content": "[0.9 0.8 0.7]"}}]}
    [feedback, *_] = PersonaFidelity(persona_id="poirot").run(inputs={"question": "Who did it?"}, outputs=answer)
    assert feedback.value == pytest.approx(0.8)
    assert "linguistic style" in feedback.rationale
