"""Reads single values that several kinds of report share: systems, interpreters, versions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected

_SYSTEMS = (
    (r"ubuntu", "ubuntu", r"(\d{2}\.\d{2})"),
    (r"linux ?mint", "linuxmint", r"(\d{2}(?:\.\d)?)"),
    (r"pop!_os", "pop", r"(\d{2}\.\d{2})"),
    (r"debian", "debian", r"\b(\d{1,2})\b"),
    (r"centos", "centos", r"\b(\d{1,2})\b"),
    (r"red hat enterprise|rhel", "rhel", r"\b(\d{1,2}(?:\.\d+)?)\b"),
    (r"rocky", "rocky", r"\b(\d{1,2}(?:\.\d+)?)\b"),
    (r"alma", "almalinux", r"\b(\d{1,2}(?:\.\d+)?)\b"),
    (r"oracle linux", "ol", r"\b(\d{1,2}(?:\.\d+)?)\b"),
    (r"fedora", "fedora", r"\b(\d{2})\b"),
    (r"amazon linux", "amzn", r"\b(20\d\d|2)\b"),
    (r"opensuse leap", "opensuse-leap", r"\b(\d{2}(?:\.\d)?)\b"),
    (r"tumbleweed", "opensuse-tumbleweed", None),
    (r"suse linux enterprise|sles", "sles", r"\b(\d{2}(?:\.\d)?)\b"),
    (r"manjaro", "manjaro", None),
    (r"arch linux|archlinux", "arch", None),
    (r"nixos", "nixos", None),
    (r"gentoo", "gentoo", None),
    (r"windows", "windows", r"\b(11|10|8\.1|8|7|20\d\d)\b"),
    (r"mac ?os|darwin", "macos", r"(\d{2}(?:\.\d+)*)"),
)
_PLATFORM = re.compile(
    r"(Linux|Windows|macOS|Darwin)-([\w.+~-]+?)(?:-(x86_64|aarch64|AMD64|arm64|ppc64le|amd64|x86))?"
    r"(?:-(?:SP\d+|with-(?:glibc(\d+\.\d+)|[\w.-]*)|arm-64bit|64bit|\w+bit[\w.-]*))*$",
    re.IGNORECASE,
)
_PYTHON = re.compile(r"(?<![\d.])(3\.\d{1,2}(?:\.\d{1,2})?|2\.7(?:\.\d+)?)(?![\d])")
NOT_KNOWN = frozenset({"", "n/a", "could not collect", "none", "no cuda", "unknown", "na"})


def truth(text: str | None) -> bool | None:
    """`True`, `Yes` and their opposites; None for anything else."""
    word = (text or "").strip().split(" ")[0].strip(".,").lower()
    return {"true": True, "yes": True, "false": False, "no": False}.get(word)


def read_os(found: Collected, text: str | None) -> None:
    """`Ubuntu 22.04.4 LTS (x86_64)` and its like."""
    lower = (text or "").lower()
    if lower in NOT_KNOWN:
        return
    for pattern, id, version in _SYSTEMS:
        match = re.search(pattern, lower)
        if match is None:
            continue
        found.first(found.os, "id", id)
        if found.os.get("id") == id:
            number = re.search(version, lower[match.end() :]) if version else None
            found.first(found.os, "version", number[1] if number else None)
            found.first(found.os, "name", (text or "").split(" (")[0].strip())
        break
    machine = re.search(r"x86_64|aarch64|arm64|amd64", lower)
    if machine:
        found.first(found.os, "machine", _machine(machine[0]))


def _machine(text: str) -> str:
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(text.lower(), text.lower())


def read_platform(found: Collected, text: str | None) -> None:
    """What Python's `platform.platform()` gives: `Linux-6.8.0-60-generic-x86_64-with-glibc2.39`."""
    match = _PLATFORM.search((text or "").strip())
    if match is None:
        return
    system, kernel, machine, glibc = match.groups()
    if system == "Linux":
        read_kernel(found, kernel)
        found.first(found.os, "python_glibc", glibc)
    elif system == "Windows":
        found.first(found.os, "id", "windows")
    else:
        found.first(found.os, "id", "macos")
    if machine:
        found.first(found.os, "machine", _machine(machine))


def read_kernel(found: Collected, kernel: str) -> None:
    """A kernel release, which also tells WSL and Jetson."""
    lower = kernel.lower()
    found.first(found.os, "kernel", kernel)
    if "microsoft" in lower:
        found.wsl = 2 if "wsl2" in lower or "standard" in lower else found.wsl or 1
    if "tegra" in lower:
        found.os["tegra"] = True


def read_python(found: Collected, text: str | None) -> None:
    """`3.10.9 (main, ...) [GCC 11.2.0] (64-bit runtime)` and its like."""
    match = _PYTHON.search(text or "")
    if match is None:
        return
    found.first(found.python, "version", match[1])
    lower = (text or "").lower()
    if "conda" in lower:
        found.python["conda"] = True
    if "free-threading" in lower:
        found.python["threaded"] = True


def release(text: str) -> str | None:
    """A version at the start of a text."""
    match = re.match(r"v?(\d+(?:\.\d+)+(?:[\w.+-]*\w)?)", text.strip())
    return match[1] if match else None


def size(text: str) -> int | None:
    """`64M`, `503.8 GB`, `67108864` in bytes."""
    match = re.match(r"\s*([\d.]+)\s*([KMGT]?)i?B?", text, re.IGNORECASE)
    if match is None or match[1].count(".") > 1 or not match[1].strip("."):
        return None
    power = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2].upper()]
    return int(float(match[1]) * (1 << power))
