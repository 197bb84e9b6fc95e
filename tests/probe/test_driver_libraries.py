"""NVML and libcuda asked by the real payloads, answered by libraries compiled from tests/stubs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.model.host import Driver, Gpu, ProbeAnswer
from envcheck.model.snapshot import Snapshot
from envcheck.paths import payload
from envcheck.probe import driver, gpu
from envcheck.probe.driver_files import DriverFiles
from envcheck.probe.kernel import Kernel
from envcheck.probe.live import Live
from envcheck.probe.notes import Notes
from envcheck.probe.quiet import Quiet
from envcheck.probe.snapshot import take_snapshot
from envcheck.probe.source import Command

Machine = Callable[..., Live]

NOTHING = Kernel(
    module_version=None,
    proc_version=None,
    module_loaded=False,
    uvm_loaded=False,
    nouveau_loaded=False,
    secure_boot=False,
    lockdown=None,
)


def ask(source: Live, timeout: float = 10.0) -> tuple[Driver, tuple[Gpu, ...] | None, Notes]:
    """Driver and GPUs as the payloads tell them."""
    commands = tuple(
        Command(
            name=f"payload:{name}",
            argv=(source.interpreter(), str(payload(name))),
            timeout=timeout,
            payload=True,
        )
        for name in ("query_nvml", "query_libcuda")
    )
    results = {
        command.name: result
        for command, result in zip(commands, source.run_all(commands), strict=True)
    }
    notes = Notes()
    quiet = Quiet(source)
    facts = driver.read_driver(quiet, NOTHING, DriverFiles(), results, notes)
    return facts, gpu.read_gpus(quiet, results, notes), notes


def test_a_working_driver_tells_everything(machine: Machine, stubs: Path) -> None:
    facts, gpus, _ = ask(machine(NVIDIA_STUB_COUNT="2"))
    assert (facts.version, facts.cuda) == ("550.54.15", "12.4")
    assert facts.nvml == ProbeAnswer(
        outcome="ok", code=0, path=str(stubs / "full" / "libnvidia-ml.so.1")
    )
    assert facts.libcuda == ProbeAnswer(
        outcome="ok", code=0, path=str(stubs / "full" / "libcuda.so.1")
    )
    assert [(each.value, each.via) for each in facts.cuda_readings] == [
        ("12.4", "libcuda"),
        ("12.4", "NVML"),
    ]
    assert gpus is not None
    assert [(each.index, each.name, each.arch, each.bus_id) for each in gpus] == [
        (0, "NVIDIA L40S", "8.9", "0000:3b:00.0"),
        (1, "NVIDIA L40S", "8.9", "0000:3c:00.0"),
    ]
    first = gpus[0]
    assert (first.memory_total_bytes, first.memory_used_bytes) == (48 << 30, 1 << 30)
    # What the library does not have stays unknown: it is neither off nor zero.
    assert first.persistence is True
    assert (first.ecc, first.mig, first.temperature_c, first.processes) == (None,) * 4
    assert first.error is None


def test_no_gpu_is_an_answer(machine: Machine) -> None:
    _, gpus, _ = ask(machine(NVIDIA_STUB_COUNT="0", CUDA_STUB_INIT="100"))
    assert gpus == ()


def test_a_lost_gpu_hides_no_other(machine: Machine) -> None:
    _, gpus, _ = ask(machine(NVIDIA_STUB_COUNT="2", NVIDIA_STUB_LOST="0"))
    assert gpus is not None
    assert [(each.index, each.name, each.error) for each in gpus] == [
        (0, None, "GPU is lost"),
        (1, "NVIDIA L40S", None),
    ]


@pytest.mark.parametrize(
    ("code", "outcome", "words"),
    [
        (9, "error", "Driver Not Loaded"),
        (18, "error", "RM has detected an NVML/RM version mismatch."),
        (12, "missing", "NVML Shared Library Not Found"),
        (999, "error", "Unknown Error"),
    ],
)
def test_nvml_errors_keep_number_and_words(
    machine: Machine, code: int, outcome: str, words: str
) -> None:
    facts, gpus, notes = ask(machine(NVIDIA_STUB_INIT=str(code), CUDA_STUB_INIT="803"))
    assert (facts.nvml.outcome, facts.nvml.code, facts.nvml.message) == (outcome, code, words)
    assert gpus is None
    assert {each.path: each.reason for each in notes.gaps}["host.gpus"] == words


@pytest.mark.parametrize(
    ("wish", "outcome", "words"),
    [
        ("segv", "crash", "was ended by SIGSEGV"),
        ("abort", "crash", "was ended by SIGABRT"),
        ("hang", "timeout", "did not answer within 1 s and was stopped"),
    ],
)
def test_a_library_that_dies_or_hangs_is_named(
    machine: Machine, wish: str, outcome: str, words: str
) -> None:
    facts, gpus, notes = ask(machine(NVIDIA_STUB_INIT=wish, CUDA_STUB_INIT=wish), timeout=1.0)
    assert (facts.nvml.outcome, facts.nvml.message) == (outcome, words)
    assert (facts.libcuda.outcome, facts.libcuda.message) == (outcome, words)
    assert gpus is None
    assert {each.path: each.reason for each in notes.gaps}["host.gpus"] == words


def test_libcuda_answers_where_nvml_does_not(machine: Machine) -> None:
    _, gpus, notes = ask(machine(NVIDIA_STUB_INIT="999"))
    assert gpus == (
        Gpu(
            index=0,
            name="NVIDIA L40S",
            arch="8.9",
            bus_id="0000:3b:00.0",
            memory_total_bytes=48 << 30,
        ),
    )
    assert [each.path for each in notes.gaps] == ["host.gpus.details"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            803,
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: "
            "system has unsupported display driver / cuda driver combination",
        ),
        (804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: an error"),
        (100, "CUDA_ERROR_NO_DEVICE: an error"),
    ],
)
def test_cuda_errors_keep_number_and_words(machine: Machine, code: int, words: str) -> None:
    facts, _, _ = ask(machine(CUDA_STUB_INIT=str(code)))
    assert (facts.libcuda.outcome, facts.libcuda.code, facts.libcuda.message) == (
        "error",
        code,
        words,
    )


def test_output_of_the_library_is_no_answer(machine: Machine) -> None:
    """A line of the library that looks like an answer does not replace the real one."""
    facts, _, _ = ask(machine(NVIDIA_STUB_INIT="chatter"))
    assert (facts.nvml.outcome, facts.version) == ("ok", "550.54.15")


def test_a_library_without_functions_gives_no_gpus_and_a_reason(machine: Machine) -> None:
    facts, gpus, notes = ask(machine("bare"))
    assert (facts.nvml.outcome, facts.version, gpus) == ("ok", None, None)
    assert facts.libcuda.outcome == "error"
    assert "cuInit" in (facts.libcuda.message or "")
    gaps = {each.path: each.reason for each in notes.gaps}
    assert gaps["host.gpus"] == "Function Not Found"


def test_a_library_that_cannot_be_initialised_did_not_answer(machine: Machine) -> None:
    facts, gpus, _ = ask(machine("empty"))
    assert (facts.nvml.outcome, facts.nvml.code, gpus) == ("error", 13, None)


@pytest.fixture
def impostor(tmp_path: Path) -> Path:
    """A folder whose `pynvml` is another project's module of that name."""
    (tmp_path / "pynvml").mkdir()
    (tmp_path / "pynvml" / "__init__.py").write_text("GPU = None\n", encoding="utf-8")
    return tmp_path


