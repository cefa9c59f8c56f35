"""A small static evaluator over the syntax trees of one release."""

import ast
import os


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
        return None

    def module(self, mod):
        if mod not in self.mods:
            p = self.path(mod)
            self.mods[mod] = ast.parse(open(p, encoding="utf-8").read()) if p else None
            idx = self.index[mod] = {}
            body = list(self.mods[mod].body) if p else []
            while body:
                n = body.pop(0)
                if isinstance(n, (ast.If, ast.Try)):  # names under if/try count too
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

        def go(x, inner=None):
            return self.ev(x, mod, inner if inner is not None else loc, depth + 1)

        if isinstance(n, ast.Constant):
            return n.value
        if isinstance(n, (ast.List, ast.Tuple, ast.Set)):
            out = []
            for e in n.elts:
                out.extend(go(e.value)) if isinstance(e, ast.Starred) else out.append(go(e))
            return out
        if isinstance(n, ast.Dict):
            return {go(k): v for k, v in zip(n.keys, n.values) if k is not None} | {
                k: v for kk, vv in zip(n.keys, n.values) if kk is None for k, v in go(vv).items()
            }
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
                return a**b
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
                items = [
                    ("member", k, self.ev(v, it[1], None, depth + 1))
                    for k, v in self.members(it[1], it[2])
                    if not k.startswith("_")
                ]
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
                        return (
                            go(k.value.body)
                            if isinstance(k.value, ast.Lambda)
                            else {"list": [], "dict": {}, "set": []}.get(getattr(k.value, "id", ""))
                        )
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
                if isinstance(d, ast.FunctionDef):  # a helper: take its last evaluable return
                    inner = self.func_locals(d)
                    for r in reversed([x for x in ast.walk(d) if isinstance(x, ast.Return) and x.value]):
                        imports = {
                            a.asname or a.name: (x.module, a.name)
                            for x in ast.walk(d)
                            if isinstance(x, ast.ImportFrom) and x.module
                            for a in x.names
                        }
                        for k, (im, iname) in imports.items():
                            try:
                                mm, node = self.lookup(im, iname)
                                inner[k] = (
                                    ("def", mm, node)
                                    if isinstance(node, (ast.ClassDef, ast.FunctionDef))
                                    else self.ev(node, mm, None, depth + 1)
                                )
                            except Unknown:
                                pass
                        try:
                            return self.as_items(self.ev(r.value, m, inner, depth + 1))
                        except Unknown:
                            continue
            if (
                isinstance(f, ast.Attribute)
                and isinstance(f.value, ast.Attribute)
                and getattr(f.value.value, "id", "") == "envs"
            ):
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
        return "".join(
            text_of(v) if isinstance(v, ast.Constant) else f"{{{ast.unparse(v.value)[:40]}}}" for v in n.values
        )
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
