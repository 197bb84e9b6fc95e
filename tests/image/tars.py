"""Small images as tar streams, and what the reader makes of them."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

from envcheck.image.engine import Image
from envcheck.image.read import Inside, describe
from envcheck.image.source import ImageFiles
from envcheck.image.tree import Tree, unpack

Files = dict[str, bytes | str | tuple[str, str]]
"""Path -> content; ("link", target) and ("hard", first name) for links."""

RELEASE = 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'
LIBC = b"GNU C Library (Debian GLIBC 2.36-9+deb12u9) stable release version 2.36.\n"
ELF = Path("/proc/self/exe").read_bytes()[:20]
"""Start of a program of this machine's processor."""


def tar(files: Files) -> io.BytesIO:
    """A tar of these files, in their order; programs of a `bin` folder may be run."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            if isinstance(content, tuple):
                kinds = {"link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "dir": tarfile.DIRTYPE}
                member.type, member.linkname = kinds[content[0]], content[1]
                archive.addfile(member)
                continue
            data = content.encode() if isinstance(content, str) else content
            member.size = len(data)
            member.mode = 0o755 if "/bin/" in path else 0o644
            archive.addfile(member, io.BytesIO(data))
    stream.seek(0)
    return stream


def tree(folder: Path, files: Files) -> Tree:
    """The unpacked files of an image."""
    folder.mkdir(exist_ok=True)
    made = Tree(folder)
    unpack(tar(files), made)
    return made


def read(
    folder: Path, files: Files, *, python: str | None = None, user: str = "", **variables: str
) -> Inside:
    """What is known of an image with these files and variables."""
    image = Image(
        reference="test",
        id="sha256:0",
        architecture="amd64",
        user=user,
        variables=tuple(variables.items()),
    )
    base: Files = {"usr/lib/os-release": RELEASE, "usr/lib/x86_64-linux-gnu/libc.so.6": LIBC}
    merged = {"lib": ("link", "usr/lib"), "bin": ("link", "usr/bin")}
    source = ImageFiles(tree(folder, {**merged, **base, **files}), image)
    return describe(source, python, 30.0)
