"""A judge in this process for the tests of the adapters, and the wire contract that it keeps.

It answers the client's routes with the JSON form of ``prism.judge.v1`` and remembers what it was asked. What a text
says decides what happens to it:

- ``[0.2 0.4 0.9]``: the evidence for the three dimensions; without it, numbers made of persona, context and response;
- ``[error deadline_exceeded]``: an error in the response's place;
- ``[status 503]``: a failure of the whole call.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, Iterator, List, Tuple

import pytest

from prism_judge import Client

DIMENSIONS = ("task_framing", "interpersonal_stance", "linguistic_style")
CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    404: "NOT_FOUND",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
Json = Dict[str, Any]


class Failed(Exception):
    def __init__(self, status: int, message: str, field: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.field = status, message, field


class Judge:
    """The judge; ``url`` is where it listens."""

    def __init__(self) -> None:
        self.calls: List[Tuple[str, Json]] = []
        """Every call: its route and its body."""
        self.key: str = ""
        """The key that calls need, if any."""
        self.down = False
        """Whether every call fails with 503."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def asked(self, route: str) -> List[Json]:
        """The bodies of the calls to a route."""
        return [body for path, body in self.calls if path == route]

    def answer(self, route: str, headers: Any, body: Json) -> Json:
        self.calls.append((route, body))
        if self.down:
            raise Failed(503, "the model is loading")
        if self.key and headers.get("authorization") != f"Bearer {self.key}":
            raise Failed(401, "no key, or an unknown one")
        routes: Dict[str, Callable[[Json], Json]] = {
            "/v1/score": _score,
            "/v1/score_group": _score_group,
            "/v1/score_dialogue": _score_dialogue,
            "/v1/check": _check,
        }
        if route not in routes:
            raise Failed(404, "no such route")
        if body.get("persona_id") == "nobody":
            raise Failed(404, "this judge knows no persona `nobody`", "persona_id")
        if ("persona" in body) == ("persona_id" in body):
            raise Failed(400, "persona or persona_id, and not both", "persona")
        return {"request_id": body.get("request_id", ""), **routes[route](body)}


def evidence(body: Json, context: List[Json], response: str) -> List[float]:
    """The three evidences of a response."""
    marked = re.search(r"\[([\d.]+) ([\d.]+) ([\d.]+)\]", response)
    if marked:
        return [float(value) for value in marked.groups()]
    whole = json.dumps([body.get("persona"), body.get("persona_id"), context, response], sort_keys=True)
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()
    return [digest[place] / 255 for place in range(3)]


def verdict(body: Json, context: List[Json], candidate: Json) -> Json:
    """The JSON form of a Verdict. As in the real one, a whole number may be written without a point."""
    values = evidence(body, context, candidate["response"])
    s_prism = sum(values) / 3
    orders = {
        "label_mass": 0.9,
        "label_order": [{"labels": ["LABEL_ALIGNED", "LABEL_INDETERMINATE", "LABEL_CONTRADICTORY"]}],
    }
    counts = {"control": "0", "bidi": "0", "invisible": "0", "special_tokens": "0"}
    return {
        "id": candidate.get("id", ""),
        "s_prism": _number(s_prism),
        "dimensions": {
            name: {
                "aligned": _number(value),
                "indeterminate": 0,
                "contradictory": _number(1 - value),
                "evidence": _number(value),
                **orders,
            }
            for name, value in zip(DIMENSIONS, values)
        },
        "weakest_dimension": "DIMENSION_" + DIMENSIONS[values.index(min(values))].upper(),
        "judge": {
            "model": "fake",
            "model_digest": "0" * 64,
            "prompt_digest": "1" * 64,
            "label_space_digest": "2" * 64,
            "evidence": "EVIDENCE_KIND_LABEL_SLOT",
            "layout": "LAYOUT_SHARED",
            "label_order": "LABEL_ORDER_CONTENT",
            "calibration": "CALIBRATION_NONE",
            "numerics": "NUMERICS_F32",
        },
        "tokens": {"prompt": "30", "computed": "12"},
        "cached": False,
        "warnings": {"response": counts, "request": counts},
    }


def _result(body: Json, context: List[Json], candidate: Json) -> Json:
    status = re.search(r"\[status (\d+)\]", candidate["response"])
    if status:
        raise Failed(int(status.group(1)), "as the text wants it")
    error = re.search(r"\[error (\w+)\]", candidate["response"])
    if error:
        return {
            "error": {"code": f"ERROR_CODE_{error.group(1).upper()}", "message": "as the text wants it", "field": ""}
        }
    return {"verdict": verdict(body, context, candidate)}


def _score(body: Json) -> Json:
    result = _result(body, body.get("context", []), body["candidate"])
    if "error" in result:
        raise Failed(500, result["error"]["message"])
    return result


def _score_group(body: Json) -> Json:
    results = [
        {"id": candidate.get("id", ""), "index": index, **_result(body, body.get("context", []), candidate)}
        for index, candidate in enumerate(body["candidates"])
    ]
    signal = body.get("shaping", {}).get("signal")
    for result in results:
        if "shaping" in body and "verdict" in result:
            s_prism = result["verdict"]["s_prism"]
            result["reward"] = 2 * s_prism - 1 if signal == "REWARD_SIGNAL_MARGIN" else s_prism
    return {"results": results}


