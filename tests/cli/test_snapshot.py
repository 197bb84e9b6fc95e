"""The facts as JSON, and recordings that give the same judgement anywhere."""

from __future__ import annotations

import json
from pathlib import Path

from envcheck.model.codec import decode
from envcheck.model.snapshot import Snapshot
from tests.cli.runner import run_cli


def test_the_printed_facts_are_a_snapshot(recording: Path) -> None:
    done = run_cli("snapshot", "--machine", str(recording))
    assert (done.returncode, done.stderr) == (0, "")
    snapshot = decode(Snapshot, json.loads(done.stdout))
    assert snapshot.source == "recorded:here"
    assert snapshot.host.os.kernel


def test_a_recording_replays_to_the_facts_it_was_made_from(recording: Path) -> None:
    saved = json.loads((recording / "snapshot.json").read_text(encoding="utf-8"))
    replayed = json.loads(run_cli("snapshot", "--machine", str(recording)).stdout)
    del saved["source"], replayed["source"]
    assert replayed == saved


def test_a_recording_is_never_written_over(recording: Path) -> None:
    done = run_cli("snapshot", "--record", str(recording))
    assert done.returncode == 4
    assert done.stderr.startswith(f"envcheck: {recording}: ")
    assert json.loads(done.stdout)["error"]["exit_code"] == 4


def test_facts_go_to_a_file(recording: Path, tmp_path: Path) -> None:
    place = tmp_path / "facts.json"
    done = run_cli("snapshot", "--machine", str(recording), "-o", str(place))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert json.loads(place.read_text(encoding="utf-8"))["schema"] == 1
    assert place.stat().st_mode & 0o077 == 0o044
