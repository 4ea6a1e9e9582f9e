"""A large group goes in several messages, and its results are those of one."""

from __future__ import annotations

import statistics
from typing import List

import pytest
from brain import evidences, s_prism
from conftest import Judge

from prism_judge import Candidate, InvalidInputError, Item, ItemError, Shaping, rewards
from prism_judge._plans import CHUNK_CANDIDATES, z_scores

ABOUT = {"persona_id": "host"}
TEXTS = [("é" * (index * 37 % 900)) + str(index) for index in range(100)]


def test_results_do_not_depend_on_the_size_of_messages(judge: Judge) -> None:
    texts = [*TEXTS, "FAIL", *TEXTS]
    candidates = [Candidate(text, id=str(index)) for index, text in enumerate(texts)]
    whole = judge.score_group(candidates, persona_id="host", context="Hi")
    assert judge.brain.methods() == ["ScoreGroup"]
    judge.brain.requests.clear()
    cut = judge.remake(chunk_bytes=10_000).score_group(candidates, persona_id="host", context="Hi")
    assert cut == whole
    assert cut[100] == ItemError("invalid_argument", "too long", "candidates[100].response", None, "100", 100)
    messages = judge.brain.messages()
    assert len(messages) > 5
    sizes = [sum(len(one["response"].encode()) for one in message["candidates"]) for message in messages]
    assert max(sizes) <= 10_000
    assert [one["response"] for message in messages for one in message["candidates"]] == texts
    assert len({message["request_id"] for message in messages}) == len(messages)


def test_a_candidate_that_is_larger_than_a_chunk_goes_alone(judge: Judge) -> None:
    texts = ["a", "b" * 5000, "c"]
    results = judge.remake(chunk_bytes=1000).score_group(texts, persona_id="host")
    assert rewards(results) == [s_prism(ABOUT, text) for text in texts]
    assert [len(message["candidates"]) for message in judge.brain.messages()] == [1, 1, 1]


def test_a_message_holds_a_bounded_number_of_candidates(judge: Judge) -> None:
    texts = [str(index) for index in range(CHUNK_CANDIDATES + 1)]
    results = judge.score_group(texts, persona_id="host", request_id="step")
    assert rewards(results) == [s_prism(ABOUT, text) for text in texts]
    messages = judge.brain.messages()
    assert [len(message["candidates"]) for message in messages] == [CHUNK_CANDIDATES, 1]
    assert [message["request_id"] for message in messages] == ["step#0", "step#1"]


def test_z_scores_are_over_the_whole_group(judge: Judge) -> None:
    texts = [*TEXTS[:50], "FAIL", *TEXTS[50:]]
    shaping = Shaping(aggregation="min", group_z_score=True)
    whole = rewards(judge.score_group(texts, persona_id="host", shaping=shaping))
    cut = rewards(judge.remake(chunk_bytes=5000).score_group(texts, persona_id="host", shaping=shaping))
    raw = [min(evidences(ABOUT, text)) for text in TEXTS]
    mean, deviation = statistics.fmean(raw), statistics.stdev(raw)
    expected: List[object] = [pytest.approx((value - mean) / deviation, rel=1e-12) for value in raw]
    expected.insert(50, None)
    assert cut == expected
    assert whole == expected
    assert all(not message["shaping"].get("group_z_score") for message in judge.brain.messages()[1:])


def test_equal_rewards_have_a_z_score_of_zero() -> None:
    assert z_scores([]) == []
    assert z_scores([0.3]) == [0.0]
    assert z_scores([0.1, 0.1, 0.1]) == [0.0, 0.0, 0.0]
    assert z_scores([1.0, 3.0]) == [pytest.approx(-(0.5**0.5)), pytest.approx(0.5**0.5)]


def test_items_that_share_everything_are_cut_too(judge: Judge) -> None:
    items = [Item(text, persona_id="host", id=str(index)) for index, text in enumerate([*TEXTS, "FAIL"])]
    results = judge.remake(chunk_bytes=10_000).score_many(items)
    assert rewards(results[:100]) == [s_prism(ABOUT, text) for text in TEXTS]
    assert results[100] == ItemError("invalid_argument", "too long", "items[100].response", None, "100", 100)
    assert len(judge.brain.requests) > 2


def test_what_no_message_holds_is_refused_before_the_call(judge: Judge) -> None:
    with pytest.raises(InvalidInputError, match="at most 16777216"):
        judge.score("x" * (17 << 20), persona_id="host")
    with pytest.raises(InvalidInputError, match="at most 16777216"):
        judge.rank(["x" * (1 << 20)] * 17, persona_id="host")
    assert judge.brain.requests == []


def test_a_group_of_seventeen_megabytes_is_judged(judge: Judge) -> None:
    texts = [letter * (1 << 20) for letter in "abcdefghijklmnopq"]
    results = judge.score_group(texts, persona_id="host")
    assert rewards(results) == [s_prism(ABOUT, text) for text in texts]
    assert len(judge.brain.requests) > 4
