"""Messages over all releases."""

import re

from catalog_builder.message_table import msg_table
from catalog_builder.renames import span

FIELD = re.compile(r"([#A-Za-z][\w#.@ ()/-]*?)\s*[=:]\s*(?=\{|%[sdr.0-9]|\[\{)")


def fields_of(text):
    out = []
    for m in FIELD.finditer(text):
        k = m.group(1).strip().split(". ")[-1].strip()
        k = re.sub(r"^(?:self|req|decode_req\.req|server_args)\.", "", k)
        k = " ".join(k.split()[-4:]) if not k.startswith("#") else k
        if 1 < len(k) <= 32 and k not in out:
            out.append(k)
    return out


BATCH = ("Decode batch", "Prefill batch")


def build_messages(vs, scans):
    rows, misses = [], []
    texts = {v: [(f, level, t, fn) for f, fact in scans[v] for level, t, fn in fact["strs"]] for v in vs}
    for mid, stage, frags in msg_table():
        variants = []
        allv = set()
        per_version_fields = {}
        for fr in frags:
            fr, _, shown = (x.strip() for x in fr.partition(" => "))
            shown = shown or fr
            rx = re.compile(fr[1:]) if fr.startswith("~") else re.compile(re.escape(fr))
            hit = {}
            for v in vs:
                hs = [
                    (f, level, t, fn)
                    for f, level, t, fn in texts[v]
                    if rx.search(t)
                    and (stage != "line-prefix" or level == "prefix")
                    and not (level == "str" and ("server_args" in f or "arg_groups/fields" in f) and len(t) > 120)
                ]
                if hs:
                    hit[v] = hs
            if not hit:
                misses.append((mid, fr))
                continue
            first, last, gaps = span(vs, hit)
            newest = hit[max(hit, key=vs.index)]
            rank = {
                "raise": 0,
                "critical": 1,
                "error": 1,
                "exception": 1,
                "warning": 2,
                "warnings": 2,
                "info": 3,
                "assert": 4,
                "print": 5,
                "prefix": 6,
                "debug": 7,
                "str": 9,
            }
            newest.sort(key=lambda h: rank.get(h[1], 8))
            lv = sorted({h[1] for hs in hit.values() for h in hs} - {"str"}, key=lambda x: rank.get(x, 8)) or ["str"]
            if {h[1] for h in newest} == {"str"} and "str" not in lv:
                lv.append("str")  # put together first, logged or raised by another statement
            files = []
            for v in sorted(hit, key=vs.index):
                f = hit[v][0][0] if v != max(hit, key=vs.index) else newest[0][0]
                if f not in files:
                    files.append(f)
            var = {
                "match": shown.removeprefix("re:"),
                "first": first,
                "last": last,
                "level": [{"str": "composed"}.get(x, x) for x in lv[:3]],
                "file": files[-1],
            }
            if shown.startswith("re:"):
                var["regex"] = True
            if len(files) > 1:
                var["earlier_files"] = files[:-1][-2:]
            variants.append(var)
            for v, hs in hit.items():
                allv.add(v)
                fl = per_version_fields.setdefault(v, [])
                for f, _l, t, fn in hs[:3]:
                    pool = [t]
                    if any(t.startswith(b) for b in BATCH):  # put together from pieces in one function
                        here = [x[2] for x in texts[v] if x[0] == f and x[3] == fn]
                        i = here.index(t) + 1
                        while i < len(here) and not here[i].startswith(BATCH):
                            pool.append(here[i])
                            i += 1
                        pool += [
                            x[2]
                            for x in texts[v]
                            if re.search("metrics|scheduler|pool_stats|observab", x[0])
                            and re.match(r"#?[a-z ]*(?:token|usage|mamba num)[a-z ]*: \{", x[2])
                        ]
                        if any(re.search(r"\}: \{can_run_(?:cuda_)?graph|cuda graph: \{", p) for p in pool):
                            fl.append("cuda graph") if "cuda graph" not in fl else None
                    for p in pool:
                        for k in fields_of(p):
                            k = re.sub(r"^(?:Prefill|Decode) batch\W*(?:mixed )?", "", k)
                            k = k.split("(")[-1] if "(" in k and ")" not in k else k
                            if not k or len(k.split()) > 4 or k in fl:
                                continue
                            if k not in fl:
                                fl.append(k)
        if not variants:
            continue
        first, last, gaps = span(vs, allv)
        row = {"id": mid, "stage": stage, "first": first, "last": last, "variants": variants}
        if gaps:
            row["gaps"] = gaps
        cur, changes = None, []
        for v in sorted(per_version_fields, key=vs.index):
            now = per_version_fields[v]
            if cur is None:
                changes.append({"since": v, "add": now})
            elif set(now) != set(cur):
                d = {"since": v, "add": [x for x in now if x not in cur], "remove": [x for x in cur if x not in now]}
                changes.append({k: x for k, x in d.items() if x})
            cur = now
        changes = [c for c in changes if len(c) > 1 and (c.get("add") or c.get("remove"))]
        if changes:
            row["values"] = changes
        rows.append(row)
    return rows, misses
