"""Facts of single files: environment reads, warnings, log messages."""

import ast
import hashlib
import multiprocessing
import os
import pickle
import re
import sys

from catalog_builder.release_flags import clean, parse_flags
from catalog_builder.settings import CACHE, ENV_NAME, SGL_NAME, SRC, VERSIONS
from catalog_builder.tree import Tree, text_of

GETTERS = re.compile(
    r"^_?(?:getenv|get_(?:bool|int|float|str)_env_var|get_env\w*|env_(?:enabled|on|flag|bool|int)|_env_\w+|get_\w*_from_env)$"
)
LEVELS = ("debug", "info", "warning", "warn", "error", "critical", "exception")


def call_name(f):
    return f.id if isinstance(f, ast.Name) else f.attr if isinstance(f, ast.Attribute) else ""


def dotted(n):
    """a.b.c of a name chain, "" for anything else (much cheaper than ast.unparse)."""
    parts = []
    while isinstance(n, ast.Attribute):
        parts.append(n.attr)
        n = n.value
    return ".".join([n.id, *parts[::-1]]) if isinstance(n, ast.Name) else ""


# Files that are only searched for environment variables (their messages are not catalogued).
ENV_ONLY = (
    "srt/models/",
    "srt/configs/",
    "srt/multimodal/",
    "jit_kernel/",
    "kernels/",
    "srt/hardware_backend/",
    "srt/function_call/",
)
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
    consts = {}  # module constants that hold an env name
    for n in ast.walk(m):
        if (
            isinstance(n, ast.Assign)
            and len(n.targets) == 1
            and isinstance(n.targets[0], ast.Name)
            and isinstance(n.value, ast.Constant)
            and isinstance(n.value.value, str)
            and ENV_NAME.match(n.value.value)
        ):
            consts[n.targets[0].id] = n.value.value

    def name_of(x):
        if isinstance(x, ast.Constant) and isinstance(x.value, str) and ENV_NAME.match(x.value):
            return x.value
        if isinstance(x, ast.Name):
            return consts.get(x.id)
        return None

    def dv(x):
        if x is None:
            return None
        try:
            return clean(Tree("").ev(x, "", {}))
        except Exception:
            return "=" + ast.unparse(x)[:40]

    def is_environ(x):
        return dotted(x) in ("os.environ", "environ")

    sig = {}  # signatures of the deprecation helpers (argument order changed once)
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
                    if (
                        isinstance(s, ast.Assign)
                        and isinstance(s.value, ast.Call)
                        and call_name(s.value.func).startswith("Env")
                    ):
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
                if full in (
                    "os.environ.get",
                    "environ.get",
                    "os.getenv",
                    "os.environ.setdefault",
                    "os.environ.pop",
                ) or GETTERS.match(cn):
                    nm = name_of(n.args[0]) if n.args else None
                    if nm:
                        d = (
                            n.args[1]
                            if len(n.args) > 1
                            else next((k.value for k in n.keywords if k.arg == "default"), None)
                        )
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
                if (
                    isinstance(n.func, ast.Attribute)
                    and cn in LEVELS
                    and re.search(r"log|warnings", dotted(n.func.value), re.I)
                ):
                    lvl = "warnings" if "warnings" in dotted(n.func.value) else {"warn": "warning"}.get(cn, cn)
                elif cn in (
                    "print",
                    "rank0_log",
                    "log_info_on_rank0",
                    "print_warning_once",
                    "print_info_once",
                    "print_deprecated_warning",
                    "rank0_print",
                ):
                    lvl = {
                        "print": "print",
                        "rank0_log": "info",
                        "log_info_on_rank0": "info",
                        "rank0_print": "info",
                    }.get(cn, "warning" if "warn" in cn else "info")
            elif isinstance(n, ast.Raise):
                lvl = "raise"
            elif isinstance(n, ast.Assert):
                lvl = "assert"
            elif isinstance(n, ast.Subscript) and is_environ(n.value):
                nm = name_of(n.slice)
                if nm:
                    env.append((nm, "set" if isinstance(n.ctx, ast.Store) else "read", None, "[]"))
            elif (
                isinstance(n, ast.Compare)
                and len(n.ops) == 1
                and isinstance(n.ops[0], (ast.In, ast.NotIn))
                and is_environ(n.comparators[0])
            ):
                nm = name_of(n.left)
                if nm:
                    env.append((nm, "read", None, "in"))
            elif (isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "_DEPRECATED_ENVS") or (
                isinstance(n, ast.AnnAssign) and getattr(n.target, "id", "") == "_DEPRECATED_ENVS"
            ):
                for k, v in zip(n.value.keys, n.value.values):
                    kw = {x.arg: x.value for x in v.keywords}
                    if v.args:
                        kw.setdefault("replacement", v.args[0])
                    if "replacement" in kw:
                        dep.append(
                            (
                                k.value,
                                kw["replacement"].value,
                                "fallback" + (" (value transformed)" if "transform" in kw else ""),
                            )
                        )
                    else:
                        dep.append((k.value, "text:" + (text_of(kw["note"]) if "note" in kw else ""), "removed"))
            elif isinstance(n, (ast.AugAssign, ast.Assign)) and "prefix" in getattr(
                getattr(n, "target", None) or n.targets[0], "id", ""
            ):
                t = text_of(n.value)  # the rank axes that are put before each log line
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
    return dict(
        env=env,
        dep=dep,
        strs=strs,
        sgl2sglang=bool(re.search(r"startswith\(\"SGL_\"\)", src)) and path.endswith("environ.py"),
    )


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
