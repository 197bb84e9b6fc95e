"""gpu-dropped-by-driver, gpu-needs-newer-driver, driver-flavour-wrong: they do not fit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence
from envcheck.rules import drivers, facts
from envcheck.rules.base import cite, finding, rule
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import Capability
    from envcheck.model.finding import Severity
    from envcheck.model.host import PciDevice
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

LEGACY = re.compile(r"supported through the\s+NVIDIA (\d+)\.xx Legacy", re.IGNORECASE)
OPEN_REQUIRED = r"requires use of the NVIDIA open kernel modules"
OPEN_UNSUPPORTED = r"not supported by open nvidia\.ko|not supported by the open kernel modules"

EFFECTS = (
    *facts.AFTER_DRIVER,
    "driver-not-loaded",
    "gpu-init-failed",
    "gpu-missing-from-driver",
)


def _driver_known(snapshot: Snapshot) -> bool:
    """A host with a driver of known release and a GPU on the bus that the driver does not report.

    A GPU that the driver reports is supported, whatever the tables say. A driver that answers with
    an error of another kind, or not at all, says nothing about its GPUs.
    """
    nvml = snapshot.host.driver.nvml
    silent = nvml.outcome in {"timeout", "crash"} or (
        nvml.outcome == "error" and nvml.code not in facts.NVML_NO_DEVICES
    )
    return (
        not silent
        and not facts.said_mismatch(snapshot)
        and facts.discrete(snapshot)
        and facts.on_host(snapshot)
        and facts.driver_version(snapshot) is not None
        and bool(facts.unreported_pci_gpus(snapshot))
    )


def _unreported(snapshot: Snapshot, matrix: Matrix) -> tuple[tuple[PciDevice, Capability], ...]:
    """GPUs that the driver does not report, with what the tables know of them."""
    found = []
    for device in facts.unreported_pci_gpus(snapshot):
        capability = drivers.capability_of(matrix, device)
        if capability is not None and not capability.tegra:
            found.append((device, capability))
    return tuple(found)


def _severity(snapshot: Snapshot, rows: tuple[Capability, ...], *, told: bool) -> Severity:
    """A warning while another GPU works, or when all rests on a weak table row."""
    weak = not told and all(each.confidence == "low" for each in rows)
    return "warning" if weak or facts.cuda_ok(snapshot) else "error"


def _devices(matrix: Matrix, devices: tuple[PciDevice, ...]) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(label="GPU", value=drivers.device_label(matrix, each), via="PCI bus")
        for each in devices
    )


@rule(
    "gpu-dropped-by-driver",
    component="driver",
    when=_driver_known,
    explains=(*EFFECTS, "driver-flavour-wrong"),
)
def gpu_dropped_by_driver(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The installed driver branch still supports each GPU.

    Rests on the PCI device id and the table of architectures, or on the driver's own line about a
    legacy branch. A GPU that the driver reports is never judged.

    Why: each branch ends support for old architectures; the driver then ignores the card.

    Fix: install the last branch that supports it.
    """
    driver = facts.driver_version(snapshot)
    if driver is None:
        return
    dropped = tuple(
        (device, row)
        for device, row in _unreported(snapshot, matrix)
        if row.last_driver_branch is not None and driver.major > int(row.last_driver_branch)
    )
    lines = facts.log_lines(snapshot, LEGACY.pattern)
    named = [match.group(1) for line in lines if (match := LEGACY.search(line))]
    if not dropped and not named:
        return
    devices = tuple(device for device, _ in dropped) or facts.unreported_pci_gpus(snapshot)
    rows = tuple(row for _, row in dropped)
    last = named[-1] if named else min((str(r.last_driver_branch) for r in rows), key=int)
    choice = drivers.choose(snapshot, matrix, at_most=int(last))
    labels = ", ".join(drivers.device_label(matrix, each) for each in devices)
    yield finding(
        "gpu-dropped-by-driver",
        _severity(snapshot, rows, told=bool(named)),
        "driver",
        labels,
        f"Driver branch {driver.major} no longer supports this GPU",
        found=f"driver {driver}, {rows[0].architecture if rows else 'legacy'} GPU",
        needed=f"branch {last}, the last one for this GPU",
        why=f"Support for this GPU ended with branch {last}; newer drivers ignore the card.",
        fix=drivers.install_driver(snapshot, matrix, choice),
        evidence=(
            *_devices(matrix, devices),
            *facts.log_evidence(lines),
            *facts.answers(snapshot),
        ),
        sources=(*cite(matrix, *rows), *choice.sources),
    )