def test_a_foreign_pynvml_is_passed_over(machine: Machine, impostor: Path) -> None:
    facts, gpus, notes = ask(machine(PYTHONPATH=str(impostor), NVIDIA_STUB_COUNT="2"))
    assert (facts.nvml.outcome, facts.version, facts.cuda) == ("ok", "550.54.15", "12.4")
    assert gpus is not None
    assert [(each.name, each.arch) for each in gpus] == [("NVIDIA L40S", "8.9")] * 2
    assert [each.reason for each in notes.gaps] == [
        "asked NVML without pynvml: the module pynvml is not NVIDIA's: it has no nvmlInit"
    ]


def test_the_library_of_an_old_driver_answers_all_the_same(machine: Machine) -> None:
    facts, gpus, notes = ask(machine("old", NVIDIA_STUB_DRIVER="390.157", NVIDIA_STUB_CUDA="9010"))
    assert (facts.nvml.outcome, facts.version, facts.cuda) == ("ok", "390.157", "9.1")
    assert gpus == (Gpu(index=0, name="NVIDIA L40S", arch="8.9"),)
    assert [each.path for each in notes.gaps] == ["host.gpus.details"]
    stale, _, _ = ask(machine("old", NVIDIA_STUB_INIT="18"))
    assert (stale.nvml.outcome, stale.nvml.code) == ("error", 18)


