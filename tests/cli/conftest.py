"""A machine recorded once, and commands run inside the test's process on facts built by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import envcheck.commands.doctor
from envcheck.cli import main
from envcheck.model.snapshot import Snapshot
from tests.cli.runner import run_cli

Doctor = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This machine, recorded by the command line itself."""
    folder = tmp_path_factory.mktemp("machines") / "here"
    done = run_cli("snapshot", "--record", str(folder))
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Doctor:
    """`doctor(snapshot, *flags)`: exit status, stdout, stderr of `envcheck doctor`."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def run(snapshot: Snapshot, *flags: str) -> tuple[int, str, str]:
        def take(*_args: object, meanwhile: Callable[[], None], **_settings: object) -> Snapshot:
            meanwhile()
            return snapshot

        monkeypatch.setattr(envcheck.commands.doctor, "take_snapshot", take)
        code = main(["doctor", *flags])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
