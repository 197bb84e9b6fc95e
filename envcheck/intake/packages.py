"""Reads lists of installed packages: pip, uv, conda, and what people write by hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.environment import Package

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.intake.collected import Collected

_VERSION = r"\d+(?:\.\d+)*(?:\.?(?:dev|post|rc|a|b|alpha|beta)\d*)*(?:\+[\w.]+)?(?:\.nv[\d.]+)?"
_FREEZE = re.compile(
    rf"^[ \t•*+-]*([A-Za-z][\w.-]*[A-Za-z0-9])(?:\[[\w,-]*\])?==({_VERSION})(?=[ \t;,'\")\\]|$)",
    re.MULTILINE,
)
_CONDA_YAML = re.compile(rf"^[ \t]*-[ \t]+([a-z][\w.-]*)={{1,2}}({_VERSION})=([\w.]+)[ \t]*$", re.M)
_TABLE_HEAD = re.compile(r"^Package[ \t]+Version(?:[ \t]+.*)?\n-{3,}", re.MULTILINE)
_CONDA_HEAD = re.compile(r"^#[ \t]*Name[ \t]+Version[ \t]+Build", re.MULTILINE)
_CONDA_ROW = re.compile(
    rf"^[ \t]*(pytorch|torchvision|torchaudio|libtorch|jaxlib|tensorflow|cudatoolkit|pytorch-cuda"
    rf"|cudnn|nccl)[ \t]+({_VERSION})[ \t]+(\S*(?:py\d|cuda|cpu|h[0-9a-f]{{7}})\S*)(?:[ \t]+(\S+))?"
    r"[ \t]*$",
    re.MULTILINE,
)
"""A row of `conda list` that somebody picked from it: the build tells it from other lists."""
_ROW = re.compile(
    rf"^[ \t]*([A-Za-z][\w.-]*[A-Za-z0-9])[ \t]{{1,80}}({_VERSION})(?:[ \t]+(\S+))?(?:[ \t]+(\S+))?"
    r"[ \t]*$",
    re.MULTILINE,
)
_NAMES = (
    r"torch|torchvision|torchaudio|triton|pytorch-triton|jax|jaxlib|jax-cuda\d+-(?:plugin|pjrt)"
    r"|tensorflow(?:-cpu|-gpu|-intel)?|tf-nightly|keras|flax|lightning|pytorch-lightning"
    r"|transformers|accelerate|deepspeed|xformers|flash[-_]attn|bitsandbytes|vllm|numpy"
    r"|onnxruntime(?:-gpu)?|cupy(?:-cuda\d+x?)?|nemo[-_]toolkit|nvidia-[a-z0-9-]+|mmcv(?:-full)?"
    r"|auto-gptq|apex|transformer[-_]engine|ctranslate2|faster-whisper|numba|causal-conv1d"
    r"|mamba-ssm|pytorch|pytorch-cuda|cudatoolkit|cuda-toolkit|sgl-kernel|opencv-python"
)
_LOOSE = re.compile(
    rf"(?<![\w./=-])({_NAMES})(?:[ \t]+version)?[ \t]*(?:={{1,3}}|:|[ \t])[ \t]*['\"v]?({_VERSION})"
    r"(?![\w/-])",
    re.IGNORECASE,
)
_INSTALLED = re.compile(r"^Successfully installed (.+)$", re.MULTILINE)
_SATISFIED = re.compile(
    r"^Requirement already satisfied: ([A-Za-z][\w.-]*)\S* in (\S+).* \(([\d][\w.+]*)\)[ \t]*$",
    re.MULTILINE,
)
_INSTALL = re.compile(r"\b(?:pip3?|uv pip|conda|mamba) (?:install|add)\b")
_NAME_ONLY = re.compile(r"^[ \t•*-]*(nvidia-[a-z0-9-]+-cu\d{2})[ \t]*$", re.MULTILINE)
LIST_OF_ALL = 12
"""Rows of a table from which on it is taken for the whole list."""


def normal(name: str) -> str:
    """A distribution's name in the one spelling that all sides share."""
    return re.sub(r"[-_.]+", "-", name).lower()


