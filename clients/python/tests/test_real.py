"""The client against the program itself. Set PRISM_JUDGE_TEST_BINARY to the path of the built binary (the model must be
there: `prism-judge models fetch`)."""

from __future__ import annotations

import asyncio
import os
import queue
import re
import subprocess
import threading
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest

from prism_judge import (
    AsyncClient,
    Candidate,
    Client,
    InvalidArgumentError,
    Item,
    ItemError,
    NotFoundError,
    Persona,
    Policy,
    Shaping,
    Thresholds,
    TraitTarget,
    UnauthenticatedError,
    Verdict,
    rewards,
)

BINARY = os.environ.get("PRISM_JUDGE_TEST_BINARY", "")
pytestmark = pytest.mark.skipif(not BINARY, reason="PRISM_JUDGE_TEST_BINARY is not set")

HOST = Persona(name="Ada", traits=[TraitTarget("extraversion", "high")])
CONTEXT = [("User", "Coming tonight?")]
TEXTS = ["Yes! Who else is in? Let us all go together!", "No. I would rather stay at home alone.", "Maybe."]


class Server:
    """`prism-judge serve` on free ports."""

    def __init__(self, *args: str) -> None:
        ports = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--admin-listen", "off"]
        # A server refuses variables that are none of its own, and those of the client are none.
        named = {name: value for name, value in os.environ.items() if not name.startswith("PRISM_JUDGE_")}
        named.update({name: os.environ[name] for name in ("PRISM_JUDGE_CACHE", "PRISM_JUDGE_MODEL") if name in os.environ})
        command = [BINARY, "serve", *ports, *args]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=named)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()
        found: Dict[str, str] = {}
        while set(found) != {"listening", "http"}:
            line = lines.get(timeout=60)
            assert line, "the server ended"
            match = re.search(r"\b(listening|http) on ([\d.]+:\d+)", line)
            if match:
                found[match[1]] = match[2]
        self.urls = {"http": f"http://{found['http']}", "grpc": f"grpc://{found['listening']}"}

    def _read(self, lines: "queue.Queue[str]") -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                lines.put(line)
        lines.put("")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(60)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    found = Server()
    with Client(found.urls["http"]) as client:
        client.wait_until_ready(timeout=300)
    yield found
    found.close()


@pytest.fixture(params=["http", "grpc"])
def judge(request: pytest.FixtureRequest, server: Server) -> Iterator[Client]:
    if request.param == "grpc":
        pytest.importorskip("grpc")
    with Client(server.urls[request.param]) as client:
        yield client


def bits(results: List[Any]) -> List[Any]:
    """What must not depend on the way that a call takes."""
    assert all(isinstance(result, Verdict) for result in results)
    return [(result.s_prism, result.dimensions, result.judge, result.reward) for result in results]


def test_the_same_item_has_the_same_bits_on_every_way(server: Server) -> None:
    pytest.importorskip("grpc")
    found: List[Any] = []
    for url in server.urls.values():
        with Client(url) as client:
            found.append([client.score(text, persona=HOST, context=CONTEXT, cache="off") for text in TEXTS])
            found.append(client.score_group(TEXTS, persona=HOST, context=CONTEXT, cache="off"))
            found.append(client.score_many([Item(text, HOST, context=CONTEXT) for text in TEXTS], cache="off"))
        with Client(url, chunk_bytes=40) as client:
            found.append(client.score_group(TEXTS, persona=HOST, context=CONTEXT, cache="off"))

        async def ask(url: str = url) -> List[Any]:
            async with AsyncClient(url) as client:
                calls = [client.score(text, persona=HOST, context=CONTEXT, cache="off") for text in TEXTS]
                return list(await asyncio.gather(*calls))

        found.append(asyncio.run(ask()))
    assert len({str(bits(results)) for results in found}) == 1
    assert rewards(found[0])[0] > rewards(found[0])[1]  # type: ignore[operator]


def test_z_scores_of_a_cut_group_have_the_servers_bits(judge: Client, server: Server) -> None:
    shaping = Shaping(aggregation="min", signal="margin", group_z_score=True)
    texts = [*TEXTS, *(f"{text} {number}" for number in range(4) for text in TEXTS)]
    whole = judge.score_group(texts, persona=HOST, context=CONTEXT, shaping=shaping)
    with Client(judge._config.url, chunk_bytes=200) as small:
        assert bits(small.score_group(texts, persona=HOST, context=CONTEXT, shaping=shaping)) == bits(whole)


def test_one_bad_item_leaves_the_others_alone(judge: Client) -> None:
    texts = [TEXTS[0], "ha " * 70_000, TEXTS[1]]
    results = judge.score_group([Candidate(text, str(index)) for index, text in enumerate(texts)], persona=HOST)
    assert isinstance(results[1], ItemError)
    assert (results[1].code, results[1].index, results[1].id) == ("invalid_argument", 1, "1")
    assert results[1].field == "candidates[1].response"
    assert isinstance(results[0], Verdict)
    assert isinstance(results[2], Verdict)
    assert None not in (rewards(results)[0], rewards(results)[2])


def test_a_dialogue_a_check_and_a_ranking(judge: Client) -> None:
    turns = [*CONTEXT, ("Ada", TEXTS[0]), ("User", "Sure?"), ("ada", TEXTS[1])]
    drift = judge.score_dialogue(turns, persona=HOST, cache="off")
    assert [one.turn for one in drift.results] == [1, 3]
    alone = [judge.score(turns[at][1], persona=HOST, context=turns[:at], cache="off").s_prism for at in (1, 3)]
    assert rewards([one.result for one in drift.results]) == alone
    value = judge.score(TEXTS[0], persona=HOST).s_prism
    for least, decision in ((value / 2, "allow"), ((1 + value) / 2, "block")):
        checked = judge.check(TEXTS[0], persona=HOST, policy=Policy(block=Thresholds(s_prism=least)))
        assert checked.decision == decision
    ranked = judge.rank(TEXTS, persona=HOST, context=CONTEXT)
    values = rewards(judge.score_group(TEXTS, persona=HOST, context=CONTEXT), on_error="raise")
    assert [one.value for one in ranked.ranking] == sorted(values, reverse=True)


def test_what_the_server_refuses_is_named(judge: Client) -> None:
    with pytest.raises(NotFoundError):
        judge.score("a", persona_id="nobody-of-that-name")
    with pytest.raises(InvalidArgumentError) as caught:
        judge.score("a", persona=Persona())
    assert caught.value.fields
    info = judge.info()
    assert info.parameters > 0
    assert isinstance(judge.personas(), list)


def test_only_the_key_opens_a_server(tmp_path: Path) -> None:
    pytest.importorskip("grpc")
    keys = tmp_path / "keys.toml"
    made = subprocess.run([BINARY, "keys", "new", "--tenant", "test"], capture_output=True, text=True, check=True)
    keys.write_text(made.stdout)
    server = Server("--api-keys", str(keys))
    try:
        for url in server.urls.values():
            with Client(url, api_key=made.stderr.strip()) as client:
                client.wait_until_ready(timeout=300)
                assert client.score("a", persona=HOST).id == ""
            with Client(url, api_key="another") as client, pytest.raises(UnauthenticatedError):
                client.score("a", persona=HOST)
    finally:
        server.close()
