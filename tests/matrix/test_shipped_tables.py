"""The tables that come with envcheck: sound as a whole, and right where the value is well known."""

from __future__ import annotations

from datetime import date

import pytest

from envcheck.matrix import check, query, schema
from envcheck.matrix.loader import Matrix
from envcheck.versions import Release

TODAY = date(2026, 12, 31)

SECTIONS = [kind for kind in schema.ROWS if kind is not schema.Framework]


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    """All shipped tables."""
    return Matrix.shipped()


def test_nothing_is_wrong_with_them(matrix: Matrix) -> None:
    assert check.problems(matrix, TODAY) == ()


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_every_row_type_has_rows(matrix: Matrix, kind: type[schema.Row]) -> None:
    rows = matrix.rows(kind)
    assert rows
    assert all(type(row) is kind for row in rows)


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_every_row_leads_to_its_source(matrix: Matrix, kind: type[schema.Row]) -> None:
    for row in matrix.rows(kind):
        source = matrix.source(row.source)
        assert source is not None
        assert source.title
        assert row.method in schema.METHODS
        assert row.confidence in schema.CONFIDENCES


@pytest.mark.parametrize("kind", SECTIONS, ids=lambda kind: kind.__name__)
def test_what_is_only_recalled_is_never_of_high_confidence(
    matrix: Matrix, kind: type[schema.Row]
) -> None:
    assert [r for r in matrix.rows(kind) if r.source == "recalled" and r.confidence == "high"] == []


def test_a_cuda_version_above_all_branches_is_newer_than_the_table(matrix: Matrix) -> None:
    newest = Release.parse(matrix.toolkits[-1].cuda)
    assert query.cuda_newer_than_table(matrix, f"{newest.major}.{newest.minor + 1}")
    assert not query.cuda_newer_than_table(matrix, newest.text)


# -- CUDA and drivers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [
        ("11.4", "470.42.01"),
        ("11.8", "520.61.05"),
        ("12.0", "525.60.13"),
        ("12.1", "530.30.02"),
        ("12.4", "550.54.14"),
        ("12.6", "560.28.03"),
        ("12.8", "570.26"),
        ("13.0", "580.65.06"),
        ("13.2", "595.45.04"),
    ],
)
def test_driver_of_a_cuda_release(matrix: Matrix, cuda: str, driver: str) -> None:
    row = query.own_driver(matrix, cuda)
    assert row is not None
    assert row.driver_linux == driver


@pytest.mark.parametrize(
    ("cuda", "driver"),
    [("11.8", "450.80.02"), ("12.6", "525.60.13"), ("13.5", "580"), ("13", "580")],
)
def test_driver_floor_of_a_cuda_major(matrix: Matrix, cuda: str, driver: str) -> None:
    row = query.minor_floor(matrix, cuda)
    assert row is not None
    assert row.driver_linux == driver


def test_branches(matrix: Matrix) -> None:
    lts = query.branch(matrix, "580.95.05")
    assert lts is not None
    assert (lts.kind, lts.eol, lts.cuda) == ("lts", "2028-06", "13.0")
    assert query.driver_cuda(matrix, "535.183.06") == "12.2"
    assert query.driver_cuda(matrix, "470.256.02") == "11.4"


def test_forward_compatibility_list_shrinks(matrix: Matrix) -> None:
    lists = {cuda: query.forward_compat(matrix, cuda) for cuda in ("12.4", "12.8", "13.0")}
    assert {cuda: row.branches for cuda, row in lists.items() if row} == {
        "12.4": ("470", "525", "535"),
        "12.8": ("470", "535", "550", "560", "565"),
        "13.0": ("535", "550", "565", "570", "575"),
    }


def test_compilers_and_assembler(matrix: Matrix) -> None:
    compiler = query.host_compiler(matrix, "12.8")
    assert compiler is not None
    assert (compiler.gcc_max, compiler.clang_max) == ("14", "19")
    older, newer = query.ptxas(matrix, "12.6"), query.ptxas(matrix, "12.8.1")
    assert older is not None
    assert newer is not None
    assert "sm_120" in newer.arches
    assert "sm_120" not in older.arches
    thirteen = query.ptxas(matrix, "13.0")
    assert thirteen is not None
    assert thirteen.arches[0] == "sm_75"


