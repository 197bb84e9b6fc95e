"""Commands for this machine: packages, kernel modules, restarts.

Package names follow the distribution, the branch and the flavour of the modules; repository facts
come from the tables. A function that knows no command for a distribution returns none: the title
of the fix then has to say it all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.matrix import query
from envcheck.model.finding import Fix
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Distro
    from envcheck.model.host import Os
    from envcheck.model.snapshot import Snapshot

_FAMILIES = (
    ("arch", {"arch", "manjaro", "endeavouros"}),
    ("amazon", {"amzn"}),
    ("suse", {"suse", "sles", "sle_hpc", "opensuse", "opensuse-leap", "opensuse-tumbleweed"}),
    ("debian", {"debian", "ubuntu"}),
    ("azure", {"azurelinux", "mariner"}),
    ("rhel", {"rhel", "fedora", "centos", "rocky", "almalinux", "ol"}),
)

_VERBS = {
    "debian": ("sudo apt-get install -y", "sudo apt-get purge -y"),
    "rhel": ("sudo dnf install -y", "sudo dnf remove -y"),
    "amazon": ("sudo dnf install -y", "sudo dnf remove -y"),
    "azure": ("sudo tdnf install -y", "sudo tdnf remove -y"),
    "suse": ("sudo zypper install -y", "sudo zypper remove -y"),
    "arch": ("sudo pacman -S --needed", "sudo pacman -Rs"),
}

_HEADERS = {"arch": "linux-headers"}
"""Kernel headers of families that the tables do not hold."""

_INITRAMFS = {
    "debian": "sudo update-initramfs -u",
    "arch": "sudo mkinitcpio -P",
}


def family(os: Os) -> str:
    """Family of a distribution: debian, rhel, amazon, azure, suse, arch, other."""
    for names in ((os.id,), os.like):
        for result, members in _FAMILIES:
            if any(name in members for name in names):
                return result
    return "other"


def is_ubuntu(os: Os) -> bool:
    """Ubuntu or a distribution made from it, which share its driver packages."""
    return os.id == "ubuntu" or "ubuntu" in os.like


def install(snapshot: Snapshot, *packages: str) -> tuple[str, ...]:
    """The command that installs packages of the distribution; none when it is not known."""
    verbs = _VERBS.get(family(snapshot.host.os))
    return (f"{verbs[0]} {' '.join(packages)}",) if verbs and packages else ()


def remove(snapshot: Snapshot, *packages: str) -> tuple[str, ...]:
    """The command that removes packages of the distribution; none when it is not known."""
    verbs = _VERBS.get(family(snapshot.host.os))
    return (f"{verbs[1]} {' '.join(packages)}",) if verbs and packages else ()


def refresh(snapshot: Snapshot) -> tuple[str, ...]:
    """The command that reads the package lists anew, where installing does not do so."""
    return ("sudo apt-get update",) if family(snapshot.host.os) == "debian" else ()


def package(
    snapshot: Snapshot,
    matrix: Matrix,
    purpose: str,
    branch: str | None = None,
    *,
    origin: str | None = None,
) -> str | None:
    """Name of the package that serves a purpose on this distribution, as the tables say.

    A release that the tables do not hold is served like the newest one of its distribution, and a
    distribution that they do not hold like the one that it was made from.

    Args:
        snapshot: says which distribution.
        matrix: the tables.
        purpose: such as `driver-open`.
        branch: driver branch, for names that carry it.
        origin: `distribution` or `nvidia`; the distribution's own archive first when absent.
    """
    row = distro_row(snapshot, matrix) or _related(snapshot, matrix)
    if row is None:
        return None
    return query.distro_package(
        matrix,
        row,
        purpose,
        branch,
        origin=origin,
        kernel="$(uname -r)",
        repo=row.repo or "",
        arch={"x86_64": "x86_64", "aarch64": "sbsa"}.get(snapshot.host.os.machine or "", ""),
    )


def distro_row(snapshot: Snapshot, matrix: Matrix) -> Distro | None:
    """The table's row of exactly this distribution release."""
    os = snapshot.host.os
    return query.distro(matrix, os.id, os.version) if os.id and os.version else None


