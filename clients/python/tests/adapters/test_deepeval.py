"""DeepEval's own ``evaluate`` and ``assert_test`` run the metric."""

from __future__ import annotations

from typing import Any, List

import pytest

from .judge import Judge


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """DeepEval leaves files where it runs."""
    monkeypatch.chdir(tmp_path)


pytest.importorskip("deepeval", reason="deepeval is not installed")
from deepeval import assert_test, evaluate  # noqa: E402
from deepeval.errors import MissingTestCaseParamsError  # noqa: E402
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig  # noqa: E402
from deepeval.test_case import ConversationalTestCase, Turn  # noqa: E402

from prism_judge import JudgementError  # noqa: E402
from prism_judge.adapters.deepeval import PersonaFidelityMetric  # noqa: E402

ROLE = "A vain Belgian detective."


def case(*replies: str, role: Any = ROLE) -> ConversationalTestCase:
    turns: List[Turn] = []
    for reply in replies:
        turns += [Turn(role="user", content="And then?"), Turn(role="assistant", content=reply)]
    return ConversationalTestCase(turns=turns, chatbot_role=role)


def run(made: ConversationalTestCase, metric: PersonaFidelityMetric, asynchronous: bool, ignore: bool = False) -> Any:
    result = evaluate(
        [made],
        [metric],
        async_config=AsyncConfig(run_async=asynchronous),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
        error_config=ErrorConfig(ignore_errors=ignore),
    )
    [data] = result.test_results[0].metrics_data
    return data


@pytest.mark.parametrize("asynchronous", [False, True])
def test_the_score_is_the_mean_over_the_turns(judge: Judge, asynchronous: bool) -> None:
    data = run(case("[0.9 0.8 0.7]", "[0.1 0.4 0.1]"), PersonaFidelityMetric(threshold=0.5), asynchronous)
    assert data.score == pytest.approx((0.8 + 0.2) / 2)
    assert data.success == (data.score >= 0.5)
    assert "turn 3" in data.reason
    [body] = judge.asked("ScoreDialogue")
    assert body["persona"]["description"] == ROLE
    assert (body["agent"], body["lane"], len(body["turns"])) == ("Assistant", "LANE_BATCH", 4)


def test_the_breakdown_has_dimensions_and_turns(judge: Judge) -> None:
    metric = PersonaFidelityMetric()
    assert metric.measure(case("[0.9 0.8 0.7]", "[0.1 0.4 0.1]")) == pytest.approx(0.5)
    assert metric.score_breakdown == {
        "task_framing": pytest.approx(0.5),
        "interpersonal_stance": pytest.approx(0.6),
        "linguistic_style": pytest.approx(0.4),
        "turn_1": pytest.approx(0.8),
        "turn_3": pytest.approx(0.2),
    }


def test_assert_test_passes_and_fails(judge: Judge) -> None:
    assert_test(case("[0.9 0.8 0.7]"), [PersonaFidelityMetric(threshold=0.7)])
    with pytest.raises(AssertionError, match="Persona Fidelity"):
        assert_test(case("[0.2 0.4 0.3]"), [PersonaFidelityMetric(threshold=0.7)])


def test_strict_mode_takes_nothing_but_one(judge: Judge) -> None:
    for reply, score in (("[0.9 0.8 0.7]", 0.0), ("[1 1 1]", 1.0)):
        metric = PersonaFidelityMetric(strict_mode=True)
        assert metric.measure(case(reply)) == score
        assert metric.is_successful() == (score == 1.0)


def test_only_the_text_after_the_thought_is_judged(judge: Judge) -> None:
    assert PersonaFidelityMetric().measure(case("[0 0 0]</think>[1 1 1]")) == 1.0


def test_a_named_persona_goes_before_the_chatbots_role(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRISM_JUDGE_PERSONA", "marple")
    PersonaFidelityMetric(persona_id="poirot").measure(case("Yes."))
    PersonaFidelityMetric().measure(case("Yes."))
    PersonaFidelityMetric().measure(case("Yes.", role=None))
    first, second, third = judge.asked("ScoreDialogue")
    assert (first["persona_id"], second["persona"]["description"], third["persona_id"]) == ("poirot", ROLE, "marple")


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_turn_that_cannot_be_judged_is_an_error_and_no_score(judge: Judge, asynchronous: bool) -> None:
    broken = case("[0.9 0.8 0.7]", "[error deadline_exceeded]")
    with pytest.raises(JudgementError):
        run(broken, PersonaFidelityMetric(), asynchronous)
    data = run(broken, PersonaFidelityMetric(), asynchronous, ignore=True)
    assert (data.score, data.success) == (None, False)
    assert "deadline_exceeded" in data.error


def test_a_case_without_a_persona_can_be_skipped(judge: Judge) -> None:
    with pytest.raises(MissingTestCaseParamsError, match="chatbot_role"):
        PersonaFidelityMetric().measure(case("Yes.", role=None))
