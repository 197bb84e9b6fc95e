"""Builds of each framework that a plan may choose from: table rows as facts, pins and packages.

Nothing here decides what fits. An option carries what rules read of an installed framework, and
what its own metadata would ask of the packages beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.matrix.schema import TensorflowTested
from envcheck.model.base import model
from envcheck.model.environment import Framework, Package
from envcheck.model.plan import Pin, PlannedFramework
from envcheck.rules import builds
from envcheck.rules.requirements import Requirement, parse
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.row import Row
    from envcheck.matrix.schema import JaxPlugin, JaxRelease, TensorflowRelease, TorchBuild

CPU = "cpu"
_WITHDRAWN = "withdrawn"


@model
class Option:
    """One build of one framework.

    Attributes:
        name: torch, tensorflow or jax.
        version: public version.
        label: in words, `torch 2.8.0+cu128`.
        cuda: CUDA release it was built with; None for the CPU.
        pythons: `3.12`, those with a wheel.
        default: what a plain install gives.
        planned: as plans show it.
        framework: as rules see it installed.
        packages: the distributions of it, with what they require.
        pins: what to install, in this order.
        row: the table row.
    """

    name: str
    version: str
    label: str
    cuda: str | None
    pythons: tuple[str, ...]
    default: bool
    planned: PlannedFramework
    framework: Framework
    packages: tuple[Package, ...]
    pins: tuple[Pin, ...]
    row: Row

    @property
    def weak(self) -> bool:
        """Whether it rests on a table row of low confidence."""
        return self.row.confidence == "low"


def options(matrix: Matrix, name: str, platform: str, *, gpu: bool) -> tuple[Option, ...]:
    """Every build of a framework for a platform, in the order of the table.

    Args:
        matrix: the tables.
        name: torch, tensorflow or jax.
        platform: `linux_x86_64` or `linux_aarch64`.
        gpu: CUDA builds, else CPU builds.
    """
    make = {"torch": _torch, "tensorflow": _tensorflow, "jax": _jax}[name]
    key = f"planner.options.{name}.{platform}.{gpu}"
    return matrix.memo(key, lambda: tuple(make(matrix, platform, gpu)))


def _pythons(tags: tuple[str, ...] | None) -> tuple[str, ...]:
    """Versions of wheel tags; free-threaded builds are another interpreter."""
    found = (tag.removeprefix("cp3") for tag in tags or () if tag.startswith("cp3"))
    return tuple(f"3.{minor}" for minor in found if minor.isdigit())


def _major(cuda: str | None) -> str | None:
    release = Release.maybe(cuda)
    return str(release.major) if release is not None else None


# -- torch -----------------------------------------------------------------------------------------


def _torch(matrix: Matrix, platform: str, gpu: bool) -> Iterator[Option]:
    for row in matrix.torch_builds:
        if row.platform == platform and (row.cuda != CPU) == gpu:
            yield _torch_option(matrix, row)


def _torch_option(matrix: Matrix, row: TorchBuild) -> Option:
    cuda = None if row.cuda == CPU else row.cuda
    local = f"{row.version}+{row.variant}"
    pinned = row.version if row.index_default else local
    asks = _nvidia_asks(_major(cuda), row.cudnn, row.nccl)
    index = None if row.index_default else builds.index_url(matrix, row.variant)
    return Option(
        name="torch",
        version=row.version,
        label=f"torch {local}",
        cuda=cuda,
        pythons=_pythons(row.python),
        default=row.index_default,
        planned=PlannedFramework(
            name="torch",
            version=row.version,
            variant=row.variant,
            cuda=cuda,
            cudnn=row.cudnn,
            nccl=row.nccl,
            triton=row.triton,
        ),
        framework=Framework(
            name="torch",
            version=local,
            cuda=cuda,
            cpu_only=cuda is None,
            cudnn=row.cudnn,
            nccl=row.nccl,
            origin="index" if row.index_default else "framework-index",
            platform=row.platform,
        ),
        packages=(
            Package(
                name="torch",
                version=pinned,
                requires=asks,
                build=f"manylinux_{row.glibc.replace('.', '_')}" if row.glibc else None,
            ),
        ),
        pins=(Pin(name="torch", version=pinned, index=index),),
        row=row,
    )


def _nvidia_asks(major: str | None, cudnn: str | None, nccl: str | None) -> tuple[str, ...]:
    """What a build asks of NVIDIA's wheels; a bare version is an exact one."""
    if major is None or int(major) < 11:  # NVIDIA's wheels begin with CUDA 11
        return ()
    named = ((f"nvidia-cudnn-cu{major}", cudnn), (f"nvidia-nccl-cu{major}", nccl))
    return tuple(f"{name}{_bound(text)}" for name, text in named if text)


