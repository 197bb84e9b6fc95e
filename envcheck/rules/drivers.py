"""Which driver a machine should get, and the commands that install it there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.base import model
from envcheck.model.finding import Citation, Fix
from envcheck.rules import facts, fixes
from envcheck.rules.base import cite
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Capability, DriverBranch, GpuProduct, PciGpu
    from envcheck.model.host import PciDevice
    from envcheck.model.snapshot import Snapshot

KEPT_KINDS = frozenset({"lts", "production"})


@model
class Choice:
    """A driver to install.

    Attributes:
        branch: `580`; None when the tables name none that fits.
        open_modules: flavour of the kernel modules, None when either does.
        text: in words.
        sources: rows that it rests on.
    """

    branch: str | None
    open_modules: bool | None
    text: str
    sources: tuple[Citation, ...] = ()


def capability_of(matrix: Matrix, device: PciDevice) -> Capability | None:
    """What the tables know of a GPU on the bus, by its id or, where none is told, by its name."""
    row: PciGpu | GpuProduct | None = None
    if device.device:
        row = query.pci_gpu(matrix, device.device)
    elif device.name:
        row = query.product(matrix, device.name)
    return query.capability(matrix, row.cc) if row is not None else None


def device_label(matrix: Matrix, device: PciDevice) -> str:
    """A GPU on the bus by address and name, the tables' name when the bus gave none."""
    if device.name is None and device.device:
        row = query.pci_gpu(matrix, device.device)
        if row is not None:
            return f"{device.address} ({row.name})"
    return facts.pci_label(device)


def capabilities(snapshot: Snapshot, matrix: Matrix) -> tuple[Capability, ...]:
    """What the tables know of the machine's GPUs, on the bus or reported by the driver."""
    found = [capability_of(matrix, each) for each in facts.usable_pci_gpus(snapshot)]
    found += [query.capability(matrix, each.arch) for each in facts.gpus(snapshot) if each.arch]
    return tuple(dict.fromkeys(row for row in found if row is not None))


def ended(row: DriverBranch, taken_at: str | None) -> bool:
    """Whether a branch's last month with fixes lies before a day (`2026-11-30T...`)."""
    if row.eol is not None and taken_at is not None:
        return row.eol[:7] < taken_at[:7]
    return bool(row.ended)


def open_modules(snapshot: Snapshot) -> bool | None:
    """Whether the installed kernel modules are the open ones, by the module or by its package."""
    driver = snapshot.host.driver
    if driver.open_module is not None and facts.driver_loaded(snapshot):
        return driver.open_module
    names = [each.name for each in driver.packages or () if each.state == "installed"]
    if any(re.search(r"nvidia.*\bopen\b", name) for name in names):
        return True
    if any(
        re.search(
            r"^(nvidia-driver-\d+(-server)?|nvidia-dkms-\d+(-server)?|cuda-drivers.*|kmod-nvidia-latest-dkms)$",
            n,
        )
        for n in names
    ):
        return False
    return driver.open_module


def choose(
    snapshot: Snapshot,
    matrix: Matrix,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
) -> Choice:
    """The branch to install: kept, fit for every GPU here, new enough for the CUDA builds.

    Prefers the newest production or long-term branch that still gets fixes on the day of the
    snapshot. When the GPUs allow only branches that have ended, the last of those. The GPUs come
    before the CUDA builds, since those can be replaced.

    Args:
        snapshot: the machine.
        matrix: the tables.
        at_least: first branch wanted, besides what the CUDA builds need.
        at_most: last branch allowed, besides what the tables say of the GPUs.
    """
    gpus = capabilities(snapshot, matrix)
    last = [int(row.last_driver_branch) for row in gpus if row.last_driver_branch]
    last += [at_most] if at_most is not None else []
    first = [Release.parse(row.min_driver).major for row in gpus if row.min_driver]
    low, high = max(first, default=0), min(last, default=10**6)
    fits = [row for row in matrix.branches if low <= int(row.branch) <= high]
    built = (Release.maybe(each.cuda) for each in facts.cuda_frameworks(snapshot))
    majors = {each.major for each in built if each is not None}
    answers = [query.minor_floor(matrix, str(major)) for major in sorted(majors)]
    floors = [each for each in answers if each is not None]
    floor = max((Release.parse(each.driver_linux).major for each in floors), default=0)
    floor = max(floor, at_least or 0)
    wanted = [row for row in fits if int(row.branch) >= floor] or fits
    lasting = [row for row in wanted if row.kind in KEPT_KINDS]
    kept = [row for row in lasting if not ended(row, snapshot.taken_at)]
    # A branch that the tables are not sure of is not recommended while there is another.
    sure = [row for row in kept if row.confidence == "high"]
    row = max(sure or kept or lasting or wanted, key=_number, default=None)
    if row is None:
        limit = f"branch {high}, the last one for this GPU" if last else "an NVIDIA driver"
        return Choice(
            branch=str(high) if last else None,
            open_modules=_flavour(gpus, None),
            text=limit,
            sources=cite(matrix, *gpus),
        )
    flavour = _flavour(gpus, row)
    return Choice(
        branch=row.branch,
        open_modules=flavour,
        text=_words(row.branch, flavour),
        sources=cite(matrix, *gpus, row, *floors),
    )


def same_branch(snapshot: Snapshot, matrix: Matrix, *, open_modules: bool) -> Choice:
    """The installed branch in a given flavour of its modules."""
    driver = facts.driver_version(snapshot)
    row = query.branch(matrix, driver.text) if driver else None
    branch = str(driver.major) if driver else None
    return Choice(
        branch=branch,
        open_modules=open_modules,
        text=_words(branch, open_modules),
        sources=cite(matrix, row),
    )


