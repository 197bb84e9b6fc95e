"""Which image an image starts from: chosen from the tables, or named and looked up there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.emit import describe
from envcheck.emit.check import IMAGE
from envcheck.errors import UsageError
from envcheck.matrix import query
from envcheck.matrix.schema import FrameworkImage, SystemImage
from envcheck.model.base import model
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import CudaImage
    from envcheck.model.plan import Lock, Stack

CUDA_IMAGE = "nvidia/cuda"
_DEVEL = "devel"
_OS = re.compile(r"ubuntu[0-9]{2}\.[0-9]{2}")


@model
class Image:
    """An image to start from.

    Attributes:
        name: without tag.
        tag: None where only a digest is known.
        digest: `sha256:...`, which is used where it is known; the tag is then a comment.
        os: the system inside as the distro table spells it; None when it is not known.
        python: command of its Python.
        apt_python: whether that Python is installed from the system's archive.
        cuda: CUDA release of the toolkit or libraries inside.
        brings: the framework inside, `torch 2.8.0a0`, None for none.
        framework: its name.
        note: what has to be said about the choice.
    """

    name: str
    tag: str | None
    digest: str | None = None
    os: str | None = None
    python: str
    apt_python: bool = False
    cuda: str | None = None
    brings: str | None = None
    framework: str | None = None
    note: str | None = None

    @property
    def reference(self) -> str:
        """What FROM takes."""
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"

    @property
    def named(self) -> str:
        """Name and tag, for people."""
        return f"{self.name}:{self.tag}" if self.tag else self.reference


def named(reference: str, lock: Lock, matrix: Matrix) -> Image:
    """An image that was named, with what the tables or its tag say of it."""
    found = IMAGE.fullmatch(reference)
    if found is None:  # `checked` was not called
        msg = "--base: not an image"
        raise UsageError(msg)
    name, tag, digest = found["name"], found["tag"], found["digest"]
    for row in matrix.rows(FrameworkImage):
        if (row.image, row.tag) == (name, tag):
            return _of_framework(row, digest)
    for system in matrix.rows(SystemImage):
        if (system.image, system.tag) == (name, tag):
            return _of_system(system, lock.stack.python, digest)
    text = tag or ""
    known = _OS.search(text)
    os = known[0] if known else None
    # Of its own archive; where that has another Python, the image must bring the right one.
    own = {
        row.os
        for row in matrix.rows(SystemImage)
        if row.python_from == "apt" and row.python == lock.stack.python
    }
    toolkit = Release.maybe(text) if name.rpartition("/")[2] == "cuda" else None
    return Image(
        name=name,
        tag=tag,
        digest=digest,
        os=os,
        python=f"python{lock.stack.python}",
        apt_python=os in own,
        cuda=toolkit.text if toolkit is not None else None,
    )


# -- a plain system --------------------------------------------------------------------------------


def system(lock: Lock, matrix: Matrix) -> Image:
    """A plain system with the Python of the plan: the planned one if there is one, else the newest.

    Raises:
        UsageError: there is no image with this Python.
    """
    stack = lock.stack
    rows = [row for row in matrix.rows(SystemImage) if row.python == stack.python]
    exact = [row for row in rows if row.os == stack.os]
    slim = [row for row in rows if row.python_from == "image"]
    if not exact and not slim:
        known = sorted({Release.parse(row.python).parts for row in matrix.rows(SystemImage)})
        pythons = ", ".join(".".join(map(str, parts)) for parts in known)
        msg = (
            f"no image with Python {stack.python} is known: there are {pythons};"
            " name an image that has it with --base"
        )
        raise UsageError(msg)
    note = None
    if not exact and stack.os is not None:
        note = f"No image of {stack.os} has Python {stack.python}, so this is another system."
    return _of_system((exact or slim)[-1], stack.python, note=note)


def _of_system(
    row: SystemImage, python: str, digest: str | None = None, note: str | None = None
) -> Image:
    if row.python != python:
        msg = f"--base: {row.image}:{row.tag} has Python {row.python}, the lock {python}"
        raise UsageError(msg)
    return Image(
        name=row.image,
        tag=row.tag,
        digest=digest or row.digest,
        os=row.os,
        python=f"python{row.python}",
        apt_python=row.python_from == "apt",
        note=note,
    )


def ubuntu(lock: Lock, matrix: Matrix) -> SystemImage:
    """The Ubuntu whose own Python is that of the plan: what CUDA images are made of.

    Raises:
        UsageError: there is none.
    """
    stack = lock.stack
    rows = [row for row in matrix.rows(SystemImage) if row.python_from == "apt"]
    fitting = [row for row in rows if row.python == stack.python]
    if not fitting:
        has = ", ".join(f"{row.python} ({row.os})" for row in rows)
        msg = (
            f"the CUDA toolkit comes on Ubuntu, and none has Python {stack.python}: there are"
            f" {has}; plan with --python, or name an image with --base"
        )
        raise UsageError(msg)
    return fitting[-1]


# -- the CUDA toolkit ------------------------------------------------------------------------------


def toolkit(lock: Lock, matrix: Matrix) -> Image:
    """The CUDA image with the toolkit that matches the stack, or the nearest of its major.

    Raises:
        UsageError: there is none, or the stack has no CUDA.
    """
    stack = lock.stack
    wanted = describe.cuda(stack)
    if wanted is None:
        msg = "the stack of the lock is for the CPU: it has no CUDA toolkit to match"
        raise UsageError(msg)
    row = ubuntu(lock, matrix)
    fitting = _cuda_rows(matrix, wanted, row.os)
    note = None
    if not fitting:
        fitting = _nearest_rows(matrix, wanted, row.os)
        if fitting:
            note = (
                f"No CUDA {wanted} image of {row.os} is known: {fitting[-1].cuda}, of the same"
                " major, compiles for it."
            )
    if not fitting:
        msg = (
            f"no CUDA {wanted} image for {row.os} is known:"
            " plan with --python or another CUDA, or name an image with --base"
        )
        raise UsageError(msg)
    best = fitting[-1]
    _compiles(best.cuda, lock, matrix)
    if best.ended and note is None:
        note = "This tag is on NVIDIA's end-of-life list, and may be taken away."
    return Image(
        name=CUDA_IMAGE,
        tag=f"{best.cuda}-{_DEVEL}-{best.distro}",
        os=row.os,
        python=f"python{row.python}",
        apt_python=True,
        cuda=best.cuda,
        note=note,
    )


def _cuda_rows(matrix: Matrix, cuda: str, os: str) -> list[CudaImage]:
    """Images with the toolkit, oldest first; those that were ended only where there is no other."""
    rows = [
        row
        for row in query.cuda_images(matrix, cuda, os)
        if _DEVEL in row.flavors and row.confidence != "low"
    ]
    return [row for row in rows if not row.ended] or rows


def _nearest_rows(matrix: Matrix, cuda: str, os: str) -> list[CudaImage]:
    """Those of the same major: up to the wanted release, or else the first one after it."""
    wanted = Release.parse(cuda)
    rows = _cuda_rows(matrix, str(wanted.major), os)
    return [row for row in rows if Release.parse(row.cuda) <= wanted] or rows[:1]


def _compiles(cuda: str, lock: Lock, matrix: Matrix) -> None:
    """Refuse a toolkit that has no code for a GPU of the target."""
    targets = query.ptxas(matrix, cuda)
    if targets is None:
        return
    missing = [
        arch for arch in lock.target.arches if f"sm_{arch.replace('.', '')}" not in targets.arches
    ]
    if missing:
        msg = f"CUDA {cuda}, the newest image that is known, does not compile for {missing[0]}"
        raise UsageError(msg)


# -- a maker's image -------------------------------------------------------------------------------


def of_maker(lock: Lock, matrix: Matrix) -> Image:
    """NVIDIA's image of the framework: the minor release, CUDA major and Python of the plan.

    Of several, the newest whose CUDA the plan's driver was chosen for, else the one nearest to it.

    Raises:
        UsageError: there is none.
    """
    stack = lock.stack
    cuda = Release.maybe(describe.cuda(stack))
    if len(stack.frameworks) > 1:
        msg = "an NGC image brings one framework, and the lock has " + describe.frameworks(stack)
        raise UsageError(msg)
    if cuda is None:
        msg = "the stack of the lock is for the CPU, and NGC images are for GPUs"
        raise UsageError(msg)
    framework = stack.frameworks[0]
    rows = [
        row
        for row in matrix.rows(FrameworkImage)
        if row.maker == "nvidia" and row.framework == framework.name and row.confidence != "low"
    ]
    series = Release.parse(framework.version).series
    fitting = [
        row
        for row in rows
        if row.python == stack.python
        and Release.parse(row.version).series == series
        and Release.parse(row.cuda).major == cuda.major
    ]
    if not fitting:
        raise UsageError(_none_of_maker(stack, rows))
    older = [row for row in fitting if Release.parse(row.cuda) <= cuda]
    nearest = min(fitting, key=lambda row: Release.parse(row.cuda))
    return _of_framework(older[-1] if older else nearest)


def _none_of_maker(stack: Stack, rows: list[FrameworkImage]) -> str:
    framework = stack.frameworks[0]
    known = ", ".join(
        f"{row.tag} ({row.version.partition('a')[0]}, CUDA {row.cuda})" for row in rows
    )
    return (
        f"no NGC image with {describe.framework_name(framework)} and Python {stack.python} is"
        f" known: there are {known or 'none of this framework'}; name one with --base"
    )


def _of_framework(row: FrameworkImage, digest: str | None = None) -> Image:
    return Image(
        name=row.image,
        tag=row.tag,
        digest=digest or row.digest,
        os=row.os,
        python=f"python{row.python}" if row.python else "python3",
        cuda=row.cuda,
        brings=f"{row.framework} {row.version}",
        framework=row.framework,
    )
