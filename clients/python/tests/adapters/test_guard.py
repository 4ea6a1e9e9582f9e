"""The check that all guardrails share, without a host."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from prism_judge import CheckResult, InvalidInputError, NotFoundError, Policy, Thresholds, Turn, UnauthenticatedError
from prism_judge.adapters._guard import Guard, report
from prism_judge.adapters._settings import Settings, Who

from .judge import Judge

POIROT = Settings(persona_id="poirot")
ASKED = [Turn("User", "Who did it?")]
KEYS = {"status", "decision", "reason", "failed", "policy", "s_prism", "error"}
KEYS |= {"task_framing", "interpersonal_stance", "linguistic_style"}


def both(guard: Guard, response: str, **kwargs: Any) -> CheckResult:
    """The check, the same for threads and asyncio."""
    check = guard.check(response, ASKED, **kwargs)
    assert asyncio.run(guard.acheck(response, ASKED, **kwargs)) == check
    return check


@pytest.mark.parametrize(("reply", "decision"), [("[0.9 0.8 0.7]", "allow"), ("[0.2 0.4 0.3]", "block")])
def test_the_judges_policy_decides(judge: Judge, reply: str, decision: str) -> None:
    assert both(Guard(POIROT), reply).decision == decision


def test_a_policy_of_its_own_decides(judge: Judge) -> None:
    policy = Policy(block=Thresholds(linguistic_style=0.3), warn=Thresholds(s_prism=0.9))
    assert both(Guard(POIROT, policy), "[0.9 0.9 0.2]").failed == "linguistic_style"
    assert both(Guard(POIROT, policy), "[0.9 0.9 0.3]").decision == "warn"
    assert both(Guard(POIROT, "strict"), "[0.9 0.9 0.3]").policy_name == "strict"


def test_a_reply_without_text_is_not_judged(judge: Judge) -> None:
    for reply in ("", " \n", "<think>and then"):
        assert both(Guard(POIROT), reply).decision == "abstain"
    assert judge.requests == []


def test_only_the_text_after_the_thought_is_judged(judge: Judge) -> None:
    assert both(Guard(POIROT), "[0 0 0]</think>[0.9 0.8 0.7]").decision == "allow"


def test_half_a_surrogate_pair_does_not_open_the_gate(judge: Judge) -> None:
    assert both(Guard(POIROT), "[0.2 0.4 0.3] \ud83d").decision == "block"
    assert Guard(POIROT).check("[0.2 0.4 0.3]", [Turn("User", "Who? \ud83d")]).decision == "block"


@pytest.mark.parametrize("on_error", ["allow", "block"])
def test_an_outage_is_decided_by_on_error_and_is_never_a_pass(judge: Judge, on_error: Any) -> None:
    judge.down = True
    settings = Settings(persona_id="poirot", timeout=0.2)
    for guard in (Guard(settings, on_error=on_error), Guard(settings, Policy(on_error=on_error))):
        check = guard.check("[0.9 0.8 0.7]", ASKED)
        assert check.decision == on_error
        assert check.error is not None
        assert report(check)["status"] == "error"


def test_an_outage_allows_unless_told_otherwise(judge: Judge) -> None:
    judge.down = True
    assert Guard(Settings(persona_id="poirot", timeout=0.2)).check("Yes.", ASKED).decision == "allow"


def test_a_response_that_cannot_be_judged_is_decided_by_the_policy(judge: Judge) -> None:
    policy = Policy(block=Thresholds(s_prism=0.5), on_error="block")
    check = both(Guard(POIROT, policy), "[error internal]")
    assert (check.decision, report(check)["status"]) == ("block", "error")


def test_a_guardrail_that_is_set_up_wrongly_does_not_look_as_if_it_worked(judge: Judge) -> None:
    with pytest.raises(NotFoundError):
        Guard(Settings(persona_id="nobody")).check("Yes.", ASKED)
    with pytest.raises(InvalidInputError, match="PRISM_JUDGE_PERSONA"):
        Guard(Settings()).check("Yes.", ASKED)
    with pytest.raises(InvalidInputError, match="on_error"):
        Guard(POIROT, on_error="ignore")  # type: ignore[arg-type]
    judge.key = "right"
    with pytest.raises(UnauthenticatedError):
        Guard(POIROT).check("Yes.", ASKED)


def test_a_call_may_name_its_own_persona(judge: Judge) -> None:
    both(Guard(POIROT), "[1 1 1]", who=Who(persona_id="marple"))
    assert {body["persona_id"] for body in judge.asked("Check")} == {"marple"}


def test_a_report_has_the_same_keys_each_time_and_is_json(judge: Judge) -> None:
    checks = [both(Guard(POIROT), reply) for reply in ("[0.9 0.8 0.7]", "[0.2 0.4 0.3]", "[error internal]", "")]
    for check in checks:
        told = report(check)
        assert set(told) == KEYS
        json.dumps(told, allow_nan=False)
    assert [report(check)["status"] for check in checks] == ["allow", "block", "error", "abstain"]
    assert report(checks[0])["task_framing"] == 0.9
