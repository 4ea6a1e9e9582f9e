#!/usr/bin/env bash
# Writes src/prism_judge/_generated from proto/. With --check it writes elsewhere and compares byte by byte.
# Needs grpcio-tools 1.62.3 in $PYTHON: code from later versions refuses to be imported on protobuf 4.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=${PYTHON:-python3}
version=$("$python" -c 'from importlib.metadata import version; print(version("grpcio-tools"))')
if [[ $version != 1.62.3 ]]; then
  echo "error: grpcio-tools is $version and must be 1.62.3" >&2
  exit 1
fi

target=src/prism_judge/_generated
out=$(mktemp -d)
trap 'rm -r "$out"' EXIT
"$python" -m grpc_tools.protoc -I ../../proto -I scripts/proto --python_out="$out" --pyi_out="$out" \
  prism/judge/v1/judge.proto prism_judge/status.proto

for name in prism/judge/v1/judge prism_judge/status; do
  for file in "$out/${name}_pb2.py" "$out/${name}_pb2.pyi"; do
    if [[ ${1:-} == --check ]]; then
      cmp "$file" "$target/$(basename "$file")"
    else
      cp "$file" "$target/"
    fi
  done
done
