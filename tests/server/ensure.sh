#!/usr/bin/env bash
# Build the real-server environment once per recipe and print its folder.
# The folder's name holds a hash of the recipe, so a changed recipe builds anew and an unchanged one costs nothing.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
ROOT=${FORENSICS_SERVER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/forensics-server}
HASH=$(cat "$HERE/setup.sh" "$HERE/mkmodel.py" "$HERE/mkhotmodel.py" | sha256sum | cut -c1-16)
DIR=$ROOT/$HASH
mkdir -p "$ROOT"
(
  flock 9
  if [ ! -e "$DIR/.complete" ]; then
    rm -rf "$DIR"
    mkdir -p "$DIR"
    bash "$HERE/setup.sh" "$DIR" > "$DIR/setup.log" 2>&1 || { tail -n 30 "$DIR/setup.log" >&2; exit 1; }
    cp "$HERE/mkhotmodel.py" "$DIR/"
    (cd "$DIR" && ./venv/bin/python mkhotmodel.py "$DIR/models-hot") >> "$DIR/setup.log" 2>&1
    touch "$DIR/.complete"
  fi
) 9> "$ROOT/$HASH.lock"
echo "$DIR"
