"""Operating system, virtual machine, WSL, Jetson and container, read from files."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

from envcheck.model.host import Container, Os
from envcheck.probe.redact import KERNEL_COMMAND_LINE, telling_words
from envcheck.probe.source import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.probe.quiet import Quiet
    from envcheck.probe.source import Result

UNAME = Command(name="uname", argv=("uname", "-m"), timeout=3.0)
GETCONF = Command(name="getconf-glibc", argv=("getconf", "GNU_LIBC_VERSION"), timeout=3.0)

_DEVICE_TREE = "/proc/device-tree/compatible"
RELEASE_FILES = ("/etc/os-release", "/usr/lib/os-release", "/etc/debian_version")


def read_os(source: Quiet, results: Mapping[str, Result]) -> Os:
    """Facts of os-release, the kernel and the C library.

    Args:
        source: the machine.
        results: of `UNAME` and `GETCONF`.
    """
    kernel = re.match(r"Linux version (\S+)", source.read("/proc/version") or "")
    glibc = re.match(r"glibc (\S+)", _said(results, GETCONF))
    return dataclasses.replace(
        _distribution(source),
        kernel=kernel.group(1) if kernel else None,
        machine=_said(results, UNAME) or None,
        glibc=glibc.group(1) if glibc else None,
    )


def _distribution(source: Quiet) -> Os:
    import distro

    # Read through the source too, so that a recording holds what `distro` is about to look at.
    for path in RELEASE_FILES:
        source.read(path)
    release = distro.LinuxDistribution(
        include_lsb=False, include_uname=False, include_oslevel=False, root_dir=source.root
    )
    try:
        return Os(
            id=release.id() or None,
            version=release.version() or None,
            name=release.os_release_attr("pretty_name") or None,
            codename=release.codename() or None,
            like=tuple(release.like().split()),
        )
    except (OSError, ValueError):
        # A release file may not be read, or is not text.
        return Os()


def _said(results: Mapping[str, Result], command: Command) -> str:
    result = results.get(command.name)
    return result.stdout.strip() if result is not None and result.code == 0 else ""


def read_wsl(source: Quiet) -> int:
    """0 for no WSL, else its version."""
    match = re.match(r"Linux version (\S+)", source.read("/proc/version") or "")
    release = match.group(1) if match else ""
    if "microsoft" not in release.lower():
        return 0
    # WSL 1 has no Linux kernel of its own and answers `4.4.0-19041-Microsoft`; kernels of WSL 2 end
    # in `microsoft-standard`, later in `microsoft-standard-WSL2`.
    return 1 if release.endswith("-Microsoft") else 2


_FIRMWARE = "/sys/class/dmi/id"
_HYPERVISORS = (
    ("qemu", "kvm"),
    ("kvm", "kvm"),
    ("amazon ec2", "kvm"),
    ("google compute engine", "kvm"),
    ("google", "kvm"),
    ("openstack", "kvm"),
    ("digitalocean", "kvm"),
    ("hetzner vserver", "kvm"),
    ("alibaba cloud", "kvm"),
    ("vmware", "vmware"),
    ("virtualbox", "virtualbox"),
    ("innotek", "virtualbox"),
    ("microsoft corporation virtual machine", "hyper-v"),
    ("xen", "xen"),
    ("parallels", "parallels"),
    ("bhyve", "bhyve"),
)
"""What firmware calls a virtual machine, in lower case, and whose it is."""


def read_virtual(source: Quiet) -> str | None:
    """The hypervisor below, by what the firmware or the kernel says; None for none or not known."""
    said = source.read("/sys/hypervisor/type")
    if said and said.strip():
        return said.strip()
    names = (source.read(f"{_FIRMWARE}/{name}") or "" for name in ("sys_vendor", "product_name"))
    text = " ".join(name.strip() for name in names).lower()
    if ".metal" in text:  # a whole machine of a cloud, under the vendor's name
        return None
    return next((name for words, name in _HYPERVISORS if words in text), None)


def read_command_line(source: Quiet) -> str | None:
    """The words of the kernel's command line that concern PCI, IOMMU and display drivers.

    The others name disks and hosts, and do not matter here. Empty when there is none.
    """
    text = source.read(KERNEL_COMMAND_LINE)
    return None if text is None else telling_words(text)


def read_jetson(source: Quiet, machine: str | None = None) -> str | None:
    """L4T release such as `36.4.0`, `unknown` in a container on a Jetson, None elsewhere."""
    text = source.read("/etc/nv_tegra_release") or ""
    match = re.search(r"R(\d+) \(release\), REVISION: ([\d.]+)", text)
    if match is not None:
        return f"{match.group(1)}.{match.group(2)}"
    # Only the host's file system has that file; the device tree is the same in its containers.
    if machine == "aarch64" and "nvidia,tegra" in (source.read(_DEVICE_TREE) or ""):
        return "unknown"
    return None


def read_container(source: Quiet) -> Container:
    """Which container this is, and what NVIDIA's runtime was told."""
    variables = source.variables
    return Container(
        kind=_container_kind(source),
        visible_devices=variables.get("NVIDIA_VISIBLE_DEVICES"),
        driver_capabilities=variables.get("NVIDIA_DRIVER_CAPABILITIES"),
        require_cuda=variables.get("NVIDIA_REQUIRE_CUDA"),
    )


def _sees_kernel_threads(source: Quiet) -> bool:
    """Whether process 2 is the kernel's own: then processes here live in no container's namespace.

    Virtual machines that boot a container image keep the marks that its engine left in the files.
    """
    return (source.read("/proc/2/comm") or "").strip() == "kthreadd"


def _container_kind(source: Quiet) -> str:
    variables = source.variables
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    if "APPTAINER_CONTAINER" in variables or "SINGULARITY_CONTAINER" in variables:
        return "apptainer"
    if source.stat("/run/.containerenv") is not None:
        return "podman"
    machine = _sees_kernel_threads(source)
    if source.stat("/.dockerenv") is not None and not machine:
        return "docker"
    told = (source.read("/run/systemd/container") or "").strip()
    if told and not machine:
        return told if told in {"docker", "podman", "lxc", "systemd-nspawn"} else "unknown"
    groups = source.read("/proc/1/cgroup") or ""
    for word, kind in (
        ("kubepods", "kubernetes"),
        ("docker", "docker"),
        ("libpod", "podman"),
        ("containerd", "containerd"),
        ("/lxc", "lxc"),
    ):
        if word in groups:
            return kind
    return "none"
