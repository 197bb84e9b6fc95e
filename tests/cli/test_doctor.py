"""One judgement, five formats, one exit status; and what the flags change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import jsonschema
import pytest

import envcheck
import envcheck.commands.doctor
from envcheck.cli import main
from envcheck.errors import TableError
from envcheck.model.environment import Environment
from envcheck.model.host import Host
from envcheck.model.snapshot import Gap, Snapshot
from tests.cli.conftest import Doctor
from tests.support import evolve, gpu, machine, torch

HEALTHY = machine(frameworks=(torch("2.11.0+cu130"),))
OLD_GPU = machine(
    gpus=(gpu(name="NVIDIA GeForce GTX 1080 Ti", arch="6.1"),),
    driver="570.133.20",
    cuda="12.8",
    frameworks=(torch("2.8.0+cu128", arches=("sm_75", "sm_80", "sm_90", "sm_120")),),
)
NO_GPU = machine(driver=None, cuda=None, gpus=())
FORMATS = ("text", "json", "markdown", "junit", "sarif")


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    """The JSON Schema that ships in the package."""
    path = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("snapshot", "flags", "status"),
    [
        (HEALTHY, (), 0),
        (HEALTHY, ("--fail-on", "warning", "--require-gpu"), 0),
        (OLD_GPU, (), 1),
        (OLD_GPU, ("--fail-on", "never"), 0),
        (NO_GPU, (), 0),
        (NO_GPU, ("--fail-on", "warning"), 1),
        (NO_GPU, ("--require-gpu",), 1),
        (NO_GPU, ("--ignore", "no-gpu"), 0),
        (NO_GPU, ("--select", "driver-too-old"), 0),
        (NO_GPU, ("--select", "driver-too-old", "--require-gpu"), 3),
        (Snapshot(host=Host(), env=Environment()), (), 3),
    ],
)
def test_exit_status_is_the_same_in_every_format(
    doctor: Doctor, form: str, snapshot: Snapshot, flags: tuple[str, ...], status: int
) -> None:
    code, out, err = doctor(snapshot, "--format", form, *flags)
    assert (code, err) == (status, "")
    assert out.endswith("\n")
    if form == "json":
        assert json.loads(out)["exit_code"] == status
    if form == "junit":
        assert int(ET.fromstring(out).attrib["failures"]) == (1 if status == 1 else 0)  # noqa: S314
    if form == "sarif":
        assert json.loads(out)["runs"][0]["invocations"][0]["exitCode"] == status


def test_a_machine_without_gpu_is_one_warning_and_nothing_else(doctor: Doctor) -> None:
    _, out, _ = doctor(NO_GPU, "--json")
    report = json.loads(out)
    assert [(each["id"], each["severity"]) for each in report["findings"]] == [
        ("no-gpu", "warning")
    ]
    assert (report["verdict"], report["unknown"]) == ("warning", [])


def test_require_gpu_makes_it_an_error(doctor: Doctor) -> None:
    _, out, _ = doctor(NO_GPU, "--json", "--require-gpu")
    report = json.loads(out)
    assert [(each["id"], each["severity"]) for each in report["findings"]] == [("no-gpu", "error")]
    assert report["verdict"] == "error"


def test_the_last_line_sums_up_and_stands_alone(doctor: Doctor) -> None:
    _, healthy, _ = doctor(HEALTHY)
    assert healthy.splitlines()[-2:] == ["", "ok: no problem found"]
    _, broken, _ = doctor(OLD_GPU)
    last = broken.splitlines()[-1]
    assert last.startswith("1 error: ")
    assert broken.count(last) == 1


def test_nothing_known_is_unknown_and_says_so(doctor: Doctor) -> None:
    blind = Snapshot(gaps=(Gap(path="host", reason="no permission"),))
    _, out, _ = doctor(blind, "--json")
    assert json.loads(out)["verdict"] == "unknown"
    _, out, _ = doctor(blind)
    assert "NVIDIA driver      unknown: no permission\n" in out
    assert out.splitlines()[-1].startswith(
        "unknown: too little could be read to judge this machine"
    )


@pytest.mark.parametrize("snapshot", [HEALTHY, OLD_GPU, NO_GPU, Snapshot()])
def test_json_is_what_the_schema_says_and_nothing_more(
    doctor: Doctor, schema: dict[str, Any], snapshot: Snapshot
) -> None:
    _, out, _ = doctor(snapshot, "--json")
    report = json.loads(out)
    jsonschema.Draft202012Validator(schema).validate(report)
    assert list(report) == [
        "schema_version",
        "verdict",
        "exit_code",
        "findings",
        "ask",
        "unknown",
        "snapshot",
        "tables",
        "notes",
    ]
    strict = _closed(schema)
    jsonschema.Draft202012Validator(strict).validate(report)


def _closed(schema: Any) -> Any:
    """The schema with every object closed to fields that it does not name."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(each) for name, each in schema.items()}
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object":
        closed.setdefault("additionalProperties", False)
    return closed


