"""Published builds of torch: which is installed, which fit a machine, how to install one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from envcheck.matrix import query
from envcheck.model.finding import Fix
from envcheck.rules import arch, compat, drivers, facts, install
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import TorchBuild
    from envcheck.model.environment import Framework
    from envcheck.model.snapshot import Snapshot

Direction = Literal["older", "newer", "same"]

WHEELS = frozenset({"index", "framework-index"})
"""Origins that table rows describe."""


def platform(snapshot: Snapshot, framework: Framework | None = None) -> str:
    """Platform whose table rows apply; Windows wheels come in the variants of the Linux ones."""
    text = (framework.platform if framework else None) or snapshot.env.python.platform or ""
    if text.endswith(("aarch64", "arm64")):
        return "linux_aarch64"
    return "linux_x86_64" if text else f"linux_{snapshot.host.os.machine or 'x86_64'}"


def variant(framework: Framework) -> str | None:
    """Variant tag of a build: its local tag, else from its CUDA release; None without both."""
    tag = install.local_tag(framework.version)
    if tag.startswith("cu") or tag == "cpu":
        return tag.partition(".")[0]
    release = Release.maybe(framework.cuda)
    return f"cu{release.major}{release.minor}" if release else None


def identify(matrix: Matrix, snapshot: Snapshot, torch: Framework) -> TorchBuild | None:
    """The table row of an installed torch.

    None when it is not one of the published wheels (conda-forge, NGC, Jetson, distribution and
    source builds are other builds under the same version), or when the table has no row for it.
    """
    tag = variant(torch)
    if torch.origin not in WHEELS or tag is None:
        return None
    if (torch.platform or "").startswith(("win", "macosx")):
        return None
    row = query.torch_build(
        matrix, install.public_version(torch.version), platform(snapshot, torch), tag
    )
    if row is None:
        return None
    if row.git_version and torch.git_version and row.git_version != torch.git_version:
        return None
    return row if row.confidence != "low" else None


def arches(matrix: Matrix, snapshot: Snapshot, torch: Framework) -> tuple[str, ...] | None:
    """Architectures of an installed torch: read from the build, else of its row."""
    if torch.arches:
        return torch.arches
    row = identify(matrix, snapshot, torch)
    return row.arches if row is not None else None


def tegra(matrix: Matrix) -> frozenset[str]:
    """Compute capabilities of Tegra chips."""
    return frozenset(row.cc for row in matrix.capabilities if row.tegra)


def row_arches(matrix: Matrix, build: TorchBuild) -> tuple[str, ...] | None:
    """Architectures of a table row; those of its neighbours where both sides agree and it has none.

    Only used to choose what to recommend, never to judge what is installed.
    """
    if build.arches:
        return build.arches
    at = Release.parse(build.version)
    same = [
        row
        for row in matrix.torch_builds
        if row.platform == build.platform and row.variant == build.variant and row.arches
    ]
    below = max(
        (row for row in same if Release.parse(row.version) < at),
        key=lambda row: Release.parse(row.version),
        default=None,
    )
    above = min(
        (row for row in same if Release.parse(row.version) > at),
        key=lambda row: Release.parse(row.version),
        default=None,
    )
    if below is not None and above is not None:
        return below.arches if below.arches == above.arches else None
    nearest = below or above
    return nearest.arches if nearest is not None else None


def gpu_arches(matrix: Matrix, snapshot: Snapshot) -> tuple[str, ...]:
    """Compute capabilities of the GPUs here: as the driver says, else by their PCI ids."""
    told = tuple(each.arch for each in facts.gpus(snapshot) if each.arch)
    rows = () if told else drivers.capabilities(snapshot, matrix)
    return tuple(dict.fromkeys(told or (row.cc for row in rows)))


def fits(matrix: Matrix, snapshot: Snapshot, build: TorchBuild) -> bool | None:
    """Whether a published build runs here: driver, every GPU, interpreter, C library.

    None when nothing speaks against it and something is not known.
    """
    if build.cuda == "cpu":
        return False
    tag = snapshot.env.python.tag
    if build.python and tag and tag not in build.python:
        return False
    libc = Release.maybe(snapshot.host.os.glibc)
    if build.glibc and libc is not None and libc < Release.parse(build.glibc):
        return False
    answer = compat.driver_runs(matrix, compat.driver_facts(snapshot), build.cuda)
    verdicts: list[bool | None] = [{"yes": True, "no": False, "unknown": None}[answer.verdict]]
    known = row_arches(matrix, build)
    chips = tegra(matrix)
    verdicts += [
        arch.coverage(known, each, tegra=chips).runs if known is not None else None
        for each in gpu_arches(matrix, snapshot)
    ]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def choose(
    matrix: Matrix, snapshot: Snapshot, torch: Framework, direction: Direction = "same"
) -> TorchBuild | None:
    """The build to recommend in place of an installed torch.

    Args:
        matrix: the tables.
        snapshot: the machine.
        torch: what is installed.
        direction: where to look when no variant of the same version fits: at older versions, at
            newer
            ones, or `same` for the nearest on either side, newer first.

    Returns:
        The newest CUDA variant of the same version that fits; else of the nearest release that has
        one, in its last patch; None when none is known to.
    """
    here = Release.maybe(torch.version)
    if here is None:
        return None
    versions = _by_version(matrix, platform(snapshot, torch))
    newer = sorted(
        (each for each in versions if each > here),
        key=lambda each: (each.parts[:2], [-part for part in each.parts[2:]]),
    )
    older = sorted((each for each in versions if each < here), reverse=True)
    order = [here, *(older + newer if direction == "older" else newer + older)]
    known = known_machine(matrix, snapshot)
    for sure in (True,) if known else (True, None):
        for version in order:
            fitting = [
                row for row in versions.get(version, ()) if fits(matrix, snapshot, row) is sure
            ]
            if fitting:
                return max(fitting, key=lambda row: Release.parse(row.cuda))
    return None


def _by_version(matrix: Matrix, where: str) -> dict[Release, list[TorchBuild]]:
    """Builds of a platform that are sure enough to be recommended, by release."""

    def collect() -> dict[Release, list[TorchBuild]]:
        found: dict[Release, list[TorchBuild]] = {}
        for row in matrix.torch_builds:
            if row.platform == where and row.confidence != "low":
                found.setdefault(Release.parse(row.version), []).append(row)
        return found

    return matrix.memo(f"builds.by_version.{where}", collect)


def known_machine(matrix: Matrix, snapshot: Snapshot) -> bool:
    """Whether driver and GPUs are known, so that a build that may fit is not good enough."""
    driver = snapshot.host.driver
    told = (driver.version or driver.cuda) is not None
    return told and bool(gpu_arches(matrix, snapshot))


def index_url(matrix: Matrix, tag: str) -> str | None:
    """Package index of a variant of torch."""
    head = matrix.framework("torch")
    return head.index_url.replace("{variant}", tag) if head and head.index_url else None


def requirements(matrix: Matrix, snapshot: Snapshot, version: str) -> tuple[str, ...]:
    """`torch==V`, and the companions that are installed here in the versions that belong to it."""
    pair = query.companion(matrix, version)
    found = [f"torch=={version}"]
    for name in ("torchvision", "torchaudio"):
        if snapshot.env.package(name) is None and snapshot.env.framework(name) is None:
            continue
        belongs = getattr(pair, name) if pair is not None else None
        found.append(f"{name}=={belongs}" if belongs else name)
    return tuple(found)


def install_fix(
    matrix: Matrix, snapshot: Snapshot, torch: Framework, build: TorchBuild, title: str
) -> Fix:
    """How to install a published build, or conda-forge's build like it where conda is in charge."""
    if install.by_conda(snapshot, "torch"):
        same = build.version == install.public_version(torch.version)
        return Fix(
            title=title,
            commands=install.conda_install(
                snapshot, "torch", version=build.version if same else None, cuda=build.cuda
            ),
        )
    return Fix(
        title=title,
        commands=install.install(
            snapshot,
            requirements(matrix, snapshot, build.version),
            index_url=index_url(matrix, build.variant),
            reinstall=True,
        ),
    )


def same_again(
    matrix: Matrix, snapshot: Snapshot, framework: Framework, extra: str = ""
) -> tuple[str, ...]:
    """Commands that install a framework again, from where it came, with its dependencies."""
    tag = variant(framework) if framework.name == "torch" else None
    index = index_url(matrix, tag) if tag and framework.origin == "framework-index" else None
    requirement = f"{framework.name}{extra}=={install.public_version(framework.version)}"
    return install.install(snapshot, (requirement,), index_url=index)
