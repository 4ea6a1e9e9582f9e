"""What is wrong with the arguments is said before anything is sent."""

from __future__ import annotations

from typing import Any, Dict, Tuple

import pytest
from conftest import Judge
from http_server import HttpServer

from prism_judge import (
    Client,
    DimensionWeights,
    InvalidInputError,
    Item,
    Options,
    Persona,
    Policy,
    Shaping,
    Thresholds,
    TraitTarget,
    Turn,
)

LONE = "half of a pair \ud83d"
HOST = {"persona_id": "host"}
CASES: Dict[str, Tuple[str, Tuple[Any, ...], Dict[str, Any]]] = {
    "candidate.response": ("score", (LONE,), HOST),
    "candidate": ("score", (None,), HOST),
    "candidates[1].response": ("score_group", (["a", LONE],), HOST),
    "candidates[1]": ("score_group", (["a", None],), HOST),
    "candidates[0]": ("score_group", ([7],), HOST),
    "candidates": ("score_group", ("one text",), HOST),
    "candidates[0].id": ("rank", ([{"response": "a", "id": 7}],), HOST),
    "items[1].response": ("score_many", ([Item("a", persona_id="host"), Item(None, persona_id="host")],), {}),  # type: ignore[arg-type]
    "items[0].context[0].text": ("score_many", ([Item("a", persona_id="host", context=[("User", LONE)])],), {}),
    "items[0].persona": ("score_many", ([Item("a")],), {}),
    "items[0]": ("score_many", (["a"],), {}),
    "items": ("score_many", ("a",), {}),
    "persona": ("score", ("a",), {}),
    "persona_id": ("score", ("a",), {"persona_id": LONE}),
    "persona.name": ("score", ("a",), {"persona": Persona(name=LONE)}),
    "persona.description": ("score", ("a",), {"persona": {"description": b"bytes"}}),
    "persona.facts": ("score", ("a",), {"persona": Persona(facts="one text")}),
    "persona.facts[1]": ("score", ("a",), {"persona": Persona(facts=["a", None])}),  # type: ignore[list-item]
    "persona.traits[0].trait": ("score", ("a",), {"persona": Persona(traits=[TraitTarget("kindness", "high")])}),  # type: ignore[arg-type]
    "persona.traits[0].polarity": ("score", ("a",), {"persona": Persona(traits=[{"trait": "openness"}])}),
    "context": ("score", ("a",), {**HOST, "context": LONE}),
    "context[0]": ("score", ("a",), {**HOST, "context": ["a text"]}),
    "context[1].speaker": ("score", ("a",), {**HOST, "context": [Turn("a", "b"), Turn(None, "b")]}),  # type: ignore[arg-type]
    "turns[0].text": ("score_dialogue", ([("User", None)],), HOST),
    "agent": ("score_dialogue", ([("User", "a")],), {**HOST, "agent": None}),
    "options": ("score", ("a",), {**HOST, "options": {"layout": "shared"}}),
    "options.layout": ("score", ("a",), {**HOST, "options": Options(layout="shard")}),  # type: ignore[arg-type]
    "options.likelihood_t": ("score", ("a",), {**HOST, "options": Options(likelihood_t=float("nan"))}),
    "options.persona_block": ("score", ("a",), {**HOST, "options": Options(persona_block="yes")}),  # type: ignore[arg-type]
    "shaping.weights.task_framing": (
        "score",
        ("a",),
        {**HOST, "shaping": Shaping(DimensionWeights(task_framing="1"))},  # type: ignore[arg-type]
    ),
    "shaping.aggregation": ("score", ("a",), {**HOST, "shaping": Shaping(aggregation="max")}),  # type: ignore[arg-type]
    "shaping.group_z_score": ("score", ("a",), {**HOST, "shaping": Shaping(group_z_score=True)}),
    "lane": ("score", ("a",), {**HOST, "lane": "LANE_TRAIN"}),
    "cache": ("score", ("a",), {**HOST, "cache": "on"}),
    "request_id": ("score", ("a",), {**HOST, "request_id": 7}),
    "timeout": ("score", ("a",), {**HOST, "timeout": 0}),
    "policy": ("check", ("a",), {**HOST, "policy": Policy(), "policy_name": "strict"}),
    "policy.on_error": ("check", ("a",), {**HOST, "policy": Policy(on_error="pass")}),  # type: ignore[arg-type]
    "policy.budget_ms": ("check", ("a",), {**HOST, "policy": Policy(budget_ms=-1)}),
    "policy.block.s_prism": ("check", ("a",), {**HOST, "policy": Policy(block=Thresholds(s_prism="0.5"))}),  # type: ignore[arg-type]
    "policy_name": ("check", ("a",), {**HOST, "policy_name": LONE}),
}