def _related(snapshot: Snapshot, matrix: Matrix) -> Distro | None:
    os = snapshot.host.os
    for name in (os.id, *os.like):
        rows = [row for row in matrix.distros if row.id == name]
        if rows:
            return rows[-1]
    return None


def headers(snapshot: Snapshot, matrix: Matrix) -> str:
    """Package of the running kernel's headers; empty when not known."""
    return package(snapshot, matrix, "headers") or _HEADERS.get(family(snapshot.host.os), "")


def nvidia_repository(snapshot: Snapshot, matrix: Matrix) -> tuple[str, ...]:
    """Commands that add NVIDIA's package repository; none for a release that it does not serve."""
    row = distro_row(snapshot, matrix)
    address = package(snapshot, matrix, "repository", origin="nvidia")
    known = snapshot.host.os.machine in {"x86_64", "aarch64"}
    if row is None or row.repo is None or address is None or not known:
        return ()
    file = address.rpartition("/")[2]
    where = family(snapshot.host.os)
    if where == "debian":
        return (f"wget {address}", f"sudo dpkg -i {file}", "sudo apt-get update")
    if where == "suse":
        return (
            f"sudo zypper addrepo {address}",
            "sudo zypper --gpg-auto-import-keys refresh",
        )
    return (f"curl -fsSL {address} | sudo tee /etc/yum.repos.d/{file}",)


def toolkit_repository(snapshot: Snapshot, matrix: Matrix) -> tuple[str, ...]:
    """Commands that add the repository of the NVIDIA Container Toolkit.

    It is one for all releases, so a distribution that the tables hold under another release will
    do.
    """
    address = package(snapshot, matrix, "container-toolkit-repository", origin="nvidia")
    if address is None:
        return ()
    file = address.rpartition("/")[2]
    where = family(snapshot.host.os)
    if where == "debian":
        key = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
        root = address.partition("/stable/")[0]
        return (
            f"curl -fsSL {root}/gpgkey | sudo gpg --dearmor -o {key}",
            f"curl -fsSL {address} | sed 's#deb https://#deb [signed-by={key}] https://#' | "
            f"sudo tee /etc/apt/sources.list.d/{file}",
            "sudo apt-get update",
        )
    if where == "suse":
        return (f"sudo zypper addrepo {address}",)
    return (f"curl -fsSL {address} | sudo tee /etc/yum.repos.d/{file}",)


def reboot(title: str = "Restart the machine") -> Fix:
    """A restart."""
    return Fix(title=title, commands=("sudo reboot",))


def reload_modules() -> Fix:
    """Unload and load the driver's modules without a restart."""
    return Fix(
        title="Reload the kernel modules, without a restart (stop what uses the GPU first: "
        "the display server, containers, daemons)",
        commands=(
            "sudo lsof /dev/nvidia*",
            "sudo systemctl stop nvidia-persistenced",
            "sudo modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia",
            "sudo modprobe nvidia",
            "nvidia-smi",
        ),
    )


def load_module() -> Fix:
    """Load the module and see the kernel's reason if it refuses."""
    return Fix(
        title="Load the module; when the kernel refuses, its log says why",
        commands=("sudo modprobe nvidia", "sudo dmesg | tail -n 30"),
    )


def rebuild_module(snapshot: Snapshot, matrix: Matrix) -> Fix:
    """Build the module for the running kernel: from DKMS, or the distribution's ready-made one."""
    ready = ready_made(snapshot)
    if ready is not None:
        return Fix(
            title="Install the driver's module for the running kernel, then load it",
            commands=(*install(snapshot, ready), "sudo modprobe nvidia"),
        )
    name = headers(snapshot, matrix)
    return Fix(
        title="Install the headers of the running kernel, build the module for it, load it",
        commands=(
            *(install(snapshot, name) if name else ()),
            "sudo dkms autoinstall",
            "sudo modprobe nvidia",
        ),
    )


