"""nvidia-smi as the fallback where NVML is silent: programs of that name first on PATH."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from envcheck.model.host import Gpu
from envcheck.model.snapshot import Snapshot
from envcheck.probe.live import Live
from envcheck.probe.snapshot import take_snapshot

Machine = Callable[..., Live]

TABLE_550 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
"""
TABLE_610 = """\
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.43.02              KMD Version: 610.43.02     CUDA UMD Version: 13.3     |
+-----------------------------------------+------------------------+----------------------+
"""
ROW = "0, NVIDIA L40S, 8.9, 00000000:3B:00.0, 46068, 3"

Probe = Callable[..., Snapshot]


@pytest.fixture
def probe(tmp_path: Path, stubs: Path) -> Probe:
    """`probe(body, timeout)`: snapshot of this machine with a silent NVML and that nvidia-smi."""

    def run(body: str, timeout: float = 5.0, kind: str = "empty", **settings: str) -> Snapshot:
        program = tmp_path / "bin" / "nvidia-smi"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        program.chmod(0o755)
        live = Live(
            variables={
                "PATH": f"{program.parent}:/usr/bin:/bin",
                "LD_LIBRARY_PATH": str(stubs / kind),
                **settings,
            }
        )
        return take_snapshot(live, python="/usr/bin/python3", timeout=timeout)

    return run


def answering(table: str) -> str:
    return f"case \"$1\" in --query*) echo '{ROW}';; *) cat <<'END'\n{table}END\n;; esac"


@pytest.mark.parametrize(
    ("table", "version", "cuda"),
    [(TABLE_550, "550.54.15", "12.4"), (TABLE_610, "610.43.02", "13.3")],
)
def test_both_spellings(probe: Probe, table: str, version: str, cuda: str) -> None:
    snapshot = probe(answering(table))
    driver = snapshot.host.driver
    assert (driver.smi.outcome, driver.smi.code) == ("ok", 0)
    assert [(each.value, each.via) for each in driver.readings] == [(version, "nvidia-smi")]
    assert [(each.value, each.via) for each in driver.cuda_readings] == [(cuda, "nvidia-smi")]
    assert (driver.version, driver.cuda) == (version, cuda)
    assert snapshot.host.gpus == (
        Gpu(
            index=0,
            name="NVIDIA L40S",
            arch="8.9",
            bus_id="0000:3b:00.0",
            memory_total_bytes=46068 << 20,
            memory_used_bytes=3 << 20,
        ),
    )


def test_it_is_not_asked_where_nvml_answers(probe: Probe, tmp_path: Path) -> None:
    snapshot = probe(f"touch {tmp_path}/asked; echo", kind="full")
    assert snapshot.host.driver.smi.outcome == "not-asked"
    assert snapshot.host.driver.version == "550.54.15"
    assert not (tmp_path / "asked").exists()


def test_a_hang_is_a_timeout(probe: Probe) -> None:
    started = time.monotonic()
    snapshot = probe("trap '' TERM; sleep 60 & sleep 60", timeout=1.0)
    assert (snapshot.host.driver.smi.outcome, snapshot.host.driver.smi.message) == (
        "timeout",
        "did not answer within 1 s and was stopped",
    )
    assert snapshot.host.gpus is None
    assert time.monotonic() - started < 6


def test_a_flood_is_stopped(probe: Probe) -> None:
    snapshot = probe("head -c 100000000 /dev/zero | tr '\\0' 'x'")
    assert (snapshot.host.driver.smi.outcome, snapshot.host.driver.smi.message) == (
        "timeout",
        "printed more than 8000000 bytes and was stopped",
    )
    assert snapshot.host.gpus is None


@pytest.mark.parametrize(
    "body",
    [
        "printf '\\000\\377,,,,,\\n\"'; head -c 300000 /dev/zero | tr '\\0' 'y'",
        "echo '0, a, b, c:d:e, f, g'",
        "true",
    ],
)
def test_garbage_is_no_driver_and_no_crash(probe: Probe, body: str) -> None:
    driver = probe(body).host.driver
    assert (driver.smi.outcome, driver.version, driver.cuda) == ("error", None, None)


def test_its_own_words_are_kept(probe: Probe) -> None:
    words = "Failed to initialize NVML: Driver/library version mismatch"
    driver = probe(f"echo '{words}'; echo 'NVML library version: 580.95'; exit 18").host.driver
    assert (driver.smi.outcome, driver.smi.code, driver.smi.message) == ("error", 18, words)


def test_a_crash_is_named(probe: Probe) -> None:
    driver = probe("kill -SEGV $$").host.driver
    assert (driver.smi.outcome, driver.smi.message) == ("crash", "was ended by SIGSEGV")


@pytest.mark.parametrize("variables", [{}, {"PATH": ""}, {"PATH": ":.:bin"}])
def test_a_bare_environment_is_probed_all_the_same(variables: dict[str, str]) -> None:
    """No PATH, no HOME: tools are found in the usual folders, and nothing raises."""
    snapshot = take_snapshot(Live(variables=variables), python="/usr/bin/python3")
    assert snapshot.host.os.machine is not None
    assert snapshot.host.os.glibc is not None
    assert snapshot.env.python.error is None
