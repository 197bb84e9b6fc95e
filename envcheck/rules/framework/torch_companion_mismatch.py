"""torch-companion-mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Evidence, Fix
from envcheck.rules import builds, install, pins
from envcheck.rules.base import cite, finding, rule
from envcheck.rules.requirements import required
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.row import Row
    from envcheck.model.environment import Framework, Package
    from envcheck.model.finding import Finding, Severity
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

NAMES = ("torchvision", "torchaudio")


def _has_torch(snapshot: Snapshot) -> bool:
    return snapshot.env.framework("torch") is not None


@rule("torch-companion-mismatch", component="framework", when=(_has_torch, pins.packages_known))
def torch_companion_mismatch(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """torchvision and torchaudio belong to this torch and to its CUDA variant.

    The companion's own requirement decides; where it has none, the table's pairs do, for builds
    that the table describes. Another CUDA major, or a CPU build beside a CUDA build, is an error,
    another minor release of the same major a warning.

    Why: both hold machine code linked against one torch release; another one misses symbols or
    operators ("torchvision::nms does not exist").

    Fix: install the versions that belong together, from one index.
    """
    torch = snapshot.env.framework("torch")
    if torch is None:
        return
    for name in NAMES:
        package = snapshot.env.package(name)
        if package is None:
            continue
        version = _by_version(snapshot, matrix, torch, package)
        if version is not None:
            yield _finding(snapshot, matrix, torch, package, *version)
            continue
        variant = _by_variant(snapshot, torch, package) or _by_index(matrix, torch, package)
        if variant is not None:
            severity, found, needed = variant
            yield _finding(snapshot, matrix, torch, package, severity, found, needed, None)


Wrong = tuple["Severity", str, str, "Row | None"]


def _by_version(
    snapshot: Snapshot, matrix: Matrix, torch: Framework, package: Package
) -> Wrong | None:
    """Whether the companion asks for another torch; severity, found, needed, table row."""
    found = f"{install.label(package)} with {install.label(torch)}"
    asked = [each for each in required(snapshot, package) if each.name == "torch" and each.bounds]
    for requirement in asked:
        if requirement.allows(torch.version) is False and not _prerelease(torch):
            bounds = ",".join(f"{sign}{text}" for sign, text in requirement.bounds)
            return "error", found, f"torch{bounds}, which {package.name} requires", None
    if asked or torch.origin not in builds.WHEELS:
        return None
    row = query.companion(matrix, install.public_version(torch.version))
    belongs = Release.maybe(getattr(row, package.name)) if row is not None else None
    have = Release.maybe(package.version)
    if belongs is None or have is None or have.series == belongs.series or _prerelease(torch):
        return None
    mine = Release.maybe(torch.version)
    strict = package.name == "torchvision" or (mine is not None and mine.series == belongs.series)
    if row is None or row.confidence == "low" or (have > belongs and not strict):
        return None
    return "error", found, f"{package.name} {belongs}", row


def _prerelease(torch: Framework) -> bool:
    public = install.public_version(torch.version)
    return any(mark in public for mark in ("a", "b", "rc", "dev"))


def _by_variant(
    snapshot: Snapshot, torch: Framework, package: Package
) -> tuple[Severity, str, str] | None:
    """Whether the companion is of another CUDA variant."""
    companion = snapshot.env.framework(package.name)
    tag = install.local_tag(companion.version if companion else package.version)
    cpu = tag == "cpu" or bool(companion and companion.cpu_only)
    cuda = Release.maybe(companion.cuda if companion else None) or _cuda_of(tag)
    mine = Release.maybe(torch.cuda)
    if mine is not None and cpu and tag == "cpu":
        return (
            "error",
            f"{package.name} is a CPU build, torch is built for CUDA {mine.series}",
            f"{package.name} for CUDA {mine.series}",
        )
    if mine is None or cuda is None or cuda.series == mine.series:
        return None
    return (
        "error" if cuda.major != mine.major else "warning",
        f"{package.name} is built for CUDA {cuda.series}, torch for CUDA {mine.series}",
        f"{package.name} for CUDA {mine.series}",
    )


def _by_index(
    matrix: Matrix, torch: Framework, package: Package
) -> tuple[Severity, str, str] | None:
    """Whether the companion is the package index's build, beside a torch of another CUDA major.

    torch's own site gives every wheel a local tag; a companion without one, of a pair that the
    table knows, comes from the package index, whose builds are for one CUDA release only.
    """
    mine = _cuda_of(install.local_tag(torch.version))
    if mine is None or torch.origin != "framework-index" or "+" in package.version:
        return None
    if package.installer == "conda" or package.name != "torchvision":
        return None
    version = install.public_version(torch.version)
    pair = query.companion(matrix, version)
    if pair is None or pair.torchvision != package.version:
        return None
    rows = query.torch_builds(matrix, version, platform="linux_x86_64")
    default = next((row for row in rows if row.index_default), None)
    theirs = Release.maybe(default.cuda) if default is not None else None
    if theirs is None or theirs.major == mine.major:
        return None
    return (
        "error",
        f"{package.name} {package.version} is the package index's build, for CUDA {theirs.series}; "
        f"torch is built for CUDA {mine.series}",
        f"{package.name} for CUDA {mine.series}",
    )


def _cuda_of(tag: str) -> Release | None:
    """CUDA release of a local tag: `cu128` is 12.8."""
    digits = tag[2:].partition(".")[0] if tag.startswith("cu") else ""
    return Release.maybe(f"{digits[:-1]}.{digits[-1]}") if len(digits) > 2 else None


def _finding(
    snapshot: Snapshot,
    matrix: Matrix,
    torch: Framework,
    package: Package,
    severity: Severity,
    found: str,
    needed: str,
    row: Row | None,
) -> Finding:
    version = install.public_version(torch.version)
    tag = builds.variant(torch)
    index = builds.index_url(matrix, tag) if tag and torch.origin in builds.WHEELS else None
    pair = query.companion(matrix, version)
    belongs = getattr(pair, package.name) if pair is not None else None
    if install.by_conda(snapshot, "torch"):
        commands = install.conda_install(snapshot, package.name, version=belongs, cuda=torch.cuda)
    else:
        wanted = f"{package.name}=={belongs}" if belongs else package.name
        commands = install.install(
            snapshot, (f"torch=={version}", wanted), index_url=index, reinstall=True
        )
    return finding(
        "torch-companion-mismatch",
        severity,
        "framework",
        install.label(package),
        f"{package.name} does not belong to this torch",
        found=found,
        needed=needed,
        why=f"{package.name} holds machine code that was linked against one torch release and one "
        "CUDA variant.",
        fix=(Fix(title="Install the versions that belong together", commands=commands),),
        evidence=(
            Evidence(label=package.name, value=package.version, via=package.location or "metadata"),
            Evidence(label="torch", value=torch.version, via=torch.location or "metadata"),
        ),
        sources=cite(matrix, row),
    )