# -- GPUs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cc", "last_branch", "last_cuda", "module"),
    [
        ("3.5", "470", "11.8", "proprietary"),
        ("6.1", "580", "12.9", "proprietary"),
        ("7.0", "580", "12.9", "proprietary"),
        ("7.5", None, None, "either"),
        ("9.0", None, None, "either"),
        ("10.0", None, None, "open"),
        ("12.1", None, None, "open"),
    ],
)
def test_capability(
    matrix: Matrix, cc: str, last_branch: str | None, last_cuda: str | None, module: str
) -> None:
    row = query.capability(matrix, cc)
    assert row is not None
    assert (row.last_driver_branch, row.last_cuda, row.module) == (last_branch, last_cuda, module)


def test_tegra_capabilities(matrix: Matrix) -> None:
    assert {row.cc for row in matrix.capabilities if row.tegra} == {
        "3.2",
        "5.3",
        "6.2",
        "7.2",
        "8.7",
        "8.8",
        "10.1",
        "11.0",
    }


@pytest.mark.parametrize(
    ("id", "cc"),
    [
        ("2330", "9.0"),  # H100 SXM5
        ("20b2", "8.0"),  # A100 SXM4 80GB
        ("2204", "8.6"),  # RTX 3090
        ("2684", "8.9"),  # RTX 4090
        ("2b85", "12.0"),  # RTX 5090
        ("2901", "10.0"),  # B200
        ("3182", "10.3"),  # B300
        ("2e12", "12.1"),  # GB10
        ("1b06", "6.1"),  # GTX 1080 Ti
        ("15f9", "6.0"),  # P100
        ("1db5", "7.0"),  # V100
        ("1eb8", "7.5"),  # T4
        ("102d", "3.7"),  # K80
        ("1023", "3.5"),  # K40
        ("17c2", "5.2"),  # TITAN X
        ("1380", "5.0"),  # GTX 750 Ti
    ],
)
def test_pci_ids(matrix: Matrix, id: str, cc: str) -> None:
    row = query.pci_gpu(matrix, id)
    assert row is not None
    assert row.cc == cc


def test_audio_functions_and_bridges_are_no_gpus(matrix: Matrix) -> None:
    words = ("audio", "usb", "bridge", "nvswitch", "host controller")
    assert [row for row in matrix.pci_gpus if any(word in row.name.lower() for word in words)] == []
    assert query.nvswitch(matrix, "10DE:22A3") is not None
    assert query.pci_gpu(matrix, "22a3") is None


# -- torch -----------------------------------------------------------------------------------------


def _arches(matrix: Matrix, version: str, variant: str) -> tuple[str, ...]:
    row = query.torch_build(matrix, version, "linux_x86_64", variant)
    assert row is not None
    assert row.arches is not None
    return row.arches


def test_torch_builds_drop_old_gpus_by_variant(matrix: Matrix) -> None:
    assert "sm_70" in _arches(matrix, "2.11.0", "cu126")
    assert "sm_70" not in _arches(matrix, "2.11.0", "cu128")
    assert "sm_70" not in _arches(matrix, "2.11.0", "cu130")
    assert _arches(matrix, "2.8.0", "cu128") == (
        "sm_70",
        "sm_75",
        "sm_80",
        "sm_86",
        "sm_90",
        "sm_100",
        "sm_120",
    )
    assert _arches(matrix, "2.5.1", "cu121")[-1] == "sm_90"
    assert _arches(matrix, "2.7.1", "cu128")[-2:] == ("sm_120", "compute_120")
    assert _arches(matrix, "2.14.1", "cu126")[:2] == ("sm_50", "sm_60")


def test_each_torch_has_one_default_build_per_platform(matrix: Matrix) -> None:
    defaults = [(row.version, row.platform) for row in matrix.torch_builds if row.index_default]
    assert len(defaults) == len(set(defaults))
    assert set(defaults) == {(row.version, row.platform) for row in matrix.torch_builds}


