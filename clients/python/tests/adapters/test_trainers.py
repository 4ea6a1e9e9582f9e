"""The rewards of the trainers, without a trainer: what every one of them relies on."""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import os
import pickle
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Callable, Dict, List

import pytest

from prism_judge import InvalidInputError, JudgementError, Persona, Shaping, UnauthenticatedError
from prism_judge.adapters import trl, verl

from .judge import Judge

Expected = Callable[..., float]
ASKED = [("User", "Coming?")]
COLUMNS = {"prism_s", "prism_task_framing", "prism_interpersonal_stance", "prism_linguistic_style", "prism_error"}
METRICS = {"prism/s", "prism/task_framing", "prism/interpersonal_stance", "prism/linguistic_style", "prism/failed"}


def both(function: str, *args: Any, **kwargs: Any) -> List[Any]:
    """What the blocking and the asyncio reward function give."""
    blocking = getattr(trl, function)(*args, **kwargs)
    return [blocking, asyncio.run(trl.prism_areward(*args, **kwargs))]


class Log:
    """What a trainer is told."""

    def __init__(self) -> None:
        self.columns: Dict[str, List[Any]] = {}
        self.metrics: Dict[str, float] = {}

    def arguments(self) -> Dict[str, Any]:
        return {"log_extra": self.columns.__setitem__, "log_metric": self.metrics.__setitem__}


def test_the_reward_is_s_prism(judge: Judge, expected: Expected) -> None:
    for rewards in both("prism_reward", ["Coming?"] * 2, ["Yes!", "No."], persona_id="poirot"):
        assert rewards == [expected("Yes!", ASKED, persona_id="poirot"), expected("No.", ASKED, persona_id="poirot")]


def test_a_group_is_one_call(judge: Judge) -> None:
    trl.prism_reward(["a"] * 4 + ["b"] * 4, list("stuvwxyz"), persona_id=["poirot"] * 8)
    calls = judge.asked("ScoreGroup")
    assert sorted(len(call["candidates"]) for call in calls) == [4, 4]
    assert {call["lane"] for call in calls} == {"LANE_TRAIN"}


def test_texts_and_message_lists_get_the_same_reward(judge: Judge) -> None:
    texts = trl.prism_reward(["Coming?"], ["Yes!"], persona_id="poirot")
    messages = trl.prism_reward(
        [[{"role": "user", "content": "Coming?"}]], [[{"role": "assistant", "content": "Yes!"}]], persona_id="poirot"
    )
    assert texts == messages


def test_one_empty_reply_among_four_is_one_none(judge: Judge) -> None:
    for rewards in both("prism_reward", ["Coming?"] * 4, ["Yes!", "", "No.", "Maybe."], persona_id="poirot"):
        assert [reward is None for reward in rewards] == [False, True, False, False]
        assert all(isinstance(reward, float) for reward in rewards if reward is not None)
    for body in judge.asked("ScoreGroup"):
        json.dumps(body, allow_nan=False)
        assert all(candidate["response"] for candidate in body["candidates"])


@pytest.mark.parametrize(
    "completion", ["", " \n", None, "<think>and then", "ha \ud83d", [{"role": "assistant", "content": None}]]
)
def test_what_no_judge_could_judge_is_none_and_not_sent(judge: Judge, completion: object) -> None:
    log = Log()
    assert trl.prism_reward(["Coming?"], [completion], persona_id="poirot", **log.arguments()) == [None]
    assert judge.requests == []
    assert log.columns["prism_error"] == ["invalid_argument"]


def test_an_error_inside_a_group_leaves_the_others_alone(judge: Judge, expected: Expected) -> None:
    rewards = trl.prism_reward(["Coming?"] * 3, ["Yes!", "[error deadline_exceeded]", "No."], persona_id="poirot")
    assert rewards[1] is None
    assert rewards[0] == expected("Yes!", ASKED, persona_id="poirot")


def test_a_failed_call_leaves_other_prompts_alone(judge: Judge) -> None:
    log = Log()
    rewards = trl.prism_reward(
        ["a", "b"], ["[0.2 0.4 0.9]", "[status deadline_exceeded]"], persona_id="poirot", **log.arguments()
    )
    assert rewards == [0.5, None]
    assert log.columns["prism_error"] == ["", "deadline_exceeded"]


