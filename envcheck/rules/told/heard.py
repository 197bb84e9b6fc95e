"""The messages of a snapshot, and the circumstances that help to weigh them.

A circumstance is taken from the facts where they hold it, else from what the text mentions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.symptom import KERNEL_LOG
from envcheck.rules import builds, facts
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import SymptomRow
    from envcheck.model.snapshot import Snapshot
    from envcheck.model.symptom import Symptom

HIDES_ALL = re.compile(r"-1.*|none|void|NoDevFiles|", re.IGNORECASE)

DRIVER_TROUBLE = (
    "smi-no-communication",
    "nvml-driver-not-loaded",
    "modprobe-module-absent",
    "modprobe-no-device",
    "modprobe-module-foreign",
    "installer-module-failed",
    "driver-probe-refused",
    "nouveau-in-use",
    "module-key-rejected",
    "nvml-library-mismatch",
    "gpu-init-adapter",
    "gpu-off-the-bus",
    "gpu-is-lost",
    "gpu-legacy-branch",
    "open-modules-required",
    "open-modules-unsupported",
)
"""Rows that say by themselves why the driver does not answer."""


class Heard:
    """What a snapshot's messages say, by row of the table."""

    def __init__(self, snapshot: Snapshot, matrix: Matrix) -> None:
        """Look up the row of each message; those that no table knows are left out."""
        self.snapshot = snapshot
        self.matrix = matrix
        known = rows(matrix)
        # A live machine's log holds what may be over; its rules read it beside the facts of now.
        live = snapshot.source != "report"
        self.messages: tuple[tuple[Symptom, SymptomRow], ...] = tuple(
            (each, known[each.name])
            for each in snapshot.symptoms
            if each.name in known and not (live and each.via == KERNEL_LOG)
        )
        self.names = frozenset(each.name for each, _ in self.messages)
        self.meant: dict[str, tuple[tuple[Symptom, SymptomRow], ...]] | None = None
        """Messages by the finding that they stand for, once they were weighed."""

    def has(self, *names: str) -> bool:
        """Whether a message of any of these rows is there."""
        return not self.names.isdisjoint(names)

    def all(self, *names: str) -> tuple[Symptom, ...]:
        """The messages of these rows, in the order of the text."""
        return tuple(each for each, _ in self.messages if each.name in names)

    def captures(self, capture: str, *names: str) -> tuple[str, ...]:
        """What messages of these rows captured under one name."""
        return tuple(
            value for each in self.all(*names) if (value := each.capture(capture)) is not None
        )

    # -- where -------------------------------------------------------------------------------------

    def wsl(self) -> bool:
        """Inside the Windows Subsystem for Linux."""
        if self.snapshot.host.wsl is not None:
            return self.snapshot.host.wsl > 0
        return self.has("on-wsl", "wsl-loader-note", "wsl-gpu-blocked", "wsl-no-adapter")

    def jetson(self) -> bool:
        """On a Jetson."""
        return facts.on_jetson(self.snapshot) or self.has("on-jetson")

    def windows(self) -> bool:
        """On Windows itself."""
        id, platform = self.snapshot.host.os.id, self.snapshot.env.python.platform or ""
        if id is not None and id != "windows":
            return False
        told = self.has("on-windows") and not self.wsl()
        return id == "windows" or platform.startswith("win") or told

    def macos(self) -> bool:
        """On a Mac."""
        return self.snapshot.host.os.id == "macos" or self.has("on-macos")

    def in_container(self) -> bool:
        """In a container, by fact."""
        return facts.in_container(self.snapshot)

    def on_plain_host(self) -> bool:
        """Known not to be in a container."""
        return self.snapshot.host.container.kind == "none"

    def container_without_gpus(self) -> bool:
        """A container that was started without GPUs, as the command shows."""
        return self.has("docker-run-without-gpus") and not self.has("docker-run-with-gpus")

    def desktop(self) -> bool:
        """Docker Desktop on Linux."""
        engines = self.snapshot.host.engines or ()
        told = any(each.desktop for each in engines) or self.has("docker-desktop")
        return told and not self.windows() and not self.wsl() and not self.macos()

    # -- what --------------------------------------------------------------------------------------

    def driver_trouble(self) -> bool:
        """Whether another message says why the driver does not answer."""
        return self.has(*DRIVER_TROUBLE)

    def hides_gpus(self) -> bool:
        """Whether CUDA_VISIBLE_DEVICES is set to a value that hides every GPU."""
        value = self.snapshot.env.variable("CUDA_VISIBLE_DEVICES")
        return any(HIDES_ALL.fullmatch(each.strip()) for each in (*self._visible(), value or "0"))

    def _visible(self) -> tuple[str, ...]:
        found = []
        for each in self.all("visible-devices-set"):
            quoted = each.capture("quoted")
            bare = each.capture("bare")
            found.append(bare or quoted or "")
        return tuple(found)

    def selects_gpus(self) -> bool:
        """Whether CUDA_VISIBLE_DEVICES is set at all."""
        set_here = self.snapshot.env.variable("CUDA_VISIBLE_DEVICES") is not None
        return set_here or self.has("visible-devices-set")

    def selects_beyond(self) -> bool:
        """Whether CUDA_VISIBLE_DEVICES begins with a GPU that is not known to be there.

        The first GPU of a machine is 0; of any other, something has to show that it is there.
        """
        firsts = {each.split(",")[0].strip() for each in self._visible()}
        there = len(facts.gpus(self.snapshot))
        return bool(firsts) and all(
            each.isascii() and each.isdigit() and int(each) >= max(there, 1) for each in firsts
        )

    def mig(self) -> bool:
        """Whether MIG is in use."""
        return any(each.mig for each in facts.gpus(self.snapshot)) or self.has("mig-listed")

    def gpu_known(self) -> bool:
        """Whether the text names or lists an NVIDIA GPU."""
        return facts.has_gpu(self.snapshot) or self.has("gpu-mentioned")

    def gpu_arches(self) -> tuple[str, ...]:
        """Compute capabilities of the GPUs, `8.6`: by fact, by name, or as a message says."""
        told = list(builds.gpu_arches(self.matrix, self.snapshot))
        told += self.captures("cc", "torch-gpu-capability")
        if not told:
            names = [each.name for each in facts.gpus(self.snapshot) if each.name]
            names += self.captures("gpu", "gpu-mentioned", "arch-not-in-build")
            products = [query.product(self.matrix, name) for name in names]
            told += [row.cc for row in products if row is not None]
        return tuple(dict.fromkeys(told))

    def torch(self) -> str | None:
        """Release of torch, as installed or as mentioned."""
        installed = self.snapshot.env.framework("torch")
        if installed is not None:
            return installed.version
        return next(iter(self.captures("version", "torch-mentioned")), None)

    def torch_cuda_major(self) -> int | None:
        """CUDA major that torch was built for."""
        installed = self.snapshot.env.framework("torch")
        release = Release.maybe(installed.cuda) if installed is not None else None
        if release is not None:
            return release.major
        tag = re.search(r"\+cu(\d\d)", self.torch() or "")
        return int(tag.group(1)) if tag else None

    def cuda_majors(self) -> frozenset[int]:
        """CUDA majors that are there: of torch, of toolkits and of NVIDIA's wheels."""
        found = {self.torch_cuda_major()}
        for version in (
            *(each.version for each in self.snapshot.env.toolkits or ()),
            *self.captures("release", "toolkit-mentioned"),
            *self.captures("path", "toolkit-mentioned"),
        ):
            release = Release.maybe(version)
            found.add(release.major if release is not None else None)
        known = frozenset(each for each in found if each) | self.wheel_majors()
        return known or frozenset(each.major for each in self.cuda_said())

    def cuda_said(self) -> tuple[Release, ...]:
        """CUDA releases that somebody says to have, without a program's word for it."""
        found = map(Release.maybe, self.captures("release", "cuda-release-mentioned"))
        return tuple(each for each in found if each is not None)

    def toolkits(self) -> tuple[Release, ...]:
        """Releases of CUDA toolkits: found, shown by nvcc or in paths, else said."""
        found = map(
            Release.maybe,
            (
                *(each.version for each in self.snapshot.env.toolkits or ()),
                *self.captures("release", "toolkit-mentioned"),
                *self.captures("path", "toolkit-mentioned"),
            ),
        )
        return tuple(each for each in found if each is not None) or self.cuda_said()

    def wheel_majors(self) -> frozenset[int]:
        """CUDA majors of NVIDIA's wheels, installed or listed."""
        found = {int(each) for each in self.captures("major", "nvidia-wheel-mentioned")}
        for package in self.snapshot.env.packages or ():
            match = re.fullmatch(r"nvidia-[a-z-]+-cu(\d\d)", package.name)
            if match is not None:
                found.add(int(match.group(1)))
        return frozenset(found)

    def wheel(self, stem: str) -> str | None:
        """Version of one of NVIDIA's wheels, `cublas`; empty when listed without one."""
        for package in self.snapshot.env.packages or ():
            if re.fullmatch(rf"nvidia-{stem}(?:-cu\d\d)?", package.name):
                return package.version
        if stem in self.captures("wheel", "nvidia-wheel-mentioned"):
            return ""
        return None


def rows(matrix: Matrix) -> dict[str, SymptomRow]:
    """Rows of the table by their name."""
    return matrix.memo("told.rows", lambda: {row.name: row for row in matrix.symptoms})


def heard(snapshot: Snapshot, matrix: Matrix) -> Heard:
    """The messages of a snapshot; looked up once for all rules of a judgement."""
    kept = matrix.memo("told.heard", list[Heard])
    if not kept or kept[0].snapshot is not snapshot:
        kept[:] = [Heard(snapshot, matrix)]
    return kept[0]


def texts(symptoms: tuple[Symptom, ...]) -> Iterator[str]:
    """What messages say, each once."""
    yield from dict.fromkeys(each.text for each in symptoms)
