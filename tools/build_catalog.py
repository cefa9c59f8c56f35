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

To add a release: append it to VERSIONS, then `fetch THAT_VERSION`, `build`, `check`.
After a change to scan_file() delete .cache and fetch everything again.
"""
import ast
import glob
import hashlib
import json
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import time
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(HERE), "forensics", "data")
SRC = os.environ.get("CATALOG_SRC", os.path.join(HERE, ".cache", "src"))
CACHE = os.path.join(HERE, ".cache")

VERSIONS = ["0.3.3", "0.3.6.post2", "0.4.1.post7", "0.4.2", "0.4.3.post4", "0.4.4", "0.4.4.post1", "0.4.4.post4", "0.4.5", "0.4.5.post3", "0.4.6.post1", "0.4.6.post5", "0.4.7", "0.4.7.post1", "0.4.8.post1", "0.4.9.post6", "0.4.10.post2", "0.5.1.post3", "0.5.2", "0.5.3", "0.5.3.post3", "0.5.4.post3", "0.5.5.post3", "0.5.6", "0.5.6.post2", "0.5.7", "0.5.8", "0.5.8.post1", "0.5.9", "0.5.10", "0.5.10.post1", "0.5.11", "0.5.12", "0.5.12.post1", "0.5.13.post1", "0.5.14", "0.5.15.post1", "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23"]

FLAG_RE = re.compile(r"--[a-z][a-z0-9]*(?:-[a-z0-9{},]+)*(?:[= ][a-z0-9_]+(?=['\"`. ,;)]|$))?")
ENV_NAME = re.compile(r"^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$")
SGL_NAME = re.compile(r"^(?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]$")
SGL_IN_TEXT = re.compile(r"\b(?:SGLANG|SGL)_[A-Z0-9_]*[A-Z0-9]\b")


# --------------------------------------------------------------------------- fetch
def wanted(name):
    return (name.startswith("sglang/") and name.endswith(".py") and not name.startswith(
        ("sglang/multimodal_gen", "sglang/test", "sglang/lang/", "sglang/eval")))


def fetch(versions):
    dl = os.path.join(HERE, "dl")
    os.makedirs(dl, exist_ok=True)
    for v in versions:
        out = os.path.join(SRC, v)
        if os.path.isdir(out):
            continue
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir",
                        "--only-binary", ":all:", f"sglang=={v}", "-d", dl], check=True)
        wheel = glob.glob(os.path.join(dl, f"sglang-{v}-*.whl"))[0]
        with zipfile.ZipFile(wheel) as z:
            for n in filter(wanted, z.namelist()):
                z.extract(n, out + ".tmp")
        os.rename(out + ".tmp", out)
        os.remove(wheel)
        time.sleep(1)


# ------------------------------------------------- a small static evaluator for ast nodes
class Unknown(Exception):
    """The value cannot be known without running the program."""


class Tree:
    """Modules of one release, parsed on demand."""

    def __init__(self, root):
        self.root, self.mods, self.index = root, {}, {}

    def path(self, mod):
        base = os.path.join(self.root, *mod.split("."))
        for p in (base + ".py", os.path.join(base, "__init__.py")):
            if os.path.exists(p):
                return p

    def module(self, mod):
        if mod not in self.mods:
            p = self.path(mod)
            self.mods[mod] = ast.parse(open(p, encoding="utf-8").read()) if p else None
            idx = self.index[mod] = {}
            body = list(self.mods[mod].body) if p else []
            while body:
                n = body.pop(0)
                if isinstance(n, (ast.If, ast.Try)):      # names under if/try count too
                    body[:0] = n.body + getattr(n, "orelse", [])
                elif isinstance(n, ast.Assign):
                    for t in n.targets:
                        if isinstance(t, ast.Name):
                            idx[t.id] = n.value
                elif isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name) and n.value:
                    idx[n.target.id] = n.value
                elif isinstance(n, (ast.FunctionDef, ast.ClassDef)):
                    idx[n.name] = n
                elif isinstance(n, ast.ImportFrom) and n.module:
                    for a in n.names:
                        idx.setdefault(a.asname or a.name, ("import", n.module, a.name))
        return self.mods[mod]

    def lookup(self, mod, name, depth=0):
        """-> (module, node) that defines name"""
        self.module(mod)
        v = self.index[mod].get(name)
        if isinstance(v, tuple):
            if depth > 6 or not v[1].startswith("sglang"):
                raise Unknown(name)
            return self.lookup(v[1], v[2], depth + 1)
        if v is None:
            raise Unknown(name)
        return mod, v

    def members(self, mod, cls):
        """Enum-like members of a class node: [(name, value node)]"""
        out = []
        for n in cls.body:
            if isinstance(n, ast.Assign) and isinstance(n.targets[0], ast.Name):
                out.append((n.targets[0].id, n.value))
            elif isinstance(n, ast.AnnAssign) and n.value is not None:
                out.append((n.target.id, n.value))
        return out

    def ev(self, n, mod, loc=None, depth=0):
        loc = loc or {}
        if depth > 25:
            raise Unknown("depth")

        def go(x, l=None):
            return self.ev(x, mod, l if l is not None else loc, depth + 1)

        if isinstance(n, ast.Constant):
            return n.value
        if isinstance(n, (ast.List, ast.Tuple, ast.Set)):
            out = []
            for e in n.elts:
                out.extend(go(e.value)) if isinstance(e, ast.Starred) else out.append(go(e))
            return out
        if isinstance(n, ast.Dict):
            return {go(k): v for k, v in zip(n.keys, n.values) if k is not None} | {
                k: v for kk, vv in zip(n.keys, n.values) if kk is None for k, v in go(vv).items()}
        if isinstance(n, ast.UnaryOp) and isinstance(n.op, ast.USub):
            return -go(n.operand)
        if isinstance(n, ast.BinOp):
            a, b = go(n.left), go(n.right)
            if isinstance(n.op, ast.Add):
                return a + b
            if isinstance(n.op, ast.BitOr):
                return list(a) + [x for x in b if x not in a]
            if isinstance(n.op, ast.Mult):
                return a * b
            if isinstance(n.op, ast.Pow):
                return a ** b
            if isinstance(n.op, ast.LShift):
                return a << b
            if isinstance(n.op, ast.Div):
                return a / b
            if isinstance(n.op, ast.Sub):
                return a - b
            if isinstance(n.op, ast.FloorDiv):
                return a // b
            raise Unknown("binop")
        if isinstance(n, ast.Name):
            if n.id in loc:
                v = loc[n.id]
                return go(v) if isinstance(v, ast.AST) else v
            m, v = self.lookup(mod, n.id)
            if isinstance(v, (ast.ClassDef, ast.FunctionDef)):
                return ("def", m, v)
            return self.ev(v, m, None, depth + 1)
        if isinstance(n, ast.Attribute):
            if n.attr in ("name", "value") and isinstance(n.value, ast.Name) and n.value.id in loc:
                return loc[n.value.id][1 if n.attr == "name" else 2]
            base = go(n.value)
            if isinstance(base, tuple) and base[0] == "def" and isinstance(base[2], ast.ClassDef):
                members = dict(self.members(base[1], base[2]))
                if n.attr in members:
                    return self.ev(members[n.attr], base[1], members, depth + 1)
            if isinstance(base, str) and n.attr == "value":
                return base
            raise Unknown(n.attr)
        if isinstance(n, (ast.ListComp, ast.SetComp, ast.GeneratorExp)) and len(n.generators) == 1:
            g = n.generators[0]
            it, out = go(g.iter), []
            if isinstance(it, tuple) and it[0] == "def":
                items = [("member", k, self.ev(v, it[1], None, depth + 1)) for k, v in self.members(it[1], it[2])
                         if not k.startswith("_")]
            else:
                items = list(it)
            for x in items:
                if g.ifs:
                    raise Unknown("filtered comprehension")
                out.append(go(n.elt, {**loc, g.target.id: x}))
            return out
        if isinstance(n, ast.Call):
            f = n.func
            fname = f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""
            if fname in ("field",):
                for k in n.keywords:
                    if k.arg == "default_factory":
                        return go(k.value.body) if isinstance(k.value, ast.Lambda) else {
                            "list": [], "dict": {}, "set": []}.get(getattr(k.value, "id", ""))
                    if k.arg == "default":
                        return go(k.value)
            if isinstance(f, ast.Name) and fname in ("list", "set", "tuple", "frozenset", "sorted", "dict"):
                if not n.args:
                    return []
                v = go(n.args[0])
                v = self.as_items(v)
                return sorted(v) if fname == "sorted" else list(v)
            if isinstance(f, ast.Name) and fname in ("int", "float", "str"):
                return {"int": int, "float": float, "str": str}[fname](go(n.args[0]))
            if isinstance(f, ast.Attribute) and fname in ("keys", "copy"):
                return list(go(f.value))
            if isinstance(f, ast.Attribute) and fname in ("lower", "upper"):
                return getattr(go(f.value), fname)()
            if isinstance(f, ast.Name):
                m, d = self.lookup(mod, fname)
                if isinstance(d, ast.FunctionDef):       # a helper: take its last evaluable return
                    inner = self.func_locals(d)
                    for r in reversed([x for x in ast.walk(d) if isinstance(x, ast.Return) and x.value]):
                        imports = {a.asname or a.name: (x.module, a.name) for x in ast.walk(d)
                                   if isinstance(x, ast.ImportFrom) and x.module for a in x.names}
                        for k, (im, iname) in imports.items():
                            try:
                                mm, node = self.lookup(im, iname)
                                inner[k] = ("def", mm, node) if isinstance(
                                    node, (ast.ClassDef, ast.FunctionDef)) else self.ev(node, mm, None, depth + 1)
                            except Unknown:
                                pass
                        try:
                            return self.as_items(self.ev(r.value, m, inner, depth + 1))
                        except Unknown:
                            continue
            if isinstance(f, ast.Attribute) and isinstance(f.value, ast.Attribute) and getattr(
                    f.value.value, "id", "") == "envs":
                return "env:" + f.value.attr
            raise Unknown(fname)
        if isinstance(n, ast.Subscript):
            return go(n.value)[go(n.slice)]
        raise Unknown(type(n).__name__)

    def as_items(self, v):
        if isinstance(v, tuple) and v and v[0] == "def":
            return [("member", k, self.ev(x, v[1])) for k, x in self.members(v[1], v[2]) if not k.startswith("_")]
        return v

    @staticmethod
    def func_locals(fn):
        out = {}
        for n in ast.walk(fn):
            if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name):
                out.setdefault(n.targets[0].id, n.value)
        return out


def text_of(n):
    """Flatten a string expression; f-string holes become {expr}."""
    if isinstance(n, ast.Constant) and isinstance(n.value, str):
        return n.value
    if isinstance(n, ast.JoinedStr):
        return "".join(text_of(v) if isinstance(v, ast.Constant) else "{%s}" % ast.unparse(v.value)[:40] for v in n.values)
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add):
        a, b = text_of(n.left), text_of(n.right)
        return (a or "{}") + (b or "{}") if a or b else None
    if isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod):
        return text_of(n.left)
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr in ("format", "join"):
        return text_of(n.func.value)
    if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute) and n.func.attr == "dedent" and n.args:
        return text_of(n.args[0])
    return None


# ------------------------------------------------------------------- flags of one release
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
        l, r = type_name(ann.left), type_name(ann.right)
        return (l, r)[l[0] == "none"]
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
    mods = [main] + ["sglang.srt.arg_groups.fields." + os.path.basename(p)[:-3]
                     for p in sorted(glob.glob(fdir + "/*.py")) if not p.endswith("__init__.py")]
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
    for mod, cls, ns, n in arg_class_fields(tree, mods):
        name, ann = n.target.id, n.annotation
        fields[name] = value_of(tree, n.value, mod, None, fields) if n.value is not None else None
        if not (isinstance(ann, ast.Subscript) and isinstance(ann.value, ast.Name) and ann.value.id in ("A", "Annotated")):
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
    files = [main] + ["sglang.srt.arg_groups." + os.path.basename(p)[:-3]
                      for p in sorted(glob.glob(os.path.join(root, "sglang/srt/arg_groups/*.py")))
                      if os.path.basename(p) not in ("__init__.py", "arg_utils.py", "argparse_actions.py")]
    for mod in files:
        m = tree.module(mod)
        for fn in [x for x in ast.walk(m) if isinstance(x, ast.FunctionDef)]:
            loc = Tree.func_locals(fn)
            for c in ast.walk(fn):
                if not (isinstance(c, ast.Call) and isinstance(c.func, ast.Attribute) and c.func.attr == "add_argument"):
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
                    typ = SIMPLE.get(t, "json" if "json" in t else t if len(t) < 24 and not t.startswith("lambda") else "str")
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
                    dflt = {"store_true": False, "store_false": True}.get(act, fields.get(dest) if act and "Deprecated" in act else None)
                kw = dict(type=typ, choices=ch, default=dflt, ns=None, help=text_of(k.get("help")) or "" if "help" in k else "")
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
            os.path.join(root, "sglang/srt/arg_groups/choices.py")):
        src = open(p, encoding="utf-8").read()
        for old, new in re.findall(r'"([\w-]+)",\s*#\s*[Dd]eprecated alias (?:for|of) [`"\']?([\w-]+)', src):
            choice_alias[old] = new
        for body in re.findall(r"deprecated_tool_call_parsers = (\{[^}]*\})", src):
            choice_alias.update(ast.literal_eval(body))
    return dict(flags=flags, choice_alias=choice_alias)


# ----------------------------------------------- per-file facts: env uses, strings that are logged
GETTERS = re.compile(r"^_?(?:getenv|get_(?:bool|int|float|str)_env_var|get_env\w*|env_(?:enabled|on|flag|bool|int)|_env_\w+|get_\w*_from_env)$")
LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception")


def call_name(f):
    return f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""


def dotted(n):
    """a.b.c of a name chain, "" for anything else (much cheaper than ast.unparse)."""
    parts = []
    while isinstance(n, ast.Attribute):
        parts.append(n.attr)
        n = n.value
    return ".".join([n.id] + parts[::-1]) if isinstance(n, ast.Name) else ""


# Files that are only searched for environment variables (their messages are not catalogued).
ENV_ONLY = ("srt/models/", "srt/configs/", "srt/multimodal/", "jit_kernel/", "kernels/", "srt/hardware_backend/", "srt/function_call/")
ENV_HINT = re.compile(rb"environ|getenv|env_var|SGL(?:ANG)?_")
ANY_HINT = re.compile(rb"environ|getenv|env_var|SGL(?:ANG)?_|log|raise|print\(|warn|assert")


def scan_file(path):
    """-> {"env": [(name, how, default)], "dep": [...], "strs": [(level, text, func)]}"""
    src = open(path, encoding="utf-8").read()
    try:
        m = ast.parse(src)
    except SyntaxError:
        return dict(env=[], dep=[], strs=[], sgl2sglang=False)
    env, dep, strs = [], [], []
    consts = {}                         # module constants that hold an env name
    for n in ast.walk(m):
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and isinstance(n.targets[0], ast.Name) and isinstance(
                n.value, ast.Constant) and isinstance(n.value.value, str) and ENV_NAME.match(n.value.value):
            consts[n.targets[0].id] = n.value.value

    def name_of(x):
        if isinstance(x, ast.Constant) and isinstance(x.value, str) and ENV_NAME.match(x.value):
            return x.value
        if isinstance(x, ast.Name):
            return consts.get(x.id)

    def dv(x):
        if x is None:
            return None
        try:
            return clean(Tree("").ev(x, "", {}))
        except Exception:
            return "=" + ast.unparse(x)[:40]

    def is_environ(x):
        return dotted(x) in ("os.environ", "environ")

    sig = {}                            # signatures of the deprecation helpers (argument order changed once)
    for n in ast.walk(m):
        if isinstance(n, ast.FunctionDef) and "deprecated_env" in n.name:
            sig[n.name] = [a.arg for a in n.args.args]

    def walk(node, func, in_log):
        for n in ast.iter_child_nodes(node):
            f2, lvl = func, None
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
                f2 = n.name
            if isinstance(n, ast.ClassDef) and n.name in ("Envs",) and path.endswith("environ.py"):
                for s in n.body:
                    if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call) and call_name(s.value.func).startswith("Env"):
                        kw = {k.arg: k.value for k in s.value.keywords}
                        d = s.value.args[0] if s.value.args else kw.get("default")
                        nm = s.targets[0].id
                        env.append((nm, "declared", dv(d), call_name(s.value.func)))
                        old = kw.get("deprecated_name")
                        if isinstance(old, ast.Constant):
                            dep.append((old.value, nm, "alias field"))
            if isinstance(n, ast.Call):
                cn = call_name(n.func)
                full = dotted(n.func)
                for k in n.keywords:
                    t = text_of(k.value) if k.arg == "prefix" and cn == "configure_logger" else None
                    if t and re.match(r"^ ?[A-Z_]+\{", t):
                        strs.append(("prefix", t.strip(), f2))
                if full in ("os.environ.get", "environ.get", "os.getenv", "os.environ.setdefault", "os.environ.pop") or GETTERS.match(cn):
                    nm = name_of(n.args[0]) if n.args else None
                    if nm:
                        d = n.args[1] if len(n.args) > 1 else next((k.value for k in n.keywords if k.arg == "default"), None)
                        how = "set" if cn == "setdefault" else "read"
                        if cn != "pop":
                            dd = dv(d)
                            if d is None and "bool" in cn:
                                dd = "false"
                            env.append((nm, how, dd, cn))
                if cn in sig or cn == "_warn_deprecated_env_to_cli_flag" or cn == "_print_deprecated_env":
                    a = [x.value if isinstance(x, ast.Constant) else text_of(x) for x in n.args]
                    if cn == "_warn_deprecated_env_to_cli_flag" and len(a) > 1:
                        dep.append((a[0], "text:" + (a[1] or ""), "warning"))
                    elif a:
                        names = dict(zip(sig.get(cn, ["new_name", "old_name"]), a))
                        if names.get("old_name"):
                            dep.append((names["old_name"], names.get("new_name"), "fallback"))
                if isinstance(n.func, ast.Attribute) and cn in LEVELS and re.search(r"log|warnings", dotted(n.func.value), re.I):
                    lvl = "warnings" if "warnings" in dotted(n.func.value) else {"warn": "warning"}.get(cn, cn)
                elif cn in ("print", "rank0_log", "log_info_on_rank0", "print_warning_once", "print_info_once", "print_deprecated_warning", "rank0_print"):
                    lvl = {"print": "print", "rank0_log": "info", "log_info_on_rank0": "info", "rank0_print": "info"}.get(cn, "warning" if "warn" in cn else "info")
            elif isinstance(n, ast.Raise):
                lvl = "raise"
            elif isinstance(n, ast.Assert):
                lvl = "assert"
            elif isinstance(n, ast.Subscript) and is_environ(n.value):
                nm = name_of(n.slice)
                if nm:
                    env.append((nm, "set" if isinstance(n.ctx, ast.Store) else "read", None, "[]"))
            elif isinstance(n, ast.Compare) and len(n.ops) == 1 and isinstance(n.ops[0], (ast.In, ast.NotIn)) and is_environ(n.comparators[0]):
                nm = name_of(n.left)
                if nm:
                    env.append((nm, "read", None, "in"))
            elif (isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "_DEPRECATED_ENVS") or (
                    isinstance(n, ast.AnnAssign) and getattr(n.target, "id", "") == "_DEPRECATED_ENVS"):
                for k, v in zip(n.value.keys, n.value.values):
                    kw = {x.arg: x.value for x in v.keywords}
                    if v.args:
                        kw.setdefault("replacement", v.args[0])
                    if "replacement" in kw:
                        dep.append((k.value, kw["replacement"].value, "fallback" + (" (value transformed)" if "transform" in kw else "")))
                    else:
                        dep.append((k.value, "text:" + (text_of(kw["note"]) if "note" in kw else ""), "removed"))
            elif isinstance(n, (ast.AugAssign, ast.Assign)) and "prefix" in getattr(getattr(n, "target", None) or n.targets[0], "id", ""):
                t = text_of(n.value)        # the rank axes that are put before each log line
                if t and re.match(r"^ ?[A-Z_]+\{", t):
                    strs.append(("prefix", t.strip(), f2))
            level = lvl or in_log
            if isinstance(n, (ast.Constant, ast.JoinedStr, ast.BinOp)):
                t = text_of(n)
                if t is not None:
                    if isinstance(n, ast.Constant) and SGL_NAME.match(t) and not t.startswith("SGL_KERNEL_ERR"):
                        env.append((t, "named", None, ""))
                    if len(t) >= 8 and (" " in t or "server_args=" in t) and not isinstance(node, ast.Expr):
                        strs.append((level or "str", t[:600], f2))
                    continue
            walk(n, f2, level)

    walk(m, "", None)
    return dict(env=env, dep=dep, strs=strs,
                sgl2sglang=bool(re.search(r"startswith\(\"SGL_\"\)", src)) and path.endswith("environ.py"))


def scan_release(version, cache):
    root = os.path.join(SRC, version)
    out = []
    for d, _, fs in os.walk(os.path.join(root, "sglang")):
        for f in fs:
            p = os.path.join(d, f)
            rel = os.path.relpath(p, os.path.join(root, "sglang"))
            if not f.endswith(".py") or "/test" in rel or rel.startswith(("bench", "test")):
                continue
            raw = open(p, "rb").read()
            if not (ENV_HINT if rel.startswith(ENV_ONLY) and f != "registry.py" else ANY_HINT).search(raw):
                continue
            key = hashlib.sha1(raw + f.encode()).hexdigest()
            if key not in cache:
                cache[key] = scan_file(p)
            out.append((rel, key))
    return out


def _worker(job):
    """Scan some releases; write each to its own cache file as soon as it is done."""
    cache = {}
    for v in job:
        files = scan_release(v, cache)
        data = (files, {k: cache[k] for _, k in files})
        tmp = os.path.join(CACHE, v + ".tmp")
        pickle.dump(data, open(tmp, "wb"))
        os.rename(tmp, os.path.join(CACHE, v))


def have(v):
    return os.path.isdir(os.path.join(SRC, v)) or os.path.exists(os.path.join(CACHE, v))


def load_flags():
    """{version: parsed flags}, cached on disk."""
    os.makedirs(CACHE, exist_ok=True)
    out = {}
    for v in filter(have, VERSIONS):
        p = os.path.join(CACHE, v + ".flags")
        if not os.path.exists(p) or ("--fresh" in sys.argv and os.path.isdir(os.path.join(SRC, v))):
            pickle.dump(parse_flags(os.path.join(SRC, v)), open(p, "wb"))
        out[v] = pickle.load(open(p, "rb"))
    return out


def load_scans():
    """{version: [(file, facts)]}, cached on disk."""
    os.makedirs(CACHE, exist_ok=True)
    todo = [v for v in VERSIONS if have(v) and not os.path.exists(os.path.join(CACHE, v))]
    if todo:
        half = (len(todo) + 1) // 2
        with multiprocessing.Pool(2) as pool:
            pool.map(_worker, [x for x in (todo[:half], todo[half:]) if x])
    out = {}
    for v in VERSIONS:
        if os.path.exists(os.path.join(CACHE, v)):
            files, facts = pickle.load(open(os.path.join(CACHE, v), "rb"))
            out[v] = [(f, facts[k]) for f, k in files]
    return out


# ------------------------------------------------------------------ renames: source wording
# Renames without any fallback or notice in the source; each was checked by hand (adjacent
# releases, same type/choices/field meaning).  "!" marks an inverted meaning.
INFERRED = {
    "--disable-regex-jump-forward": "--disable-jump-forward",
    "--max-torch-compile-bs": "--torch-compile-max-bs",
    "--disable-disk-cache": "--disable-outlines-disk-cache",
    "--file-storage-pth": "--file-storage-path",
    "--enable-llama4-multimodal": "--enable-multimodal",
    "--impl": "--model-impl",
    "--enable-flashinfer-moe": "--enable-flashinfer-cutlass-moe",
    "--max-micro-batch-size": "--pp-max-micro-batch-size",
    "--nsa-prefill": "--nsa-prefill-backend",
    "--nsa-decode": "--nsa-decode-backend",
    "--oltp-traces-endpoint": "--otlp-traces-endpoint",
    "--kt-amx-weight-path": "--kt-weight-path",
    "--kt-amx-method": "--kt-method",
    "--enable-flashinfer-autotune": "!--disable-flashinfer-autotune",
    "--enable-deepep-waterfill": "--enable-waterfill",
    "--optimistic-prefill-retries": "--optimistic-prefill-attempts",
}
INFERRED["--enable-beta-spec"] = "SGLANG_ENABLE_SPEC_V2=1"
INFERRED_ENV = {}
TYPOS = {"--sampling-backend=pytroch": "--sampling-backend=pytorch"}      # misspelt in sglang itself
# Values of one flag that were renamed without notice (same kernels are called).
INFERRED_VALUES = {"--nsa-prefill": {"flashmla_prefill": "flashmla_sparse", "flashmla_decode": "flashmla_kv"},
                   "--nsa-decode": {"flashmla_prefill": "flashmla_sparse", "flashmla_decode": "flashmla_kv"}}
# Notices that name another switch but are no rename.
NOT_A_RENAME = {"SGLANG_ENABLE_SPEC_V2", "SGLANG_DISAGGREGATION_SAMPLING_MASK_MAX_TOKENS", "SGLANG_DSPARK_FOLDED_SAMPLING",
                "SGLANG_ENABLE_HICACHE_BUFFER_ANCHOR_LOCK", "SGLANG_DFLASH_PREFILL_REFILL_TARGET"}

DEPRECATED = re.compile(r"deprecat|no longer supported|^removed\b|has been removed", re.I)
SUBJECT = re.compile(
    r"(--[a-z][\w-]*|\bSGL(?:ANG)?_[A-Z0-9_]+)((?:=| )[\w.]+)?['`\"]?(?: and (SGL(?:ANG)?_[A-Z0-9_]+))?"
    r"(?: \(deprecated\))?(?: option)? (?:is|are|will be|has been|argument is)?\s*(?:now )?(?:deprecated|no longer supported|removed\b)")
TARGET = re.compile(
    r"(?:use|using|set|alias (?:for|of)|switch to|replaced by|via)(?: the)?(?: new)?(?: explicit)? ['`\"]?"
    r"(--[a-z][\w{},-]*|SGL(?:ANG)?_[A-Z0-9_]+)((?:=| )[\w<>|-]+)?['`\"]?(?: to ['\"`]([\w-]+)['\"`])?", re.I)
ALSO = re.compile(r"(?:and/or|and|or) ['`\"]?(--[a-z][\w-]*|SGL(?:ANG)?_[A-Z0-9_]+)(=[\w]+)?")


def target_of(text, not_this=None):
    """The replacement that a notice names: '--flag', '--flag=value', 'ENV=value' or None."""
    for m in TARGET.finditer(text or ""):
        name, val, to = m.groups()
        if name == not_this:
            continue
        quoted = m.group(0)
        value = to or (val.strip("= ") if val and (val[0] == "=" or re.search(r"['`\"]--", quoted)) else None)
        if val and val[0] == " " and not to and not re.search(r"['`\"]--[\w-]+ [\w-]+['`\"]", quoted):
            value = "recover" if val.strip() == "recover" else None
        name = name.rstrip("-")
        first = name + (f"={value}" if value and not value.startswith(("<", "auto|")) else "")
        if "|" in first:
            first = name
        rest = ALSO.match(text[m.end():].lstrip(" '`\""))
        return first + (f" + {rest.group(1)}{rest.group(2) or ''}" if rest else "")
    return None


def expand(t):
    """'--a-{x,y}=v' -> '--a-x=v + --a-y=v'"""
    m = re.match(r"(.*)\{(\w+),(\w+)\}(.*)$", t or "")
    return f"{m[1]}{m[2]}{m[4]} + {m[1]}{m[3]}{m[4]}" if m else re.sub(r" <[\w-]+>$", "", t) if t else t


CATEGORY = (
    ("speculative", r"^speculative|^enable-(?:eagle|multi-layer|beta)|accept-threshold"),
    ("quantization", r"quant|torchao|modelopt|fp8-gemm|fp4-gemm|fp32-lm"),
    ("cuda-graph", r"cuda-graph|torch-compile|piecewise"),
    ("pd", r"disaggregation|pdlb|prefill-round-robin|encoder|language-only|optimistic-prefill|mooncake-ib|num-reserved"),
    ("hicache", r"hicache|hierarchical|lmcache|hisparse|storage-backend|flexkv"),
    ("lora", r"lora"),
    ("multimodal", r"multimodal|^mm-|image|limit-mm|vision"),
    ("moe", r"moe|expert|eplb|deepep|waterfill|^ep-|two-batch|tbo"),
    ("parallel", r"dp-attention|^attn-|attention-data|attention-context"),
    ("attention", r"attention|flashinfer-mla|flashmla|nsa|dsa|mla|triton-attention|chunked-prefix"),
    ("mamba", r"mamba|linear-attn|gdn"),
    ("parallel", r"parallel|tp-size|dp-size|pp-|nnodes|node-rank|nccl|dist-|all-?reduce|load-balance|mscclpp|p2p|base-gpu|gpu-id|numa|cp-|symm"),
    ("memory", r"mem-|max-total|max-running|page-size|kv-cache|cpu-offload|swa|hybrid|radix|memory|offload"),
    ("schedule", r"schedul|chunked|prefill|queue|priority|conservative|decode-steps|overlap|mixed|retract|sleep"),
    ("grammar", r"grammar|constrained|jump-forward|outlines|xgrammar"),
    ("parser", r"parser|chat-template|completion-template|tool-"),
    ("load", r"load|model-path|tokenizer|revision|trust|download|dtype|context-length|config|model-impl|weight"),
    ("observability", r"log|metric|trace|bucket|report|watch|debug|dump|profile|crash|health|nan"),
    ("dllm", r"dllm"),
    ("sampling", r"sampling|penal|logit"),
    ("attention", r"^ds-|double-sparsity|flashinfer"),
    ("moe", r"^kt-"),
    ("grammar", r"disk-cache"),
    ("parallel", r"micro-batch"),
    ("observability", r"histogram|canary"),
    ("server", r"sigquit|multi-item|host|port|api-key|ssl|http|grpc|timeout|warmup|url|stream|file-storage|served|cache-report"),
)


def category(flag, ns):
    for name, rx in CATEGORY:
        if re.search(rx, flag[2:]):
            return name
    if ns:
        return {"exec.graph": "cuda-graph", "spec": "speculative", "disagg": "pd", "mm": "multimodal", "exec.moe": "moe",
                "exec.mamba": "mamba", "exec.comm": "parallel", "model": "load", "serving": "server"}.get(ns, ns.split(".")[-1])
    return "other"


def timeline(pairs):
    """[(version, value)] -> only the changes."""
    out = []
    for v, x in pairs:
        if not out or out[-1]["value"] != x or type(out[-1]["value"]) is not type(x):
            out.append({"since": v, "value": x})
    return out


def span(vs, present):
    """first, last (None = still there), gaps [[first missing, next present]]"""
    idx = sorted(vs.index(v) for v in present)
    gaps = [[vs[a + 1], vs[b]] for a, b in zip(idx, idx[1:]) if b != a + 1]
    return vs[idx[0]], (None if idx[-1] == len(vs) - 1 else vs[idx[-1]]), gaps


def notices(vs, scans):
    """Deprecation notices in the code: {subject: {"since":, "to":}}, and the same for single values."""
    subj, values, envs = {}, {}, {}
    for v in vs:
        for f, fact in scans[v]:
            for lvl, t, _ in fact["strs"]:
                if not DEPRECATED.search(t) or lvl == "prefix":
                    continue
                for m in SUBJECT.finditer(t):
                    name, val, second = m.groups()
                    to = target_of(t[m.end():], name)
                    if name.startswith("--") and val and val[0] == "=" and "on this hardware" not in t:
                        new = target_of(t[m.end():])
                        if new and new.startswith(name + "="):
                            values.setdefault(name, {})[val[1:]] = {"to": new.split("=")[1], "since": v}
                        continue
                    if name.startswith("--") and val:
                        continue
                    for n in filter(None, (name, second)):
                        d = subj.setdefault(n, {"since": v, "to": None})
                        if "no longer supported" in t and lvl == "raise":
                            d.setdefault("rejected", v)
                        if "has been removed" in t:
                            d.setdefault("ineffective", v)
                        d["to"] = expand(to) or d["to"]
                m = re.match(r"The option '(--[\w-]+)' will be deprecated", t)
                if m:
                    subj.setdefault(m[1], {"since": v, "to": target_of(t[m.end():])})
    # `old` in values["since"] should be the first version: recompute
    for flag, d in values.items():
        for old, x in d.items():
            x["since"] = next(v for v in vs for f, fact in scans[v] for _, t, _ in fact["strs"] if f"{flag}={old} is deprecated" in t)
    return subj, values


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
                ch.append({"since": v, "free": True})      # any value is accepted from here on
            prev = c
        if ch:
            e["choices"] = ch
        e["default"] = timeline([(v, rel[v]["flags"][f]["default"]) for v in live])
        al = sorted({g for v in seen for g, x in rel[v]["flags"].items() if x.get("alias_of") == f})
        al += [g for g in sorted({x["alias_of"] for v in seen for x in [rel[v]["flags"][f]] if x.get("alias_of")}) if g not in al]
        if al:
            e["aliases"] = al
        neg = [v for v in seen if rel[v]["flags"][f].get("negatable")]
        if neg:
            e["no_form_since"] = neg[0]                    # --no-<flag> works too
        # deprecation: argparse action, help text, or a notice in the code
        dep, to = None, None
        for v in seen:
            x = rel[v]["flags"][f]
            h = x["help"] or ""
            hd = re.match(r"^\W*(?:note: )?\W*(?:deprecated|removed\.)", h, re.I) or re.search(
                rf"{re.escape(f)}['`]? (?:is|will be) deprecated|(?:option|argument) will be deprecated", h)
            if (x.get("action") or "").startswith("Deprecated") or hd or x.get("new_flag"):
                dep = dep or v
                t = x.get("new_flag") or target_of(x.get("error_message") or "", f) or target_of(h, f)
                if x.get("const") and t and "=" not in t and x.get("action") == "DeprecatedStoreConstAction" and x["const"] not in ("true",):
                    t += "=" + x["const"]
                to = expand(t) or to
        if f in subj and any(v in seen for v in vs[vs.index(subj[f]["since"]):]):
            if dep is None or vs.index(subj[f]["since"]) < vs.index(dep):
                dep = subj[f]["since"]
            to = to or subj[f]["to"]
        if dep:
            e["deprecated_since"] = dep
        if dep and any(re.search(r"enabled by default", rel[v]["flags"][f]["help"] or "") and re.match(r"\W*(deprecated|'--)", rel[v]["flags"][f]["help"], re.I) for v in seen):
            e["now_default"], to = True, None              # the behaviour became the default; nothing to pass any more
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


# ------------------------------------------------------------------------------ environment
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
        for f, fact in scans[v]:
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
        ds = timeline([(v, x["d"]) for v, x in sorted(hist.items(), key=lambda kv: vs.index(kv[0])) if x["how"] & {"declared", "read"}])
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
            e["weak"] = True                       # the name occurs as a string; how it is read was not recognised
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
            if fwd_since:                        # every SGL_X is copied to SGLANG_X at start-up in these releases
                out[n]["forwarded"] = [fwd_since, fwd_last]
    # registered under the new name while the code still read the old one: only SGL_X works there
    for n in [x for x in out if x.startswith("SGL_")]:
        new = "SGLANG_" + n[4:]
        late = [v for v in vs if "read" in data[n].get(v, {}).get("how", ()) and data.get(new, {}).get(v, {}).get("how") == {"declared"}]
        if late:
            out[new]["old_name_read"] = [late[0], None if late[-1] == vs[-1] else late[-1]]
    for n, new in INFERRED_ENV.items():
        if n in out and new in out and "renamed_to" not in out[n]:
            out[n].update(renamed_to=new, evidence="inferred")
    return out, fwd_since


# --------------------------------------------------------------------------------- messages
# id | stage | wordings, oldest first.  A wording is searched in the source text, where f-string
# holes look like {expr}: a plain substring, or a regular expression after "~".  "=> x" gives what
# to look for in a log line when that differs (plain substring, or a regular expression after "re:").
MESSAGES = r"""
# --- line form
line-server-args | startup | ~^server_args=\{server_args\}$ => server_args=ServerArgs( | ~^server_args=\{.*(?:_dict|logging)\( => server_args={'
line-prefix-tp | line-prefix | ~(^| )TP\{ => re:\bTP\d+
line-prefix-dp | line-prefix | ~(^| )DP\{ => re:\bDP\d+
line-prefix-pp | line-prefix | ~(^| )PP\{ => re:\bPP\d+
line-prefix-ep | line-prefix | ~(^| )EP\{ => re:\bEP\d+
line-prefix-attn-cp | line-prefix | ~ATTN_CP\{ => re:\bATTN_CP\d+
line-prefix-moe-dp | line-prefix | ~MOE_DP\{ => re:\bMOE_DP\d+
batch-prefill | serving | ~^Prefill batch\(mixed => Prefill batch(mixed | ~^Prefill batch\.  => Prefill batch. | ~^Prefill batch\{iter_msg\},  => re:Prefill batch( \[\d+\])?,
batch-decode | serving | ~^Decode batch\.  => Decode batch. | ~^Decode batch\{iter_msg\},  => re:Decode batch( \[\d+\])?,
# --- startup stages
init-dist-begin | startup | Init nccl begin. | Init torch distributed begin.
init-dist-end | startup | Init torch distributed ends.
weights-begin | weights | Load weight begin. avail mem=
weights-end | weights | Load weight end.
kv-allocated | kv-cache | KV Cache is allocated. | ~is allocated\. dtype:|VA upper bound.*#tokens => re:(is allocated|VA upper bound)\. dtype: | KV cache allocated. dtype:
mamba-allocated | kv-cache | Mamba Cache is allocated.
pool-end | kv-cache | Memory pool end. avail mem=
graph-begin | cuda-graph | Capture cuda graph begin. | ~^Capture \{.{0,44}\} begin\. This => graph begin. This can take up to | ~^Capture \{capture_name\} .*begin => re:Capture \w+ .*graph begin\. backend=
graph-end | cuda-graph | Capture cuda graph end. | ~^Capture \{.{0,44}\} end\. Time => graph end. Time elapsed: | ~^Capture \{capture_name\} .*end => re:Capture \w+ .*graph end\. elapsed=
graph-draft-begin | cuda-graph | Capture draft cuda graph begin. | Capture draft decode CUDA graph begin.
graph-draft-extend-begin | cuda-graph | Capture draft extend cuda graph begin | Capture draft extend CUDA graph begin.
graph-progress | cuda-graph | Capturing batches (
graph-prefill-progress | cuda-graph | Capturing num tokens (num_tokens= | Capturing prefill shape (num_tokens=
limits-line | startup | max_total_num_tokens={self.max_total_num_tokens}, max_prefill_tokens => max_total_num_tokens= | ~^max_total_num_tokens=.*chunked_prefill_size= => max_total_num_tokens=
fired-up | startup | The server is fired up and ready to roll!
warmup-error | startup | Initialization failed. warmup error:
init-failed | startup | Initialization failed. Please see the error messages above.
warmup-pd-prefill | startup | Start of prefill warmup | Start of pd disaggregation warmup
autotune-flashinfer | startup | Running FlashInfer autotune
# --- memory
mem-not-enough | memory | Not enough memory. Please try to increase --mem-fraction-static.
mem-unbalanced | memory | The memory capacity is unbalanced.
mem-prefill-oom | memory | ~(Prefill|\{phase_str\}) out of memory. Try to lower your batch size. => out of memory. Try to lower your batch size
mem-decode-oom | memory | Decode out of memory. Try to lower your batch size.
mem-req-slots | memory | Out of memory. Please set a smaller number for `--max-running-requests`. | alloc_req_slots runs out of memory.
mem-retract | scheduling | Decode out of memory happened. | KV cache pool is full. Retract requests. | ~^(#retracted_reqs|, #new_token_ratio): => re:#(retracted_reqs|new_tokens_gained|new_token_ratio):
mem-retract-none-left | memory | Failed to retract any request. | Out of memory even after retracting all other requests
mem-pd-decode-full | memory | KV cache is full! Bug in memory estimation.
leak-kv | memory | KV cache pool leak detected! | token_to_kv_pool_allocator memory leak detected! | ~^\{pool_name\} memory leak detected! => memory leak detected!
leak-req | memory | Memory pool leak detected! | req_to_token_pool memory leak detected!
leak-total | memory | ~Mem Leak Detected! => Mem Leak Detected!
mem-multimodal-adjust | memory | Automatically reduce --mem-fraction-static | Multimodal model: Dynamically adjusted --mem-fraction-static
mem-pool-too-small | memory | Memory pool size is too small
mem-host-hicache | hicache | Not enough host memory available. Requesting
# --- cuda graph failure
graph-failed | cuda-graph | ~Capture (cuda|CUDA) graph failed: => re:Capture (cuda|CUDA) graph failed: | Capture prefill CUDA graph failed:
graph-hints | cuda-graph | ~Possible solutions:\n1\.  => Possible solutions:
graph-off-warning | cuda-graph | CUDA Graph is DISABLED. | Cuda graph is disabled because of using torch native
graph-off-prefill-pd | cuda-graph | Cuda graph is disabled for prefill server
graph-off-deepep | cuda-graph | Cuda graph is disabled because deepep_mode=`normal`
# --- numerics
nan-sampling | numerics | Detected errors during sampling!
nan-probe | numerics | NaN detected! | NaN detected in %s; values were sanitized => values were sanitized before sampling
nan-finish | numerics | NaN happened
spec-no-tree-kernel | numerics | Tree speculative sampling kernel unavailable
# --- quantization
fp8-kv-no-scale | quantization | Using FP8 KV cache but no scaling factors provided.
fp8-kv-scale-1 | quantization | Using KV cache scaling factor 1.0 for fp8_e4m3
kv-scale-deprecated | quantization | Found kv_scale in the checkpoint. This format is deprecated
kv-scale-name-miss | quantization | ~Found (kv_scale|\{scale_name\}) in the checkpoint .*but not found the expected name => not found the expected name in the model
deepgemm-ue8m0 | quantization | scale_fmt of checkpoint is not ue8m0
deepgemm-precompile | kernel-compile | Entering DeepGEMM JIT Pre-Complie session | Entering DeepGEMM JIT Pre-Compile session
deepgemm-single | kernel-compile | Entering DeepGEMM JIT Single Kernel Complie | Entering DeepGEMM JIT Single Kernel Compile
deepgemm-compiling | kernel-compile | DeepGEMM JIT Compiling for <
deepgemm-import | kernel-compile | Failed to import deepgemm, disable
deepgemm-missing | quantization | DeepGEMM backend requested via --fp8-gemm-backend=deep_gemm
deepgemm-nvrtc | kernel-compile | NVCC Compiler not found, use NVRTC for DeepGEMM
fp8-block-n | quantization | ~is not divisible by weight quantization block_[nk] => is not divisible by weight quantization block_
fp8-default-config | performance | Using default W8A8 Block FP8 kernel config.
moe-default-config | performance | ~Using default MoE (kernel )?config\. Performance might be sub-optimal => re:Using default MoE (kernel )?config\.
moe-triton-version | performance | Fallback to triton version
flashinfer-fp8-missing | quantization | FlashInfer FP8 GEMM requested via --fp8-gemm-backend=
fp8-no-native | quantization | Your GPU does not have native support for FP8
nvfp4-platform | quantization | Current platform does not support NVFP4
# --- attention / DSA
attn-default | attention | Attention backend not set. Use | Attention backend not explicitly specified. Use | Attention backend not specified. Use
attn-hybrid | attention | Using hybrid attention backend for decode and prefill
dsa-use | attention | Set nsa attention backend for DeepSeek NSA. | Use nsa attention backend for DeepSeek with DSA. | Use dsa attention backend for DeepSeek with DSA.
dsa-kv-dtype | attention | ~Setting KV cache dtype to .*DeepSeek (NSA|DSA) => re:Setting KV cache dtype to .* for DeepSeek
dsa-fp8-backend | attention | Setting NSA backend to | Setting DSA backend to
dsa-page-size | attention | ~Setting page size to .*DeepSeek (NSA|DSA) => re:Setting page size to \d+ for DeepSeek
dsa-explicit-kv | attention | ~When specifying --(nsa|dsa)-prefill-backend or => re:When specifying --(nsa|dsa)-prefill-backend or
dsa-unsupported | attention | Unsupported NSA_PREFILL_IMPL | ~Unsupported (nsa_impl|dsa_impl|self\.nsa|self\.dsa) => re:Unsupported (self\.)?(nsa|dsa)_
mla-page-size | attention | FlashMLA only supports a page_size of 64
trtllm-mla-arch | attention | TRTLLM MLA backend is only supported on Blackwell
trtllm-mha-arch | attention | ~TRTLLM MHA backend .*is only supported on Blackwell => re:TRTLLM MHA backend .*only supported on Blackwell
fa3-fp8-kv | attention | FlashAttention3 only supports fp8_e4m3 if using FP8
dp-chunked | parallel | DP attention is enabled. The chunked prefill size is adjusted
# --- model / config
rope-transformers | load | Transformers version {tf_version_str} is used for model type => is used for model type
transformers-unsupported | load | Transformers version {tf_version_str} is not supported for model => is not supported for model
rope-unknown | load | Unknown RoPE scaling type
arch-unsupported | load | Unsupported architectures: | ~Model architectures \{.*\} are not supported for now => are not supported for now. Supported architectures
arch-fallback | load | has no SGLang implementation, falling back to Transformers
arch-inspect-failed | load | failed to be inspected. Please check the logs
import-ignored | load | Ignore import error when loading
weight-shape | load | Attempted to load weight (
weight-param-missing | load | ~not found in (params_dict|the model)\. => re:not found in (params_dict|the model)\.
weight-divisible | load | ~^\{\} is not divisible by \{\} => is not divisible by
tokenizer-custom | tokenizer | Failed to load the tokenizer. If the tokenizer is a custom
tokenizer-slow | tokenizer | Using a slow tokenizer.
config-missing | load | Can't find config file in
pkg-too-old | version | is installed with version {installed_version}, which is less than => which is less than the minimum required version
ctx-override-warn | load | ~context_length .*is greater than the derived => is greater than the derived context_length
# --- distributed
car-no-p2p | distributed | Custom allreduce is disabled because your platform lacks GPU P2P | {cls_name} is disabled because your platform lacks GPU P2P => is disabled because your platform lacks GPU P2P
car-world-size | distributed | Custom allreduce is disabled due to an unsupported world size | ~\{cls_name\} is disabled due to an unsupported world size => is disabled due to an unsupported world size
car-pcie | distributed | ~is disabled because it's not supported on more than two PCIe-only => not supported on more than two PCIe-only GPUs
car-nodes | distributed | ~is disabled because this process group spans across nodes => because this process group spans across nodes
car-setup-failed | distributed | Setup Custom allreduce failed with
p2p-cache | distributed | ~(generating|reading) GPU P2P access cache => re:(generating|reading) GPU P2P access cache
nccl-version | distributed | sglang is using nccl==
nccl-error | distributed | NCCL error: {error_str} => NCCL error:
arfusion-failed | distributed | Failed to initialize FlashInfer workspace | FlashInfer allreduce fusion disabled globally
port-in-use | network | Port %d is already in use, trying port => is already in use, trying port | Port is already in use. dist_init_port=
port-wait | network | ~is not available in \{timeout_s\} seconds => re:is not available in \S+ seconds
# --- process death, health, hang
exc-scheduler | crash | Scheduler hit an exception:
exc-dp-controller | crash | DataParallelController hit an exception:
exc-detokenizer | crash | DetokenizerManager hit an exception:
exc-tokenizer | crash | TokenizerManager hit an exception:
sigquit | crash | ~Received sigquit from a child proces{1,2}\. => Received sigquit from a child proces | SIGQUIT received. signum=
child-exit | crash | Child process unexpectedly failed with | ~Subprocess \{name\} \(pid=.*crashed with exit code => re:Subprocess \S+ \(pid=\d+\) crashed with exit code
rank-dead | crash | scheduler is dead. Please check if there are relevant logs | scheduler died during initialization (exit code
proc-terminated | crash | Scheduler or DataParallelController
watchdog | hang | Watchdog timeout ( | {self.debug_name} watchdog timeout ( => watchdog timeout (
pyspy | hang | ~Pyspy (dump|failed) => re:Pyspy (dump|failed)
health-detok | health | Server couldn't get a response from detokenizer for last
health-shutdown | health | Health check request received during shutdown
sigterm-unhealthy | health | Signal SIGTERM received while health check failed.
state-deleted | serving | but the state was deleted in
decode-status-missing | serving | Decode status not found for request
client-gone | serving | Request is disconnected from the client side
input-too-long | request | is longer than the model's context length
input-exceeds-max | request | exceeds the maximum allowed length
total-too-long | request | Requested token count exceeds the model's maximum context length
truncated-req | request | Request length is longer than the KV cache pool size
queue-full | request | The request queue is full.
# --- speculative / scheduler modes
spec-overlap-off | scheduling | ~Overlap scheduler is disabled (because of using eagle|when spec v2 is off) => Overlap scheduler is disabled
spec-v2-on | scheduling | Beta spec is enabled | ~Spec v2 is enabled => Spec v2 is enabled
spec-v2-removed | scheduling | SGLANG_ENABLE_SPEC_V2 has been removed
spec-max-running | scheduling | Max running requests is reset to
spec-topk-page | scheduling | > 1 with page_size
# --- PD
pd-bootstrap-failed | pd | Prefill bootstrap failed for request
pd-prefill-transfer-failed | pd | Prefill transfer failed for request
pd-handshake-failed | pd | Decode handshake failed for request
pd-decode-transfer-failed | pd | Decode transfer failed for request
pd-kv-error | pd | KVTransferError(bootstrap_room=
pd-lost-node | pd | ~Los(t|ing) connection with (prefill|decode) instance => re:Los(t|ing) connection with (prefill|decode) instance
pd-prefill-info | pd | Error fetching prefill info from bootstrap
pd-register-failed | pd | ~Prefill (instance )?[Ff]ailed to (connect to|register to) bootstrap server => re:[Ff]ailed to (connect|register) to bootstrap server
pd-request-timeout | pd | ~timed out after .*in KVPoll => re:timed out after .* in KVPoll
pd-mooncake-init | pd | Mooncake Transfer Engine initialization failed
# --- HiCache
hicache-alloc | hicache | ~Allocating .* host memory for => re:Allocating .* GB host memory for
hicache-size-small | hicache | The host memory should be larger than the device memory
hicache-radix-excl | hicache | ~enable-hierarchical-cache and disable-radix-cache are mutually exclusive => enable-hierarchical-cache and disable-radix-cache are mutually exclusive
hicache-fa3-io | hicache | FlashAttention3 decode backend is not compatible with hierarchical
# --- LoRA
lora-backend | lora | as backend of LoRA kernels.
lora-modules | lora | ~contains target modules .*that are not included in the specified => that are not included in the specified
lora-rank | lora | is incompatible with the current LoRA memory pool
lora-not-loaded | lora | ~(The following requested LoRA adapters are not loaded|LoRA adapter .*is not loaded) => re:LoRA adapters? .*(is|are) not loaded
lora-off | lora | --enable-lora is set to False, any provided
# --- grammar
grammar-timeout | grammar | Grammar preprocessing timed out
grammar-invalid | grammar | Skip invalid grammar: | Hit invalid grammar:
grammar-accept-failed | grammar | Grammar accept_token failed for req
grammar-tokenizer | grammar | Grammar backend disabled because tokenizer
"""


def msg_table():
    for line in MESSAGES.strip().splitlines():
        if line.strip() and not line.startswith("#"):
            parts = [p.strip() for p in line.split(" | ")]
            yield parts[0], parts[1], parts[2:]


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
    texts = {v: [(f, l, t, fn) for f, fact in scans[v] for l, t, fn in fact["strs"]] for v in vs}
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
                hs = [(f, l, t, fn) for f, l, t, fn in texts[v] if rx.search(t)
                      and (stage != "line-prefix" or l == "prefix")
                      and not (l == "str" and ("server_args" in f or "arg_groups/fields" in f) and len(t) > 120)]
                if hs:
                    hit[v] = hs
            if not hit:
                misses.append((mid, fr))
                continue
            first, last, gaps = span(vs, hit)
            newest = hit[max(hit, key=vs.index)]
            rank = {"raise": 0, "critical": 1, "error": 1, "exception": 1, "warning": 2, "warnings": 2, "info": 3, "assert": 4, "print": 5, "prefix": 6, "debug": 7, "str": 9}
            newest.sort(key=lambda h: rank.get(h[1], 8))
            lv = sorted({h[1] for hs in hit.values() for h in hs} - {"str"}, key=lambda x: rank.get(x, 8)) or ["str"]
            if {h[1] for h in newest} == {"str"} and "str" not in lv:
                lv.append("str")               # put together first, logged or raised by another statement
            files = []
            for v in sorted(hit, key=vs.index):
                f = hit[v][0][0] if v != max(hit, key=vs.index) else newest[0][0]
                if f not in files:
                    files.append(f)
            var = {"match": shown.removeprefix("re:"), "first": first, "last": last,
                   "level": [{"str": "composed"}.get(x, x) for x in lv[:3]], "file": files[-1]}
            if shown.startswith("re:"):
                var["regex"] = True
            if len(files) > 1:
                var["earlier_files"] = files[:-1][-2:]
            variants.append(var)
            for v, hs in hit.items():
                allv.add(v)
                fl = per_version_fields.setdefault(v, [])
                for f, l, t, fn in hs[:3]:
                    pool = [t]
                    if any(t.startswith(b) for b in BATCH):     # put together from pieces in one function
                        here = [x[2] for x in texts[v] if x[0] == f and x[3] == fn]
                        i = here.index(t) + 1
                        while i < len(here) and not here[i].startswith(BATCH):
                            pool.append(here[i])
                            i += 1
                        pool += [x[2] for x in texts[v] if re.search("metrics|scheduler|pool_stats|observab", x[0]) and re.match(
                            r"#?[a-z ]*(?:token|usage|mamba num)[a-z ]*: \{", x[2])]
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


# ----------------------------------------------------------------------------------- output
def dump(path, head, sections):
    """JSON with one entry per line (small diffs, still plain JSON)."""
    j = lambda x: json.dumps(x, ensure_ascii=False, separators=(",", ":"))
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
    dump(os.path.join(DATA, "sglang_flags.json"),
         {"versions": vs, "sgl_prefix_forwarded_since": fwd}, {"flags": flags, "env": env})
    dump(os.path.join(DATA, "messages.json"), {"versions": vs}, {"messages": rows})
    size = sum(os.path.getsize(os.path.join(DATA, x)) for x in ("sglang_flags.json", "messages.json"))
    print(f"{len(vs)} releases, {len(flags)} flags ({sum('alias_of' in x for x in flags.values())} of them alias spellings, "
          f"{sum(x['last'] is not None for x in flags.values())} gone, {sum('renamed_to' in x for x in flags.values())} renamed/replaced), "
          f"{len(env)} env names ({sum('renamed_to' in x for x in env.values())} renamed/replaced), {len(rows)} messages, {size // 1024} KB")
    for m in misses:
        print("no hit:", m)


CHECK = ["--fp8-gemm-backend", "--fp8-gemm-runner-backend", "--nsa-prefill-backend", "--dsa-prefill-backend", "--enable-ep-moe", "--cuda-graph-max-bs", "--disable-cuda-graph", "--schedule-conservativeness", "--kv-cache-dtype", "--attention-backend", "SGL_ENABLE_JIT_DEEPGEMM", "SGLANG_ENABLE_JIT_DEEPGEMM", "SGLANG_NSA_FUSE_TOPK"]


def check():
    d = json.load(open(os.path.join(DATA, "sglang_flags.json")))
    for n in CHECK:
        print(n, json.dumps(d["flags"].get(n) or d["env"].get(n)))
    idx = {v: i for i, v in enumerate(d["versions"])}
    new = [v for v in d["versions"]][-1]
    print("new in", new, [f for f, e in d["flags"].items() if e["first"] == new])
    prev = d["versions"][-2]
    print("last seen in", prev, [f for f, e in d["flags"].items() if e["last"] == prev])
    for f, e in d["flags"].items():              # every replacement that is named must exist as a flag or env name
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
