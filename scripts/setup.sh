#!/usr/bin/env bash
# Installs what parts of the project need, and nothing that is already there.
# usage: setup.sh build|test|bench ...
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v swift >/dev/null; then
    echo "setup: no swift on PATH; install the Swift 6.3 toolchain first (swift.org/install)" >&2
    exit 1
fi

# The names in a package list, without comments.
packages() { sed 's/#.*//' "scripts/packages-$1.txt" | tr -s '[:space:]' '\n' | sed '/^$/d'; }

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for part in "$@"; do
    for package in $(packages "$part"); do
        if ! command -v dpkg-query >/dev/null || ! is_installed "$package"; then
            missing+=("$package")
        fi
    done
done

if [ ${#missing[@]} -gt 0 ]; then
    if ! command -v apt-get >/dev/null; then
        echo "setup: this is not Debian; install yourself what these packages hold: ${missing[*]}" >&2
        exit 1
    fi
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then as_root=(sudo); fi
    echo "setup: installing ${missing[*]}"
    "${as_root[@]}" apt-get update -qq
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" </dev/null >/dev/null
fi

# Python packages of the integration tests, in a folder of their own. The stamp holds the list that was installed.
for part in "$@"; do
    if [ "$part" != test ]; then continue; fi
    wanted=Tests/Integration/requirements.txt
    if cmp -s "$wanted" .venv/requirements.installed; then continue; fi
    python=/usr/bin/python3
    if [ ! -x "$python" ]; then python=python3; fi
    echo "setup: making .venv"
    rm -rf .venv
    "$python" -m venv .venv
    .venv/bin/pip install --quiet --disable-pip-version-check -r "$wanted"
    cp "$wanted" .venv/requirements.installed
done
