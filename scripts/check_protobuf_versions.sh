#!/usr/bin/env bash
# Check that peakline.schema works with every supported protobuf runtime.
#
#     scripts/check_protobuf_versions.sh [VERSION...]
#
# Each version gets a virtual environment of its own, .venv-protobuf-<version>, kept for the next
# run. Only protobuf is installed there: the message classes need nothing else. PYTHON names the
# interpreter to make them with.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

versions=("$@")
[ $# -gt 0 ] || versions=(5.26.1 '5.29.*' '6.33.*' '7.*')

for version in "${versions[@]}"; do
    folder=.venv-protobuf-${version%.\*}
    python=$folder/bin/python
    [ -x "$python" ] || "${PYTHON:-python3}" -m venv "$folder"
    "$python" -m pip --disable-pip-version-check --quiet install "protobuf==$version"
    for implementation in upb python; do
        PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=$implementation PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 \
            "$python" -W error scripts/check_schema.py "$implementation"
    done
done
