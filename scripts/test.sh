#!/usr/bin/env bash
# Runs every test and closes with one line of counts. Arguments go to pytest.
set -uo pipefail
cd "$(dirname "$0")/.."

rm -rf .test
mkdir -p .test
swift build || exit 1

failed=0
# No test run may hang a pipeline: the limits are several times what a slow machine needs.
# One test at a time: many start servers and have time limits, which a hundred at once on two cores do not keep.
timeout --kill-after=10 900 swift test --no-parallel --xunit-output .test/unit.xml || failed=1
timeout --kill-after=10 900 .venv/bin/python -m pytest Tests/Integration -n 2 --dist loadfile \
    --junitxml .test/integration.xml "$@" || failed=1

.venv/bin/python scripts/summarise.py .test/*.xml || failed=1
exit $failed
