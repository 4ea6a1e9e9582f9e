#!/usr/bin/env bash
# Runs the tests without gRPC, and with each major version of protobuf and a grpcio of its time.
# PYTHONS="python3.9 python3.13" tries other interpreters; a version that an interpreter cannot have is named and left out.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
venvs=${VENVS:-../../.venv/python-matrix}
tests=(-r tests/requirements.txt)

for python in ${PYTHONS:-python3}; do
  for versions in "" "grpcio==1.62.3 protobuf==4.25.*" "grpcio==1.71.* protobuf==5.*" "grpcio==1.78.* protobuf==6.*" \
    "grpcio>=1.85,<2 protobuf==7.*"; do
    venv="$venvs/$(basename "$python")-${versions//[^a-z0-9.]/-}"
    [[ -x $venv/bin/python ]] || "$python" -m venv "$venv"
    read -ra packages <<< "$versions"
    echo "$python: ${versions:-no gRPC}"
    if ! "$venv/bin/pip" install --quiet "${tests[@]}" "${packages[@]}" --editable . 2> "$venv/install.log"; then
      grep -q 'No matching distribution\|Requires-Python' "$venv/install.log" || { cat "$venv/install.log" >&2; exit 1; }
      echo "  not to be had for this Python: left out"
      continue
    fi
    "$venv/bin/python" -m pytest
  done
done
