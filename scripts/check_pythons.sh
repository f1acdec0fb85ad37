#!/usr/bin/env bash
# Check that the one wheel works with every Python that it is for and that this machine has.
#
#     scripts/check_pythons.sh [PYTHON...]
#
# By default those called python3.12, python3.13 and so on, on the path or installed by pyenv. Each
# gets a virtual environment of its own, .venv-VERSION, kept for the next run, with the wheel of
# build/wheel, its dependencies and what the tests of the kernels need: they open files of every format.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pythons=("$@")
if [ $# -eq 0 ]; then
    for minor in 12 13 14 15; do
        for python in "$(command -v "python3.$minor" || true)" \
            "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
            if [ -x "$python" ] && "$python" -c 'import ensurepip' 2> /dev/null; then
                pythons+=("$python")
                break
            fi
        done
    done
fi

for python in "${pythons[@]}"; do
    version=$("$python" -c 'import sys; print("{}.{}".format(*sys.version_info))')
    folder=.venv-$version
    [ -x "$folder/bin/python" ] || "$python" -m venv "$folder"
    pip=("$folder/bin/python" -m pip --disable-pip-version-check --quiet)
    "${pip[@]}" install --force-reinstall --no-deps build/wheel/peakline-*.whl
    "${pip[@]}" install build/wheel/peakline-*.whl cython==3.3.1 'pytest>=8.3' \
        'pytest-randomly>=4' 'hypothesis>=6.120'
    echo "Python $version: $("$folder/bin/peakline" --version)"
    "$folder/bin/python" -m pytest --quiet -p no:cacheprovider tests/kernels
done
echo "${#pythons[@]} other Pythons checked"
