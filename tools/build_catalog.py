#!/usr/bin/env python3
"""Build a catalogue of sglang's command-line flags, environment variables and
diagnostic log messages across releases, by static reading (ast) of the wheels.
sglang itself is never imported.

  build_catalog.py fetch [VERSION ...]   download one wheel at a time, keep its .py files
                                         in SRC/<version>/, delete the wheel
  build_catalog.py build [--fresh]       (re)write sglang_flags.json and messages.json; what was
                                         read from a release is kept in .cache/<version>, so SRC
                                         may be deleted afterwards (--fresh: read the flags again)
  build_catalog.py check                 print the entries to look at by hand after a build

To add a release: append it to VERSIONS, then `fetch THAT_VERSION`, `build`, `check`,
and list it (and the releases that were not read) in forensics/data/releases.json.
After a change to scan_file() delete .cache and fetch everything again.
"""

import json
import os
import sys

from catalog_builder.environment import build_env
from catalog_builder.fetch import fetch
from catalog_builder.flags import build_flags
from catalog_builder.messages import build_messages
from catalog_builder.release_scan import load_flags, load_scans
from catalog_builder.settings import DATA, VERSIONS


def dump(path, head, sections):
    """JSON with one entry per line (small diffs, still plain JSON)."""

    def j(x):
        return json.dumps(x, ensure_ascii=False, separators=(",", ":"))

    with open(path, "w") as f:
        f.write("{\n" + ",\n".join(f"{j(k)}:{j(v)}" for k, v in head.items()))
        for name, items in sections.items():
            if isinstance(items, dict):
                f.write(f",\n{j(name)}:{{\n" + ",\n".join(f"{j(k)}:{j(v)}" for k, v in items.items()) + "\n}")
            else:
                f.write(f",\n{j(name)}:[\n" + ",\n".join(j(v) for v in items) + "\n]")
        f.write("\n}\n")


def build():
    rel, scans = load_flags(), load_scans()
    vs = [v for v in VERSIONS if v in rel and v in scans]
    rel = {v: rel[v] for v in vs}
    flags = build_flags(rel, scans)
    env, fwd = build_env(vs, scans)
    rows, misses = build_messages(vs, scans)
    dump(
        os.path.join(DATA, "sglang_flags.json"),
        {"versions": vs, "sgl_prefix_forwarded_since": fwd},
        {"flags": flags, "env": env},
    )
    dump(os.path.join(DATA, "messages.json"), {"versions": vs}, {"messages": rows})
    size = sum(os.path.getsize(os.path.join(DATA, x)) for x in ("sglang_flags.json", "messages.json"))
    print(
        f"{len(vs)} releases, {len(flags)} flags ({sum('alias_of' in x for x in flags.values())} of them alias spellings, "
        f"{sum(x['last'] is not None for x in flags.values())} gone, {sum('renamed_to' in x for x in flags.values())} renamed/replaced), "
        f"{len(env)} env names ({sum('renamed_to' in x for x in env.values())} renamed/replaced), {len(rows)} messages, {size // 1024} KB"
    )
    for m in misses:
        print("no hit:", m)


CHECK = [
    "--fp8-gemm-backend",
    "--fp8-gemm-runner-backend",
    "--nsa-prefill-backend",
    "--dsa-prefill-backend",
    "--enable-ep-moe",
    "--cuda-graph-max-bs",
    "--disable-cuda-graph",
    "--schedule-conservativeness",
    "--kv-cache-dtype",
    "--attention-backend",
    "SGL_ENABLE_JIT_DEEPGEMM",
    "SGLANG_ENABLE_JIT_DEEPGEMM",
    "SGLANG_NSA_FUSE_TOPK",
]


def check():
    d = json.load(open(os.path.join(DATA, "sglang_flags.json")))
    for n in CHECK:
        print(n, json.dumps(d["flags"].get(n) or d["env"].get(n)))
    idx = {v: i for i, v in enumerate(d["versions"])}
    new = list(d["versions"])[-1]
    print("new in", new, [f for f, e in d["flags"].items() if e["first"] == new])
    prev = d["versions"][-2]
    print("last seen in", prev, [f for f, e in d["flags"].items() if e["last"] == prev])
    for f, e in d["flags"].items():  # every replacement that is named must exist as a flag or env name
        for part in (e.get("renamed_to") or "").split(" + "):
            base = part.split("=")[0]
            if base and base not in d["flags"] and base not in d["env"]:
                print("replacement unknown:", f, "->", part)
            elif "=" in part and base in d["flags"]:
                vals = {x for c in d["flags"][base].get("choices", []) for x in c.get("add", [])}
                if vals and part.split("=")[1] not in vals:
                    print("replacement value unknown:", f, "->", part)
    assert all(idx[e["first"]] <= idx[e["last"] or new] for e in d["flags"].values())


if __name__ == "__main__":
    cmd = sys.argv[1] if len(sys.argv) > 1 else "build"
    if cmd == "fetch":
        fetch(sys.argv[2:] or VERSIONS)
    elif cmd == "scan":
        load_scans()
    elif cmd == "build":
        build()
    elif cmd == "check":
        check()
    else:
        print(__doc__)
