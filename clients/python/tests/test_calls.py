"""Every method says what the judge said, whichever client asks over whichever transport."""

from __future__ import annotations

import math
from typing import Any, Dict, List

import pytest
from brain import Fault, Json, evidences, s_prism
from conftest import Judge

from prism_judge import (
    DIMENSIONS,
    ApiError,
    Candidate,
    CheckResult,
    DeadlineExceededError,
    DialogueResult,
    DimensionWeights,
    InternalError,
    InvalidArgumentError,
    InvalidInputError,
    Item,
    ItemError,
    JudgementError,
    NamedPersona,
    NotFoundError,
    Options,
    PermissionDeniedError,
    Persona,
    Policy,
    ProtocolError,
    RequestTooLargeError,
    Shaping,
    Thresholds,
    TraitTarget,
    Turn,
    UnauthenticatedError,
    Verdict,
    rewards,
)

HOST = Persona(name="Ada", traits=[TraitTarget("extraversion", "high")], description="A host.", facts=["She sings."])
HOST_JSON: Json = {
    "name": "Ada",
    "traits": [{"trait": "TRAIT_EXTRAVERSION", "polarity": "POLARITY_HIGH"}],
    "description": "A host.",
    "facts": ["She sings."],
}
CONTEXT = [Turn("User", "Coming tonight?"), Turn("Ada", "Sure."), ("User", "Who else?")]
CONTEXT_JSON = [
    {"speaker": "User", "text": "Coming tonight?"},
    {"speaker": "Ada", "text": "Sure."},
    {"speaker": "User", "text": "Who else?"},
]
ABOUT: Json = {"persona": HOST_JSON, "context": CONTEXT_JSON}
TEXTS = ["Yes! Everyone.", "No idea, größer 😀", "", 'a\n\t"quoted" \\ \x00 text', "Yes! Everyone."]


def test_score_gives_the_verdict(judge: Judge) -> None:
    verdict = judge.score(Candidate("Yes! Everyone.", id="12"), persona=HOST, context=CONTEXT)
    assert isinstance(verdict, Verdict)
    values = evidences(ABOUT, "Yes! Everyone.")
    assert verdict.id == "12"
    assert verdict.s_prism == sum(values) / 3
    for name, value in zip(DIMENSIONS, values):
        dimension = getattr(verdict.dimensions, name)
        assert (dimension.aligned, dimension.evidence) == (value, value)
        assert dimension.indeterminate == (1 - value) / 4
        assert dimension.contradictory == (1 - value) * 3 / 4
        assert dimension.label_mass == 0.5
        assert dimension.label_order == (("aligned", "indeterminate", "contradictory"),)
    assert verdict.weakest_dimension == DIMENSIONS[values.index(min(values))]
    assert (verdict.judge.model, verdict.judge.prompt_digest) == ("hashes", "b" * 64)
    assert (verdict.judge.evidence, verdict.judge.numerics) == ("label_slot", "f32")
    assert (verdict.tokens.prompt, verdict.tokens.computed, verdict.cached) == (320, 188, False)
    assert (verdict.warnings.response.invisible, verdict.warnings.request.invisible) == (14, 0)
    assert verdict.reward is None


def test_score_group_keeps_the_order_and_errors_stand_in_their_place(judge: Judge) -> None:
    texts = [*TEXTS, "FAIL", "after"]
    results = judge.score_group(texts, persona=HOST, context=CONTEXT)
    error = results.pop(5)
    assert error == ItemError("invalid_argument", "too long", "candidates[5].response", None, "", 5)
    texts.remove("FAIL")
    assert [result.s_prism for result in results] == [s_prism(ABOUT, text) for text in texts]


def test_score_many_gives_each_item_its_own_persona_and_context(judge: Judge) -> None:
    items: List[Any] = []
    abouts: List[Json] = []
    for index in range(40):
        name = f"P{index % 3}"
        context = "" if index % 2 else f"Question {index % 5}"
        items.append(Item(f"reply {index}", persona=Persona(description=name), context=context, id=f"id{index}"))
        turns = [{"speaker": "User", "text": context}] if context else []
        abouts.append({"persona": {"description": name}, "context": turns})
    items.append({"response": "FAIL", "persona_id": "host", "persona": None, "context": None, "id": None})
    items.append({"response": "x", "persona_id": "nobody"})
    results = judge.score_many(items)
    assert [result.s_prism for result in results[:40]] == [
        s_prism(about, item.response) for about, item in zip(abouts, items)
    ]
    assert [result.id for result in results[:40]] == [item.id for item in items[:40]]
    assert results[40] == ItemError("invalid_argument", "too long", "items[40].response", None, "", 40)
    assert results[41].code == "not_found"
    assert results[41].index == 41
    # Three personas with six contexts, and the two others.
    assert len(judge.brain.requests) == 18 + 2


