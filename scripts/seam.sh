#!/usr/bin/env bash
# Proves that an optimised program cannot be told to fail: the seam through which tests answer for the kernel
# (docs/decisions/0070-simulation.md) is in debug builds alone.
# usage: seam.sh BINARY      with its symbols, as the linker made it
set -euo pipefail

if [ $# -ne 1 ]; then
    echo "usage: seam.sh BINARY" >&2
    exit 2
fi
binary=$1

symbols=$(nm "$binary" 2>/dev/null | awk '{ print $NF }')
if ! grep -q '7Reactor8Syscalls' <<<"$symbols"; then
    echo "seam: $binary has no symbols of ours; look at it before it is stripped" >&2
    exit 2
fi

# Whoever stands in for the kernel, and what tells it which calls fail.
parts=$(grep -E "7Reactor(13KernelStandIn|7StandIn|9FaultPlan|9FaultRule|14FaultTextError)" <<<"$symbols" || true)
# Not grep -q: it ends at the first match, and strings would fail for want of a reader.
names=$(grep -c -a PORTCULLIS_FAULTS "$binary" || true)

# The description of a call is a type that the compiler keeps for its name; no code but its own may refer to it. Nobody
# that describes a call can ask anybody about it.
users=$(objdump -d --no-show-raw-insn "$binary" | awk '
    /^[0-9a-f]+ <.*>:$/ { function_ = $2; next }
    /<[^>]*7Reactor10SystemCall|<[^>]*7Reactor16SystemCallAnswer/ {
        if (function_ !~ /7Reactor(10SystemCall|16SystemCallAnswer)/) { print function_ }
    }' | sort -u)

if [ -n "$parts" ] || [ "$names" != 0 ] || [ -n "$users" ]; then
    {
        echo "seam: $binary has the seam for faults in it:"
        if [ -n "$parts" ]; then head -5 <<<"$parts" | sed 's/^/    part  /'; fi
        if [ -n "$users" ]; then head -5 <<<"$users" | sed 's/^/    use   /'; fi
        if [ "$names" != 0 ]; then echo "    name  PORTCULLIS_FAULTS"; fi
    } >&2
    exit 1
fi
echo "seam: $binary calls the kernel and nobody else"
