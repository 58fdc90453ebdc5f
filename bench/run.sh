#!/usr/bin/env bash
# Measures Portcullis against nginx, HAProxy and Envoy in one run: `bench/run.sh --help`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/setup"
exec "$here/../.build/bench/venv/bin/python" "$here/run.py" "$@"
