"""The Python of an image, told by its files: none of them is run."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any

from envcheck.model.base import model
from envcheck.payloads import elf_headers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from envcheck.image.tree import Tree

PLATFORMS = {"amd64": "linux_x86_64", "arm64": "linux_aarch64"}
"""Architecture of images -> platform of wheels."""
_NAME = re.compile(r"(python|pypy)(\d+\.\d+)(t?)$")
_LIBC = re.compile(rb"GNU C Library[^\n]*?version (\d+\.\d+)")
_PATCHLEVEL = re.compile(r'#define PY_VERSION\s+"([^"+]+)')


@model
class Interpreter:
    """An interpreter and the folders that it imports from.

    Attributes:
        executable: as it is called: a virtual environment is known by the place of its link.
        prefix: of the environment.
        base: prefix of the installation behind it, the same one without a virtual environment.
        real: path of the program itself.
        series: `3.12`, with `t` when free-threaded.
        sites: in the order in which they are searched.
    """

    executable: str
    prefix: str
    base: str
    real: str | None
    series: str | None
    pypy: bool
    sites: tuple[str, ...]


def look(
    tree: Tree,
    executable: str,
    read: Callable[[str], str | None],
    variables: Mapping[str, str],
    user: str,
) -> Interpreter:
    """What an interpreter would find when it starts.

    Args:
        tree: the image's files.
        executable: path of the interpreter.
        read: gives the text of a file.
        variables: of the image.
        user: that its programs run as; empty is root.
    """
    prefix = executable.rpartition("/bin/")[0] or "/usr"
    real = tree.resolve(executable)
    config = read(f"{prefix}/pyvenv.cfg")
    home = _setting(config, "home")
    base = home.rpartition("/bin")[0] if config is not None and home else prefix
    if config is None and real is not None and "/bin/" in real:
        # /usr/local/bin/python may be a link to /usr/bin/python3.12.
        base = prefix = real.rpartition("/bin/")[0] or "/usr"
    if base in {"", "/"}:
        base = "/usr"
    if prefix in {"", "/"}:
        prefix = "/usr"
    match = _NAME.search(real or "") or _named(tree, base)
    series = f"{match.group(2)}{match.group(3)}" if match else None
    folder = f"{match.group(1) if match else 'python'}{series}"
    system = _system_sites(base, folder)
    if config is None:
        own = system
    else:
        own = (f"{prefix}/lib/{folder}/site-packages", f"{prefix}/lib64/{folder}/site-packages")
        if (_setting(config, "include-system-site-packages") or "").lower() == "true":
            own += system
    if config is None and user in {"", "0", "root"} and not variables.get("PYTHONNOUSERSITE"):
        own = (f"/root/.local/lib/{folder}/site-packages", *own)
    given = [each for each in variables.get("PYTHONPATH", "").split(":") if each.startswith("/")]
    sites = [each.rstrip("/") for each in (*given, *own)]
    return Interpreter(
        executable=executable,
        prefix=prefix,
        base=base,
        real=real,
        series=series,
        pypy=bool(match) and match.group(1) == "pypy" if match else False,
        sites=_distinct(tree, sites),
    )


def _system_sites(base: str, folder: str) -> tuple[str, ...]:
    """Where an installation keeps packages; distributions have folders of their own for pip's."""
    if base == "/usr":
        return (
            f"/usr/local/lib/{folder}/dist-packages",
            f"/usr/local/lib64/{folder}/site-packages",
            f"/usr/local/lib/{folder}/site-packages",
            "/usr/lib/python3/dist-packages",
            f"/usr/lib64/{folder}/site-packages",
            f"/usr/lib/{folder}/site-packages",
        )
    return (f"{base}/lib/{folder}/site-packages", f"{base}/lib64/{folder}/site-packages")


def _distinct(tree: Tree, sites: list[str]) -> tuple[str, ...]:
    """Folders that exist, each once: /lib64 is often a link to /lib."""
    found: dict[str, str] = {}
    for each in sites:
        real = tree.resolve(each)
        if real is not None and tree.entries[real].kind == "directory":
            found.setdefault(real, each)
    return tuple(found.values())


def _named(tree: Tree, base: str) -> re.Match[str] | None:
    """The one interpreter of an installation, by its folder of modules."""
    folder = tree.resolve(f"{base}/lib")
    names = sorted(tree.names.get(folder or "", ()))
    found = [match for name in names if (match := _NAME.fullmatch(name))]
    return found[0] if len(found) == 1 else None


def _setting(config: str | None, name: str) -> str | None:
    match = re.search(rf"^{name}\s*=\s*(.*?)\s*$", config or "", re.MULTILINE)
    return match.group(1) if match else None


def facts(
    tree: Tree,
    python: Interpreter,
    read: Callable[[str], str | None],
    variables: Mapping[str, str],
    architecture: str | None,
) -> dict[str, Any]:
    """What the interpreter would say of itself, in the words of the payload that asks one."""
    series = (python.series or "").rstrip("t")
    number = series.replace(".", "")
    free = "t" if (python.series or "").endswith("t") else ""
    config = read(f"{python.prefix}/pyvenv.cfg") if python.prefix != python.base else None
    elf = None
    if python.real is not None and tree.entries[python.real].kept:
        place = str(tree.place(python.real))
        elf = elf_headers.elf(place) or {"unreadable": True}  # type: ignore[no-untyped-call]
        elf["path"] = python.real
    return {
        "version": _version(python, series, config, read, variables),
        "executable": python.executable,
        "elf": elf,
        "tegra": False,
        "prefix": python.prefix,
        "base_prefix": python.base,
        "implementation": "pypy" if python.pypy else "cpython",
        "tag": f"cp{number}{free}" if number and not python.pypy else None,
        "platform": PLATFORMS.get(architecture or ""),
        "libc": c_library(tree),
        "externally_managed": python.prefix == python.base
        and read(f"{python.base}/lib/python{python.series}/EXTERNALLY-MANAGED") is not None,
    }


def _version(
    python: Interpreter,
    series: str,
    config: str | None,
    read: Callable[[str], str | None],
    variables: Mapping[str, str],
) -> str | None:
    """The full release where a file tells it, else its series."""
    header = read(f"{python.base}/include/python{python.series}/patchlevel.h") or ""
    match = _PATCHLEVEL.search(header)
    told = (
        _setting(config, "version"),
        _setting(config, "version_info"),
        match.group(1) if match else None,
        # Python's own images say it so.
        variables.get("PYTHON_VERSION"),
    )
    for each in told:
        number = re.match(r"\d+\.\d+\.\d+", each or "")
        if number and (not series or number.group().startswith(f"{series}.")):
            return number.group()
    return series or None


def c_library(tree: Tree) -> str | None:
    """`glibc 2.36` by what the library says of itself, `musl`, or None."""
    for folder in (
        "/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/lib64",
        "/usr/lib64",
        "/lib",
    ):
        path = tree.resolve(f"{folder}/libc.so.6")
        if path is not None and tree.entries[path].kept:
            match = _LIBC.search(tree.place(path).read_bytes())
            if match:
                return f"glibc {match.group(1).decode('ascii')}"
    names = tree.names.get(tree.resolve("/lib") or "", set())
    musl = any(posixpath.basename(name).startswith("ld-musl-") for name in names)
    return "musl" if musl else None
