"""A judge made of hashes, for tests: it answers as the contract says, and what it answers can be worked out again.

It speaks the JSON form of the messages (proto field names, enumerations by name, 64-bit integers as text, every field
emitted); ``http_server`` and ``grpc_server`` put it on the wire.
"""

from __future__ import annotations

import collections
import hashlib
import json
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Deque, Dict, List, Optional, Tuple

Json = Dict[str, Any]
NAMES = ("task_framing", "interpersonal_stance", "linguistic_style")
# gRPC status code and HTTP status of each.
STATUSES = {
    "INVALID_ARGUMENT": (3, 400),
    "UNAUTHENTICATED": (16, 401),
    "PERMISSION_DENIED": (7, 403),
    "NOT_FOUND": (5, 404),
    "OUT_OF_RANGE": (11, 413),
    "RESOURCE_EXHAUSTED": (8, 429),
    "INTERNAL": (13, 500),
    "UNAVAILABLE": (14, 503),
    "DEADLINE_EXCEEDED": (4, 504),
}


@dataclass
class Fault(Exception):
    """A call that fails as a whole."""

    code: str
    message: str = "it failed"
    fields: Tuple[Tuple[str, str], ...] = ()
    reason: str = ""
    retry_after_ms: Optional[int] = None


def evidences(about: Json, response: str) -> Tuple[float, float, float]:
    """What this judge finds: it depends on the persona, the context and the response, and on nothing else."""
    persona = {name: value for name, value in about.get("persona", {}).items() if value}
    parts = [persona, about.get("persona_id", ""), about.get("context", []), response]
    text = json.dumps(parts, sort_keys=True)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    one, two, three = (int.from_bytes(digest[at : at + 4], "big") / 2**32 for at in (0, 4, 8))
    return one, two, three


def s_prism(about: Json, response: str) -> float:
    return sum(evidences(about, response)) / 3