def test_what_is_logged_has_the_same_names_whatever_fails(judge: Judge) -> None:
    for completion in ("[0.2 0.4 0.9]", "[error deadline_exceeded]", "[status deadline_exceeded]", ""):
        log = Log()
        trl.prism_reward(["Coming?"], [completion], persona_id="poirot", **log.arguments())
        assert set(log.columns) == COLUMNS
        assert set(log.metrics) == METRICS
        assert all(len(column) == 1 for column in log.columns.values())
        assert all(isinstance(value, float) for value in log.metrics.values())


def test_what_is_logged_tells_the_dimensions_and_the_failures(judge: Judge) -> None:
    log = Log()
    completions = ["[0.2 0.4 0.9]", "", "[0.4 0.4 0.1]", "[error internal]"]
    trl.prism_reward(["Coming?"] * 4, completions, persona_id="poirot", **log.arguments())
    assert log.columns["prism_task_framing"] == [0.2, None, 0.4, None]
    assert log.columns["prism_error"] == ["", "invalid_argument", "", "internal"]
    assert log.metrics["prism/task_framing"] == pytest.approx(0.3)
    assert log.metrics["prism/failed"] == 0.5


def test_means_of_nothing_are_not_numbers(judge: Judge) -> None:
    log = Log()
    trl.prism_reward(["Coming?"], [""], persona_id="poirot", **log.arguments())
    assert math.isnan(log.metrics["prism/s"])
    assert log.metrics["prism/failed"] == 1.0


@pytest.mark.parametrize(("completion", "reward"), [("[0 0 0]", 0.0), ("[1 1 1]", 1.0)])
def test_whole_numbers_are_floats(judge: Judge, completion: str, reward: float) -> None:
    for [value] in both("prism_reward", ["Coming?"], [completion], persona_id="poirot"):
        assert value == reward
        assert isinstance(value, float)


def test_only_the_text_after_the_thought_is_judged(judge: Judge) -> None:
    thought = "I should be rude, [0 0 0].</think>\n\n[0.2 0.4 0.9]"
    for prefix in ("", "<think>"):
        assert trl.prism_reward(["Coming?"], [prefix + thought], persona_id="poirot") == [0.5]
    assert {c["response"] for call in judge.asked("ScoreGroup") for c in call["candidates"]} == {"[0.2 0.4 0.9]"}


def test_a_thought_that_the_prompt_begins_and_nobody_ends_is_no_reply(judge: Judge) -> None:
    assert trl.prism_reward(["Coming?<think>\n"], ["I should be"], persona_id="poirot") == [None]


def test_thoughts_can_be_judged_too(judge: Judge) -> None:
    trl.make_reward(persona_id="poirot", thinking="keep")(["Coming?"], ["<think>a</think>b"])
    assert judge.asked("ScoreGroup")[0]["candidates"][0]["response"] == "<think>a</think>b"


def test_counts_that_differ_raise(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match="prompts: there are 1 for 2 completions"):
        trl.prism_reward(["Coming?"], ["Yes!", "No."], persona_id="poirot")
    with pytest.raises(InvalidInputError, match="persona_id: it has 3 values for 2 completions"):
        trl.prism_reward(["Coming?"] * 2, ["Yes!", "No."], persona_id=["poirot"] * 3)
    assert judge.requests == []


def test_no_completions_are_no_rewards(judge: Judge) -> None:
    log = Log()
    assert trl.prism_reward([], [], persona_id=[], **log.arguments()) == []
    assert judge.requests == []


def test_each_row_may_have_its_own_persona(judge: Judge, expected: Expected) -> None:
    rewards = trl.prism_reward(["Coming?"] * 2, ["Yes!"] * 2, persona_id=["poirot", "marple"])
    assert rewards == [expected("Yes!", ASKED, persona_id=name) for name in ("poirot", "marple")]