def test_score_many_raises_what_concerns_all_items(judge: Judge) -> None:
    judge.brain.key = "secret"
    with pytest.raises(UnauthenticatedError):
        judge.score_many([Item("x", persona_id="host"), Item("y", persona_id="shy")])


def test_score_dialogue_gives_the_agents_turns_and_the_drift(judge: Judge) -> None:
    turns = [("User", "Hi"), ("Ada", "Hello!"), ("User", "Well?"), ("ada", "Hm."), ("User", "Bye")]
    result = judge.score_dialogue(turns, persona=HOST)
    assert isinstance(result, DialogueResult)
    assert [one.turn for one in result.results] == [1, 3]
    before = [{"speaker": speaker, "text": text} for speaker, text in turns]
    values = [s_prism({"persona": HOST_JSON, "context": before[:at]}, turns[at][1]) for at in (1, 3)]
    assert rewards([one.result for one in result.results]) == values
    assert result.drift is not None
    assert result.drift.s_prism.mean == sum(values) / 2
    assert result.drift.s_prism.slope == 0.125
    assert result.drift.linguistic_style.change == values[1] - values[0]
    assert (result.drift.task_framing.lowest, result.drift.task_framing.lowest_turn) == min(zip(values, (1, 3)))


def test_check_gives_the_decision(judge: Judge) -> None:
    value = s_prism({"persona_id": "host"}, "Yes!")
    low = Policy(block=Thresholds(s_prism=value / 2))
    high = Policy(block=Thresholds(s_prism=(1 + value) / 2), warn=Thresholds(task_framing=0.5), budget_ms=200)
    allowed = judge.check("Yes!", persona_id="host", policy=low)
    assert isinstance(allowed, CheckResult)
    assert (allowed.decision, allowed.failed, allowed.error) == ("allow", "", None)
    assert allowed.verdict is not None
    assert allowed.verdict.s_prism == value
    blocked = judge.check("Yes!", persona_id="host", policy=high)
    assert (blocked.decision, blocked.failed) == ("block", "s_prism")
    assert str((1 + value) / 2) in blocked.reason
    named = judge.check("Yes!", persona_id="host", policy_name="strict")
    assert named.policy_name == "strict"


def test_a_check_that_failed_has_its_error(judge: Judge) -> None:
    result = judge.check("FAIL", persona_id="host", policy=Policy(on_error="block", min_tokens=3))
    assert result.decision == "block"
    assert result.verdict is None
    assert (result.error.code, result.error.retry_after_ms) == ("overloaded", 250)


def test_rank_orders_with_margins(judge: Judge) -> None:
    texts = [*TEXTS, "FAIL"]
    result = judge.rank([Candidate(text, id=f"c{index}") for index, text in enumerate(texts)], persona_id="host")
    values = [s_prism({"persona_id": "host"}, text) for text in TEXTS]
    order = sorted(range(len(values)), key=lambda index: -values[index])
    assert [one.index for one in result.ranking] == order
    assert [one.id for one in result.ranking] == [f"c{index}" for index in order]
    assert [one.value for one in result.ranking] == [values[index] for index in order]
    assert [one.rank for one in result.ranking] == [1 + sum(v > values[index] for v in values) for index in order]
    first, second = order[:2]
    assert result.ranking[0].margin == values[first] - values[second]
    assert result.best == result.ranking[0]
    assert [error.index for error in result.failed] == [5]


def test_personas_and_info(judge: Judge) -> None:
    assert judge.personas() == [NamedPersona("host", "Ada", "d" * 64), NamedPersona("shy", "", "")]
    info = judge.info()
    assert (info.parameters, info.context_length, info.threads) == (134515008, 8192, 2)
    assert info.answer_slot == ("A", "B", "C")
    assert info.options == Options("likelihood", "shared", "content", "none", False, 0.4, 0.2)


def test_no_responses_are_no_call(judge: Judge) -> None:
    assert judge.score_group([], persona_id="host") == []
    assert judge.score_many([]) == []
    assert judge.rank([], persona_id="host").best is None
    assert judge.brain.requests == []


