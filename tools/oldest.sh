#!/usr/bin/env bash
# Installs exactly the oldest versions that pyproject.toml allows and runs the quick tests with them.
#   bash tools/oldest.sh [FOLDER]     FOLDER keeps the environment (default: a temporary one)
#   PYTHON=python3.12 EXTRAS=html bash tools/oldest.sh
set -euo pipefail
ROOT=$(cd "$(dirname "$0")/.." && pwd)
PYTHON=${PYTHON:-python3.11}
EXTRAS=${EXTRAS:-html}
FOLDER=${1:-}
if [ -z "$FOLDER" ]; then
  FOLDER=$(mktemp -d)
  trap 'rm -rf "$FOLDER"' EXIT
fi
"$PYTHON" -m venv "$FOLDER/venv"
"$FOLDER/venv/bin/python" "$ROOT/tools/oldest.py" "$ROOT/pyproject.toml" $EXTRAS > "$FOLDER/oldest.txt"
cat "$FOLDER/oldest.txt"
"$FOLDER/venv/bin/pip" install -q --disable-pip-version-check -r "$FOLDER/oldest.txt" "pytest>=8.3" "pytest-xdist>=3.6" "hypothesis>=6.115" "jsonschema>=4.23" "hatchling>=1.25" editables
"$FOLDER/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-build-isolation -e "$ROOT"
"$FOLDER/venv/bin/pip" check
cd "$ROOT"
"$FOLDER/venv/bin/python" -m pytest -n 2 -p no:cacheprovider -m "not server and not slow" \
  tests/test_conditions_language.py tests/test_conditions_evaluate.py tests/test_command_grammar.py tests/test_blocks_samples.py \
  tests/test_engine_inputs.py tests/test_engine_views.py tests/test_engine_wrappers.py tests/test_engine_traps.py tests/test_history.py \
  tests/test_knowledge_store.py tests/test_knowledge_tools.py tests/test_output_formats.py tests/test_replay_edits.py tests/test_rules_load.py \
  tests/test_rules_match.py tests/test_saga.py tests/test_trust_hostile.py tests/test_trust_masking.py