@pytest.mark.parametrize(("kind", "outcome", "code"), [("bare", "ok", 0), ("empty", "error", 13)])
def test_the_bare_binding_knows_what_is_missing(
    machine: Machine, impostor: Path, kind: str, outcome: str, code: int
) -> None:
    facts, gpus, _ = ask(machine(kind, PYTHONPATH=str(impostor)))
    assert (facts.nvml.outcome, facts.nvml.code, gpus) == (outcome, code, None)


@pytest.mark.parametrize(("code", "outcome"), [(9, "error"), (12, "missing"), (18, "error")])
def test_the_bare_binding_keeps_errors(
    machine: Machine, impostor: Path, code: int, outcome: str
) -> None:
    facts, _, _ = ask(machine(PYTHONPATH=str(impostor), NVIDIA_STUB_INIT=str(code)))
    assert (facts.nvml.outcome, facts.nvml.code) == (outcome, code)


def test_no_library_at_all(tmp_path: Path) -> None:
    facts, gpus, _ = ask(Live(variables={"LD_LIBRARY_PATH": str(tmp_path)}))
    assert (facts.nvml.outcome, facts.nvml.code) == ("missing", 12)
    assert facts.libcuda.outcome == "missing"
    assert "libcuda.so.1" in (facts.libcuda.message or "")
    assert gpus is None


def test_a_working_directory_shadows_nothing(
    machine: Machine, impostor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (impostor / "json.py").write_text("raise SystemExit('shadowed')\n", encoding="utf-8")
    monkeypatch.chdir(impostor)
    facts, _, notes = ask(machine())
    assert (facts.nvml.outcome, notes.gaps) == ("ok", ())


@pytest.mark.parametrize(
    ("override", "version"),
    [("535.104.05", "535.104.05"), ("soon", "550.54.15"), ("", "550.54.15")],
)
def test_the_override_counts_when_it_is_a_version(
    machine: Machine, override: str, version: str
) -> None:
    facts, _, _ = ask(machine(ENVCHECK_DRIVER_VERSION=override))
    assert facts.version == version


def shot(source: Live) -> Snapshot:
    return take_snapshot(source, timeout=1.5)


def test_a_whole_snapshot_of_a_hanging_driver(machine: Machine) -> None:
    """The rest of the machine is read all the same, and nothing waits longer than it was told."""
    snapshot = shot(machine(NVIDIA_STUB_INIT="hang", CUDA_STUB_INIT="hang"))
    assert snapshot.host.driver.nvml.outcome == "timeout"
    assert snapshot.host.driver.libcuda.outcome == "timeout"
    assert snapshot.host.gpus is None
    assert snapshot.gap("host.gpus") == "did not answer within 1.5 s and was stopped"
    assert snapshot.host.os.machine == os.uname().machine
    assert snapshot.env.python.version is not None
