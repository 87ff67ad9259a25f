#!/bin/sh
# Makes the virtual environment: `setup.sh PYTHON VENV`. Says what is missing in words that help.
set -eu
python=$1
venv=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || {
    echo "gradiron needs Python 3.10 or newer; choose one with: make PYTHON=/path/to/python3" >&2
    exit 1
}
command -v cargo >/dev/null || {
    echo "gradiron needs Rust: install rustup (https://rustup.rs), then try again" >&2
    exit 1
}
# Debian packs venv separately.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        apt-get update -q </dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -yq python3-venv </dev/null
    else
        echo "$python has no venv; on Debian and Ubuntu: sudo apt install python3-venv" >&2
        exit 1
    fi
fi
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --upgrade 'pip>=25.1'
"$venv/bin/python" -m pip install --quiet --group dev
