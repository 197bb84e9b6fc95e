"""Renders a snapshot as what people would paste from that machine."""

from __future__ import annotations

from envcheck.model.host import Gpu
from envcheck.model.snapshot import Snapshot

HEAD = """\
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|"""
RULE = "-----------------------------------------+------------------------+----------------------+"


def lspci(snapshot: Snapshot) -> str:
    """What `lspci -nnk -d 10de:` prints."""
    lines = []
    for each in snapshot.host.pci or ():
        kind = {"0300": "VGA compatible controller", "0302": "3D controller"}.get(
            each.class_code or "", "Bridge"
        )
        lines.append(
            f"{each.address.removeprefix('0000:')} {kind} [{each.class_code}]: NVIDIA Corporation "
            f"Device [10de:{each.device}] (rev a1)"
        )
        if each.kernel_driver:
            lines.append(f"\tKernel driver in use: {each.kernel_driver}")
    return "\n".join(lines) + "\n"


def collect_env(snapshot: Snapshot, *, works: bool) -> str:
    """What torch's collect_env prints, with its list of packages."""
    host, env = snapshot.host, snapshot.env
    torch = env.framework("torch")
    os, python = host.os, env.python
    driver = host.driver
    available = works and bool(torch and torch.cuda) and bool(host.gpus)
    lines = [
        "Collecting environment information...",
        f"PyTorch version: {torch.version if torch else 'N/A'}",
        "Is debug build: False",
        f"CUDA used to build PyTorch: {(torch.cuda if torch else None) or 'None'}",
        "ROCM used to build PyTorch: N/A",
        "",
        f"OS: {os.name} ({os.machine})",
        "GCC version: Could not collect",
        f"Libc version: glibc-{os.glibc}",
        "",
        f"Python version: {python.version} (main, Jan  1 2026, 00:00:00) [GCC 13.3.0] (64-bit)",
        f"Python platform: Linux-{os.kernel}-{os.machine}-with-glibc{os.glibc}",
        f"Is CUDA available: {available}",
        "CUDA runtime version: Could not collect",
        "GPU models and configuration: ",
        *(f"GPU {gpu.index}: {gpu.name}" for gpu in host.gpus or ()),
        f"Nvidia driver version: {driver.version if host.gpus else 'Could not collect'}",
        "cuDNN version: Could not collect",
        "",
        "Versions of relevant libraries:",
        *(f"[pip3] {each.name}=={each.version}" for each in env.packages or ()),
        "[conda] Could not collect",
    ]
    return "\n".join(lines) + "\n"


def nvidia_smi(snapshot: Snapshot, *, renamed: bool = False) -> str:
    """What nvidia-smi prints, with the names of its versions that newer releases use."""
    driver = snapshot.host.driver
    if driver.smi.outcome == "missing" or driver.installed is False:
        return "bash: nvidia-smi: command not found\n"
    if driver.smi.message or driver.nvml.outcome == "error":
        if driver.nvml.code == 18 or "mismatch" in (driver.smi.message or "").lower():
            return "Failed to initialize NVML: Driver/library version mismatch\n"
        return (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make "
            "sure that the latest NVIDIA driver is installed and running.\n"
        )
    if not snapshot.host.gpus:
        return "bash: nvidia-smi: command not found\n"
    one, two = ("KMD", "CUDA UMD") if renamed else ("Driver", "CUDA")
    head = f"| NVIDIA-SMI {driver.version}  {one} Version: {driver.version}  {two} Version: "
    lines = [
        "+" + RULE[1:].replace("+", "-"),
        f"{head}{driver.cuda} |".replace("  ", "        "),
        f"|{RULE}",
        *HEAD.splitlines(),
    ]
    for gpu in snapshot.host.gpus:
        lines += [*_row(gpu), f"+{RULE}"]
    return "\n".join(lines) + "\n"


def _row(gpu: Gpu) -> list[str]:
    ecc = "N/A" if gpu.ecc is None else str(gpu.ecc_uncorrected or 0) if gpu.ecc else "Off"
    used, total = ((n or 0) >> 20 for n in (gpu.memory_used_bytes, gpu.memory_total_bytes))
    mig = {True: "Enabled", False: "Disabled", None: "N/A"}[gpu.mig]
    domain, _, rest = (gpu.bus_id or "0000:01:00.0").partition(":")
    bus = f"0000{domain}:{rest}".upper()
    name = f"{gpu.index:>3}  {gpu.name or '':<26}"
    return [
        f"| {name}    {'On' if gpu.persistence else 'Off':<3} |   {bus} Off |{ecc:>21} |",
        f"| N/A   31C    P0             75W /  700W | {used:>8}MiB / {total:>6}MiB |      0%      "
        "Default |",
        f"|                                         |                        |{mig:>21} |",
    ]


def pip_list(snapshot: Snapshot) -> str:
    """What `pip list` prints."""
    rows = [f"{each.name:<28} {each.version}" for each in snapshot.env.packages or ()]
    return (
        "\n".join(["Package                      Version", "-" * 28 + " " + "-" * 12, *rows]) + "\n"
    )