@rule(
    "gpu-needs-newer-driver",
    component="driver",
    when=_driver_known,
    explains=(*EFFECTS, "driver-flavour-wrong"),
)
def gpu_needs_newer_driver(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The installed driver branch is new enough for each GPU.

    Rests on the PCI device id and the table of architectures. A GPU that the driver reports is
    never judged.

    Why: a driver that was released before a GPU does not know it.

    Fix: install a branch that supports it.
    """
    driver = facts.driver_version(snapshot)
    if driver is None:
        return
    early = tuple(
        (device, row, floor)
        for device, row in _unreported(snapshot, matrix)
        if (floor := Release.maybe(row.min_driver)) is not None
        and (driver if len(floor.parts) > 1 else Release.parse(str(driver.major))) < floor
    )
    if not early:
        return
    devices = tuple(device for device, _, _ in early)
    rows = tuple(row for _, row, _ in early)
    floor = max(each for _, _, each in early)
    choice = drivers.choose(snapshot, matrix)
    yield finding(
        "gpu-needs-newer-driver",
        _severity(snapshot, rows, told=False),
        "driver",
        ", ".join(drivers.device_label(matrix, each) for each in devices),
        f"Driver {driver} is older than this GPU",
        found=f"driver {driver}",
        needed=f"branch {floor} or newer",
        why=f"{rows[0].architecture} GPUs are supported from branch {floor} on; an older driver "
        "does not know them.",
        fix=drivers.install_driver(snapshot, matrix, choice),
        evidence=(*_devices(matrix, devices), *facts.answers(snapshot)),
        sources=(*cite(matrix, *rows), *choice.sources),
    )


@rule("driver-flavour-wrong", component="driver", when=_driver_known, explains=EFFECTS)
def driver_flavour_wrong(snapshot: Snapshot, matrix: Matrix) -> Answer:
    """The flavour of the kernel modules, open or proprietary, can drive each GPU.

    Rests on the driver's own line about it, or on the module's flavour and the table of
    architectures. A GPU that the driver reports is never judged.

    Why: the open modules need a GPU with a GSP processor (Turing on); GPUs from Blackwell on work
    with the open modules only.

    Fix: install the other flavour of the same branch.
    """
    flavour = drivers.open_modules(snapshot)
    wanting = facts.log_lines(snapshot, OPEN_REQUIRED)
    refusing = facts.log_lines(snapshot, OPEN_UNSUPPORTED)
    known = _unreported(snapshot, matrix)
    lines = wanting or refusing
    if lines:
        need_open = bool(wanting)
        fitting = "open" if need_open else "proprietary"
        wrong = tuple((d, row) for d, row in known if row.module == fitting)
        devices = tuple(d for d, _ in wrong) or facts.unreported_pci_gpus(snapshot)
    elif flavour is not None:
        fitting = "proprietary" if flavour else "open"
        need_open = not flavour
        wrong = tuple((d, row) for d, row in known if row.module == fitting)
        devices = tuple(d for d, _ in wrong)
    else:
        return
    if not devices:
        return
    rows = tuple(row for _, row in wrong)
    have = "proprietary" if need_open else "open"
    driver = facts.driver_version(snapshot)
    choice = drivers.same_branch(snapshot, matrix, open_modules=need_open)
    yield finding(
        "driver-flavour-wrong",
        _severity(snapshot, rows, told=bool(lines)),
        "driver",
        ", ".join(drivers.device_label(matrix, each) for each in devices),
        f"This GPU needs the {fitting} kernel modules, but the {have} ones are installed",
        found=f"driver {driver} with {have} kernel modules",
        needed=f"the {fitting} kernel modules of the same branch",
        why="GPUs from Blackwell on are driven by the open kernel modules only."
        if need_open
        else "The open kernel modules drive Turing and newer GPUs only; this one is older.",
        fix=drivers.install_driver(snapshot, matrix, choice),
        evidence=(
            *_devices(matrix, devices),
            Evidence(label="kernel modules", value=have, via="/proc/driver/nvidia/version"),
            *facts.log_evidence(lines),
            *facts.answers(snapshot),
        ),
        sources=(*cite(matrix, *rows), *choice.sources),
    )