def _number(row: DriverBranch) -> int:
    return int(row.branch)


def _flavour(gpus: tuple[Capability, ...], branch: DriverBranch | None) -> bool | None:
    """Open, proprietary, or either, for GPUs under a branch."""
    kinds = {row.module for row in gpus}
    if "proprietary" in kinds:
        return False
    if "open" in kinds:
        return True
    if branch is None or branch.open_module is None:
        return None
    return branch.open_module in {"default", "only"}


def _words(branch: str | None, flavour: bool | None) -> str:
    modules: dict[bool | None, str] = {
        True: " with the open kernel modules",
        False: " with the proprietary kernel modules",
    }
    return f"an NVIDIA driver{f' of branch {branch}' if branch else ''}{modules.get(flavour, '')}"


def install_driver(snapshot: Snapshot, matrix: Matrix, choice: Choice) -> tuple[Fix, ...]:
    """Ways to install a driver here: the distribution's own packages, then NVIDIA's repository.

    In a container, under WSL and on Jetson the driver belongs to something else, which the fix
    names.
    """
    elsewhere = _elsewhere(snapshot, choice)
    if elsewhere is not None:
        return (elsewhere,)
    if fixes.family(snapshot.host.os) == "arch":
        return (_arch_linux(choice),)
    purpose = "driver-proprietary" if choice.open_modules is False else "driver-open"
    roads: list[Fix] = []
    own = fixes.package(snapshot, matrix, purpose, choice.branch, origin="distribution")
    # A name without the branch in it may install any branch, so it answers nothing.
    if own is not None and choice.branch is not None and choice.branch in own:
        roads.append(
            Fix(
                title=f"Install {choice.text} from the distribution's archive, then restart",
                commands=(
                    *fixes.refresh(snapshot),
                    *fixes.install(snapshot, own),
                    "sudo reboot",
                ),
            )
        )
    from_nvidia = fixes.package(snapshot, matrix, purpose, choice.branch, origin="nvidia")
    repository = fixes.nvidia_repository(snapshot, matrix)
    if from_nvidia is not None and repository:
        roads.append(
            Fix(
                title=f"{'Or install' if roads else 'Install'} {choice.text} from NVIDIA's package "
                "repository, then restart",
                commands=(
                    *repository,
                    *(
                        fixes.install(snapshot, fixes.headers(snapshot, matrix))
                        if not roads
                        else ()
                    ),
                    *_install_line(snapshot, from_nvidia, choice.branch),
                    "sudo reboot",
                ),
            )
        )
    if not roads:
        return (
            Fix(
                title=f"Install {choice.text} with the packages of this distribution, or as "
                "NVIDIA's driver installation guide says, then restart",
                commands=("sudo reboot",),
            ),
        )
    return tuple(roads)


def _elsewhere(snapshot: Snapshot, choice: Choice) -> Fix | None:
    if facts.in_container(snapshot):
        return Fix(title=f"On the host of this container, install {choice.text} and restart it")
    if facts.in_wsl(snapshot):
        return Fix(
            title="Install a newer NVIDIA driver on Windows (none inside WSL), then restart WSL "
            "from PowerShell",
            commands=("wsl --shutdown",),
        )
    if facts.on_jetson(snapshot):
        return Fix(title="Update the board to a newer JetPack, which brings its driver along")
    return None


def _arch_linux(choice: Choice) -> Fix:
    """Arch carries one branch at a time; older ones live in the user repository."""
    module = "nvidia-dkms" if choice.open_modules is False else "nvidia-open-dkms"
    return Fix(
        title=f"Install {choice.text} and restart (Arch Linux packages its newest branch only; "
        "older ones are in the user repository)",
        commands=(f"sudo pacman -Syu --needed linux-headers {module} nvidia-utils", "sudo reboot"),
    )


def _install_line(snapshot: Snapshot, package: str, branch: str | None) -> tuple[str, ...]:
    """The install command for a package, or for what the table writes as a dnf command."""
    if package.startswith("dnf "):
        return ("sudo dnf module reset -y nvidia-driver", f"sudo {package} -y")
    if branch is not None and branch not in package and fixes.family(snapshot.host.os) != "debian":
        return fixes.install(snapshot, f'"{package}-{branch}*"')
    return fixes.install(snapshot, package)


def install_libcuda(snapshot: Snapshot, matrix: Matrix) -> tuple[Fix, ...]:
    """Ways to install the package that holds libcuda, of the loaded release."""
    driver = facts.driver_version(snapshot)
    branch = str(driver.major) if driver else None
    where = fixes.family(snapshot.host.os)
    name = fixes.package(snapshot, matrix, "libcuda", branch)
    if name is not None and any(
        each.name.endswith("-server") for each in snapshot.host.driver.packages or ()
    ):
        name += "-server"
    if name is None:
        name = {
            "debian": "libcuda1",
            "rhel": "nvidia-driver-cuda",
            "amazon": "nvidia-driver-cuda",
            "arch": "nvidia-utils",
        }.get(where)
    return (
        Fix(
            title="Install the driver's user-space libraries"
            + (f", of release {driver} like the module" if driver else ""),
            commands=fixes.install(snapshot, name) if name else (),
        ),
    )


def install_fabric_manager(snapshot: Snapshot, matrix: Matrix) -> tuple[str, ...]:
    """Commands that install the fabric manager of exactly the driver's release."""
    driver = facts.driver_version(snapshot)
    if driver is None:
        return ()
    name = fixes.package(snapshot, matrix, "fabric-manager", str(driver.major))
    if name is None:
        return ()
    if fixes.family(snapshot.host.os) == "debian":
        return fixes.install(snapshot, f'"{name}={driver}*"')
    return fixes.install(snapshot, f"{name}-{driver}")
