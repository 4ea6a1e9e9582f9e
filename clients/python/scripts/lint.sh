#!/usr/bin/env bash
# All checks but the tests: style, types, generated code, packages.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
ruff format --check .
ruff check .
mypy
PYTHON=python scripts/generate.sh --check
python -m build --outdir "$(mktemp -d)" > /dev/null
