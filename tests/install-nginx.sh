#!/usr/bin/env bash
# The reverse proxy of a test of the dashboard: Debian's nginx. Where it can't be installed the test is skipped.
set -euo pipefail
if [ -x /usr/sbin/nginx ] || command -v nginx >/dev/null; then
    exit 0
fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "nginx is not here and can't be installed without apt-get and root: its test will be skipped" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends nginx >/dev/null
