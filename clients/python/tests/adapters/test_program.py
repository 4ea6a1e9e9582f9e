"""The adapters against the real program, where there is one: it takes what they send, and the numbers are its own."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Any

from prism_judge import Client, Policy, Thresholds, Turn
from prism_judge.adapters._guard import Guard, report
from prism_judge.adapters._settings import Settings
from prism_judge.adapters.trl import prism_areward, prism_reward
from prism_judge.adapters.verl import compute_score

ASKED = "Are you coming tonight?"
REPLIES = ["Yes! Who else is in?", "I would rather read.", "", "Hm.</think>\n\nI would rather read."]


def post(url: str, body: Any) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


def test_all_ways_to_one_reply_give_the_same_bits(real: str) -> None:
    verdict = Client().score(REPLIES[1], persona_id="host", context=ASKED)
    rewards = prism_reward([ASKED] * 4, REPLIES, persona_id="host")
    assert rewards[1] == verdict.s_prism
    assert rewards[2] is None
    assert rewards[3] == verdict.s_prism
    messages = [[{"role": "system", "content": "Be kind."}, {"role": "user", "content": ASKED}]] * 4
    assert asyncio.run(prism_areward(messages, REPLIES, persona_id="host")) == rewards
    row = {"prompt": ASKED, "persona_id": "host"}
    assert asyncio.run(compute_score("set", REPLIES[1], None, row))["score"] == verdict.s_prism
    for prompt in (ASKED, messages[0]):
        slime = post(f"{real}/reward", {"prompt": prompt, "response": REPLIES[3], "label": "host"})
        assert slime == verdict.s_prism


def test_a_guardrail_blocks_and_allows(real: str) -> None:
    context = [Turn("User", ASKED)]
    for least, decision in ((0.0, "allow"), (1.0, "block")):
        guard = Guard(Settings(persona_id="host", timeout=60.0), Policy(block=Thresholds(s_prism=least)))
        check = guard.check(REPLIES[0], context)
        assert check.decision == decision
        assert 0.0 <= report(check)["s_prism"] <= 1.0


def test_a_dialogue_is_judged_turn_by_turn(real: str) -> None:
    turns = [Turn("User", ASKED), Turn("Assistant", "Yes!"), Turn("User", "Who else?"), Turn("Assistant", "Everyone!")]
    judged = Client().score_dialogue(turns, persona_id="host", agent="Assistant")
    alone = Client().score("Everyone!", persona_id="host", context=turns[:3])
    assert judged.results[1].result.s_prism == alone.s_prism  # type: ignore[union-attr]
