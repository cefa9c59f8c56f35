"""Package data from samples: forensics/data/healthy_lines.json, one line of every shape that a healthy log holds.

Usage: tools/build_pack.py [--check]   (--check: exit code 1 where the file is not what the samples give)
"""

import json
import sys
from pathlib import Path

from forensics.engine.scan import scan
from forensics.ingest.inputs import open_inputs
from forensics.rulebook.program import normal
from forensics.schema.options import Options

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "forensics" / "data" / "healthy_lines.json"
LONGEST = 600


def healthy_logs():
    saga = ROOT / "samples" / "cases" / "saga"
    return [
        *sorted(ROOT.glob("samples/healthy/*/log.txt")),
        *sorted(saga.glob("*good*.log")),
        *sorted(saga.glob("fixed*.log")),
        *sorted(ROOT.glob("samples/formats/*.log")),
    ]


def build():
    logs, lines, seen = [], [], set()
    for path in healthy_logs():
        name = path.parent.name if path.name == "log.txt" else f"{path.parent.name}/{path.name}"
        table = scan(open_inputs([str(path)], Options()).sources, Options())
        added = False
        for shape in table.shapes:
            text = table.text(shape.row)[:LONGEST]
            key = (shape.kind, normal(text))
            if key not in seen and text.strip():
                seen.add(key)
                lines.append([shape.kind, text, len(logs)])
                added = True
        if added:
            logs.append(name)
    return {"logs": logs, "lines": lines}


def main():
    text = json.dumps(build(), ensure_ascii=False, indent=0).replace("\n", "").replace("],[", "],\n[") + "\n"
    if "--check" in sys.argv:
        same = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("fresh" if same else "stale: run tools/build_pack.py")
        return 0 if same else 1
    TARGET.write_text(text, encoding="utf-8")
    print(f"{TARGET.relative_to(ROOT)}: {text.count(chr(10))} lines, {len(text)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
