"""Takes a snapshot: files first, then all children side by side, then what they mean."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, TypeVar, cast

import envcheck
from envcheck.paths import payload
from envcheck.probe import devices, kernel
from envcheck.probe.notes import Notes
from envcheck.probe.quiet import Quiet
from envcheck.probe.source import Command, Result

if TYPE_CHECKING:
    from collections.abc import Callable

    from envcheck.model.host import Driver, Gpu, PciDevice
    from envcheck.model.snapshot import Snapshot
    from envcheck.probe import driver_files
    from envcheck.probe.redact import Redactor
    from envcheck.probe.source import Source

T = TypeVar("T")

_BARE = ("-I", "-S")
"""Flags for a payload that needs the standard library only: it starts in half the time."""

_PUBLIC = frozenset({"Os", "SystemPackage", "Package", "Framework", "Library", "SharedFile"})
_PUBLIC_FIELDS = ("id", "name", "version", "codename", "like", "soname", "package", "packages")
"""Names that the world gave: people and hosts may be called the same, and then they stay."""

_SECOND_WAIT = 3.0
"""Seconds for nvidia-smi after NVML gave no answer in its time."""


def take_snapshot(
    source: Source,
    *,
    python: str | None = None,
    deep: bool = False,
    timeout: float = 10.0,
    meanwhile: Callable[[], object] | None = None,
) -> Snapshot:
    """Read a machine and the environment that its user works in.

    Args:
        source: the machine.
        python: interpreter, or folder of an environment, to judge; None to choose one.
        deep: also ask tools for their versions and import the frameworks in children.
        timeout: seconds that each child gets.
        meanwhile: work of the caller that fits into the wait for the children.

    Returns:
        The facts, with a gap for each one that could not be read.

    Raises:
        UsageError: `python` names nothing that can be judged.
        NotRecordedError: a recording of this version lacks an answer.
    """
    notes = Notes()
    quiet = Quiet(source)
    # As root, NVML and CUDA may load modules and create device files. What they would change is
    # read before they start.
    modules = kernel.read_kernel(quiet)
    pci = devices.read_pci(quiet, notes)
    nodes = devices.read_nodes(quiet)
    # Starting CUDA takes longer than all else together: it begins first, and everything that can
    # wait, modules to import included, waits until then.
    asked = _Asked(
        source,
        (
            _payload(source, "query_libcuda", timeout, *_BARE),
            _nvml(source, timeout),
        ),
    )

    from envcheck.probe import driver_files, environment, operating_system
    from envcheck.probe.target import choose_target

    target = choose_target(source, python, notes)

    # The loader's cache names the folders that the environment's payload looks into.
    results = _run(
        source, (operating_system.UNAME, operating_system.GETCONF, driver_files.LDCONFIG)
    )
    # It takes longest of what is left, so that it too goes before what can wait.
    looked = _Asked(
        source,
        environment.environment_commands(
            source, target, deep, timeout, results[driver_files.LDCONFIG.name]
        ),
    )

    from envcheck.model.host import Host
    from envcheck.model.snapshot import Snapshot
    from envcheck.probe import driver, engines, gpu
    from envcheck.probe.redact import Redactor

    log = kernel.log_command(pci)
    libcuda = driver_files.find_libcuda(quiet, results)
    # Not by |=, which dicts have from Python 3.9 on: hosts of a fleet may have 3.8.
    answers = _run(
        source,
        (
            *driver_files.package_commands(quiet),
            log,
            *_own_libcuda(source, libcuda, timeout),
            *engines.version_commands(quiet, deep=deep),
        ),
        lambda: _wait(meanwhile),
    )
    results.update(answers)
    results.update(looked.results())
    results.update(asked.results())
    more = kernel.journal_command(quiet, results, log)
    if not driver.answered(results):
        # Only where NVML gave nothing: nvidia-smi asks the same library, and takes the driver's
        # locks. Where NVML hangs it will hang too, and is not waited for as long once more.
        hangs = results["payload:query_nvml"].outcome == "timeout"
        wait = min(timeout, _SECOND_WAIT) if hangs else timeout
        more += tuple(
            dataclasses.replace(each, timeout=wait) for each in (gpu.SMI_QUERY, gpu.SMI_BANNER)
        )
    if more:
        results.update(_run(source, more))

    system = operating_system.read_os(quiet, results)
    modules = dataclasses.replace(
        modules,
        log=kernel.kernel_log(results.get(kernel.DMESG), notes, results.get(kernel.JOURNAL)),
    )
    files = driver_files.read_driver_files(quiet, system.kernel, libcuda, results)
    facts = driver.read_driver(quiet, modules, files, results, notes)
    container = operating_system.read_container(quiet)
    host = Host(
        os=system,
        wsl=operating_system.read_wsl(quiet),
        jetson=operating_system.read_jetson(quiet, system.machine),
        virtual=operating_system.read_virtual(quiet),
        kernel_command_line=operating_system.read_command_line(quiet),
        driver=facts,
        gpus=_gpus(quiet, results, notes, facts, pci),
        pci=pci,
        nodes=nodes,
        container=dataclasses.replace(
            container,
            libraries_injected=facts.userspace_version is not None
            if container.kind != "none"
            else None,
        ),
        engines=engines.read_engines(quiet, results),
        cdi=engines.read_cdi(quiet),
        toolkit_version=engines.toolkit_version(files.packages),
        fabric_manager=engines.read_fabric_manager(quiet, files.packages),
        shm_bytes=devices.read_shm(quiet, notes),
        iommu_groups=devices.read_iommu_groups(quiet),
        tools=engines.read_tools(quiet, results),
    )
    env = environment.read_environment(source, target, results, notes)
    snapshot = Snapshot(
        source=source.name,
        taken_at=source.taken_at(),
        envcheck=envcheck.__version__,
        host=host,
        env=env,
        gaps=notes.gaps,
    )
    return _without_identifiers(snapshot, Redactor(source.variables, quiet.read))


def _without_identifiers(value: T, redact: Redactor) -> T:
    """The same facts with every text redacted; parts that need no change are kept as they are."""
    if isinstance(value, str):
        return cast("T", redact(value))
    if isinstance(value, tuple):
        return cast("T", tuple(_without_identifiers(each, redact) for each in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {}
        kept = _PUBLIC_FIELDS if type(value).__name__ in _PUBLIC else ()
        for field in dataclasses.fields(value):
            if field.name in kept:
                continue
            old = getattr(value, field.name)
            if old is not None and not isinstance(old, (bool, int, float)):
                new = _without_identifiers(old, redact)
                if new != old:
                    changed[field.name] = new
        return cast("T", dataclasses.replace(value, **changed)) if changed else value
    return value


def _wait(meanwhile: Callable[[], object] | None) -> None:
    """Use the wait for the children: load what reading them needs, then the caller's work."""
    import distro  # noqa: F401

    if meanwhile is not None:
        meanwhile()


