"""What the documents say about versions is what the tests install."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DOCS = HERE.parents[3] / "docs"
PAGES = ("trainers.md", "guardrail-hosts.md", "evaluation-hosts.md")


@pytest.mark.skipif(not (DOCS / "trainers.md").is_file(), reason="the documents are not part of the package")
def test_the_documents_name_the_versions_that_are_tested() -> None:
    text = "\n".join((DOCS / page).read_text() for page in PAGES)
    for pins in (HERE / "hosts").glob("*.txt"):
        name, version = pins.read_text().splitlines()[0].split("==")
        assert f"{name} {version}" in text, pins.name


def test_each_host_has_an_adapter_and_a_test_or_speaks_http() -> None:
    hosts = {pins.stem for pins in (HERE / "hosts").glob("*.txt")}
    package = HERE.parents[1] / "src" / "prism_judge" / "adapters"
    adapters = {file.stem for file in package.glob("[a-z]*.py")}
    assert adapters <= hosts
    assert hosts - adapters == {"litellm", "openrlhf"}
    for host in hosts:
        assert (HERE / f"test_{host}.py").is_file()


def test_an_adapter_without_its_host_says_which_extra_to_install() -> None:
    for name in ("deepeval", "langchain", "openai_agents", "guardrails_ai", "nemo_guardrails", "inspect_ai"):
        try:
            __import__(f"prism_judge.adapters.{name}")
        except ImportError as error:
            extra = name.replace("_", "-")
            assert re.search(rf"pip install 'prism-judge\[{extra}\]'", str(error))