@pytest.mark.parametrize("field", CASES)
def test_a_wrong_argument_is_named(judge: Judge, field: str) -> None:
    method, positional, named = CASES[field]
    with pytest.raises(InvalidInputError) as caught:
        getattr(judge, method)(*positional, **named)
    assert caught.value.field == field
    assert isinstance(caught.value, ValueError)
    assert judge.brain.requests == []


def test_the_message_says_where_the_surrogate_is_and_not_the_text(judge: Judge) -> None:
    with pytest.raises(InvalidInputError) as caught:
        judge.score(LONE, persona_id="host")
    assert "character 15 is a lone surrogate (U+D83D)" in str(caught.value)
    assert "half" not in str(caught.value)


def test_one_of_persona_and_persona_id_is_needed(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match="not both"):
        judge.score("a", persona=Persona(name="Ada"), persona_id="host")
    with pytest.raises(InvalidInputError, match="a str is no persona"):
        judge.score("a", persona="host")


def test_an_unknown_field_of_a_mapping_is_named(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match="it has no field 'role'"):
        judge.score("a", persona_id="host", context=[{"role": "user", "text": "a"}])


def test_a_row_of_a_dataset_is_a_persona(judge: Judge) -> None:
    row = {"name": None, "traits": [{"trait": "openness", "polarity": "low"}], "description": "Dry.", "facts": None}
    judge.score("a", persona=row)
    (message,) = judge.brain.messages()
    assert message["persona"] == {
        "traits": [{"trait": "TRAIT_OPENNESS", "polarity": "POLARITY_LOW"}],
        "description": "Dry.",
    }


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("url", {"url": "127.0.0.1:8080"}),
        ("url", {"url": "ftp://host"}),
        ("url", {"url": "http://"}),
        ("url", {"url": "http://user:secret@host"}),
        ("url", {"url": "http://host/?a=b"}),
        ("url", {"url": "http://host:99999"}),
        ("url", {"url": "http://host/\r\nx: y"}),
        ("url", {"url": "grpc://host/path"}),
        ("url", {"url": 7}),
        ("api_key", {"api_key": "a\r\nx: y"}),
        ("api_key", {"api_key": "schlüssel"}),
        ("timeout", {"timeout": float("inf")}),
        ("timeout", {"timeout": True}),
        ("concurrency", {"concurrency": 0}),
        ("chunk_bytes", {"chunk_bytes": 1.5}),
        ("key_file", {"url": "https://host", "key_file": "a.pem"}),
        ("ca_file", {"ca_file": "a.pem"}),
    ],
)
def test_a_wrong_setting_is_named(field: str, settings: Dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Client(**settings)
    assert caught.value.field == field
    assert "secret" not in str(caught.value)
    assert "schlüssel" not in str(caught.value)


def test_a_path_before_the_routes_is_kept(http: HttpServer) -> None:
    with Client(http.url + "/judges/one/") as client:
        assert client.info().model == "hashes"
    assert http.heads == ["GET /judges/one/v1/info HTTP/1.1"]
