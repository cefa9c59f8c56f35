"""Cross-fire of rules/: which rule hits which sample, on which line. Usage: tools/rule_probe.py [rule-id-substring …] [--healthy] [--case NAME].

Without arguments it prints, per case, the rules that hit; rules with role root/cascade that hit a healthy log are marked !!.
"""

import sys
from pathlib import Path

import re2
import yaml

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
from forensics.engine.scan import scan  # noqa: E402

args = [a for a in sys.argv[1:] if not a.startswith("--")]
case = None
if "--case" in sys.argv:
    case = sys.argv[sys.argv.index("--case") + 1]
    args.remove(case)
rules = []
for p in sorted((ROOT / "rules").rglob("*.yaml")):
    d = yaml.safe_load(p.read_text())
    if args and not any(a in d["id"] for a in args):
        continue
    rules.append((d, [re2.compile(x) for x in d["match"]["any"]], [re2.compile(x) for x in d["match"].get("not", [])]))
logs = (
    sorted(ROOT.glob("samples/healthy/*/log.txt"))
    + sorted(ROOT.glob("samples/cases/saga/*good*.log"))
    + [ROOT / "samples/cases/saga/fixed.log"]
)
n_healthy = len(logs)
if "--healthy" not in sys.argv:
    logs += sorted(p for p in ROOT.glob("samples/cases/*/log.txt")) + sorted(
        ROOT.glob("samples/cases/saga/attempt*.log")
    )
for i, log in enumerate(logs):
    if case and case not in str(log):
        continue
    t = scan([log])
    hits = {}
    for row in range(len(t)):
        text, kind = t.text(row), t.kind(row)
        for d, ps, nots in rules:
            kinds = d["match"].get("kinds")
            if kinds and kind not in kinds:
                continue
            if any(p.search(text) for p in ps) and not any(p.search(text) for p in nots):
                hits.setdefault(d["id"], []).append((int(t.line[row]), d.get("role")))
    if hits:
        bad = i < n_healthy
        name = log.parent.name if log.name == "log.txt" else log.parent.name + "/" + log.name
        print(name + (" [healthy]" if bad else ""))
        for k, v in sorted(hits.items(), key=lambda x: x[1][0]):
            mark = "!!" if bad and v[0][1] in ("root", "cascade") else "  "
            print(f"  {mark} {k} ({v[0][1]}) x{len(v)} lines {[x[0] for x in v[:4]]}")
