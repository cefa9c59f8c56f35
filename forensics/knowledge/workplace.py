"""Which files the kb tools work on, and the library that they see: the shipped base, or a team's own beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from forensics.errors import UsageError
from forensics.frozen import frozen
from forensics.knowledge.library import Library, library
from forensics.knowledge.read_root import NOT_FINDINGS, files_of
from forensics.knowledge.roots import CONFIG_NAME, Config, Root, builtin_root, load_config, roots
from forensics.knowledge.store import load
from forensics.schema.options import Options


@frozen
class Target:
    """One file to check: `namespace` of its base, `shown` as messages name it, `shipped` with the program."""

    path: Path
    namespace: str
    shown: str
    shipped: bool


@frozen
class Workplace:
    """The library, the files to work on, and the base that new files belong to."""

    library: Library
    targets: tuple[Target, ...]
    root: Root


def open_workplace(paths: Sequence[Path] = (), options: Options | None = None) -> Workplace:
    """Without paths: all files of the own bases, or of the shipped one where there is no own. With paths: those
    files and folders; their base is found from where they lie."""
    options = options or Options()
    config = load_config(options)
    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: there is no such file or folder")
    bases = list(roots(options, config))
    found = _with_bases_of(paths, options, bases)
    lib = library(load(found, drafts=True))
    own = [b for b in roots(found, config)[1:] if b.kb is not None or b.rules is not None]
    if paths:
        targets = tuple(t for p in paths for t in _targets(p, own, config))
    else:
        targets = tuple(t for base in own or [builtin_root()] for t in _all_of(base))
    return Workplace(lib, targets, own[0] if own else builtin_root())


def nearest_config() -> Path | None:
    """The forensics.toml of the current project: in this folder or in one above it, up to the repository's own."""
    for folder in (Path.cwd(), *Path.cwd().parents):
        if (folder / CONFIG_NAME).is_file():
            return folder / CONFIG_NAME if folder != Path.cwd() else Path(CONFIG_NAME)
        if (folder / ".git").exists():
            break
    return None


def project_kb(place: Workplace) -> Path:
    """The folder of the project's knowledge base, which new findings go to: that of forensics.toml, else ./kb where it
    is one. Never the installed program's own: UsageError where the project has none."""
    if place.root.base is None and place.root.kb is not None:
        return place.root.kb
    config = place.library.knowledge.config.path
    folder = (config.parent if config is not None else Path()) / "kb"
    if any((folder / part).is_dir() for part in ("findings", "deployments", "rules")):
        return folder
    raise UsageError(
        f"{Path.cwd()} belongs to no knowledge base",
        hint="name a folder with --into DIR, or make one here: mkdir -p kb/findings; a forensics.toml with `[kb]` and "
        '`paths = ["kb"]` lets every command read it',
    )


def _with_bases_of(paths: Iterable[Path], options: Options, bases: Sequence[Root]) -> Options:
    """Options that also load the bases in which the paths lie."""
    known = {p.resolve() for base in bases for p in (base.kb, base.rules) if p is not None}
    kb, rules = list(options.kb), list(options.rules)
    for path in paths:
        for folder, into in ((kb_folder(path), kb), (rules_folder(path), rules)):
            if folder is not None and folder.resolve() not in known:
                known.add(folder.resolve())
                into.append(folder)
    return replace(options, kb=tuple(kb), rules=tuple(rules))


def kb_folder(path: Path) -> Path | None:
    """The knowledge base around a file: the folder that holds findings/ or deployments/, or a rules/ beside a kb/."""
    for folder in (path, *path.absolute().parents):
        if folder.name in ("findings", "deployments"):
            return _relative(folder.parent, path)
        if (folder / "findings").is_dir():
            return _relative(folder, path)
        if (folder / "kb" / "findings").is_dir():
            return _relative(folder / "kb", path)
        if (folder / ".git").exists():
            break
    return path.parent if path.suffix == ".md" else None


def rules_folder(path: Path) -> Path | None:
    """The rules around a file: a parent named rules, or a rules/ beside or inside the kb folder."""
    for folder in (path, *path.absolute().parents):
        if folder.name == "rules" and folder.is_dir():
            return _relative(folder, path)
        if (folder / "rules").is_dir() and folder.name != "forensics":
            return _relative(folder / "rules", path)
        if (folder / ".git").exists():
            break
    return None


def _relative(folder: Path, path: Path) -> Path:
    """A folder as the user would write it: relative where the path was."""
    if path.is_absolute():
        return folder
    try:
        return folder.absolute().relative_to(Path.cwd())
    except ValueError:
        return folder


def _targets(path: Path, own: Sequence[Root], config: Config) -> list[Target]:
    shipped = _is_shipped(path)
    namespace = "" if shipped else next((b.namespace for b in own if _holds(b, path)), config.namespace if own else "")
    if path.is_file():
        return [Target(path, namespace, str(path), shipped)]
    files = sorted(p for end in ("*.md", "*.yaml", "*.yml") for p in path.rglob(end))
    return [Target(p, namespace, str(p), shipped) for p in files if p.name.lower() not in NOT_FINDINGS and _known(p)]


def _known(path: Path) -> bool:
    """Whether a file found in a folder is meant for us: Markdown with front matter, YAML below rules/."""
    if path.suffix == ".md":
        with path.open("rb") as file:
            return file.read(3) == b"---"
    return "rules" in path.parts


def _holds(base: Root, path: Path) -> bool:
    parents = path.resolve().parents
    return any(p is not None and p.resolve() in parents for p in (base.kb, base.rules))


def _is_shipped(path: Path) -> bool:
    base = builtin_root().base
    resolved = path.resolve()
    return base is not None and any((base / x).resolve() in (resolved, *resolved.parents) for x in ("kb", "rules"))


def _all_of(base: Root) -> list[Target]:
    files = files_of(base)
    shipped = base.base is not None
    found = []
    for path in (*files.rules, *files.findings, *files.deployments):
        shown = path.relative_to(base.base).as_posix() if base.base is not None else str(path)
        found.append(Target(path, base.namespace, shown, shipped))
    return found
