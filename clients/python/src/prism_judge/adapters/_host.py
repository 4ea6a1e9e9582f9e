"""The error of a host that is not there."""

from __future__ import annotations


def missing(package: str, extra: str) -> ImportError:
    """What to raise when the host's package cannot be imported."""
    return ImportError(
        f"prism_judge.adapters.{extra.replace('-', '_')} needs {package}: pip install 'prism-judge[{extra}]'",
        name=package,
    )
