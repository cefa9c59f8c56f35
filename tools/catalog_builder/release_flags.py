"""Flags of one release: names, types, choices, defaults."""

import ast
import glob
import os
import re

from catalog_builder.tree import Tree, Unknown, text_of

SIMPLE = {"str": "str", "int": "int", "float": "float", "bool": "bool", "nullable_str": "str", "dict": "json"}


def type_name(ann):
    """Annotation node -> (short type, Literal choices or None)."""
    if ann is None:
        return "str", None
    if isinstance(ann, ast.Constant) and isinstance(ann.value, str):
        try:
            ann = ast.parse(ann.value, mode="eval").body
        except SyntaxError:
            return "str", None
    if isinstance(ann, ast.Constant):
        return "none", None
    if isinstance(ann, ast.Name):
        return SIMPLE.get(ann.id, "list" if ann.id in ("list", "List") else "str"), None
    if isinstance(ann, ast.BinOp):
        left, right = type_name(ann.left), type_name(ann.right)
        return (left, right)[left[0] == "none"]
    if isinstance(ann, ast.Subscript):
        base = ann.value.id if isinstance(ann.value, ast.Name) else getattr(ann.value, "attr", "")
        sl = ann.slice
        elts = sl.elts if isinstance(sl, ast.Tuple) else [sl]
        if base == "Optional":
            return type_name(elts[0])
        if base == "Union":
            parts = [type_name(e) for e in elts if not (isinstance(e, ast.Constant) and e.value is None)]
            return parts[0] if len(parts) == 1 else ("|".join(dict.fromkeys(p[0] for p in parts)), None)
        if base == "Literal":
            vals = [e.value for e in elts if isinstance(e, ast.Constant)]
            return type(vals[0]).__name__ if vals else "str", vals
        if base in ("List", "list", "Sequence", "Tuple", "tuple"):
            return f"list[{type_name(elts[0])[0]}]", type_name(elts[0])[1]
        if base in ("Dict", "dict"):
            return "json", None
    return "str", None


def clean(v):
    """Value -> JSON-safe, short."""
    if isinstance(v, (bool, int, float)) or v is None:
        return v
    if isinstance(v, str):
        return v if len(v) <= 60 else v[:57] + "..."
    if isinstance(v, (list, tuple, set, frozenset)):
        if v and isinstance(v, tuple) and v[0] == "def":
            return "?"
        return [clean(x) for x in list(v)[:12]]
    if isinstance(v, dict):
        return {} if not v else "?"
    return "?"


def choices_of(tree, node, mod, loc):
    """-> list of choices, or None when they cannot be known."""
    try:
        v = tree.as_items(tree.ev(node, mod, loc))
        v = [x[2] if isinstance(x, tuple) and x and x[0] == "member" else x for x in v]
        return list(dict.fromkeys(str(x) for x in v))
    except (Unknown, AttributeError, TypeError, KeyError, ValueError, RecursionError):
        return None


def value_of(tree, node, mod, loc, fields):
    """Default of a flag -> plain value, or a short source text starting with '='."""
    if node is None:
        return None
    if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "ServerArgs":
        return fields.get(node.attr)
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "_declared_default":
        return fields.get(node.args[0].value)
    if isinstance(node, ast.Attribute) and node.attr == "SUPPRESS":
        return None
    try:
        v = tree.ev(node, mod, loc)
        if not (isinstance(v, tuple) and v and v[0] == "def"):
            return clean(v)
    except (Unknown, AttributeError, TypeError, KeyError, ValueError, RecursionError):
        pass
    return "=" + ast.unparse(node)[:50]


def arg_class_fields(tree, mods):
    """Dataclass/Struct fields that carry argument metadata or defaults."""
    for mod in mods:
        m = tree.module(mod)
        if m is None:
            continue
        for cls in [n for n in m.body if isinstance(n, ast.ClassDef)]:
            ns = None
            for n in cls.body:
                if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "_NS_PATH":
                    ns = getattr(n.value, "value", None)
            if cls.name != "ServerArgs" and ns is None:
                continue
            for n in cls.body:
                if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name):
                    yield mod, cls.name, ns, n