def test_a_persona_may_be_inline(judge: Judge) -> None:
    trl.prism_reward(["Coming?"], ["Yes!"], persona=["An outgoing host."])
    trl.prism_reward(["Coming?"], ["Yes!"], persona=[{"name": "Ann", "description": None, "facts": ["She sails."]}])
    texts, whole = (call["persona"] for call in judge.asked("ScoreGroup"))
    assert texts["description"] == "An outgoing host."
    assert (whole["name"], whole["facts"]) == ("Ann", ["She sails."])


def test_a_row_that_names_nobody_gets_the_default(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRISM_JUDGE_PERSONA", "marple")
    trl.prism_reward(["a", "b"], ["Yes!", "No."], persona_id=["poirot", None])
    assert {call["persona_id"] for call in judge.asked("ScoreGroup")} == {"poirot", "marple"}


def test_a_row_that_names_nobody_has_no_reward_without_a_default(judge: Judge) -> None:
    log = Log()
    rewards = trl.prism_reward(["a", "b"], ["[1 1 1]", "No."], persona_id=["poirot", None], **log.arguments())
    assert rewards == [1.0, None]
    assert log.columns["prism_error"] == ["", "invalid_argument"]


def test_without_any_persona_nothing_is_judged(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match="PRISM_JUDGE_PERSONA"):
        trl.prism_reward(["Coming?"], ["Yes!"])


def test_a_row_with_two_personas_is_refused(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match=r"persona\[1\]"):
        trl.prism_reward(["a", "b"], ["Yes!", "No."], persona_id=["poirot", "poirot"], persona=[None, "A host."])


def test_an_unknown_persona_stops_the_run(judge: Judge) -> None:
    with pytest.raises(JudgementError, match="nobody"):
        trl.prism_reward(["Coming?"], ["Yes!"], persona_id="nobody")


def test_a_wrong_key_stops_the_run(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    judge.key = "right"
    with pytest.raises(UnauthenticatedError):
        trl.prism_reward(["Coming?"], ["Yes!"], persona_id="poirot")
    monkeypatch.setenv("PRISM_JUDGE_API_KEY", "right")
    assert trl.prism_reward(["Coming?"], ["[1 1 1]"], persona_id="poirot") == [1.0]


def test_an_outage_is_none_everywhere_and_not_zero(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRISM_JUDGE_TIMEOUT", "0.2")
    judge.down = True
    for rewards in both("prism_reward", ["a", "b"], ["Yes!", "No."], persona_id="poirot"):
        assert rewards == [None, None]


def test_an_outage_can_stop_the_run(judge: Judge) -> None:
    judge.down = True
    with pytest.raises(JudgementError):
        trl.make_reward(persona_id="poirot", timeout=0.2, on_error="raise")(["Coming?"], ["Yes!"])


def test_a_timeout_that_is_none_is_refused(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRISM_JUDGE_TIMEOUT", "soon")
    with pytest.raises(InvalidInputError, match="PRISM_JUDGE_TIMEOUT"):
        trl.prism_reward(["Coming?"], ["Yes!"], persona_id="poirot")


def test_the_reward_functions_are_what_they_look_like() -> None:
    """TRL asks whether a function is asynchronous; axolotl 0.19.0 (src/axolotl/core/trainers/grpo/__init__.py,
    ``get_reward_func``) imports one by its path and wants two parameters at least."""
    assert inspect.iscoroutinefunction(trl.prism_areward)
    assert inspect.iscoroutinefunction(trl.make_reward(asynchronous=True))
    assert not inspect.iscoroutinefunction(trl.prism_reward)
    assert not inspect.iscoroutinefunction(trl.make_reward())
    for function in (trl.prism_reward, trl.prism_areward):
        assert list(inspect.signature(function).parameters)[:2] == ["prompts", "completions"]


def test_made_rewards_can_be_pickled_and_keep_their_name(judge: Judge) -> None:
    made = trl.make_reward(name="host", persona=Persona(description="A host."), shaping=Shaping(signal="margin"))
    for function in (trl.prism_reward, trl.prism_areward, made, trl.make_reward(asynchronous=True)):
        again = pickle.loads(pickle.dumps(function))
        assert again.__name__ == function.__name__
        assert inspect.iscoroutinefunction(again) == inspect.iscoroutinefunction(function)
    log = Log()
    assert pickle.loads(pickle.dumps(made))(["Coming?"], ["[1 1 1]"], **log.arguments()) == [1.0]
    assert made.__name__ == "host_reward"
    assert {column.split("_")[0] for column in log.columns} == {"host"}
    assert judge.asked("ScoreGroup")[0]["persona"]["description"] == "A host."


def test_a_made_reward_does_not_show_its_key() -> None:
    assert "secret" not in repr(trl.make_reward(api_key="secret", persona_id="poirot"))


def test_a_shaped_reward_is_not_s_prism_and_both_are_told(judge: Judge) -> None:
    log = Log()
    reward = trl.make_reward(persona_id="poirot", shaping=Shaping(signal="margin"))
    assert reward(["Coming?"], ["[0.2 0.4 0.9]"], **log.arguments()) == [0.0]
    assert log.columns["prism_s"] == [0.5]


def test_the_trainer_compares_the_group_itself() -> None:
    with pytest.raises(InvalidInputError, match="group_z_score"):
        trl.make_reward(shaping=Shaping(group_z_score=True))


def test_verl_gets_the_same_floats_each_time(judge: Judge) -> None:
    row = {"prompt": "Coming?", "persona_id": "poirot"}
    judged = asyncio.run(verl.compute_score("set", "[1 0.4 0.1]", None, row))
    failed = asyncio.run(verl.compute_score("set", "[error internal]", None, row, on_error=-1.0))
    assert judged == {
        "score": 0.5,
        "prism_task_framing": 1.0,
        "prism_interpersonal_stance": 0.4,
        "prism_linguistic_style": 0.1,
        "prism_ok": 1.0,
        "acc": 0.5,
    }
    assert set(failed) == set(judged)
    assert failed["prism_ok"] == 0.0
    assert {value for key, value in failed.items() if key != "prism_ok"} == {-1.0}
    assert all(type(value) is float for value in [*judged.values(), *failed.values()])


def test_verl_raises_unless_told_otherwise(judge: Judge) -> None:
    row = {"prompt": "Coming?", "persona_id": "poirot"}
    for reply in ("[error internal]", ""):
        with pytest.raises(JudgementError):
            asyncio.run(verl.compute_score("set", reply, None, row))
    for wrong in ("zero", float("nan"), True):
        with pytest.raises(InvalidInputError, match="on_error"):
            asyncio.run(verl.compute_score("set", "Yes!", None, row, on_error=wrong))


def test_verl_asks_for_the_prompt(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match=r"extra_info\.prompt"):
        asyncio.run(verl.compute_score("set", "Yes!", None, {"persona_id": "poirot"}))


def test_one_thousand_calls_at_once_come_back_right(judge: Judge, expected: Expected) -> None:
    async def run() -> List[Dict[str, float]]:
        rows = ({"prompt": "Coming?", "persona_id": f"p{place}"} for place in range(1000))
        return await asyncio.gather(*(verl.compute_score("set", "Yes!", None, row) for row in rows))

    scores = [result["score"] for result in asyncio.run(run())]
    assert scores == [expected("Yes!", ASKED, persona_id=f"p{place}") for place in range(1000)]


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_sixty_forks_while_four_threads_judge(judge: Judge, expected: Expected) -> None:
    """No child hangs, dies or gets the answer to another's question."""
    stop = threading.Event()

    def keep_judging() -> None:
        while not stop.is_set():
            trl.prism_reward(["Coming?"], ["Yes!"], persona_id="thread")

    def child(number: int) -> int:
        rewards = trl.prism_reward(["Coming?"], ["Yes!"], persona_id=f"child{number}")
        return 0 if rewards == [expected("Yes!", ASKED, persona_id=f"child{number}")] else 1

    with ThreadPoolExecutor(4) as threads:
        judging = [threads.submit(keep_judging) for _ in range(4)]
        codes = []
        try:
            for number in range(60):
                pid = os.fork()
                if pid == 0:
                    signal.alarm(60)  # a child that hangs is killed, and seen
                    code = 2
                    try:
                        code = child(number)
                    finally:
                        os._exit(code)
                codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        finally:
            stop.set()
        for thread in judging:
            thread.result()
    assert codes == [0] * 60
