"""Flags over all releases."""

import re

from catalog_builder.renames import (
    INFERRED,
    INFERRED_VALUES,
    TYPOS,
    category,
    expand,
    notices,
    span,
    target_of,
    timeline,
)


def build_flags(rel, scans):
    vs = list(rel)
    subj, value_dep = notices(vs, scans)
    names = sorted({f for v in vs for f in rel[v]["flags"]})
    out = {}
    for f in names:
        seen = [v for v in vs if f in rel[v]["flags"]]
        last_entry = rel[seen[-1]]["flags"][f]
        first, last, gaps = span(vs, seen)
        if last_entry.get("alias_of"):
            out[f] = {"alias_of": last_entry["alias_of"], "first": first, "last": last}
            if gaps:
                out[f]["gaps"] = gaps
            continue
        e = {"dest": last_entry["dest"], "first": first, "last": last}
        if gaps:
            e["gaps"] = gaps
        live = [v for v in seen if not (rel[v]["flags"][f].get("action") or "").startswith("Deprecated")] or seen
        types = timeline([(v, rel[v]["flags"][f]["type"]) for v in live])
        e["type"] = types[-1]["value"]
        if len(types) > 1:
            e["type_history"] = types
        dests = timeline([(v, rel[v]["flags"][f]["dest"]) for v in seen])
        if len(dests) > 1:
            e["dest_history"] = dests
        ch, prev = [], None
        for v in seen:
            c = rel[v]["flags"][f]["choices"]
            if c == ["?"]:
                continue
            if prev is None and c:
                ch.append({"since": v, "add": c})
            elif prev is not None and c is not None and set(c) != set(prev):
                d = {"since": v, "add": [x for x in c if x not in prev], "remove": [x for x in prev if x not in c]}
                ch.append({k: x for k, x in d.items() if x})
            elif prev and c is None:
                ch.append({"since": v, "free": True})  # any value is accepted from here on
            prev = c
        if ch:
            e["choices"] = ch
        e["default"] = timeline([(v, rel[v]["flags"][f]["default"]) for v in live])
        al = sorted({g for v in seen for g, x in rel[v]["flags"].items() if x.get("alias_of") == f})
        al += [
            g
            for g in sorted({x["alias_of"] for v in seen for x in [rel[v]["flags"][f]] if x.get("alias_of")})
            if g not in al
        ]
        if al:
            e["aliases"] = al
        neg = [v for v in seen if rel[v]["flags"][f].get("negatable")]
        if neg:
            e["no_form_since"] = neg[0]  # --no-<flag> works too
        # deprecation: argparse action, help text, or a notice in the code
        dep, to = None, None
        for v in seen:
            x = rel[v]["flags"][f]
            h = x["help"] or ""
            hd = re.match(r"^\W*(?:note: )?\W*(?:deprecated|removed\.)", h, re.I) or re.search(
                rf"{re.escape(f)}['`]? (?:is|will be) deprecated|(?:option|argument) will be deprecated", h
            )
            if (x.get("action") or "").startswith("Deprecated") or hd or x.get("new_flag"):
                dep = dep or v
                t = x.get("new_flag") or target_of(x.get("error_message") or "", f) or target_of(h, f)
                if (
                    x.get("const")
                    and t
                    and "=" not in t
                    and x.get("action") == "DeprecatedStoreConstAction"
                    and x["const"] not in ("true",)
                ):
                    t += "=" + x["const"]
                to = expand(t) or to
        if f in subj and any(v in seen for v in vs[vs.index(subj[f]["since"]) :]):
            if dep is None or vs.index(subj[f]["since"]) < vs.index(dep):
                dep = subj[f]["since"]
            to = to or subj[f]["to"]
        if dep:
            e["deprecated_since"] = dep
        if dep and any(
            re.search(r"enabled by default", rel[v]["flags"][f]["help"] or "")
            and re.match(r"\W*(deprecated|'--)", rel[v]["flags"][f]["help"], re.I)
            for v in seen
        ):
            e["now_default"], to = True, None  # the behaviour became the default; nothing to pass any more
        to = TYPOS.get(to, to)
        if to and to != f:
            e["renamed_to"], e["evidence"] = to, "source"
        elif f in INFERRED and last is not None:
            inv = INFERRED[f].startswith("!")
            e["renamed_to"], e["evidence"] = INFERRED[f].lstrip("!"), "inferred"
            if inv:
                e["inverted"] = True
        # values of this flag that were renamed
        cr = {}
        for v in seen:
            cs = rel[v]["flags"][f]["choices"] or []
            for old, new in rel[v]["choice_alias"].items():
                if old in cs and new in cs and (f == "--tool-call-parser" or ("backend" in f)):
                    cr.setdefault(old, {"to": new, "since": v})
        cr.update(value_dep.get(f, {}))
        for old, new in INFERRED_VALUES.get(f, {}).items():
            cr[old] = {"to": new, "evidence": "inferred"}
        if cr:
            e["choice_renames"] = cr
        ns = next((rel[v]["flags"][f]["ns"] for v in reversed(seen) if rel[v]["flags"][f].get("ns")), None)
        e["category"] = category(f, ns)
        out[f] = e
    for f, e in list(out.items()):
        t = e.get("renamed_to", "") or ""
        for part in t.split(" + "):
            base = part.split("=")[0]
            if base in out and base != f:
                tgt = out[out[base]["alias_of"]] if "alias_of" in out[base] else out[base]
                if "=" not in part and e["type"] == tgt.get("type") and "renamed_from" not in tgt:
                    tgt["renamed_from"] = f
                else:
                    tgt.setdefault("replaces", []).append(f)
    return out
