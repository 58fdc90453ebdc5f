#!/usr/bin/env bash
# Runs seeds of the simulated world one after the other, each in two processes whose stories must agree to the last byte.
# usage: simulations.sh MINUTES FIRST LAST      after swift build --build-tests
set -euo pipefail
cd "$(dirname "$0")/.."

if [ $# -ne 3 ]; then
    echo "usage: simulations.sh MINUTES FIRST LAST" >&2
    exit 2
fi
minutes=$1
export SWIFT_BACKTRACE=enable=no
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# The last line that a seed's run says about itself; what went wrong goes to the caller.
run() {
    if ! SIMULATION_SEED=$1 SIMULATION_MINUTES=$minutes nice -n 10 \
        swift test --skip-build --filter 'SimulationTests/chosen' >"$log" 2>&1; then
        cat "$log" >&2
        return 1
    fi
    grep '^simulation: .* requests' "$log"
}

failed=0
for seed in $(seq "$2" "$3"); do
    if ! first=$(run "$seed") || ! second=$(run "$seed"); then
        failed=1
    elif [ "$first" != "$second" ]; then
        printf 'seed %s has two stories:\n%s\n%s\n' "$seed" "$first" "$second" >&2
        failed=1
    else
        echo "seed $seed, twice: ${first#simulation: }"
    fi
done
exit $failed