def ready_made(snapshot: Snapshot) -> str | None:
    """Ubuntu's package of ready-made, signed modules for the running kernel, when it uses those."""
    for each in snapshot.host.driver.packages or ():
        match = re.match(r"linux-modules-nvidia-(\d+(?:-server)?(?:-open)?)-", each.name)
        if match is not None:
            return f"linux-modules-nvidia-{match.group(1)}-$(uname -r)"
    return None


def module_built(snapshot: Snapshot) -> bool | None:
    """Whether a module for the running kernel lies on disk; None when that could not be read."""
    driver = snapshot.host.driver
    if driver.module_file:
        return True
    if any(
        each.kernel == snapshot.host.os.kernel and _built(each.state) for each in driver.dkms or ()
    ):
        return True
    looked = driver.dkms is not None and snapshot.gap("host.driver.module_file") is None
    return False if looked else None


def module_on_disk(snapshot: Snapshot) -> Release | None:
    """Release of the module that DKMS built for the running kernel."""
    for each in snapshot.host.driver.dkms or ():
        if each.kernel == snapshot.host.os.kernel and _built(each.state):
            return Release.maybe(each.version)
    return None


def _built(state: str) -> bool:
    return state.startswith("installed")


def blacklist(snapshot: Snapshot, module: str) -> tuple[str, ...]:
    """Commands that keep a kernel module from loading, also in the initial RAM disk."""
    return (
        f"printf 'blacklist {module}\\noptions {module} modeset=0\\n' | "
        f"sudo tee /etc/modprobe.d/blacklist-{module}.conf",
        _INITRAMFS.get(family(snapshot.host.os), "sudo dracut --force"),
        "sudo reboot",
    )


def signing_key(snapshot: Snapshot) -> str:
    """Where the public key lies with which modules are signed on this machine."""
    names = {each.name for each in snapshot.host.driver.packages or ()}
    if any(name.startswith("akmod") for name in names):
        return "/etc/pki/akmods/certs/public_key.der"
    if is_ubuntu(snapshot.host.os):
        return "/var/lib/shim-signed/mok/MOK.der"
    return "/var/lib/dkms/mok.pub"


def signed_modules(snapshot: Snapshot) -> tuple[Fix, ...]:
    """Ubuntu's signed modules in place of those built here; none elsewhere."""
    if not is_ubuntu(snapshot.host.os):
        return ()
    for each in snapshot.host.driver.packages or ():
        match = re.fullmatch(r"nvidia-driver-(\d+(?:-server)?(?:-open)?)", each.name)
        if match is not None:
            return (
                Fix(
                    title="Or use the modules that Ubuntu built and signed",
                    commands=(
                        *install(snapshot, f"linux-modules-nvidia-{match.group(1)}-$(uname -r)"),
                        "sudo modprobe nvidia",
                    ),
                ),
            )
    return ()


def reinstall_driver(snapshot: Snapshot) -> tuple[str, ...]:
    """Commands that install the driver's packages again in one release; none when not known."""
    names = tuple(
        each.name for each in snapshot.host.driver.packages or () if each.state == "installed"
    )
    where = family(snapshot.host.os)
    if not names:
        return ()
    words = " ".join(names)
    return {
        "debian": ("sudo apt-get update", f"sudo apt-get install --reinstall -y {words}"),
        "rhel": (f"sudo dnf distro-sync -y {words}",),
        "amazon": (f"sudo dnf distro-sync -y {words}",),
        "azure": (f"sudo tdnf reinstall -y {words}",),
        "suse": (f"sudo zypper install -y --force {words}",),
        "arch": ("sudo pacman -Syu",),
    }.get(where, ())
