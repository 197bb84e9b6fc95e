"""The loader's cache, read without the loader."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from envcheck.image.loader_cache import listing
from envcheck.probe.driver_files import cached_libraries
from envcheck.probe.source import Result

CACHE = Path("/etc/ld.so.cache")


@pytest.mark.skipif(not CACHE.is_file() or not shutil.which("ldconfig"), reason="no ldconfig here")
def test_it_says_what_ldconfig_says() -> None:
    """On this machine's own cache, name by name and in the same order."""
    done = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=True)
    wanted = cached_libraries(Result(outcome="ok", code=0, stdout=done.stdout))
    text = listing(CACHE.read_bytes())
    assert cached_libraries(Result(outcome="ok", code=0, stdout=text)) == wanted
    assert len(re.findall("libc.so.6 ", text)) >= 1


def test_damage_is_no_cache() -> None:
    data = CACHE.read_bytes() if CACHE.is_file() else b"glibc-ld.so.cache1.1" + b"\xff" * 28
    assert listing(b"") == ""
    assert listing(b"ld.so-1.7.0\0") == ""
    assert listing(data[:30]) == ""
    assert listing(b"glibc-ld.so.cache1.1" + b"\xff" * 28) == ""
    assert len(listing(data[: len(data) // 2])) < len(data)