def _score_dialogue(body: Json) -> Json:
    agent = (body.get("agent") or body.get("persona", {}).get("name", "")).casefold()
    results = [
        {"turn": index, **_result(body, body["turns"][:index], {"response": turn["text"]})}
        for index, turn in enumerate(body["turns"])
        if turn["speaker"].casefold() == agent
    ]
    if not results:
        raise Failed(400, f"no turn is by {agent!r}", "agent")
    judged = {one["turn"]: one["verdict"] for one in results if "verdict" in one}
    curves = {"s_prism": {turn: one["s_prism"] for turn, one in judged.items()}}
    for name in DIMENSIONS:
        curves[name] = {turn: one["dimensions"][name]["evidence"] for turn, one in judged.items()}
    return {
        "results": results,
        **({"drift": {name: _drift(curve) for name, curve in curves.items()}} if judged else {}),
    }


def _drift(curve: Dict[int, float]) -> Json:
    values = list(curve.values())
    lowest = min(values)
    return {
        "mean": sum(values) / len(values),
        "slope": 0.0,
        "change": values[-1] - values[0],
        "lowest": lowest,
        "lowest_turn": next(turn for turn, value in curve.items() if value == lowest),
    }


def _check(body: Json) -> Json:
    """The policy of the call, else one that blocks S_PRISM below 0.5."""
    result = _result(body, body.get("context", []), body["candidate"])
    name = body.get("policy_name", "" if "policy" in body else "default")
    policy = body.get("policy", {"block": {"s_prism": 0.5}})
    if "error" in result:
        blocks = policy.get("on_error") == "ON_ERROR_BLOCK"
        return {
            "decision": "DECISION_BLOCK" if blocks else "DECISION_ALLOW",
            "reason": "not judged",
            **result,
            "policy_name": name,
        }
    judged = result["verdict"]
    values = {"s_prism": judged["s_prism"], **{name: judged["dimensions"][name]["evidence"] for name in DIMENSIONS}}
    for decision in ("block", "warn"):
        for failed, least in policy.get(decision, {}).items():
            if values[failed] < least:
                reason = f"{failed} is {values[failed]:.2f}, below {least}"
                return {
                    "decision": f"DECISION_{decision.upper()}",
                    "reason": reason,
                    "failed": failed,
                    **result,
                    "policy_name": name,
                }
    return {
        "decision": "DECISION_ALLOW",
        "reason": "nothing is below its threshold",
        "failed": "",
        **result,
        "policy_name": name,
    }


def _number(value: float) -> float:
    return int(value) if value in (0.0, 1.0) else value


def _handler(judge: Judge) -> type:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                status, reply = 200, judge.answer(self.path, self.headers, body)
            except Failed as failed:
                fields = [{"field": failed.field, "description": failed.message}] if failed.field else []
                reply = {"error": {"code": CODES[failed.status], "message": failed.message, "fields": fields}}
                status = failed.status
            data = json.dumps(reply, allow_nan=False).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    return Handler


def pytest_configure(config: pytest.Config) -> None:
    # Warnings of the hosts are theirs.
    config.addinivalue_line("filterwarnings", "default")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """A judge, to which the environment points, and with no other setting in it."""
    for name in ("API_KEY", "PERSONA", "TIMEOUT"):
        monkeypatch.delenv(f"PRISM_JUDGE_{name}", raising=False)
    running = Judge()
    monkeypatch.setenv("PRISM_JUDGE_URL", running.url)
    yield running
    running.close()


@pytest.fixture
def expected() -> Callable[..., float]:
    """S_PRISM that the judge gives to a response."""

    def s_prism(response: str, context: List[Tuple[str, str]], **persona: Any) -> float:
        turns = [{"speaker": speaker, "text": text} for speaker, text in context]
        return sum(evidence(persona, turns, response)) / 3

    return s_prism


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the real program, with two personas. Its binary is PRISM_JUDGE_TEST_BINARY."""
    binary = os.environ.get("PRISM_JUDGE_TEST_BINARY")
    if not binary:
        pytest.skip("PRISM_JUDGE_TEST_BINARY is not set")
    folder = tmp_path_factory.mktemp("judge")
    for name, traits in (("host", '"extraversion", polarity = "high"'), ("monk", '"extraversion", polarity = "low"')):
        (folder / f"{name}.toml").write_text(f"traits = [{{trait = {traits}}}]\n")
    ports = _free_ports(2)
    arguments = ["--listen", f"127.0.0.1:{ports[0]}", "--http-listen", f"127.0.0.1:{ports[1]}", "--admin-listen", "off"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [binary, "serve", *arguments, "--personas", str(folder)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{ports[1]}"
        Client(url).wait_until_ready(timeout=120)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def real(program: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, and the environment points there."""
    for name in ("API_KEY", "PERSONA", "TIMEOUT"):
        monkeypatch.delenv(f"PRISM_JUDGE_{name}", raising=False)
    monkeypatch.setenv("PRISM_JUDGE_URL", program)
    return program


def _free_ports(count: int) -> List[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