def test_what_is_asked_arrives_as_the_contract_has_it(judge: Judge) -> None:
    judge.score_group(
        [Candidate("a", "1"), {"response": "b", "id": "2"}],
        persona=HOST,
        context=CONTEXT,
        options=Options("likelihood", "released", "all", "contextual", True, 0.5, -1.0),
        shaping=Shaping(DimensionWeights(1, 0.5, 2.5), "geometric", "margin", True),
        lane="batch",
        cache="refresh",
        request_id="step 7",
    )
    ((method, message, _),) = judge.brain.requests
    assert method == "ScoreGroup"
    assert message == {
        "persona": HOST_JSON,
        "context": CONTEXT_JSON,
        "candidates": [{"id": "1", "response": "a"}, {"id": "2", "response": "b"}],
        "options": {
            "evidence": "EVIDENCE_KIND_LIKELIHOOD",
            "layout": "LAYOUT_RELEASED",
            "label_order": "LABEL_ORDER_ALL",
            "calibration": "CALIBRATION_CONTEXTUAL",
            "persona_block": True,
            "likelihood_t": 0.5,
            "likelihood_b": -1.0,
        },
        "request_id": "step 7",
        "lane": "LANE_BATCH",
        "cache": "CACHE_CONTROL_REFRESH",
        "shaping": {
            "weights": {"task_framing": 1.0, "interpersonal_stance": 0.5, "linguistic_style": 2.5},
            "aggregation": "AGGREGATION_GEOMETRIC",
            "signal": "REWARD_SIGNAL_MARGIN",
            "group_z_score": True,
        },
    }


def test_a_policy_arrives_as_the_contract_has_it(judge: Judge) -> None:
    policy = Policy(Thresholds(s_prism=0.25), Thresholds(0.5, 0.0, 0.125, 1.0), "block", 200, 8)
    judge.check("a", persona_id="host", policy=policy, lane="train")
    (message,) = judge.brain.messages()
    assert message["policy"] == {
        "block": {"s_prism": 0.25},
        "warn": {"s_prism": 0.5, "task_framing": 0.0, "interpersonal_stance": 0.125, "linguistic_style": 1.0},
        "on_error": "ON_ERROR_BLOCK",
        "budget_ms": 200,
        "min_tokens": 8,
    }
    assert message["lane"] == "LANE_TRAIN"


def test_the_deadline_and_the_key_travel_along(judge: Judge) -> None:
    judge.brain.key = "s3cret"
    judge.remake(api_key="s3cret", timeout=20).info()
    ((_, _, headers),) = judge.brain.requests
    if judge.transport == "grpc":
        assert 10 < headers["grpc-timeout"] <= 20
    else:
        assert 10_000 < int(headers["x-timeout-ms"]) <= 20_000
    assert "s3cret" not in repr(judge.client)


def test_address_and_key_come_from_the_environment(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRISM_JUDGE_URL", judge.server.url)
    monkeypatch.setenv("PRISM_JUDGE_API_KEY", "from outside")
    judge.brain.key = "from outside"
    judge.close()
    judge.client = type(judge.client)()
    assert judge.info().model == "hashes"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INVALID_ARGUMENT", InvalidArgumentError),
        ("UNAUTHENTICATED", UnauthenticatedError),
        ("PERMISSION_DENIED", PermissionDeniedError),
        ("NOT_FOUND", NotFoundError),
        ("OUT_OF_RANGE", RequestTooLargeError),
        ("INTERNAL", InternalError),
        ("DEADLINE_EXCEEDED", DeadlineExceededError),
    ],
)
def test_a_failed_call_raises_its_own_error_and_is_not_repeated(judge: Judge, code: str, kind: type) -> None:
    judge.brain.faults.append(Fault(code, "in plain words", (("persona.name", "too long"),), reason="WHY"))
    with pytest.raises(kind) as caught:
        judge.score("x", persona_id="host", request_id="r1")
    error = caught.value
    assert isinstance(error, ApiError)
    assert (error.code, error.message, error.reason, error.request_id) == (code, "in plain words", "WHY", "r1")
    assert error.fields == (("persona.name", "too long"),)
    assert len(judge.brain.requests) == 1


def _drop(reply: Json) -> None:
    reply["results"].pop()


def _swap(reply: Json) -> None:
    reply["results"].reverse()


