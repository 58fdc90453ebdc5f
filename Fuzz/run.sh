#!/usr/bin/env bash
# Builds a fuzz target and runs it with the committed corpus as seeds, for a limited time.
#
#   Fuzz/run.sh                   every target, 60 seconds each
#   Fuzz/run.sh TARGET [SECONDS]  one target (default 60 seconds)
#
# What the fuzzer finds on its way stays in the ignored folder Work/TARGET. An input that fails is left
# there as crash-…, timeout-…, leak-… or oom-…, and makes this script fail: fix the bug, then move the
# file into Corpus/TARGET, where the ordinary tests replay it.
set -euo pipefail
cd "$(dirname "$0")"

run() {
    local target=$1 seconds=$2
    mkdir -p "Corpus/$target" "Work/$target"
    swift build -c release --sanitize=fuzzer --product "$target"
    # The runtime would print its backtrace and die before the fuzzer has saved the input.
    export SWIFT_BACKTRACE=enable=no
    echo "fuzzing $target for $seconds s"
    ".build/release/$target" \
        -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=1024 \
        -print_final_stats=1 -artifact_prefix="Work/$target/" \
        "Work/$target" "Corpus/$target"
}

if [ $# -ge 1 ]; then
    run "$1" "${2:-60}"
else
    # The manifest is the only list of targets.
    for target in $(sed -n 's/^ *fuzzer("\([a-z0-9-]*\)".*/\1/p' Package.swift); do
        run "$target" "${FUZZ_SECONDS:-60}"
    done
fi
