"""The judge of ``brain`` for the tests of the adapters: what a text says decides what becomes of it.

- ``[0.2 0.4 0.9]`` is the evidence for the three dimensions; without it, it depends on persona, context and response;
- ``[error deadline_exceeded]`` puts an error in the response's place;
- ``[status unavailable]`` makes the whole call fail.
"""

from __future__ import annotations

import re
from typing import Dict, List

import brain
from brain import NAMES, Brain, Fault, Json
from http_server import HttpServer


class Judge(Brain):
    """``url`` is where it listens; ``down`` makes every call fail."""

    def __init__(self) -> None:
        super().__init__()
        self.down = False
        self._server = HttpServer(self)
        self.url = self._server.url

    def close(self) -> None:
        self._server.close()

    def asked(self, method: str) -> List[Json]:
        """The requests of a method."""
        return [message for name, message, _ in self.requests if name == method]

    def answer(self, method: str, message: Json, headers: Json) -> Json:
        if self.down:
            raise Fault("UNAVAILABLE", "the model is loading", retry_after_ms=50)
        return super().answer(method, message, headers)

    def _Score(self, message: Json) -> Json:
        result = _result(message, message["candidate"])
        if "error" in result:
            raise Fault("INTERNAL", result["error"]["message"])
        return result

    def _ScoreGroup(self, message: Json) -> Json:
        results = []
        for index, candidate in enumerate(message["candidates"]):
            result = {"id": candidate.get("id", ""), "index": index, **_result(message, candidate)}
            if "shaping" in message and "verdict" in result:
                margin = message["shaping"].get("signal") == "REWARD_SIGNAL_MARGIN"
                value = result["verdict"]["s_prism"]
                result["reward"] = 2 * value - 1 if margin else value
            results.append(result)
        return {"results": results}

    def _ScoreDialogue(self, message: Json) -> Json:
        results = []
        for index, turn in enumerate(message["turns"]):
            if turn["speaker"] == message["agent"]:
                about = {**message, "context": message["turns"][:index]}
                results.append({"turn": index, **_result(about, {"id": str(index), "response": turn["text"]})})
        curves: Dict[str, Dict[int, float]] = {name: {} for name in ("s_prism", *NAMES)}
        for one in results:
            for name, value in _values(one.get("verdict")).items():
                curves[name][one["turn"]] = value
        drift = {name: _drift(curve) for name, curve in curves.items() if curve}
        return {"results": results, **({"drift": drift} if drift else {})}

    def _Check(self, message: Json) -> Json:
        """Without a policy, S_PRISM below 0.5 blocks."""
        result = _result(message, message["candidate"])
        policy = message.get("policy", {"block": {"s_prism": 0.5}})
        name = message.get("policy_name", "" if "policy" in message else "default")
        decision, reason, failed = "ALLOW", "nothing is below its threshold", ""
        if "error" in result:
            decision = "BLOCK" if policy.get("on_error") == "ON_ERROR_BLOCK" else "ALLOW"
            reason = result["error"]["message"]
        for level in ("warn", "block"):
            for what, least in policy.get(level, {}).items():
                value = _values(result.get("verdict")).get(what, least)
                if value < least:
                    decision, reason, failed = level.upper(), f"{what} is {value:.2f}, below {least}", what
        return {"decision": f"DECISION_{decision}", "reason": reason, "failed": failed, "policy_name": name, **result}


def evidences(about: Json, response: str) -> List[float]:
    marked = re.search(r"\[([\d.]+) ([\d.]+) ([\d.]+)\]", response)
    return [float(value) for value in marked.groups()] if marked else list(brain.evidences(about, response))


def _result(about: Json, candidate: Json) -> Json:
    response = candidate["response"]
    status = re.search(r"\[status (\w+)\]", response)
    if status:
        raise Fault(status[1].upper(), "as the text wants it")
    error = re.search(r"\[error (\w+)\]", response)
    if error:
        return {"error": {"code": f"ERROR_CODE_{error[1].upper()}", "message": "as the text wants it", "field": ""}}
    verdict = brain._verdict(about, candidate)
    values = evidences(about, response)
    for name, value in zip(NAMES, values):
        shares = {"aligned": value, "indeterminate": 0.0, "contradictory": 1 - value, "evidence": value}
        verdict["dimensions"][name].update({share: _number(one) for share, one in shares.items()})
    verdict["s_prism"] = _number(sum(values) / 3)
    verdict["weakest_dimension"] = f"DIMENSION_{NAMES[values.index(min(values))].upper()}"
    return {"verdict": verdict}


def _values(verdict: object) -> Dict[str, float]:
    if not isinstance(verdict, dict):
        return {}
    return {"s_prism": verdict["s_prism"], **{name: verdict["dimensions"][name]["evidence"] for name in NAMES}}


def _number(value: float) -> float:
    """JSON may write whole numbers without a point."""
    return int(value) if value in (0.0, 1.0) else value


def _drift(curve: Dict[int, float]) -> Json:
    values = list(curve.values())
    lowest = min(curve, key=lambda turn: curve[turn])
    mean = sum(values) / len(values)
    change = values[-1] - values[0]
    return {"mean": mean, "slope": 0.0, "change": change, "lowest": curve[lowest], "lowest_turn": lowest}
