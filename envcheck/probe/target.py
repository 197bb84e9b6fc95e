"""Which Python environment is judged: the one the user works in, not envcheck's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.errors import UsageError
from envcheck.model.base import model

if TYPE_CHECKING:
    from envcheck.probe.notes import Notes
    from envcheck.probe.source import Source

_FRAMEWORK_FOLDERS = ("torch", "jaxlib", "tensorflow")


@model
class Target:
    """The environment to judge.

    Attributes:
        interpreter: path of its Python; None when that does not start or is gone.
        prefix: its folder, as far as it is known without asking the interpreter.
        sites: package folders to read when there is no interpreter to ask.
        because: `--python`, `VIRTUAL_ENV`, `CONDA_PREFIX`, `PATH`, or `own`.
        error: why the interpreter cannot be asked.
    """

    interpreter: str | None
    prefix: str | None = None
    sites: tuple[str, ...] = ()
    because: str
    error: str | None = None


def choose_target(source: Source, python: str | None, notes: Notes) -> Target:
    """Choose the environment.

    In order: `python`; the active virtual environment; the active conda environment; the
    interpreter on PATH; envcheck's own. The one on PATH gives way to envcheck's own when only that
    holds a framework: then envcheck was installed into the user's environment and called by path.

    Raises:
        UsageError: `python` names neither an interpreter nor an environment's folder.
    """
    if python is not None:
        return _named(source, python)
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = source.variables.get(variable, "").rstrip("/")
        if prefix:
            target = _in_prefix(source, prefix, variable)
            if target is not None:
                return target
            notes.missing("env.python", f"{variable} names {prefix}, which holds no Python")
    own = source.interpreter()
    found = _on_path(source)
    if found is None or _same(source, found, own):
        return Target(interpreter=own, because="own" if found is None else "PATH")
    if not holds_framework(source, found) and holds_framework(source, own):
        return Target(interpreter=own, because="own")
    return Target(interpreter=found, because="PATH")


def without_interpreter(source: Source, target: Target, reason: str) -> Target | None:
    """The same environment for another interpreter to read, when its own does not answer.

    Args:
        source: the machine.
        target: what was asked in vain.
        reason: why it gave no answer.

    Returns:
        None when there are no package folders of its own to read: then the packages of an
        installation of Python, wherever it keeps them, would be meant.
    """
    if target.interpreter is None:
        return None
    prefix = target.prefix or target.interpreter.rpartition("/bin/")[0]
    own = any(_stat(source, f"{prefix}/{mark}") for mark in ("pyvenv.cfg", "conda-meta"))
    sites = _sites(source, prefix) if prefix and own else ()
    if not sites:
        return None
    return Target(
        interpreter=None,
        prefix=prefix,
        sites=sites,
        because=target.because,
        error=f"{target.interpreter}: {reason}",
    )


def _named(source: Source, python: str) -> Target:
    if not python.strip():
        msg = "--python: names nothing"
        raise UsageError(msg)
    path = python.rstrip("/") or "/"
    facts = _stat(source, path)
    if facts is None and "/" not in path:
        found = _on_path(source, (path,))
        if found is not None:
            return Target(interpreter=found, because="--python")
    if facts is None:
        msg = f"--python {python}: no such file or folder"
        raise UsageError(msg)
    if facts in {"directory"} or _stat(source, f"{path}/bin") == "directory":
        target = _in_prefix(source, path, "--python")
        if target is None:
            msg = f"--python {python}: holds no environment (no bin/python)"
            raise UsageError(msg)
        return target
    if not _executable(source, path):
        msg = f"--python {python}: not an executable file"
        raise UsageError(msg)
    return Target(interpreter=_absolute(path), because="--python")


def _absolute(path: str) -> str:
    from pathlib import Path

    # Not resolved: a virtual environment is known by the place of its link to the interpreter.
    return path if path.startswith("/") else str(Path(path).absolute())


def _in_prefix(source: Source, prefix: str, because: str) -> Target | None:
    prefix = _absolute(prefix)
    paths = [f"{prefix}/bin/{name}" for name in ("python", "python3")]
    for path in paths:
        if _executable(source, path):
            return Target(interpreter=path, prefix=prefix, because=because)
    for path in paths:
        if _stat(source, path) is None:
            continue
        return Target(
            interpreter=None,
            prefix=prefix,
            sites=_sites(source, prefix),
            because=because,
            error=f"{path} does not start: what it links to is gone or may not be run",
        )
    sites = _sites(source, prefix)
    if sites:
        return Target(
            interpreter=None,
            prefix=prefix,
            sites=sites,
            because=because,
            error=f"{prefix} has packages and no interpreter",
        )
    return None


def _sites(source: Source, prefix: str) -> tuple[str, ...]:
    names = _names(source, f"{prefix}/lib")
    return tuple(
        f"{prefix}/lib/{name}/site-packages"
        for name in names
        if name.startswith(("python3", "pypy3"))
        and _stat(source, f"{prefix}/lib/{name}/site-packages") == "directory"
    )


def _on_path(source: Source, names: tuple[str, ...] = ("python3", "python")) -> str | None:
    for name in names:
        for folder in source.variables.get("PATH", "").split(":"):
            path = f"{folder.rstrip('/')}/{name}"
            if folder.startswith("/") and _executable(source, path):
                return _behind_shim(source, path)
    return None


def _behind_shim(source: Source, shim: str) -> str:
    """The interpreter that one of pyenv's shims would start; other paths as they are.

    A shim is a script that decides by the working folder, which the probe's children leave, and it
    takes many times as long as the interpreter itself.
    """
    root, found, name = shim.rpartition("/shims/")
    installed = _names(source, f"{root}/versions") if found else ()
    if not installed:
        return shim
    # The choice for all folders is looked up first, and always: recordings know no working folder.
    everywhere = _version_in(source, root, name, installed, _text(source, f"{root}/version"))
    texts = [source.variables.get("PYENV_VERSION")]
    parts = source.variables.get("PWD", "").rstrip("/").split("/")
    if not texts[0] and len(parts) > 1:
        lengths = range(len(parts), 0, -1)
        texts += [
            _text(source, f"{'/'.join(parts[:length])}/.python-version") for length in lengths
        ]
    here = next((each for each in texts if each and each.strip()), None)
    return (
        _version_in(source, root, name, installed, here) if here is not None else everywhere
    ) or shim


def _version_in(
    source: Source, root: str, name: str, installed: tuple[str, ...], text: str | None
) -> str | None:
    """Path of the first installed version that a text of pyenv names; `3.11` is the newest 3.11."""
    for version in (text or "").replace(":", " ").split():
        full = [version, *sorted((e for e in installed if e.startswith(f"{version}.")), key=_parts)]
        chosen = version if version in installed else full[-1]
        path = f"{root}/versions/{chosen}/bin/{name}"
        if chosen in installed and _executable(source, path):
            return path
    return None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(each) if each.isdigit() else -1 for each in version.split("."))


def _same(source: Source, one: str, other: str) -> bool:
    return one.rpartition("/")[0] == other.rpartition("/")[0]


def holds_framework(
    source: Source, interpreter: str, names: tuple[str, ...] = _FRAMEWORK_FOLDERS
) -> bool:
    """Whether a framework lies where an interpreter of this prefix would import it from.

    Args:
        source: the machine.
        interpreter: path of the Python.
        names: folders of the frameworks that count.
    """
    prefix = interpreter.rpartition("/bin/")[0]
    # Distributions put what pip installs elsewhere than what they package.
    prefixes = ("/usr", "/usr/local") if prefix in {"", "/usr"} else (prefix,)
    return any(
        _stat(source, f"{folder}/lib/{name}/{site}/{framework}") is not None
        for folder in prefixes
        for name in _names(source, f"{folder}/lib")
        if name.startswith("python3")
        for site in ("site-packages", "dist-packages")
        for framework in names
    )


def _names(source: Source, path: str) -> tuple[str, ...]:
    try:
        return source.list(path) or ()
    except OSError:
        return ()


def _text(source: Source, path: str) -> str | None:
    try:
        return source.read(path)
    except OSError:
        return None


def _stat(source: Source, path: str) -> str | None:
    try:
        facts = source.stat(path)
    except OSError:
        return None
    return facts.kind if facts is not None else None


def _executable(source: Source, path: str) -> bool:
    try:
        facts = source.stat(path)
        if facts is None or facts.kind == "directory":
            return False
        return bool(facts.executable)
    except OSError:
        return False
