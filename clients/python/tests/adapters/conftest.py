"""A judge in this process, and the real program where there is one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Callable, Iterator, List, Tuple

import pytest

from .judge import Judge, evidences

# Hosts that report what they are used for find nobody here.
for switch in (
    "DEEPEVAL_TELEMETRY_OPT_OUT",
    "DO_NOT_TRACK",
    "HF_HUB_OFFLINE",
    "MLFLOW_DISABLE_TELEMETRY",
    "OTEL_SDK_DISABLED",
    "RAGAS_DO_NOT_TRACK",
):
    os.environ[switch] = "true"
os.environ["OPIK_ANALYTICS_ENABLED"] = "false"

SETTINGS = ("PRISM_JUDGE_API_KEY", "PRISM_JUDGE_PERSONA", "PRISM_JUDGE_TIMEOUT")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """A judge to which the environment points, with no other setting in it."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    running = Judge()
    monkeypatch.setenv("PRISM_JUDGE_URL", running.url)
    yield running
    running.close()


@pytest.fixture
def expected() -> Callable[..., float]:
    """S_PRISM that the judge gives to a response."""

    def s_prism(response: str, context: List[Tuple[str, str]], **persona: Any) -> float:
        turns = [{"speaker": speaker, "text": text} for speaker, text in context]
        return sum(evidences({**persona, "context": turns}, response)) / 3

    return s_prism


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the real program, PRISM_JUDGE_TEST_BINARY, which knows the personas ``host`` and ``monk``."""
    if not os.environ.get("PRISM_JUDGE_TEST_BINARY"):
        pytest.skip("PRISM_JUDGE_TEST_BINARY is not set")
    from test_real import Server

    folder: Path = tmp_path_factory.mktemp("personas")
    for name, pole in (("host", "high"), ("monk", "low")):
        (folder / f"{name}.toml").write_text(f'traits = [{{trait = "extraversion", polarity = "{pole}"}}]\n')
    server = Server("--personas", str(folder))
    yield server.urls["http"]
    server.close()


@pytest.fixture
def real(program: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, and the environment points there."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PRISM_JUDGE_URL", program)
    return program