def _bound(text: str) -> str:
    return f"=={text}" if text[0].isdigit() else text


def companions(matrix: Matrix, option: Option, names: tuple[str, ...]) -> tuple[Pin, ...] | None:
    """Pins of torch's companions; None when no row says which belong to this torch.

    A companion comes from torch's index where it was released for that variant, else from the
    package index.
    """
    pair = query.companion(matrix, option.version)
    found = []
    for name in names:
        version = getattr(pair, name) if pair is not None else None
        if version is None or pair is None or pair.confidence == "low":
            return None
        pin = option.pins[0]
        tag = option.planned.variant
        if pin.index is None or not _in_variant(matrix, option, version, name):
            found.append(Pin(name=name, version=version))
        else:
            found.append(Pin(name=name, version=f"{version}+{tag}", index=pin.index))
    return tuple(found)


def _in_variant(matrix: Matrix, option: Option, version: str, name: str) -> bool:
    """Whether a companion was built for a variant: some torch of its own time had it.

    torchaudio no longer follows torch, so that its newest release may predate a variant.
    """
    release = Release.parse(version)
    times = {row.torch for row in matrix.companions if Release.parse(getattr(row, name)) == release}
    return any(
        row.version in times and row.variant == option.planned.variant
        for row in matrix.torch_builds
        if row.platform == option.framework.platform and row.confidence != "low"
    ) and (name != "torchaudio" or _own_time(matrix, option, release))


def _own_time(matrix: Matrix, option: Option, release: Release) -> bool:
    """Whether a torch of torchaudio's own minor release was built for the variant."""
    return any(
        Release.parse(row.version).series == release.series
        for row in matrix.torch_builds
        if row.platform == option.framework.platform and row.variant == option.planned.variant
    )


# -- tensorflow ------------------------------------------------------------------------------------


def _tensorflow(matrix: Matrix, platform: str, gpu: bool) -> Iterator[Option]:
    for row in matrix.tensorflow_releases:
        if platform in row.platforms:
            yield _tensorflow_option(matrix, row, platform, gpu=gpu)


def _tensorflow_option(
    matrix: Matrix, row: TensorflowRelease, platform: str, *, gpu: bool
) -> Option:
    extras = ("and-cuda",) if gpu and row.cuda_major else ()
    asks = tuple(
        f'{line}; extra == "and-cuda"'
        for line in _nvidia_asks(row.cuda_major, row.cudnn, row.nccl)
        if extras
    )
    if extras and row.runtime:
        asks += (
            f'nvidia-cuda-runtime-cu{row.cuda_major}{_bound(row.runtime)}; extra == "and-cuda"',
        )
    asks += tuple(f"{name}{text}" for name in ("keras", "numpy") if (text := getattr(row, name)))
    tested = next(iter(matrix.find(TensorflowTested, version=row.version)), None)
    runtime = Release.maybe(_lowest(row.runtime))
    cuda = runtime.series if runtime is not None else tested.cuda if tested is not None else None
    cuda = cuda if gpu else None
    return Option(
        name="tensorflow",
        version=row.version,
        label=f"tensorflow {row.version}",
        cuda=cuda,
        pythons=_pythons(row.python),
        default=True,
        planned=PlannedFramework(name="tensorflow", version=row.version, cuda=cuda),
        framework=Framework(
            name="tensorflow",
            version=row.version,
            cuda=cuda,
            cpu_only=not gpu,
            origin="index",
            platform=platform,
        ),
        packages=(Package(name="tensorflow", version=row.version, requires=asks),),
        pins=(Pin(name="tensorflow", version=row.version, extras=extras),),
        row=row,
    )