def test_json_of_a_failed_run_is_what_the_schema_says(
    schema: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json", "--machine", "/nowhere"]) == 4
    failure = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(schema).validate(failure)
    assert failure == {
        "schema_version": "1",
        "error": {"message": "/nowhere: no such folder", "exit_code": 4},
    }


def test_select_gives_only_what_was_selected(doctor: Doctor) -> None:
    both = evolve(OLD_GPU, {"host.shm_bytes": 1 << 20})
    _, out, _ = doctor(both, "--json", "--select", "no-gpu,gpu-older-than-build")
    assert [each["id"] for each in json.loads(out)["findings"]] == ["gpu-older-than-build"]
    _, out, _ = doctor(both, "--json", "--ignore", "gpu-older-than-build")
    assert "gpu-older-than-build" not in [each["id"] for each in json.loads(out)["findings"]]


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (TableError("cuda.toml: row 3: cuda: missing"), 4, "cuda.toml: row 3: cuda: missing"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (
            ZeroDivisionError("no"),
            3,
            "internal error, please report it: ZeroDivisionError: no",
        ),
    ],
)
def test_what_ends_a_run_is_one_line_and_a_status(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    status: int,
    message: str,
) -> None:
    def take(*_args: object, **_settings: object) -> Snapshot:
        raise error

    monkeypatch.setattr(envcheck.commands.doctor, "take_snapshot", take)
    assert main(["doctor", "--json"]) == status
    captured = capsys.readouterr()
    assert captured.err == f"envcheck: {message}\n"
    assert json.loads(captured.out)["error"] == {"message": message, "exit_code": status}


def test_verbose_lists_gaps_and_tables(doctor: Doctor) -> None:
    snapshot = evolve(HEALTHY, {"gaps": (Gap(path="host.virtual", reason="not readable"),)})
    _, quiet, _ = doctor(snapshot)
    _, loud, _ = doctor(snapshot, "-v")
    assert "host.virtual: not readable" not in quiet
    assert "\nnot read\n  host.virtual: not readable\n" in loud
    assert "\ntables\n  " in loud


def test_a_file_gets_the_whole_report_and_stderr_the_last_line(
    doctor: Doctor, tmp_path: Path
) -> None:
    place = tmp_path / "report.json"
    code, out, err = doctor(OLD_GPU, "--json", "-o", str(place))
    assert (code, out) == (1, "")
    assert json.loads(place.read_text(encoding="utf-8"))["exit_code"] == 1
    assert err.startswith("1 error: ")
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_a_file_in_a_folder_that_is_not_there_is_a_usage_error(
    doctor: Doctor, tmp_path: Path
) -> None:
    place = tmp_path / "none" / "report.txt"
    code, out, err = doctor(HEALTHY, "-o", str(place))
    assert (code, out) == (2, "")
    assert err == f"envcheck: cannot write {place}: No such file or directory\n"


def test_a_failed_run_leaves_no_stale_report(tmp_path: Path) -> None:
    place = tmp_path / "report.json"
    place.write_text("old", encoding="utf-8")
    assert main(["doctor", "--json", "--machine", "/nowhere", "-o", str(place)]) == 4
    assert json.loads(place.read_text(encoding="utf-8"))["error"]["exit_code"] == 4