def add_package(
    found: Collected,
    name: str,
    version: str,
    *,
    installer: str | None = None,
    build: str | None = None,
    channel: str | None = None,
) -> None:
    """Note an installed package.

    Conda lists what pip installed, and pip what conda did: the first word on a version counts, and
    what conda says of its build is kept with it.
    """
    key = (
        {"pytorch": "torch"}.get(normal(name), normal(name))
        if installer == "conda"
        else normal(name)
    )
    known = found.packages.get(key)
    if known is not None and not (installer == "conda" and known.installer is None):
        return
    found.packages[key] = Package(
        name=key,
        version=known.version if known is not None else version.strip(),
        installer=installer,
        build=build,
        channel=channel,
    )


def read(found: Collected) -> None:
    """Collect packages from every list in the text."""
    text = found.text
    if "Package" in text and _TABLE_HEAD.search(text):
        _tables(found)
    if found.has("# name", "#name"):
        _conda(found)
    if found.has("pytorch", "libtorch", "cudatoolkit"):
        _picked(found)
    if "==" in text:
        for match in _FREEZE.finditer(text):
            add_package(found, match[1], match[2])
            found.recognised = True
    if "=" in text:
        for match in _CONDA_YAML.finditer(text):
            channel = "conda"
            add_package(
                found, match[1], match[2], installer="conda", build=match[3], channel=channel
            )
    for match in _INSTALLED.finditer(text):
        for each in match[1].split():
            name, _, version = each.rpartition("-")
            if name and version[:1].isdigit():
                _replace(found, name, version)
    for match in _SATISFIED.finditer(text):
        add_package(found, match[1], match[3])
    _loose(found)
    if found.has("nvidia-"):
        for match in _NAME_ONLY.finditer(text):
            add_package(found, match[1], "0")


def _replace(found: Collected, name: str, version: str) -> None:
    found.packages.pop(normal(name), None)
    add_package(found, name, version)


def _lines_from(text: str, start: int) -> Iterator[str]:
    """The lines of a text from a place on, one at a time: a table may end with its first."""
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]
        start = end + 1


def _tables(found: Collected) -> None:
    """`pip list` and its like: a head, a rule, rows until something that is no row."""
    for head in _TABLE_HEAD.finditer(found.text):
        end = found.text.find("\n", head.end())
        rows = 0
        for line in _lines_from(found.text, end + 1):
            match = _ROW.match(line)
            if match is None:
                break
            add_package(found, match[1], match[2])
            rows += 1
        found.recognised |= rows > 0
        found.complete_list |= rows >= LIST_OF_ALL


def _conda(found: Collected) -> None:
    for head in _CONDA_HEAD.finditer(found.text):
        end = found.text.find("\n", head.end())
        rows = 0
        for line in _lines_from(found.text, end + 1):
            match = _ROW.match(line)
            if match is None:
                break
            rows += 1
            name, version, build, channel = match.groups()
            if build == "pypi_0" or channel == "pypi":
                add_package(found, name, version, installer="pip")
            else:
                add_package(
                    found,
                    name,
                    version,
                    installer="conda",
                    build=build,
                    channel=channel or "conda",
                )
        found.recognised |= rows > 0
        found.complete_list |= rows >= LIST_OF_ALL
        found.python["conda"] = True


def _picked(found: Collected) -> None:
    """Rows of `conda list` without its head."""
    for row in _CONDA_ROW.finditer(found.text):
        name, version, build, channel = row.groups()
        add_package(
            found, name, version, installer="conda", build=build, channel=channel or "conda"
        )
        found.recognised = True


def _loose(found: Collected) -> None:
    """Rows of filtered lists and plain mentions of the packages that matter here."""
    for match in _LOOSE.finditer(found.text):
        name, version = match[1], match[2]
        if "." not in version:
            continue
        start = found.text.rfind("\n", 0, match.start()) + 1
        before = found.text[start : match.start()]
        # What a command is about to install is not what is installed.
        if _INSTALL.search(before) and normal(name) != "torch":
            continue
        if normal(name) == "pytorch":
            found.torch.version = found.torch.version or version
            continue
        add_package(found, name, version)
