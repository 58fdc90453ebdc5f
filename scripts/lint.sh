#!/usr/bin/env bash
# Checks formatting and syntax of what is not compiled; the compiler itself treats warnings as errors.
# usage: lint.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."

folders=()
for folder in Package.swift Sources Tests Fuzz bench; do
    if [ -e "$folder" ]; then folders+=("$folder"); fi
done

if [ "${1:-}" = --fix ]; then
    swift format format --in-place --parallel --recursive "${folders[@]}"
    exit
fi

swift format lint --strict --parallel --recursive "${folders[@]}"
while IFS= read -r script; do bash -n "$script"; done < <(git ls-files '*.sh' .ci/run)
.venv/bin/python - <<'PY'
import ast, pathlib, subprocess
for path in subprocess.check_output(["git", "ls-files", "*.py"], text=True).split():
    ast.parse(pathlib.Path(path).read_text(), path)
PY
echo "lint: clean"
