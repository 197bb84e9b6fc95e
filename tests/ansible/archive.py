"""A signed apt archive of small packages that carry NVIDIA's names and versions.

The dependencies are made up, in the manner of NVIDIA's: a metapackage whose parts ask for "at
least" its version, so that only a role that moves the whole set gets back to an older one.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

from envcheck.model.base import model

OLD, NEW, BROKEN = "580.65.06", "580.95.05", "580.105.08"
"""Releases of the driver: the last one's kernel modules fail while they are set up."""
TOOLKIT_OLD, TOOLKIT_NEW = "1.17.8", "1.18.0"

DRIVER_SET = (
    "libcuda1",
    "libnvidia-ml1",
    "libnvidia-ptxjitcompiler1",
    "nvidia-driver-cuda",
    "nvidia-kernel-open-dkms",
    "nvidia-open-580",
    "nvidia-persistenced",
)
"""What the driver is made of, without the fabric manager."""


@model
class Package:
    """A package to make.

    Attributes:
        name: of the package.
        version: with revision.
        depends: as dpkg writes it.
        conflicts: as dpkg writes it.
        postinst: script that sets it up; the empty text means none.
        files: text by path; a path that ends in `*` is a program.
    """

    name: str
    version: str
    depends: str = ""
    conflicts: str = ""
    postinst: str = ""
    files: tuple[tuple[str, str], ...] = ()


_CTK = """\
#!/bin/sh
# Does what the tests look at, in the place of the real program.
set -eu
echo "$*" >> /var/log/nvidia-ctk.log
case "$1 $2" in
  "runtime configure")
    for word in "$@"; do case $word in --config=*) file=${word#--config=} ;; esac; done
    mkdir -p "$(dirname "$file")"
    echo '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}' > "$file" ;;
  "cdi generate")
    for word in "$@"; do case $word in --output=*) file=${word#--output=} ;; esac; done
    release=$(cat /srv/sys/module/nvidia/version)
    echo "containerEdits: {mounts: [{hostPath: /usr/lib/libcuda.so.$release}]}" > "$file" ;;
esac
"""


def _unit(name: str) -> tuple[str, str]:
    return (
        f"usr/lib/systemd/system/{name}.service",
        f"[Unit]\nDescription={name}\n[Service]\nExecStart=/usr/bin/sleep infinity\n"
        "[Install]\nWantedBy=multi-user.target\n",
    )


def packages() -> list[Package]:
    """Everything that the archive has."""
    kernel = platform.release()
    made = [
        Package(name=f"linux-headers-{kernel}", version="1.0-1"),
        Package(name="nvlsm", version="2025.06.11-1"),
        Package(name="nvidia-settings", version=f"{NEW}-1"),
        Package(name="cuda-toolkit-13-0", version="13.0.2-1"),
        Package(name="nsight-systems-cli", version="2025.5.1-1"),
        Package(
            name="datacenter-gpu-manager-4-cuda13",
            version="1:4.4.1-1",
            files=(_unit("nvidia-dcgm"),),
        ),
    ]
    for release in (OLD, NEW, BROKEN):
        made += _driver(f"{release}-1", broken=release == BROKEN)
    for release in (TOOLKIT_OLD, TOOLKIT_NEW):
        made += _toolkit(f"{release}-1")
    return made


def _driver(version: str, *, broken: bool) -> list[Package]:
    at_least = f"(>= {version})"
    return [
        Package(
            name="nvidia-open-580",
            version=version,
            depends=f"nvidia-kernel-open-dkms {at_least}, nvidia-driver-cuda {at_least}",
        ),
        Package(
            name="cuda-drivers-580",
            version=version,
            depends=f"nvidia-kernel-dkms {at_least}, nvidia-driver-cuda {at_least}",
        ),
        Package(
            name="nvidia-kernel-open-dkms",
            version=version,
            conflicts="nvidia-kernel-dkms",
            postinst='echo "Error! Bad return status for module build on kernel" >&2\nexit 10'
            if broken
            else "",
        ),
        Package(name="nvidia-kernel-dkms", version=version, conflicts="nvidia-kernel-open-dkms"),
        Package(
            name="nvidia-driver-cuda",
            version=version,
            depends=f"libcuda1 {at_least}, libnvidia-ml1 {at_least},"
            f" nvidia-persistenced {at_least}",
        ),
        Package(
            name="libcuda1", version=version, depends=f"libnvidia-ptxjitcompiler1 (= {version})"
        ),
        Package(name="libnvidia-ptxjitcompiler1", version=version),
        Package(name="libnvidia-ml1", version=version),
        Package(name="nvidia-persistenced", version=version, files=(_unit("nvidia-persistenced"),)),
        Package(
            name="nvidia-fabricmanager-580",
            version=version,
            files=(_unit("nvidia-fabricmanager"),),
        ),
    ]