def _gpus(
    quiet: Quiet,
    results: dict[str, Result],
    notes: Notes,
    facts: Driver,
    pci: tuple[PciDevice, ...] | None,
) -> tuple[Gpu, ...] | None:
    """GPUs of the driver; certainly none where there is no driver at all and none on the bus."""
    nobody = facts.installed is False and not facts.module_loaded
    no_device = pci is not None and not any(each.class_code != "0680" for each in pci)
    if nobody and no_device and facts.nvml.outcome == "missing":
        return ()
    from envcheck.probe import gpu

    return gpu.read_gpus(quiet, results, notes)


def _own_libcuda(
    source: Source, files: driver_files.LibcudaFiles, timeout: float
) -> tuple[Command, ...]:
    """The driver's own libcuda, where cuda-compat is in front: NVML answers through that too."""
    if files.own is None or files.compat is None:
        return ()
    from envcheck.probe.driver import OWN_LIBCUDA

    command = _payload(source, "query_libcuda", timeout, *_BARE)
    return (dataclasses.replace(command, name=OWN_LIBCUDA, argv=(*command.argv, files.own[0])),)


def _payload(source: Source, name: str, timeout: float, *flags: str) -> Command:
    """A payload in envcheck's own interpreter."""
    return Command(
        name=f"payload:{name}",
        argv=(source.interpreter(), *flags, str(payload(name))),
        timeout=timeout,
        payload=True,
    )


def _nvml(source: Source, timeout: float) -> Command:
    """The NVML payload, told where nvidia-ml-py lies: it then needs no site-packages."""
    import importlib.util

    try:
        found = importlib.util.find_spec("pynvml")
    except (ImportError, ValueError):
        found = None
    folder = (found.origin or "").rpartition("/")[0] if found is not None else ""
    command = _payload(source, "query_nvml", timeout, "-S")
    return dataclasses.replace(command, argv=(*command.argv, folder)) if folder else command


class _Asked:
    """Programs that were started and whose answers are not needed yet."""

    def __init__(self, source: Source, commands: tuple[Command, ...]) -> None:
        import threading

        self._commands = commands
        self._answers: tuple[Result, ...] = ()
        self._error: BaseException | None = None

        def work() -> None:
            try:
                self._answers = source.run_all(commands)
            except BaseException as error:
                self._error = error

        self._thread: threading.Thread | None = threading.Thread(target=work, daemon=True)
        try:
            self._thread.start()
        except RuntimeError:
            # Out of memory or of processes: at once, then.
            self._thread = None
            work()

    def results(self) -> dict[str, Result]:
        """Wait, and give the results by logical name."""
        if self._thread is not None:
            self._thread.join()
        if self._error is not None:
            raise self._error
        return {
            command.name: result
            for command, result in zip(self._commands, self._answers, strict=True)
        }


def _run(
    source: Source,
    commands: tuple[Command, ...],
    meanwhile: Callable[[], object] | None = None,
) -> dict[str, Result]:
    """Run programs side by side; results by logical name."""
    asked = _Asked(source, commands)
    if meanwhile is not None:
        meanwhile()
    return asked.results()
