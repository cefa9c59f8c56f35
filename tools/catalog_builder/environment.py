"""Environment variables over all releases."""

import re

from catalog_builder.renames import INFERRED_ENV, NOT_A_RENAME, notices, span, target_of, timeline
from catalog_builder.settings import SGL_NAME


def plain(d, is_bool):
    """One spelling per default: "true"/"1" of a bool -> True, "8" -> 8."""
    if isinstance(d, str):
        low = d.lower()
        if low in ("true", "false"):
            return low == "true"
        if is_bool and low in ("0", "1", "no", "yes"):
            return low in ("1", "yes")
        if re.fullmatch(r"-?\d+", low):
            return int(low)
    if is_bool and isinstance(d, int) and not isinstance(d, bool) and d in (0, 1):
        return bool(d)
    return d


def build_env(vs, scans):
    data, dep = {}, {}
    fwd = [v for v in vs if any(fact["sgl2sglang"] for _, fact in scans[v])]
    fwd_since = fwd[0] if fwd else None
    fwd_last = None if fwd and fwd[-1] == vs[-1] else fwd[-1] if fwd else None
    subj, _ = notices(vs, scans)
    for v in vs:
        deps_here = {}
        for _, fact in scans[v]:
            for old, new, how in fact["dep"]:
                deps_here[old] = (new, how)
        for f, fact in scans[v]:
            in_environ = f == "srt/environ.py"
            for name, how, d, typ in fact["env"]:
                if how == "named" and in_environ:
                    continue
                if not SGL_NAME.match(name) and how == "named":
                    continue
                if "/test" in f or name in ("SGLANG_NEW_NAME", "SGLANG_OLD_NAME"):
                    continue
                x = data.setdefault(name, {}).setdefault(v, {"how": set(), "d": None, "t": None})
                x["how"].add(how)
                if how == "declared" or (how == "read" and x["d"] is None and "declared" not in x["how"]):
                    x["d"] = d
                    m = re.search(r"bool|int|float|str|tuple|json", typ.lower())
                    x["t"] = m.group(0) if m else x["t"]
        for old, (new, how) in deps_here.items():
            if old in ("SGLANG_OLD_NAME", "X"):
                continue
            info = dep.setdefault(old, {"since": v, "to": None, "how": how})
            if new and new.startswith("text:"):
                info["to"] = target_of(new[5:]) or info["to"]
            elif new:
                info["to"] = new
                if "transformed" in how:
                    info["transformed"] = True
                data.setdefault(old, {}).setdefault(v, {"how": {"forwarded"}, "d": None, "t": None})
    out = {}
    for n in sorted(data):
        hist = data[n]
        hows = set().union(*(x["how"] for x in hist.values()))
        if not SGL_NAME.match(n) and not ({"read", "set", "declared"} & hows):
            continue
        first, last, gaps = span(vs, hist)
        e = {"first": first, "last": last}
        if gaps and not all(h == {"named"} for h in (x["how"] for x in hist.values())):
            e["gaps"] = gaps
        is_bool = any(x["t"] == "bool" for x in hist.values())
        for x in hist.values():
            x["d"] = plain(x["d"], is_bool)
        ds = timeline(
            [
                (v, x["d"])
                for v, x in sorted(hist.items(), key=lambda kv: vs.index(kv[0]))
                if x["how"] & {"declared", "read"}
            ]
        )
        if ds:
            e["default"] = ds[-1]["value"]
            if len(ds) > 1:
                e["default_history"] = ds
        t = [x["t"] for x in hist.values() if x["t"]]
        if t:
            e["type"] = t[-1]
        if "set" in hows:
            e["set_by_sglang"] = True
        if hows == {"named"}:
            e["weak"] = True  # the name occurs as a string; how it is read was not recognised
        if hows == {"forwarded"}:
            e["alias_only"] = True
        if n in dep:
            e["deprecated_since"] = min([dep[n]["since"]] + ([subj[n]["since"]] if n in subj else []), key=vs.index)
            if dep[n]["to"] and n not in NOT_A_RENAME:
                e["renamed_to"], e["evidence"] = dep[n]["to"], "source"
            if dep[n].get("transformed"):
                e["value_transformed"] = True
        elif n in subj:
            e["deprecated_since"] = subj[n]["since"]
            if subj[n]["to"] and n not in NOT_A_RENAME:
                e["renamed_to"], e["evidence"] = subj[n]["to"], "source"
            if subj[n].get("rejected"):
                e["rejected_since"] = subj[n]["rejected"]  # start-up fails when it is set
            if subj[n].get("ineffective"):
                e["ineffective_since"] = subj[n]["ineffective"]
        out[n] = e
    # names that only appear as removed/deprecated entries
    for n, x in dep.items():
        if n not in out and re.match(r"^[A-Z]", n):
            out[n] = {"first": None, "last": None, "deprecated_since": x["since"]}
            if x["to"]:
                out[n].update(renamed_to=x["to"], evidence="source")
    # the SGL_ -> SGLANG_ prefix change
    for n in [x for x in out if x.startswith("SGL_")]:
        new = "SGLANG_" + n[4:]
        if "renamed_to" not in out[n] and new in out:
            out[n]["renamed_to"] = new
            out[n]["evidence"] = "source" if fwd_since else "inferred"
            if fwd_since:  # every SGL_X is copied to SGLANG_X at start-up in these releases
                out[n]["forwarded"] = [fwd_since, fwd_last]
    # registered under the new name while the code still read the old one: only SGL_X works there
    for n in [x for x in out if x.startswith("SGL_")]:
        new = "SGLANG_" + n[4:]
        late = [
            v
            for v in vs
            if "read" in data[n].get(v, {}).get("how", ()) and data.get(new, {}).get(v, {}).get("how") == {"declared"}
        ]
        if late:
            out[new]["old_name_read"] = [late[0], None if late[-1] == vs[-1] else late[-1]]
    for n, new in INFERRED_ENV.items():
        if n in out and new in out and "renamed_to" not in out[n]:
            out[n].update(renamed_to=new, evidence="inferred")
    return out, fwd_since
