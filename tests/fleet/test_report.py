"""`fleet report` on reports of recorded machines: groups, counts, drift, exit statuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.runner import run_cli
from tests.fleet.recorded import report, report_text

USUAL = "h200-toolkit-on-library-path"


def write(folder: Path, **machines: str) -> Path:
    """A folder of reports: host -> recorded machine."""
    folder.mkdir(exist_ok=True)
    for host, machine in machines.items():
        (folder / f"{host}.json").write_text(report_text(machine))
    return folder


def picture(*args: str | Path) -> dict[str, Any]:
    done = run_cli("fleet", "report", "--json", *map(str, args))
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["exit_code"] == done.returncode
    return data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(
        tmp_path / "reports",
        n1=USUAL,
        n2=USUAL,
        n10=USUAL,
        odd="h200-r610-torch215",
        lost="rtx3090-driver-missing",
        unloaded="rtx3090-not-loaded",
    )


def test_outliers_come_first_and_say_what_differs(folder: Path) -> None:
    data = picture(folder)
    groups = [(each["hosts"], each["usual"]) for each in data["groups"]]
    assert groups == [
        (["lost"], False),
        (["odd"], False),
        (["unloaded"], True),
        (["n1", "n2", "n10"], True),
    ]
    odd = next(each for each in data["groups"] if each["hosts"] == ["odd"])
    assert {"part": "driver", "usual": "580.159.04, open", "here": "610.47, open"} in odd[
        "differences"
    ]
    assert {each["part"] for each in odd["differences"]} == {
        "driver",
        "CUDA of the driver",
        "torch",
        "cuDNN",
        "NCCL",
    }


def test_findings_are_counted_by_host(folder: Path) -> None:
    data = picture(folder)
    counted = {each["id"]: each["hosts"] for each in data["findings"]}
    assert counted["driver-missing"] == ["lost"]
    assert counted["driver-not-loaded"] == ["unloaded"]
    assert [each["severity"] for each in data["findings"]] == sorted(
        (each["severity"] for each in data["findings"]),
        key=["error", "warning", "info"].index,
    )
    missing = next(each for each in data["findings"] if each["id"] == "driver-missing")
    said = next(each for each in report("rtx3090-driver-missing")["findings"])
    assert (missing["title"], missing["fix"]) == (said["title"], said["fix"])
    assert data["verdicts"] == [{"name": "error", "count": 2}, {"name": "ok", "count": 4}]


def test_the_matrix_counts_drivers_and_builds(folder: Path) -> None:
    cells = {(each["driver"], each["torch"]): each["hosts"] for each in picture(folder)["matrix"]}
    assert cells["580.159.04 (CUDA 13.0)", "2.11.0+cu130 (CUDA 13.0)"] == 3
    assert cells["610.47 (CUDA 13.3)", "2.15.0+cu132 (CUDA 13.2)"] == 1
    assert sum(cells.values()) == 6


def test_hosts_name_their_group(folder: Path) -> None:
    data = picture(folder)
    for node in data["nodes"]:
        assert node["name"] in data["groups"][node["group"]]["hosts"]
    assert [each["name"] for each in data["nodes"]][2:] == ["n1", "n2", "n10", "odd"]


DAMAGE = {
    "empty": ("", "empty"),
    "cut": ('{"schema_version": "1", "verdict": "o', "not JSON"),
    "bytes": ("\udcff\udcfe", "not JSON"),
    "list": ("[]", "not a report"),
    "newer": ('{"schema_version": "2"}', "schema version '2'"),
    "deep": ("[" * 100_000, "nested too deeply"),
    "bare": ('{"schema_version": "1", "verdict": "ok"}', "findings is missing"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_report_keeps_no_other_from_being_read(tmp_path: Path, kind: str) -> None:
    text, reason = DAMAGE[kind]
    write(tmp_path, good=USUAL)
    (tmp_path / "bad.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    data = picture(tmp_path)
    assert [each["name"] for each in data["nodes"]] == ["good"]
    (damaged,) = data["damaged"]
    assert damaged["path"] == str(tmp_path / "bad.json")
    assert reason in damaged["reason"]
    assert data["exit_code"] == 4


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("verdict",), "fine"),
        (("verdict",), None),
        (("findings",), None),
        (("snapshot",), []),
        (("snapshot", "host"), "x"),
        (("snapshot", "host", "driver"), None),
        (("snapshot", "env", "frameworks"), [1]),
        (("unknown",), [{}]),
        (("drift",), [{"field": 1}]),
        (("exit_code",), {}),
    ],
)
def test_a_field_of_the_wrong_kind_is_damage(
    tmp_path: Path, path: tuple[str, ...], value: object
) -> None:
    data = report(USUAL)
    place = data
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    (tmp_path / "host.json").write_text(json.dumps(data))
    result = picture(tmp_path)
    assert (len(result["damaged"]), result["nodes"], result["exit_code"]) == (1, [], 4)


def test_a_run_that_failed_is_no_judgement(tmp_path: Path) -> None:
    write(tmp_path, good=USUAL)
    failed = {"schema_version": "1", "error": {"message": "no such table", "exit_code": 4}}
    (tmp_path / "failed.json").write_text(json.dumps(failed))
    data = picture(tmp_path)
    assert data["absent"] == [
        {"name": "failed", "kind": "failed", "reason": "no such table", "report": False}
    ]
    assert data["exit_code"] == 3


@pytest.mark.parametrize(
    ("machines", "args", "code"),
    [
        ({"a": USUAL}, (), 0),
        ({"a": USUAL, "b": "rtx4090-torch-cpu"}, (), 1),
        ({"a": USUAL, "b": "rtx4090-torch-cpu"}, ("--fail-on", "never"), 0),
        ({"a": "debian12-toolkit-only"}, (), 0),
        ({"a": "debian12-toolkit-only"}, ("--fail-on", "warning"), 1),
    ],
)
def test_exit_statuses(
    tmp_path: Path, machines: dict[str, str], args: tuple[str, ...], code: int
) -> None:
    assert picture(*args, write(tmp_path, **machines))["exit_code"] == code


def test_a_finding_outweighs_damage(tmp_path: Path) -> None:
    write(tmp_path, sick="rtx4090-torch-cpu")
    (tmp_path / "bad.json").write_text("")
    assert picture(tmp_path)["exit_code"] == 1


def test_equal_names_of_two_folders_are_told_apart(tmp_path: Path) -> None:
    one, two = write(tmp_path / "one", n1=USUAL), write(tmp_path / "two", n1="rtx4090-torch-cpu")
    names = {each["name"]: each["verdict"] for each in picture(one, two)["nodes"]}
    assert names == {f"{one}/n1": "ok", f"{two}/n1": "error"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("nowhere",), "cannot read nowhere: no such file or folder"),
        ((".",), "no reports in .: they are called HOST.json"),
        ((".", "--against", "nowhere"), "cannot read nowhere"),
        ((".", "--format", "pdf"), "'pdf' is not known"),
        ((), "the following arguments are required: DIR"),
    ],
)
def test_what_cannot_be_followed(tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    done = run_cli("fleet", "report", *args, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr.splitlines()[0]
    assert done.stdout == ""


def test_the_picture_is_written_as_a_whole(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "fleet.prom"
    done = run_cli("fleet", "report", str(folder), "--format", "prometheus", "-o", str(place))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: driver-missing on 1 host:")
    assert 'envcheck_fleet_hosts{verdict="error"} 2\n' in place.read_text()
