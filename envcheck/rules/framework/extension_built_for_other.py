"""extension-built-for-other-torch and extension-built-for-other-cuda."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import install, pins
from envcheck.rules.base import finding, rule
from envcheck.rules.framework import extensions
from envcheck.rules.framework.declared import declared
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.environment import Framework, Package
    from envcheck.model.finding import Finding
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer


def _has_torch(snapshot: Snapshot) -> bool:
    return snapshot.env.framework("torch") is not None


@rule(
    "extension-built-for-other-torch",
    component="framework",
    when=(_has_torch, pins.packages_known),
)
def extension_built_for_other_torch(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """Native extensions were built for the torch that is installed.

    Fires when an extension's tag names another minor release of torch, or when an extension that
    holds machine code requires exactly another torch than the one installed.

    Why: torch's C++ interface has no stable ABI across minor releases. The extension fails to
    import with an undefined symbol, or crashes.

    Fix: install the extension's build for this torch, or the torch that the extension was built
    for.
    """
    torch = snapshot.env.framework("torch")
    have = Release.maybe(torch.version) if torch else None
    if torch is None or have is None or _unreleased(torch):
        return
    for package in snapshot.env.packages or ():
        tag = extensions.built(package)
        if tag is not None and tag.torch:
            if have.series not in tag.torch:
                yield _other_torch(
                    snapshot,
                    torch,
                    package,
                    releases=_published(matrix, tag.torch),
                    evidence=Evidence(label="build tag", value=tag.text, via="wheel"),
                )
            continue
        if package.name in extensions.NATIVE:
            for asked in declared(snapshot, matrix, package):
                requirement = asked.requirement
                if (
                    requirement.name == "torch"
                    and requirement.exact is not None
                    and requirement.allows(torch.version) is False
                ):
                    yield _other_torch(
                        snapshot,
                        torch,
                        package,
                        pinned=requirement.exact,
                        evidence=Evidence(
                            label=f"{package.name} requires",
                            value=requirement.line,
                            via="metadata" if asked.row is None else "table of libraries",
                        ),
                    )
                    break


@rule(
    "extension-built-for-other-cuda",
    component="framework",
    when=(_has_torch, pins.packages_known),
)
def extension_built_for_other_cuda(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """Native extensions were built for the CUDA major of the installed torch.

    Why: an extension of another CUDA major asks for libraries (libcudart.so.NN) that this
    environment does not hold, or brings a second CUDA runtime into the process.

    Fix: install the extension's build for this CUDA major.
    """
    torch = snapshot.env.framework("torch")
    release = Release.maybe(torch.cuda) if torch else None
    if torch is None or release is None:
        return
    for package in snapshot.env.packages or ():
        tag = extensions.built(package)
        if tag is None or tag.cuda_major is None or tag.cuda_major == release.major:
            continue
        yield finding(
            "extension-built-for-other-cuda",
            "error",
            "framework",
            install.label(package),
            f"{package.name} was built for another CUDA major than torch",
            found=f"{package.name} built for CUDA {tag.cuda_major}, torch for CUDA {torch.cuda}",
            needed=f"a build of {package.name} for CUDA {release.major}",
            why="Its machine code is linked against CUDA libraries of another major, which torch "
            "does not bring.",
            fix=(_rebuild(snapshot, package),),
            evidence=(
                Evidence(label="build tag", value=tag.text, via="wheel"),
                Evidence(
                    label="torch", value=torch.version, via=torch.location or "torch/version.py"
                ),
            ),
        )


def _published(matrix: Matrix, releases: tuple[str, ...]) -> tuple[str, ...]:
    """Of several readings of a tag those that the table knows; all when it knows none."""
    known = {Release.parse(row.version).series for row in matrix.torch_builds}
    return tuple(each for each in releases if each in known) or releases


def _unreleased(torch: Framework) -> bool:
    """Nightlies and vendors' pre-releases follow no published ABI."""
    public = install.public_version(torch.version)
    return any(mark in public for mark in ("a", "dev", "git"))


def _other_torch(
    snapshot: Snapshot,
    torch: Framework,
    package: Package,
    *,
    releases: tuple[str, ...] = (),
    pinned: str | None = None,
    evidence: Evidence,
) -> Finding:
    roads = []
    if pinned is None:
        roads.append(_rebuild(snapshot, package))
    if pinned is not None or len(releases) == 1:
        bound = f"torch=={pinned}" if pinned is not None else f"torch=={releases[0]}.*"
        roads.append(
            Fix(
                title=f"Install the torch that {package.name} was built for",
                commands=install.install(snapshot, (bound,)),
            )
        )
    if pinned is not None:
        roads.append(
            Fix(
                title=f"Or move to a release of {package.name} that was built for {torch.version}",
                commands=install.install(snapshot, (package.name,), upgrade=True),
            )
        )
    return finding(
        "extension-built-for-other-torch",
        "error",
        "framework",
        install.label(package),
        f"{package.name} was built for another torch",
        found=f"{install.label(package)} with {install.label(torch)}",
        needed=f"torch {pinned or ' or '.join(releases)}",
        why="Extensions link against torch's C++ interface, which changes with minor releases.",
        fix=roads,
        evidence=(
            evidence,
            Evidence(label="torch", value=torch.version, via=torch.location or "torch/version.py"),
        ),
    )


def _rebuild(snapshot: Snapshot, package: Package) -> Fix:
    version = install.public_version(package.version)
    (*before, command) = install.install(snapshot, (f"{package.name}=={version}",), reinstall=True)
    options = " --no-deps --no-cache-dir --no-build-isolation --no-binary " + package.name
    if snapshot.env.python.manager in {"poetry", "pdm"}:
        options = ""
    return Fix(
        title=f"Install the wheel of {package.name} that its project builds for this torch and "
        "CUDA, or build it here (needs nvcc of the same CUDA major)",
        commands=(*before, command + options),
    )
