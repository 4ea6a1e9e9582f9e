"""What the documents say about versions is what the tests install."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
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


@pytest.mark.parametrize(
    ("adapter", "host"),
    [
        ("deepeval", "deepeval"),
        ("guardrails_ai", "guardrails"),
        ("inspect_ai", "inspect_ai"),
        ("langchain", "langchain"),
        ("langfuse", "langfuse"),
        ("mlflow", "mlflow"),
        ("ms_swift", "swift"),
        ("nemo_guardrails", "nemoguardrails"),
        ("openai_agents", "agents"),
        ("opik", "opik"),
        ("ragas", "ragas"),
    ],
)
def test_an_adapter_without_its_host_says_which_extra_to_install(adapter: str, host: str) -> None:
    if importlib.util.find_spec(host) is not None:
        pytest.skip(f"{host} is installed")
    with pytest.raises(ImportError, match=rf"pip install 'prism-judge\[{adapter.replace('_', '-')}\]'"):
        importlib.import_module(f"prism_judge.adapters.{adapter}")


def test_the_client_imports_no_adapter() -> None:
    code = "import prism_judge, sys; sys.exit(any('adapters' in name for name in sys.modules))"
    subprocess.run([sys.executable, "-c", code], check=True)