def _swap_indices(reply: Json) -> None:
    first, second = reply["results"]
    first["index"], second["index"] = 1, 0


def _other_request(reply: Json) -> None:
    reply["request_id"] = "another"


def _other_verdict(reply: Json) -> None:
    reply["results"][1]["verdict"]["id"] = "one"


def _no_result(reply: Json) -> None:
    del reply["results"][0]["verdict"]


def _nan(reply: Json) -> None:
    reply["results"][0]["verdict"]["s_prism"] = math.nan


def _infinite(reply: Json) -> None:
    reply["results"][0]["verdict"]["dimensions"]["task_framing"]["aligned"] = math.inf


def _no_dimension(reply: Json) -> None:
    del reply["results"][0]["verdict"]["dimensions"]["task_framing"]


@pytest.mark.parametrize(
    "tamper",
    [_drop, _swap, _swap_indices, _other_request, _other_verdict, _no_result, _nan, _infinite, _no_dimension],
)
def test_an_answer_to_something_else_is_refused(judge: Judge, tamper: Any) -> None:
    def change(method: str, reply: Json) -> Json:
        tamper(reply)
        return reply

    judge.brain.tamper = change
    with pytest.raises(ProtocolError):
        judge.score_group([Candidate("a", "one"), Candidate("b", "two")], persona_id="host")
    assert len(judge.brain.requests) == 1


@pytest.mark.parametrize("turns", [[1], [1, 2], [3, 1], [1, 1, 3], [1, 3, 9], []])
def test_turns_that_are_not_the_agents_are_refused(judge: Judge, turns: List[int]) -> None:
    def change(method: str, reply: Json) -> Json:
        one = reply["results"][0]
        found = one["verdict"]
        reply["results"] = [{"turn": turn, "verdict": {**found, "id": str(turn)}} for turn in turns]
        return reply

    judge.brain.tamper = change
    said = [("User", "a"), ("Ada", "b"), ("User", "c"), ("Ada", "d")]
    with pytest.raises(ProtocolError):
        judge.score_dialogue(said, persona_id="host", agent="Ada")


def _missing(ranking: List[Dict[str, Any]]) -> None:
    ranking.pop()


def _twice(ranking: List[Dict[str, Any]]) -> None:
    ranking[1] = ranking[0]


def _unordered(ranking: List[Dict[str, Any]]) -> None:
    ranking.reverse()


def _other(ranking: List[Dict[str, Any]]) -> None:
    ranking[0]["id"] = ranking[1]["id"]


@pytest.mark.parametrize("tamper", [_missing, _twice, _unordered, _other])
def test_a_ranking_of_something_else_is_refused(judge: Judge, tamper: Any) -> None:
    def change(method: str, reply: Json) -> Json:
        tamper(reply["ranking"])
        return reply

    judge.brain.tamper = change
    with pytest.raises(ProtocolError):
        judge.rank([Candidate("a", "one"), Candidate("b", "two"), Candidate("c", "three")], persona_id="host")


def test_a_verdict_for_another_candidate_is_refused(judge: Judge) -> None:
    def change(method: str, reply: Json) -> Json:
        reply["verdict"]["id"] = "another"
        return reply

    judge.brain.tamper = change
    with pytest.raises(ProtocolError):
        judge.score(Candidate("a", "one"), persona_id="host")
    with pytest.raises(ProtocolError):
        judge.check(Candidate("a", "one"), persona_id="host")


def test_rewards_are_the_shaped_ones_where_there_are_some(judge: Judge) -> None:
    texts = ["a", "FAIL", "b"]
    plain = judge.score_group(texts, persona_id="host")
    assert rewards(plain) == [s_prism({"persona_id": "host"}, "a"), None, s_prism({"persona_id": "host"}, "b")]
    shaped = judge.score_group(texts, persona_id="host", shaping=Shaping(aggregation="min"))
    assert rewards(shaped) == [
        min(evidences({"persona_id": "host"}, "a")),
        None,
        min(evidences({"persona_id": "host"}, "b")),
    ]
    with pytest.raises(JudgementError, match="response 1 could not be judged: invalid_argument: too long") as caught:
        rewards(shaped, on_error="raise")
    assert [error.index for error in caught.value.errors] == [1]
    assert rewards(plain[:1], on_error="raise") == [plain[0].s_prism]
    with pytest.raises(InvalidInputError):
        rewards(plain, on_error="zero")  # type: ignore[call-overload]