def _toolkit(version: str) -> list[Package]:
    return [
        Package(name="libnvidia-container1", version=version),
        Package(
            name="libnvidia-container-tools",
            version=version,
            depends=f"libnvidia-container1 (>= {version})",
        ),
        Package(
            name="nvidia-container-toolkit-base",
            version=version,
            files=(("usr/bin/nvidia-ctk*", _CTK),),
        ),
        Package(
            name="nvidia-container-toolkit",
            version=version,
            depends=f"libnvidia-container-tools (>= {version}),"
            f" nvidia-container-toolkit-base (= {version})",
        ),
    ]


def make_archive(folder: Path) -> None:
    """Write the archive: packages, `Packages`, a signed `InRelease`, and `key.gpg`."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = [_make(each, folder) for each in packages()]
    listing = "\n".join(entries).encode()
    (folder / "Packages").write_bytes(listing)
    (folder / "Packages.gz").write_bytes(gzip.compress(listing, mtime=0))
    sums = "\n".join(
        f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}"
        for name in ("Packages", "Packages.gz")
        if (content := (folder / name).read_bytes())
    )
    release = f"Origin: Test\nLabel: Test\nDate: {_now()}\nSHA256:\n{sums}\n"
    _sign(release, folder)


def _make(package: Package, folder: Path) -> str:
    """Make a package; its entry for `Packages`."""
    control = [
        f"Package: {package.name}",
        f"Version: {package.version}",
        f"Architecture: {_architecture()}",
        "Maintainer: Test <test@example.invalid>",
        *([f"Depends: {package.depends}"] if package.depends else []),
        *([f"Conflicts: {package.conflicts}"] if package.conflicts else []),
        "Section: utils",
        "Priority: optional",
        "Description: stands in for a package in tests",
    ]
    name = f"{package.name}_{package.version.replace(':', '_')}.deb"
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary)
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text("\n".join([*control, ""]))
        if package.postinst:
            _program(tree / "DEBIAN/postinst", f"#!/bin/sh\n{package.postinst}\n")
        for path, text in package.files:
            place = tree / path.rstrip("*")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
            place.chmod(0o755 if path.endswith("*") else 0o644)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "--build", tree, folder / name],
            check=True,
            capture_output=True,
        )
    content = (folder / name).read_bytes()
    return "\n".join(
        [
            *control[:-1],
            f"Filename: ./{name}",
            f"Size: {len(content)}",
            f"SHA256: {hashlib.sha256(content).hexdigest()}",
            control[-1],
            "",
        ]
    )


def _program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def _architecture() -> str:
    return {"aarch64": "arm64"}.get(platform.machine(), "amd64")


def _now() -> str:
    import email.utils

    return email.utils.formatdate(usegmt=True)


def _sign(release: str, folder: Path) -> None:
    home = tempfile.mkdtemp(prefix="eck-")  # short: a socket is made in it
    variables = {**os.environ, "GNUPGHOME": home}

    def gpg(*args: str | Path, text: str = "") -> None:
        subprocess.run(
            ["gpg", "--quiet", "--batch", "--yes", *args],
            input=text,
            text=True,
            env=variables,
            check=True,
            capture_output=True,
        )

    try:
        gpg("--passphrase", "", "--quick-gen-key", "test@example.invalid", "ed25519", "sign", "1d")
        gpg("--clearsign", "--output", folder / "InRelease", text=release)
        gpg("--export", "--output", folder / "key.gpg")
        gpg("--armor", "--export", "--output", folder / "key.asc")
    finally:
        subprocess.run(
            ["gpgconf", "--kill", "all"], env=variables, check=False, capture_output=True
        )
        shutil.rmtree(home, ignore_errors=True)


def make_wheels(folder: Path, *, torch: str) -> None:
    """Write a wheel that looks like torch's, as far as files tell."""
    import zipfile

    folder.mkdir(parents=True, exist_ok=True)
    version, info = torch, f"torch-{torch}.dist-info"
    files = {
        "torch/__init__.py": "from torch.version import __version__\n",
        "torch/version.py": f"__version__ = '{version}'\ncuda = None\nhip = None\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"torch-{torch}-py3-none-any.whl", "w") as wheel:
        for name, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(name, text)
