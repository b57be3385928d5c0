#!/usr/bin/env bash
# The browser that the tests marked "browser" drive: Debian's chromium. Where it can't be installed they are skipped.
set -euo pipefail
if command -v chromium >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "chromium is not here and can't be installed without apt-get and root: browser tests will be skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends chromium >/dev/null