def _lowest(specifier: str | None) -> str | None:
    """The version that a specifier starts at; a bare version is that version."""
    parsed = parse(f"x{_bound(specifier)}") if specifier else None
    if parsed is None:
        return None
    return next((text for sign, text in parsed[0].bounds if sign in {"==", ">=", "~="}), None)


# -- jax -------------------------------------------------------------------------------------------


def _jax(matrix: Matrix, platform: str, gpu: bool) -> Iterator[Option]:
    plugins = [row for row in matrix.jax_plugins if platform in row.platforms]
    for row in matrix.jax_releases:
        if _WITHDRAWN in (row.note or ""):
            continue
        bounds = parse(f"jaxlib{row.jaxlib or f'=={row.version}'}")
        majors = dict.fromkeys(plugin.cuda_major for plugin in plugins)
        for major in majors:
            fitting = [
                plugin
                for plugin in plugins
                if plugin.cuda_major == major
                and _WITHDRAWN not in (plugin.note or "")
                and bounds is not None
                and _exactly(bounds[0], plugin.version)
            ]
            if fitting:
                plugin = max(fitting, key=lambda each: Release.parse(each.version))
                yield _jax_option(row, plugin, platform, gpu=gpu)
                if not gpu:
                    break


def _exactly(asked: Requirement, version: str) -> bool:
    return asked.allows(version) is True


def _jax_option(row: JaxRelease, plugin: JaxPlugin, platform: str, *, gpu: bool) -> Option:
    major = plugin.cuda_major
    lowest = (plugin.min_capability or "").replace(".", "")
    own = f"jax-cuda{major}-plugin"
    jaxlib = Package(name="jaxlib", version=plugin.version)
    packages: tuple[Package, ...] = (
        Package(
            name="jax",
            version=row.version,
            requires=(f"jaxlib{row.jaxlib}",) if row.jaxlib else (),
        ),
        jaxlib,
    )
    pins: tuple[Pin, ...] = (Pin(name="jaxlib", version=plugin.version),)
    if gpu:
        asks = tuple(f'{line}; extra == "with-cuda"' for line in plugin.requires)
        packages += (Package(name=own, version=plugin.version, requires=asks),)
        pins += (Pin(name=own, version=plugin.version, extras=("with-cuda",)),)
    pythons = _pythons(plugin.python)
    python = parse(f"python{row.requires_python}")
    if python is not None:
        pythons = tuple(each for each in pythons if python[0].allows(each) is not False)
    return Option(
        name="jax",
        version=row.version,
        label=f"jax {row.version}" + (f" for CUDA {major}" if gpu else ""),
        cuda=major if gpu else None,
        pythons=pythons,
        default=major == row.cuda_extra,
        planned=PlannedFramework(name="jax", version=row.version, cuda=major if gpu else None),
        framework=Framework(
            name="jax",
            version=row.version,
            cuda=major if gpu else None,
            cpu_only=not gpu,
            # Its kernels are compiled on the spot for every GPU from a documented one on, which is
            # what code for a virtual architecture means to the rules.
            arches=(f"compute_{lowest}",) if gpu and lowest else None,
            origin="index",
            platform=platform,
        ),
        packages=packages,
        pins=(Pin(name="jax", version=row.version, extras=(f"cuda{major}",) if gpu else ()), *pins),
        row=plugin if gpu else row,
    )