def parse_flags(root):
    tree = Tree(root)
    main = "sglang.srt.server_args"
    fdir = os.path.join(root, "sglang/srt/arg_groups/fields")
    mods = [main] + [
        "sglang.srt.arg_groups.fields." + os.path.basename(p)[:-3]
        for p in sorted(glob.glob(fdir + "/*.py"))
        if not p.endswith("__init__.py")
    ]
    fields, flags = {}, {}

    def record(names, dest, **kw):
        opts = [x for x in names if x.startswith("--")]
        if not opts:
            return
        first = opts[0]
        for i, o in enumerate(opts):
            entry = dict(dest=dest, **kw)
            if i:
                entry["alias_of"] = first
            if o in flags and flags[o].get("alias_of") is None and i:
                continue
            flags[o] = entry

    # 1. declared records (0.5.14 and later); older releases give only field defaults here
    for mod, _cls, ns, n in arg_class_fields(tree, mods):
        name, ann = n.target.id, n.annotation
        fields[name] = value_of(tree, n.value, mod, None, fields) if n.value is not None else None
        if not (
            isinstance(ann, ast.Subscript) and isinstance(ann.value, ast.Name) and ann.value.id in ("A", "Annotated")
        ):
            continue
        parts = ann.slice.elts
        typ, lit = type_name(parts[0])
        meta, helptext = {}, None
        for p in parts[1:]:
            if isinstance(p, ast.Call) and getattr(p.func, "id", "") == "Arg":
                meta = {k.arg: k.value for k in p.keywords}
                helptext = text_of(meta.get("help")) if meta.get("help") is not None else ""
                if p.args:
                    helptext = text_of(p.args[0])
            elif isinstance(p, ast.Call) and getattr(p.func, "id", "") == "NS":
                ns = ns or p.args[0].value
                nspath = p.args[0].value
                ns = nspath
            elif helptext is None and text_of(p) is not None:
                helptext = text_of(p)
        if helptext is None or (isinstance(meta.get("no_cli"), ast.Constant) and meta["no_cli"].value):
            continue
        cli = meta["cli_name"].value if "cli_name" in meta else "--" + name.replace("_", "-")
        names = [cli] + [a.value for a in getattr(meta.get("aliases"), "elts", [])]
        ch = None
        if "choices" in meta and not (isinstance(meta["choices"], ast.Constant)):
            ch = choices_of(tree, meta["choices"], mod, None)
            ch = ch if ch is not None else ["?"]
        elif lit:
            ch = [str(x) for x in lit]
        kw = dict(type=typ, choices=ch, default=fields[name], ns=ns, help=helptext or "")
        if "action" in meta:
            act = ast.unparse(meta["action"]).strip("'\"").split(".")[-1]
            kw["action"] = act
            ak = meta.get("action_kwargs")
            if isinstance(ak, ast.Dict):
                for k, v in zip(ak.keys, ak.values):
                    if k.value == "new_flag":
                        kw["new_flag"] = text_of(v)
                    elif k.value == "choices":
                        kw["choices"] = choices_of(tree, v, mod, None)
            if act == "BooleanOptionalAction":
                kw["type"] = "bool"
                kw["negatable"] = True
        record(names, name, **kw)

    # 2. explicit add_argument calls (server_args.py and helpers that it calls)
    files = [main] + [
        "sglang.srt.arg_groups." + os.path.basename(p)[:-3]
        for p in sorted(glob.glob(os.path.join(root, "sglang/srt/arg_groups/*.py")))
        if os.path.basename(p) not in ("__init__.py", "arg_utils.py", "argparse_actions.py")
    ]
    for mod in files:
        m = tree.module(mod)
        for fn in [x for x in ast.walk(m) if isinstance(x, ast.FunctionDef)]:
            loc = Tree.func_locals(fn)
            for c in ast.walk(fn):
                if not (
                    isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and c.func.attr == "add_argument"
                ):
                    continue
                names = [a.value for a in c.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                if not any(x.startswith("--") for x in names):
                    continue
                k = {x.arg: x.value for x in c.keywords}
                cli = next(x for x in names if x.startswith("--"))
                dest = k["dest"].value if "dest" in k else cli[2:].replace("-", "_")
                act = ast.unparse(k["action"]).strip("'\"").split(".")[-1] if "action" in k else None
                if act in ("store_true", "store_false", "DeprecatedStoreTrueAction", "BooleanOptionalAction"):
                    typ = "bool"
                elif "type" in k:
                    t = ast.unparse(k["type"])
                    typ = SIMPLE.get(
                        t, "json" if "json" in t else t if len(t) < 24 and not t.startswith("lambda") else "str"
                    )
                else:
                    typ = "bool" if act and act.startswith("Deprecated") else "str"
                if act == "DeprecatedStoreConstAction" and "choices" in k:
                    typ = "str"
                if "nargs" in k and typ != "bool" and getattr(k["nargs"], "value", None) in ("+", "*"):
                    typ = f"list[{typ}]"
                ch = None
                if "choices" in k:
                    ch = choices_of(tree, k["choices"], mod, loc)
                    ch = ch if ch is not None else ["?"]
                if "default" in k:
                    dflt = value_of(tree, k["default"], mod, loc, fields)
                else:
                    dflt = {"store_true": False, "store_false": True}.get(
                        act, fields.get(dest) if act and "Deprecated" in act else None
                    )
                kw = dict(
                    type=typ,
                    choices=ch,
                    default=dflt,
                    ns=None,
                    help=text_of(k.get("help")) or "" if "help" in k else "",
                )
                if act:
                    kw["action"] = act
                    if act == "BooleanOptionalAction":
                        kw["negatable"] = True
                for x in ("new_flag", "error_message"):
                    if x in k:
                        kw[x] = text_of(k[x])
                if "help" in k and ast.unparse(k["help"]).endswith("SUPPRESS"):
                    kw["hidden"] = True
                if "const_value" in k:
                    kw["const"] = ast.unparse(k["const_value"]).split(".")[-1].strip("'\"").lower()
                record(names, dest, **kw)
    # 3. `# Deprecated alias for "x"` comments next to a choice
    choice_alias = {}
    for p in glob.glob(os.path.join(root, "sglang/srt/server_args.py")) + glob.glob(
        os.path.join(root, "sglang/srt/arg_groups/choices.py")
    ):
        src = open(p, encoding="utf-8").read()
        for old, new in re.findall(r'"([\w-]+)",\s*#\s*[Dd]eprecated alias (?:for|of) [`"\']?([\w-]+)', src):
            choice_alias[old] = new
        for body in re.findall(r"deprecated_tool_call_parsers = (\{[^}]*\})", src):
            choice_alias.update(ast.literal_eval(body))
    return dict(flags=flags, choice_alias=choice_alias)