@dataclass
class Brain:
    """Answers requests in their JSON form and remembers them."""

    requests: List[Tuple[str, Json, Json]] = field(default_factory=list)
    """Method, message and headers of every request."""
    faults: Deque[Optional[Fault]] = field(default_factory=collections.deque)
    """What the next requests meet, one each; ``None`` is an answer."""
    tamper: Callable[[str, Json], Any] = lambda method, reply: reply
    """The last hand on each reply."""
    key: Optional[str] = None
    gate: Optional[threading.Event] = None
    """Answers wait for it."""
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released by each request that arrives."""

    def answer(self, method: str, message: Json, headers: Json) -> Json:
        self.requests.append((method, message, headers))
        self.arrived.release()
        if self.gate is not None:
            self.gate.wait(30)
        if self.key is not None and headers.get("authorization") != f"Bearer {self.key}":
            raise Fault("UNAUTHENTICATED", "this key is not known here", reason="UNKNOWN_KEY")
        fault = self.faults.popleft() if self.faults else None
        if fault is not None:
            raise fault
        if message.get("persona_id") == "nobody":
            raise Fault("NOT_FOUND", "persona_id: no persona is called nobody")
        reply: Json = getattr(self, "_" + method)(message)
        if "request_id" in message:
            reply["request_id"] = message["request_id"]
        tampered: Json = self.tamper(method, reply)
        return tampered

    def methods(self) -> List[str]:
        return [method for method, _, _ in self.requests]

    def messages(self) -> List[Json]:
        return [message for _, message, _ in self.requests]

    def _Score(self, message: Json) -> Json:
        found = _verdict(message, message["candidate"])
        return {"verdict": found, **_reward(message, found)}

    def _ScoreGroup(self, message: Json) -> Json:
        results = []
        for index, candidate in enumerate(message["candidates"]):
            result: Json = {"id": candidate.get("id", ""), "index": index}
            if candidate.get("response", "").startswith("FAIL"):
                field_ = f"candidates[{index}].response"
                result["error"] = {"code": "ERROR_CODE_INVALID_ARGUMENT", "message": "too long", "field": field_}
            else:
                result["verdict"] = _verdict(message, candidate)
                result.update(_reward(message, result["verdict"]))
            results.append(result)
        if message.get("shaping", {}).get("group_z_score"):
            _z_scores([result for result in results if "reward" in result])
        return {"results": results}

    def _ScoreDialogue(self, message: Json) -> Json:
        agent = message.get("agent") or message["persona"]["name"]
        results, values = [], []
        for index, turn in enumerate(message["turns"]):
            if turn["speaker"].lower() == agent.lower():
                about = {**message, "context": message["turns"][:index]}
                found = _verdict(about, {"response": turn["text"], "id": str(index)})
                values.append((found["s_prism"], index))
                results.append({"turn": index, "verdict": found})
        lowest = min(values)
        one = {
            "mean": sum(value for value, _ in values) / len(values),
            "slope": 0.125,
            "change": values[-1][0] - values[0][0],
            "lowest": lowest[0],
            "lowest_turn": lowest[1],
        }
        return {"results": results, "drift": dict.fromkeys(("s_prism", *NAMES), one)}

    def _Check(self, message: Json) -> Json:
        reply = {
            "decision": "DECISION_ALLOW",
            "reason": "",
            "failed": "",
            "policy_name": message.get("policy_name", ""),
        }
        if message["candidate"].get("response", "").startswith("FAIL"):
            decision = "DECISION_BLOCK" if message["policy"].get("on_error") == "ON_ERROR_BLOCK" else "DECISION_ALLOW"
            error = {"code": "ERROR_CODE_OVERLOADED", "message": "full", "field": "", "retry_after_ms": 250}
            return {**reply, "decision": decision, "reason": "it could not be judged", "error": error}
        found = _verdict(message, message["candidate"])
        least = message.get("policy", {}).get("block", {}).get("s_prism", 0.0)
        if found["s_prism"] < least:
            reply.update(decision="DECISION_BLOCK", reason=f"s_prism is below {least}", failed="s_prism")
        return {**reply, "verdict": found}

    def _Rank(self, message: Json) -> Json:
        group = self._ScoreGroup(message)["results"]
        good = [result for result in group if "verdict" in result]
        for result in good:
            result["value"] = result.pop("reward", result["verdict"]["s_prism"])
        good.sort(key=lambda result: -result["value"])
        for result, after in zip(good, [*good[1:], None]):
            result["margin"] = 0.0 if after is None else result["value"] - after["value"]
            result["rank"] = 1 + sum(other["value"] > result["value"] for other in good)
        return {"ranking": good, "failed": [result for result in group if "error" in result]}

    def _ListPersonas(self, message: Json) -> Json:
        return {
            "personas": [{"id": "host", "name": "Ada", "digest": "d" * 64}, {"id": "shy", "name": "", "digest": ""}]
        }

    def _GetJudgeInfo(self, message: Json) -> Json:
        return {
            "version": "0.1.0",
            "model": "hashes",
            "model_digest": "a" * 64,
            "prompt_digest": "b" * 64,
            "label_space_digest": "c" * 64,
            "architecture": "llama",
            "parameters": "134515008",
            "context_length": "8192",
            "vocabulary": "49152",
            "answer_slot": ["A", "B", "C"],
            "threads": 2,
            "options": {
                "evidence": "EVIDENCE_KIND_LIKELIHOOD",
                "layout": "LAYOUT_SHARED",
                "label_order": "LABEL_ORDER_CONTENT",
                "calibration": "CALIBRATION_NONE",
                "persona_block": False,
                "likelihood_t": 0.4,
                "likelihood_b": 0.2,
            },
            "numerics": "NUMERICS_F32",
        }


def _verdict(about: Json, candidate: Json) -> Json:
    values = evidences(about, candidate.get("response", ""))
    weakest = NAMES[values.index(min(values))]
    counts = {"control": "0", "bidi": "0", "invisible": "0", "special_tokens": "0"}
    return {
        "id": candidate.get("id", ""),
        "s_prism": sum(values) / 3,
        "dimensions": {
            name: {
                "aligned": value,
                "indeterminate": (1 - value) / 4,
                "contradictory": (1 - value) * 3 / 4,
                "evidence": value,
                "label_mass": 0.5,
                "label_order": [{"labels": ["LABEL_ALIGNED", "LABEL_INDETERMINATE", "LABEL_CONTRADICTORY"]}],
            }
            for name, value in zip(NAMES, values)
        },
        "weakest_dimension": f"DIMENSION_{weakest.upper()}",
        "judge": {
            "model": "hashes",
            "model_digest": "a" * 64,
            "prompt_digest": "b" * 64,
            "label_space_digest": "c" * 64,
            "evidence": "EVIDENCE_KIND_LABEL_SLOT",
            "layout": "LAYOUT_SHARED",
            "label_order": "LABEL_ORDER_CONTENT",
            "calibration": "CALIBRATION_NONE",
            "numerics": "NUMERICS_F32",
        },
        "tokens": {"prompt": "320", "computed": "188"},
        "cached": False,
        "warnings": {"response": {**counts, "invisible": "14"}, "request": counts},
    }


def _reward(message: Json, verdict: Json) -> Json:
    """The least evidence, whatever the shaping says: enough to see whose it is."""
    if "shaping" not in message:
        return {}
    return {"reward": min(verdict["dimensions"][name]["evidence"] for name in NAMES)}


def _z_scores(results: List[Json]) -> None:
    rewards = [result["reward"] for result in results]
    mean = sum(rewards) / len(rewards)
    deviation = (sum((r - mean) ** 2 for r in rewards) / (len(rewards) - 1)) ** 0.5
    for result in results:
        result["reward"] = (result["reward"] - mean) / deviation
