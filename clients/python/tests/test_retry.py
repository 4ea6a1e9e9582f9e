"""When a call is tried again."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest
from brain import Fault, s_prism
from conftest import Judge

from prism_judge import Client, DeadlineExceededError, Item, ResourceExhaustedError, UnavailableError, _retry, rewards
from prism_judge._retry import NO_CONNECTION, Retry


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retry, "_FIRST_PAUSE", 0.001)
    monkeypatch.setattr(_retry, "_LONGEST_PAUSE", 0.002)


def busy(**settings: Any) -> Fault:
    return Fault("RESOURCE_EXHAUSTED", "the lane is full", reason="OVERLOADED", **settings)


def loading(**settings: Any) -> Fault:
    return Fault("UNAVAILABLE", "the model is loading", reason="LOADING", **settings)


def test_a_full_lane_and_a_loading_model_are_tried_again(judge: Judge) -> None:
    judge.brain.faults.extend([busy(retry_after_ms=1), loading(), busy(), loading(retry_after_ms=0), *[loading()] * 8])
    verdict = judge.score("x", persona_id="host")
    assert verdict.s_prism == s_prism({"persona_id": "host"}, "x")
    assert len(judge.brain.requests) == 13


def test_each_message_of_a_group_is_tried_again_by_itself(judge: Judge) -> None:
    judge.brain.faults.extend([None, busy(retry_after_ms=1), None])
    texts = ["a" * 900, "b" * 900, "c" * 900]
    results = judge.remake(chunk_bytes=1000).score_group(texts, persona_id="host")
    assert rewards(results) == [s_prism({"persona_id": "host"}, text) for text in texts]
    sent = [message["candidates"][0]["response"][0] for message in judge.brain.messages()]
    assert sent == ["a", "b", "b", "c"]


def test_a_pause_that_passes_the_deadline_is_not_waited_for(judge: Judge) -> None:
    judge.brain.faults.append(busy(retry_after_ms=3_600_000))
    with pytest.raises(ResourceExhaustedError) as caught:
        judge.score("x", persona_id="host", timeout=20)
    assert caught.value.retry_after_ms == 3_600_000
    assert caught.value.retryable
    assert len(judge.brain.requests) == 1


def test_the_deadline_bounds_all_tries_together(judge: Judge) -> None:
    judge.brain.faults.extend([busy(retry_after_ms=50)] * 10_000)
    with pytest.raises((ResourceExhaustedError, DeadlineExceededError)):
        judge.score("x", persona_id="host", timeout=0.5)
    assert 2 <= len(judge.brain.requests) <= 10


def test_an_item_whose_call_failed_has_the_error(judge: Judge) -> None:
    judge.brain.faults.append(busy(retry_after_ms=3_600_000))
    items = [Item("a", persona_id="one", id="x"), Item("b", persona_id="two", id="y")]
    results = judge.score_many(items)
    failed = [result for result in results if not hasattr(result, "s_prism")]
    assert [(one.code, one.retry_after_ms, one.message) for one in failed] == [
        ("overloaded", 3_600_000, "the lane is full")
    ]
    assert results[failed[0].index] is failed[0]
    assert failed[0].id == items[failed[0].index].id


def test_a_server_that_is_not_there_is_tried_a_few_times(judge: Judge) -> None:
    judge.close()
    judge.server.close()
    with pytest.raises(UnavailableError) as caught:
        judge.score("x", persona_id="host", timeout=60)
    assert (caught.value.reason, caught.value.attempts) == (NO_CONNECTION, 6)
    assert judge.server.url in caught.value.message
    assert "(after 6 tries)" in str(caught.value)


def test_waiting_for_a_server_ends_with_what_is_wrong(judge: Judge) -> None:
    judge.close()
    judge.server.close()
    with pytest.raises((UnavailableError, DeadlineExceededError)) as caught:
        judge.wait_until_ready(timeout=0.3)
    assert caught.value.code == "DEADLINE_EXCEEDED" or caught.value.attempts > 6


def test_waiting_outlasts_the_loading_of_the_model(judge: Judge) -> None:
    judge.brain.faults.extend([loading(retry_after_ms=1)] * 20)
    assert judge.wait_until_ready(timeout=30).model == "hashes"


def test_a_slow_answer_is_cut_off_by_the_deadline(judge: Judge) -> None:
    judge.brain.gate = threading.Event()
    with pytest.raises(DeadlineExceededError) as caught:
        judge.score("slow", persona_id="host", timeout=0.2)
    assert isinstance(caught.value, TimeoutError)
    judge.brain.gate.set()
    # The late answer reaches nobody.
    assert judge.score("x", persona_id="host").s_prism == s_prism({"persona_id": "host"}, "x")


def test_pauses_grow_have_jitter_and_keep_to_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    retry = Retry(time.monotonic() + 3600)
    error = UnavailableError("down")
    for longest in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0):
        assert longest / 2 <= retry.pause(error) <= longest
    asked = ResourceExhaustedError("full", retry_after_ms=2000)
    pauses = {retry.pause(asked) for _ in range(50)}
    assert all(2.0 <= pause <= 2.5 for pause in pauses)
    assert len(pauses) > 1


def test_a_server_that_forbids_another_try_is_heard() -> None:
    with pytest.raises(ResourceExhaustedError):
        Retry(time.monotonic() + 3600).pause(ResourceExhaustedError("full", retryable=False))


def test_a_name_that_does_not_exist_is_no_connection() -> None:
    with pytest.raises(UnavailableError) as caught:
        Client("http://nowhere.invalid").info()
    assert caught.value.reason == NO_CONNECTION


def test_a_port_that_never_answers_is_bounded() -> None:
    # It takes connections and says nothing.
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}") as judge,
        pytest.raises(DeadlineExceededError),
    ):
        judge.info(timeout=0.2)
