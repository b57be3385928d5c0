#!/usr/bin/env bash
# Debian's packages that tests use, each a program of its own name: chromium, a browser, nginx, a reverse
# proxy, and prometheus, which scrapes metrics. Where one can't be installed, the tests that need it are skipped.
set -euo pipefail
export PATH="$PATH:/usr/sbin"
missing=()
for package in "$@"; do
    command -v "$package" >/dev/null || missing+=("$package")
done
if [ ${#missing[@]} = 0 ]; then
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "not here, nor to be had without apt-get and root; their tests will be skipped: ${missing[*]}" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
