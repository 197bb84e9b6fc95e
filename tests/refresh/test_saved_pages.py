"""The tables say what the wheels say: a sample, derived anew from the headers of real wheels.

`pages` is what `envcheck tables refresh --cache` keeps, cut down to a few releases and to the
headers in question.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from envcheck.matrix.loader import Matrix
from envcheck.refresh import TABLES, merge, reader
from envcheck.refresh.derived import Derived, Scope, python_tags, typical
from envcheck.refresh.page import Wheel
from envcheck.refresh.store import Store
from envcheck.refresh.torch import arch_order, version_facts
from envcheck.refresh.wheel_index import WheelIndex

PAGES = Path(__file__).parent / "pages"
TODAY = "2026-12-31"

RELEASES = {
    "cudnn": ("9.1.0.70", "9.28.0.42", "9.28.1.4"),
    "frameworks/jax": ("0.4.32", "0.4.38", "0.12.0.1"),
    "frameworks/libraries": (
        "0.0.30",
        "0.10.0",
        "0.11.2",
        "0.50.2",
        "1.15.0",
        "2.6.6",
        "3.0.0",
        "5.1.0",
    ),
    "frameworks/tensorflow": ("2.13.0", "2.15.0.post1", "2.17.0", "2.21.0"),
    "frameworks/torch": ("2.8.0", "2.15.0"),
    "nccl": ("2.20.3", "2.20.5", "2.27.7"),
}


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    """The shipped tables."""
    return Matrix.shipped()


def scope(matrix: Matrix, name: str, *releases: str, arches: bool = False) -> Scope:
    majors = tuple(row.cuda_major for row in matrix.minor_floors)
    return Scope(table=matrix.table(name), cuda_majors=majors, releases=releases, arches=arches)


def derived(asked: Scope, folder: Path = PAGES) -> Derived:
    return reader(str(asked.table["name"]))[0](WheelIndex(Store(folder)), asked)


def row(found: Derived, section: str, **wanted: object) -> Mapping[str, Any]:
    (values,) = [
        each.values
        for each in found.rows
        if each.section == section
        and all(each.values.get(name) == value for name, value in wanted.items())
    ]
    return values


def test_the_sample_covers_every_table_that_follows_from_wheels() -> None:
    assert tuple(RELEASES) == TABLES


@pytest.mark.parametrize("name", list(RELEASES))
def test_what_is_listed_equals_the_wheels(matrix: Matrix, name: str) -> None:
    asked = scope(matrix, name, *RELEASES[name], arches=True)
    found = derived(asked)
    outcome = merge.compare(found, asked, reader(name)[1], TODAY)
    assert (outcome.changes, outcome.contradicted, outcome.vanished) == ((), (), ())
    assert found.unread == {}
    key = {"cudnn": "cudnn", "nccl": "nccl"}.get(name, "version")
    assert {each.values.get(key) for each in found.rows} >= set(RELEASES[name])


# -- torch -----------------------------------------------------------------------------------------


def test_a_torch_build_with_all_that_follows(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/torch", "2.15.0", arches=True))
    assert row(found, "build", platform="linux_x86_64") == {
        "version": "2.15.0",
        "platform": "linux_x86_64",
        "variant": "cu132",
        "cuda": "13.2",
        "index_default": True,
        "cudnn": "9.26.0.51",
        "nccl": "2.30.7",
        "triton": "~=3.9.0",
        "python": ["cp311", "cp312", "cp313", "cp314", "cp315", "cp314t", "cp315t"],
        "glibc": "2.28",
        "git_version": "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e",
        "arches": ["sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"],
    }
    measured = {each.values["platform"]: each.measured for each in found.rows if each.measured}
    assert measured == {"linux_aarch64": True, "linux_x86_64": True}


def test_markers_decide_what_a_platform_gets(matrix: Matrix) -> None:
    """The metadata of both platforms is the same text; only x86_64 has CUDA."""
    found = derived(scope(matrix, "frameworks/torch", "2.8.0"))
    x86 = row(found, "build", platform="linux_x86_64")
    arm = row(found, "build", platform="linux_aarch64")
    assert (x86["variant"], x86["cudnn"], x86["nccl"]) == ("cu128", "9.10.2.21", "2.27.3")
    assert (arm["variant"], arm["cudnn"], arm["nccl"]) == ("cpu", None, None)
    assert arm["arches"] == []
    assert "arches" not in x86  # not looked for, so nothing is said


def test_old_torch_builds(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/torch", "1.13.1", "2.0.0"))
    old = row(found, "build", version="1.13.1", platform="linux_x86_64")
    assert (old["cuda"], old["cudnn"], old["nccl"], old["triton"]) == (
        "11.7",
        "8.5.0.96",
        None,
        None,
    )
    assert (old["glibc"], old["python"]) == ("2.5", ["cp37", "cp38", "cp39", "cp310", "cp311"])
    arm = row(found, "build", version="1.13.1", platform="linux_aarch64")
    assert (arm["variant"], arm["glibc"]) == ("cpu", "2.17")
    two = row(found, "build", version="2.0.0", platform="linux_x86_64")
    assert (two["nccl"], two["triton"]) == ("2.14.3", "2.0.0")


def test_companions_are_those_that_name_the_torch(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/torch", "1.13.1", "2.0.0", "2.8.0", "2.15.0"))
    pairs = {
        each.values["torch"]: (each.values.get("torchvision"), each.values.get("torchaudio"))
        for each in found.rows
        if each.section == "companion"
    }
    # torchaudio 2.0.1 is that of torch 2.0.0; no torchvision names exactly torch 2.15.0.
    assert pairs == {
        "1.13.1": ("0.14.1", "0.13.1"),
        "2.0.0": ("0.15.1", "2.0.1"),
        "2.8.0": ("0.23.0", "2.8.0"),
    }
    assert found.notes == []  # since the table has a row for torch 2.15.0


def test_a_new_torch_without_a_companion_is_pointed_out(matrix: Matrix) -> None:
    table = dict(matrix.table("frameworks/torch"))
    table["companion"] = [row for row in table["companion"] if row["torch"] != "2.15.0"]
    found = derived(Scope(table=table, releases=("2.15.0",)))
    assert [note.partition(":")[0] for note in found.notes] == ["torch 2.15.0"]


@pytest.mark.parametrize(
    ("text", "cuda"),
    [
        ("cuda = '11.7'\n", "11.7"),
        ("from typing import Optional\ncuda: Optional[str] = '12.8'\n", "12.8"),
        ("cuda = None\n", None),
        ("debug = False\n", None),
        ("cuda = compute()\n", None),
    ],
)
def test_version_files_of_all_years(text: str, cuda: str | None) -> None:
    assert version_facts(text).get("cuda") == cuda


def test_arches_machine_code_first_by_number() -> None:
    given = ["compute_120", "sm_100", "sm_90a", "sm_90", "sm_75"]
    assert sorted(given, key=arch_order) == ["sm_75", "sm_90", "sm_90a", "sm_100", "compute_120"]


# -- the others ------------------------------------------------------------------------------------


def test_early_jax_left_its_pins_to_an_extra_of_its_own(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/jax", "0.4.26"))
    plugin = row(found, "plugin")
    assert (plugin["cuda_major"], plugin["platforms"]) == ("12", ["linux_x86_64"])
    assert "nvidia-cudnn-cu12<9.0,>=8.9.2.26" in plugin["requires"]
    assert "nvidia-nccl-cu12>=2.18.1" in plugin["requires"]
    assert plugin["python"] == ["cp39", "cp310", "cp311", "cp312"]
    assert row(found, "release")["cuda_extra"] is None


def test_late_jax_has_a_plugin_for_each_cuda(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/jax", "0.12.0.1"))
    twelve, thirteen = (row(found, "plugin", cuda_major=major) for major in ("12", "13"))
    assert "nvidia-cudnn-cu12<10.0,>=9.10.2.21" in twelve["requires"]
    assert {"nvidia-nccl-cu13>=2.27.7", "nvidia-nvvm"} <= set(thirteen["requires"])
    release = row(found, "release")
    assert (release["jaxlib"], release["requires_python"]) == ("<=0.12.0.1,>=0.11.2", ">=3.12")


def test_a_withdrawn_release_is_noted(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/jax", "0.4.32", "0.4.38"))
    notes = {each.values["version"]: each.note for each in found.rows if each.section == "release"}
    assert notes == {"0.4.32": "withdrawn", "0.4.38": None}


def test_tensorflow_with_and_without_the_extra(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/tensorflow", "2.13.0", "2.15.0.post1"))
    old, new = (
        row(found, "release", version="2.13.0"),
        row(found, "release", version="2.15.0.post1"),
    )
    names = ("cuda_major", "cudnn", "nccl", "runtime", "platforms")
    both = ["linux_aarch64", "linux_x86_64"]
    assert [old[name] for name in names] == [None, None, None, None, both]
    assert [new[name] for name in names] == [
        "12",
        "8.9.4.25",
        "2.16.5",
        "12.2.140",
        ["linux_x86_64"],
    ]


def test_cudnn_and_nccl_by_cuda_major(matrix: Matrix) -> None:
    cudnn = derived(scope(matrix, "cudnn", "9.28.1.4", "9.1.0.70"))
    majors = {each.values["cudnn"]: each.values["cuda_majors"] for each in cudnn.rows}
    assert majors == {"9.1.0.70": ["11", "12"], "9.28.1.4": ["13"]}
    nccl = derived(scope(matrix, "nccl", "2.20.3", "2.27.7"))
    majors = {each.values["nccl"]: each.values["cuda_majors"] for each in nccl.rows}
    assert majors == {"2.20.3": ["12"], "2.27.7": ["12", "13"]}


def test_files_of_a_new_cudnn_are_read_from_its_wheel(tmp_path: Path, matrix: Matrix) -> None:
    shutil.copytree(PAGES / "nvidia-cudnn-cu13", tmp_path / "nvidia-cudnn-cu13")
    name = "nvidia_cudnn_cu13-9.28.1.4-py3-none-manylinux_2_27_x86_64.whl"
    kept = tmp_path / "nvidia-cudnn-cu13" / name / "names.txt"
    kept.parent.mkdir()
    lines = ["nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cudnn/include/cudnn.h"]
    lines += ["nvidia/cudnn/lib/libcudnn_ops.so.9", "libcudnn.so.9"]
    kept.write_text("\n".join(lines), encoding="utf-8")
    table = dict(matrix.table("cudnn"))
    table["release"] = [row for row in table["release"] if row["cudnn"] != "9.28.1.4"]
    found = derived(
        Scope(table=table, cuda_majors=("12", "13"), releases=("9.28.1.4",)), folder=tmp_path
    )
    assert row(found, "release")["libraries"] == ["libcudnn.so.9", "libcudnn_ops.so.9"]
    assert found.rows[0].measured
    assert found.unread == {"": ["nvidia-cudnn-cu12"]}


# -- which releases, which wheel -------------------------------------------------------------------


def test_only_finished_releases_from_the_oldest_listed_one_on() -> None:
    wheels = [
        Wheel(project="x", filename="f", version=each, python="cp312", platform="linux_x86_64")
        for each in ("1.9", "2.0", "2.1rc1", "2.1", "2.10", "2.2.post1", "3.0.dev1", "odd!")
    ]
    asked = Scope(table={"release": [{"version": "2.0"}, {"version": "2.1"}]})
    found = [release for release, _ in asked.of_interest(wheels, "release")]
    assert found == ["2.0", "2.1", "2.2.post1", "2.10"]


def test_the_wheel_that_stands_for_the_others() -> None:
    wheels = [
        Wheel(
            project="x",
            filename=f"{tag}-{build}",
            version="1",
            python=tag,
            platform="linux_x86_64",
            build=build,
        )
        for tag in ("cp39", "cp310", "cp311", "cp313t")
        for build in (0, 1)
    ]
    assert typical(wheels).filename == "cp310-1"
    assert python_tags(wheels) == ["cp39", "cp310", "cp311", "cp313t"]
    assert typical([each for each in wheels if each.python == "cp313t"]).python == "cp313t"


def test_what_was_not_saved_is_named_and_its_rows_are_no_loss(
    matrix: Matrix, tmp_path: Path
) -> None:
    for project in ("torch", "torchvision", "torchaudio"):
        (tmp_path / project).mkdir()
        shutil.copy(PAGES / project / "index.json", tmp_path / project)
    asked = scope(matrix, "frameworks/torch", "2.8.0")
    found = derived(asked, tmp_path)
    assert found.unread["2.8.0"] == ["linux_aarch64", "linux_x86_64"]
    assert "nothing was saved of torch-2.8.0-" in found.reason
    outcome = merge.compare(found, asked, reader("frameworks/torch")[1], TODAY)
    assert (outcome.changes, outcome.vanished) == ((), ())


# -- libraries -------------------------------------------------------------------------------------


def test_what_libraries_ask_of_frameworks(matrix: Matrix) -> None:
    found = derived(scope(matrix, "frameworks/libraries"))
    vllm = row(found, "requirement", library="vllm", requires_framework="torch")
    assert (vllm["version"], vllm["specifier"], vllm["extra"]) == ("0.10.0", "==2.7.1", None)
    transformers = row(found, "requirement", library="transformers", requires_framework="torch")
    assert (transformers["specifier"], transformers["extra"]) == (">=2.4", "torch")


def test_of_releases_that_ask_for_the_same_the_ends_are_rows(tmp_path: Path) -> None:
    shutil.copytree(PAGES, tmp_path / "pages")
    folder = tmp_path / "pages" / "flax"
    files = []
    for release, wanted in (("1.0", "1"), ("1.1", "1"), ("1.2", "1"), ("1.3", "2")):
        name = f"flax-{release}-py3-none-any.whl"
        files.append({"filename": name, "url": name})
        text = (
            f"Metadata-Version: 2.1\nName: flax\nVersion: {release}\nRequires-Dist: jax>={wanted}\n"
        )
        (folder / f"{name}.metadata").write_text(text, encoding="utf-8")
    page = {"meta": {"api-version": "1.0"}, "files": files}
    (folder / "index.json").write_text(json.dumps(page), encoding="utf-8")
    found = derived(scope(Matrix.shipped(), "frameworks/libraries"), tmp_path / "pages")
    mine = [each.values for each in found.rows if each.values["library"] == "flax"]
    assert [(each["version"], each["specifier"]) for each in mine] == [
        ("1.0", ">=1"),
        ("1.2", ">=1"),
        ("1.3", ">=2"),
    ]
