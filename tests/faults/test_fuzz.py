"""Each reader of foreign files, fed with damage: its own error with one line, or an answer."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envcheck.engine import judge
from envcheck.errors import EnvcheckError, LockError, RecordingError, TableError
from envcheck.matrix.loader import Matrix
from envcheck.model.codec import CodecError, decode, encode
from envcheck.model.finding import Report
from envcheck.model.snapshot import Snapshot
from envcheck.planner.lock import parse_lock
from envcheck.probe.record import Recorded
from envcheck.probe.redact import Redactor
from envcheck.probe.snapshot import take_snapshot
from envcheck.rules import all_rules
from tests.faults.faulty import Faulty

TESTS = Path(__file__).resolve().parents[1]
MACHINE = TESTS / "machines" / "rtx4090-torch-cpu"
LOCK = (TESTS / "planner" / "example.lock").read_text("utf-8")
TABLE = """schema = 1
name = "nccl"
date = "2026-01-31"

[[source]]
id = "a"
title = "A"
retrieved = "2026-01-31"

[[release]]
nccl = "2.27.5"
cuda_majors = ["12"]
source = "a"
method = "published"
confidence = "high"
"""

quick = settings(
    max_examples=120, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)

PIECES = st.sampled_from(
    (
        "",
        "\x00",
        "\x1b[2J",
        '"',
        "'",
        "[",
        "]",
        "{",
        "}",
        "=",
        "\n",
        "\\",
        "../",
        "-1",
        "1e999",
        "true",
        "null",
        "9" * 5000,
        "[" * 3000,
        "\ufffd",
        "$(id)",
        "\u202e",
        "nan",
        "1979-05-27",
    )
)


@st.composite
def damaged(draw: st.DrawFn, text: str) -> str:
    """A text with some of its pieces cut out, doubled or replaced."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 30)))
        text = text[:at] + draw(PIECES | st.text(max_size=5)) + text[end:]
    return text


@quick
@given(damaged(LOCK))
def test_locks(text: str) -> None:
    try:
        parse_lock(text, "x.lock")
    except LockError as error:
        assert "\n" not in str(error)


@quick
@given(damaged(TABLE))
def test_tables(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "nccl.toml").write_text(text, "utf-8", "surrogatepass")
    try:
        Matrix(folder).nccl_releases  # noqa: B018
    except TableError as error:
        assert str(error)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from((10**400, "\x1b[2J", "12.8", "2.8.0+cu128", "sm_90", "10de")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in plain data."""
    found = [path] if path else []
    items: Any = data.items() if isinstance(data, dict) else ()
    items = enumerate(data) if isinstance(data, list) else items
    for key, inner in items:
        found += places(inner, (*path, key))
    return found


@functools.cache
def plain(kind: str) -> tuple[str, list[tuple[Any, ...]]]:
    snapshot = take_snapshot(Faulty(Recorded(str(MACHINE)), None, None))
    value = snapshot if kind == "snapshot" else judge(snapshot, Matrix.shipped(), all_rules())
    data = encode(value)
    return json.dumps(data), places(data)


@st.composite
def altered(draw: st.DrawFn, kind: str) -> Any:
    """A model as plain data with one place put to something else."""
    text, known = plain(kind)
    data = json.loads(text)
    path = draw(st.sampled_from(known))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = draw(values)
    return data


@pytest.mark.parametrize(("cls", "kind"), [(Snapshot, "snapshot"), (Report, "report")])
def test_the_codec(cls: type, kind: str) -> None:
    @quick
    @given(altered(kind))
    def check(data: Any) -> None:
        try:
            value: Any = decode(cls, data)
        except CodecError as error:
            assert str(error).startswith("$.")
        else:
            assert decode(cls, encode(value)) == value or data != data  # noqa: PLR0124 - NaN

    check()


@quick
@given(altered("snapshot"))
def test_rules_on_any_facts(data: Any) -> None:
    """Facts that fit the model, however odd, crash no rule."""
    try:
        snapshot = decode(Snapshot, data)
    except CodecError:
        return
    report = judge(snapshot, Matrix.shipped(), all_rules())
    assert [each for each in report.unknown if each.kind == "crashed"] == []


FILES = ("machine.toml", "paths.json", "variables.json", "commands.json")


@pytest.mark.parametrize("name", FILES)
def test_recordings(tmp_path: Path, name: str) -> None:
    import shutil

    folder = tmp_path / "m"
    shutil.copytree(MACHINE, folder)
    text = (folder / name).read_text("utf-8")

    @settings(quick, max_examples=40)
    @given(damaged(text))
    def check(changed: str) -> None:
        (folder / name).write_text(changed, "utf-8", "surrogatepass")
        try:
            take_snapshot(
                Faulty(Recorded(str(folder)), None, None), python="/opt/torch/.venv/bin/python3"
            )
        except EnvcheckError as error:
            assert "\n" not in str(error)
            assert isinstance(error, RecordingError) or "--python" in str(error)

    check()


@settings(quick, derandomize=True)
@given(
    st.text(max_size=200)
    | damaged("inet6 fe80::1 10.0.0.1 GPU-8c1f0a52-77d4-4b1e-9c55-0123456789ab")
)
def test_redaction_is_done_after_one_pass(text: str) -> None:
    redact = Redactor({"USER": "alice", "HOME": "/home/alice"}, lambda _path: "buildbox7")
    once = redact(text)
    assert redact(once) == once


def test_by_coverage() -> None:
    """Some seconds of coverage-guided fuzzing, where its library is installed."""
    pytest.importorskip("atheris", reason="atheris is not installed")
    import subprocess

    program = Path(__file__).with_name("coverage_guided.py")
    done = subprocess.run(
        [sys.executable, str(program), "-max_total_time=5", "-verbosity=0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
