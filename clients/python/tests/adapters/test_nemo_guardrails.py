"""NeMo Guardrails' own dispatcher runs the action, in an output rail around a scripted model."""

from __future__ import annotations

from typing import Any, List

import pytest

from .judge import Judge

pytest.importorskip("nemoguardrails", reason="nemoguardrails is not installed")
from nemoguardrails import LLMRails, RailsConfig
from nemoguardrails.testing import FakeLLMModel

from prism_judge.adapters.nemo_guardrails import make_action

GOOD, BAD = "[0.9 0.8 0.7]", "[0.2 0.4 0.3]"
YAML = """
models: []
rails:
  output:
    flows:
      - prism judge
"""
COLANG = """
define bot refuse to respond
  "Pardon?"

define subflow prism judge
  $outcome = execute prism_judge_check
  if $outcome.is_blocked
    bot refuse to respond
    stop
"""


def chat(messages: List[Any], reply: str, **arguments: Any) -> str:
    rails = LLMRails(RailsConfig.from_content(COLANG, YAML), llm=FakeLLMModel(responses=[reply]))
    rails.register_action(make_action(**{"persona_id": "poirot", **arguments}), "prism_judge_check")
    return str(rails.generate(messages=messages)["content"])


ASK = [{"role": "user", "content": "Who did it?"}]


def test_a_reply_in_character_is_shown(judge: Judge) -> None:
    assert chat(ASK, GOOD) == GOOD
    [body] = judge.asked("Check")
    assert body["candidate"]["response"] == GOOD
    assert body["context"] == [{"speaker": "User", "text": "Who did it?"}]


def test_a_reply_out_of_character_is_refused(judge: Judge) -> None:
    assert chat(ASK, BAD) == "Pardon?"


def test_the_judge_gets_the_whole_dialogue(judge: Judge) -> None:
    said = [*ASK, {"role": "assistant", "content": "Patience."}, {"role": "user", "content": "Now?"}]
    chat(said, GOOD)
    assert [turn["text"] for turn in judge.asked("Check")[0]["context"]] == ["Who did it?", "Patience.", "Now?"]


def test_the_persona_may_be_a_context_variable(judge: Judge) -> None:
    chat([{"role": "context", "content": {"persona_id": "marple"}}, *ASK], GOOD)
    assert judge.asked("Check")[0]["persona_id"] == "marple"


def test_an_outage_is_decided_by_on_error(judge: Judge) -> None:
    judge.down = True
    assert chat(ASK, BAD, timeout=0.2) == BAD
    assert chat(ASK, GOOD, timeout=0.2, on_error="block") == "Pardon?"