def test_default_builds_are_fully_known(matrix: Matrix) -> None:
    for row in matrix.torch_builds:
        if row.index_default and row.variant != "cpu":
            assert row.arches, row.version
            assert row.python, row.version
            assert row.git_version, row.version
            assert row.glibc, row.version


def test_variant_is_the_cuda_version(matrix: Matrix) -> None:
    for row in matrix.torch_builds:
        expected = "cpu" if row.cuda == "cpu" else "cu" + row.cuda.replace(".", "")
        assert row.variant == expected


def test_aarch64_wheels_on_the_index_have_cuda_from_2_11_on(matrix: Matrix) -> None:
    variants = {
        row.version: row.variant
        for row in matrix.torch_builds
        if row.platform == "linux_aarch64" and row.index_default
    }
    assert (variants["2.10.0"], variants["2.11.0"]) == ("cpu", "cu130")


def test_arches_are_sorted_machine_code_first(matrix: Matrix) -> None:
    for row in matrix.torch_builds:
        arches = list(row.arches or ())
        wanted = sorted(arches, key=lambda a: (not a.startswith("sm_"), int(a.split("_")[1])))
        assert arches == wanted


def test_companions(matrix: Matrix) -> None:
    pair = query.companion(matrix, "2.8.0+cu128")
    assert pair is not None
    assert (pair.torchvision, pair.torchaudio) == ("0.23.0", "2.8.0")


def test_head_of_the_torch_table(matrix: Matrix) -> None:
    head = matrix.framework("torch")
    assert head is not None
    assert head.index_url is not None
    assert head.index_url.endswith("/{variant}")


# -- the rest --------------------------------------------------------------------------------------


def test_cudnn_drops_old_gpus_after_9_10(matrix: Matrix) -> None:
    (row,) = [r for r in query.cudnn_support(matrix, "9.10.2.21", "12") if r.note is None]
    assert row.capabilities[0] == "5.0"
    (row,) = query.cudnn_support(matrix, "9.11.0.98", "12")
    assert row.capabilities[0] == "7.5"
    assert query.cudnn_support(matrix, "9.11.0.98", "13") == ()


def test_cudnn_files_grow(matrix: Matrix) -> None:
    sizes = {}
    for version in ("8.9.7.29", "9.20.0.48", "9.21.0.82", "9.22.0.52"):
        row = query.cudnn_release(matrix, version)
        assert row is not None
        sizes[version] = len(row.libraries)
    assert list(sizes.values()) == [7, 8, 9, 10]
    withdrawn = query.cudnn_release(matrix, "9.25.0")
    assert withdrawn is not None
    assert withdrawn.yanked


@pytest.mark.parametrize("number", [13, 31, 43, 45])
def test_program_faults_are_information(matrix: Matrix, number: int) -> None:
    row = query.xid(matrix, number)
    assert row is not None
    assert row.severity == "info"


@pytest.mark.parametrize(
    ("number", "finding"),
    [
        (79, "gpu-fell-off-bus"),
        (48, "gpu-memory-error"),
        (63, "gpu-row-remap-pending"),
        (119, None),
    ],
)
def test_xid_findings(matrix: Matrix, number: int, finding: str | None) -> None:
    row = query.xid(matrix, number)
    assert row is not None
    assert row.finding == finding


def test_jax_and_tensorflow(matrix: Matrix) -> None:
    plugin = query.jax_plugin(matrix, "0.9.0", "13")
    assert plugin is not None
    assert plugin.min_capability == "7.5"
    assert any(text.startswith("nvidia-cudnn-cu13") for text in plugin.requires)
    tensorflow = query.tensorflow_release(matrix, "2.18.0")
    assert tensorflow is not None
    assert tensorflow.cuda_major == "12"


def test_library_requirements(matrix: Matrix) -> None:
    rows = query.requirements(matrix, "XFormers", "0.0.31")
    assert [(row.requires_framework, row.specifier) for row in rows] == [("torch", "==2.7.1")]


def test_cuda_images(matrix: Matrix) -> None:
    rows = query.cuda_images(matrix, "12.8", "ubuntu24.04")
    assert [row.cuda for row in rows] == ["12.8.0", "12.8.1"]
    assert "cudnn-runtime" in rows[-1].flavors
