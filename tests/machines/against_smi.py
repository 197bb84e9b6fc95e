"""Compares a snapshot with what `nvidia-smi -q -x` says of the same machine."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from envcheck.model.snapshot import Snapshot

MEBIBYTE = 1 << 20


def differences(snapshot: Snapshot, xml: str) -> list[str]:
    """Facts in which both disagree, one line each; facts that nvidia-smi lacks are passed over."""
    root = ElementTree.fromstring(xml)  # noqa: S314 - our own recording, or the local driver's

    def said(element: ElementTree.Element, path: str) -> str:
        found = (element.findtext(path) or "").strip()
        return "" if found in {"N/A", "[N/A]"} else found

    driver = snapshot.host.driver
    gpus = snapshot.host.gpus or ()
    pairs: list[tuple[str, object, object]] = [
        ("driver", driver.version, said(root, "driver_version")),
        ("CUDA", driver.cuda, said(root, "cuda_version")),
        ("GPUs", str(len(gpus)), said(root, "attached_gpus")),
    ]
    for gpu, element in zip(gpus, root.findall("gpu"), strict=True):
        label = f"GPU {gpu.index}"
        on = {"Enabled": True, "Disabled": False}
        link = "pci/pci_gpu_link_info"
        pairs += [
            (f"{label} name", gpu.name, said(element, "product_name")),
            (f"{label} bus", gpu.bus_id, (element.get("id") or "").lower()[4:]),
            (f"{label} MIG", gpu.mig, on.get(said(element, "mig_mode/current_mig"))),
            (f"{label} ECC", gpu.ecc, on.get(said(element, "ecc_mode/current_ecc"))),
            (f"{label} persistence", gpu.persistence, on.get(said(element, "persistence_mode"))),
            (f"{label} mode", gpu.compute_mode, said(element, "compute_mode").lower()),
            (
                f"{label} memory",
                f"{(gpu.memory_total_bytes or 0) // MEBIBYTE} MiB",
                said(element, "fb_memory_usage/total"),
            ),
            (
                f"{label} power limit",
                f"{gpu.power_limit_watts or 0:.2f} W",
                said(element, "gpu_power_readings/current_power_limit"),
            ),
            (
                f"{label} PCIe",
                f"{gpu.pcie_generation_max} {gpu.pcie_width_max}x",
                f"{said(element, f'{link}/pcie_gen/max_link_gen')} "
                f"{said(element, f'{link}/link_widths/max_link_width')}",
            ),
            (
                f"{label} remap pending",
                gpu.remap_pending,
                {"Yes": True, "No": False}.get(said(element, "remapped_rows/remapped_row_pending")),
            ),
        ]
    return [
        f"{name}: {ours!r}, nvidia-smi {theirs!r}" for name, ours, theirs in pairs if ours != theirs
    ]
