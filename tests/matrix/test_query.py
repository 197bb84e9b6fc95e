"""The questions that rules ask: near misses, unknown answers, odd spellings."""

from __future__ import annotations

from datetime import date

import pytest

from envcheck.matrix import query
from envcheck.matrix.loader import Matrix


@pytest.fixture(scope="module")
def matrix() -> Matrix:
    """All shipped tables."""
    return Matrix.shipped()


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("NVIDIA GeForce RTX 3080", "GeForce RTX 3080"),
        ("NVIDIA GeForce RTX 3080 Ti", "GeForce RTX 3080 Ti"),
        ("NVIDIA GeForce RTX 3080 Ti Laptop GPU", "GeForce RTX 3080 Ti"),
        ("nvidia geforce rtx 3060 12 GB", "GeForce RTX 3060"),
        ("RTX 5090", "GeForce RTX 5090"),
        ("RTX 5090 D", "GeForce RTX 5090 D"),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", "GeForce RTX 4070 Ti SUPER"),
        ("NVIDIA GeForce GTX 1650 with Max-Q Design", "GeForce GTX 1650"),
        ("GeForce GTX TITAN X", "GeForce GTX TITAN X"),
        ("NVIDIA TITAN X (Pascal)", "TITAN X (Pascal)"),
        ("TITAN Xp", "TITAN Xp"),
        ("Tesla V100-SXM2-16GB", "Tesla V100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 NVL", "H100"),
        ("NVIDIA H200 NVL", "H200"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA GH200 144G HBM3e", "GH200"),
        ("NVIDIA A10", "A10"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L40S", "L40S"),
        ("GRID T4-16Q", "Tesla T4"),
        ("Quadro RTX 6000", "Quadro RTX 6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX 6000 Ada Generation"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000 Blackwell Server Edition"),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "RTX PRO 6000 Blackwell"),
        ("Orin (nvgpu)", "Orin"),
        ("NVIDIA GB10", "GB10"),
        ("P106-100", "P106-100"),
        ("GeForce 710A", "GeForce 710A"),
    ],
)
def test_product_is_found(matrix: Matrix, name: str, known: str) -> None:
    row = query.product(matrix, name)
    assert row is not None
    assert row.name == known


@pytest.mark.parametrize(
    "name",
    [
        "",
        "NVIDIA Graphics Device",
        "NVIDIA GeForce RTX 3080 SUPER",
        "NVIDIA GeForce RTX 6090",
        "NVIDIA A1000000",
        "GeForce GT 730",  # sold with chips of two capabilities
        "AMD Radeon RX 7900 XTX",
        "llvmpipe",
    ],
)
def test_product_is_unknown(matrix: Matrix, name: str) -> None:
    assert query.product(matrix, name) is None


def test_forward_compatibility_is_a_property_of_the_product(matrix: Matrix) -> None:
    answers = {
        name: row.forward_compat
        for name in ("H100", "RTX 4090", "RTX A6000", "Jetson AGX Orin")
        if (row := query.product(matrix, name)) is not None
    }
    assert answers == {"H100": True, "RTX 4090": False, "RTX A6000": None, "Jetson AGX Orin": True}


@pytest.mark.parametrize(
    ("version", "branch"),
    [
        ("580.95.05", "580"),
        ("580", "580"),
        ("576.02", "575"),
        ("535.183.06", "535"),
        ("616.92", "616"),
        ("470.256.02", "470"),
    ],
)
def test_branch(matrix: Matrix, version: str, branch: str) -> None:
    row = query.branch(matrix, version)
    assert row is not None
    assert row.branch == branch
    assert query.branch_of(version) == version.partition(".")[0]


@pytest.mark.parametrize("version", ["340.108", "100.14", "9999.1", "", "N/A"])
def test_branch_outside_the_table(matrix: Matrix, version: str) -> None:
    assert query.branch(matrix, version) is None
    assert query.driver_cuda(matrix, version) is None


@pytest.mark.parametrize("version", ["340.108", "616.92", "580.95.05", "N/A"])
def test_driver_that_is_not_newer_than_the_table(matrix: Matrix, version: str) -> None:
    assert not query.driver_newer_than_table(matrix, version)


def test_newer_than_table(matrix: Matrix) -> None:
    assert query.driver_newer_than_table(matrix, "9999.1")
    assert query.torch_newer_than_table(matrix, "99.0.0+cu999")
    assert not query.torch_newer_than_table(matrix, query.newest_torch(matrix))
    assert not query.torch_newer_than_table(matrix, "2.8.0")
    assert query.cuda_newer_than_table(matrix, "99.0")
    assert not query.cuda_newer_than_table(matrix, "12.8.2")
    assert not query.cuda_newer_than_table(matrix, "")


@pytest.mark.parametrize(
    ("cuda", "branch"), [("12.8", "570"), ("12.8.1", "570"), ("12.7", "565"), ("13.0", "580")]
)
def test_oldest_branch_for_cuda(matrix: Matrix, cuda: str, branch: str) -> None:
    row = query.oldest_branch_for_cuda(matrix, cuda)
    assert row is not None
    assert row.branch == branch


def test_oldest_branch_for_cuda_unknown(matrix: Matrix) -> None:
    assert query.oldest_branch_for_cuda(matrix, "99.0") is None
    assert query.oldest_branch_for_cuda(matrix, "?") is None


def test_supported_branches(matrix: Matrix) -> None:
    today = date(2026, 11, 30)
    pascal = [row.branch for row in query.supported_branches(matrix, "6.1", today)]
    assert pascal == ["580"]
    kepler = query.supported_branches(matrix, "3.5")
    assert kepler[-1].branch == "470"
    assert query.supported_branches(matrix, "3.5", today) == ()
    blackwell = query.supported_branches(matrix, "12.0", today)
    assert blackwell[0].branch == "580"
    assert query.supported_branches(matrix, "1.0") == ()


def test_branch_ends_after_its_last_month(matrix: Matrix) -> None:
    row = query.branch(matrix, "535")
    assert row is not None
    assert row.eol == "2026-06"
    assert not query.branch_ended(row, date(2026, 6, 30))
    assert query.branch_ended(row, date(2026, 7, 1))


@pytest.mark.parametrize("cuda", ["", "99.9", "x"])
def test_cuda_outside_the_table(matrix: Matrix, cuda: str) -> None:
    assert query.own_driver(matrix, cuda) is None
    assert query.minor_floor(matrix, cuda) is None
    assert query.forward_compat(matrix, cuda) is None
    assert query.ptxas(matrix, cuda) is None
    assert query.host_compiler(matrix, cuda) is None
    assert query.cuda_images(matrix, cuda) == ()


def test_cuda_without_a_published_driver(matrix: Matrix) -> None:
    assert query.own_driver(matrix, "13.5") is None
    assert query.own_driver(matrix, "12.7") is None


@pytest.mark.parametrize("text", ["2330", "0x2330", "10DE:2330", " 2330 "])
def test_pci_id_spellings(matrix: Matrix, text: str) -> None:
    row = query.pci_gpu(matrix, text)
    assert row is not None
    assert row.chip == "GH100"


def test_pci_id_unknown(matrix: Matrix) -> None:
    assert query.pci_gpu(matrix, "ffff") is None
    assert query.nvswitch(matrix, "2330") is None


def test_torch_builds(matrix: Matrix) -> None:
    both = query.torch_builds(matrix, "2.8.0+cu128")
    assert {row.platform for row in both} == {"linux_x86_64", "linux_aarch64"}
    one = query.torch_builds(matrix, "2.8.0", "linux_x86_64")
    assert [row.variant for row in one] == ["cpu", "cu126", "cu128", "cu129"]
    assert query.torch_build(matrix, "2.8.0", "linux_x86_64", "cu999") is None
    assert query.torch_builds(matrix, "9.9.9") == ()
    assert query.companion(matrix, "9.9.9") is None


def test_nccl(matrix: Matrix) -> None:
    row = query.nccl_release(matrix, "2.27.5")
    assert row is not None
    assert row.cuda_majors == ("12",)
    assert query.nccl_release(matrix, "9.9.9") is None
    targets = query.nccl_targets(matrix, "12.9")
    assert targets is not None
    assert "sm_120" in targets.arches
    assert query.nccl_targets(matrix, "10.0") is None
    assert query.nccl_targets(matrix, "?") is None


def test_cudnn_unknown(matrix: Matrix) -> None:
    assert query.cudnn_release(matrix, "99.0") is None
    assert query.cudnn_release(matrix, "?") is None
    assert query.cudnn_support(matrix, "?", "12") == ()
    assert query.cudnn_support(matrix, "7.0", "12") == ()


@pytest.mark.parametrize(
    ("id", "version", "repo"),
    [
        ("ubuntu", "24.04", "ubuntu2404"),
        ("debian", "12", "debian12"),
        ("rocky", "9.4", "rhel9"),
        ("rhel", "10.0", "rhel10"),
        ("sles", "15.6", "sles15"),
        ("opensuse-leap", "15.6", "opensuse15"),
        ("amzn", "2023", "amzn2023"),
        ("azurelinux", "3.0", "azl3"),
    ],
)
def test_distro(matrix: Matrix, id: str, version: str, repo: str) -> None:
    row = query.distro(matrix, id, version)
    assert row is not None
    assert row.repo == repo


@pytest.mark.parametrize(("id", "version"), [("ubuntu", "24.10"), ("arch", "1"), ("debian", "120")])
def test_distro_unknown(matrix: Matrix, id: str, version: str) -> None:
    assert query.distro(matrix, id, version) is None


def test_distro_package(matrix: Matrix) -> None:
    ubuntu = query.distro(matrix, "ubuntu", "24.04")
    rocky = query.distro(matrix, "rocky", "9.4")
    rocky10 = query.distro(matrix, "rocky", "10.1")
    assert ubuntu is not None
    assert rocky is not None
    assert rocky10 is not None
    package = query.distro_package
    assert package(matrix, ubuntu, "driver-open", "580") == "nvidia-driver-580-open"
    assert package(matrix, ubuntu, "driver-open", "580", origin="nvidia") == "nvidia-open-580"
    assert package(matrix, ubuntu, "driver-open") is None
    assert package(matrix, ubuntu, "no-such-purpose", "580") is None
    assert package(matrix, ubuntu, "dcgm", cuda_major="13") == "datacenter-gpu-manager-4-cuda13"
    assert package(matrix, ubuntu, "dcgm") is None
    assert (
        package(matrix, rocky, "driver-open", "580") == "dnf module install nvidia-driver:580-open"
    )
    assert package(matrix, rocky10, "driver-open", "580") == "nvidia-open"


def test_library_unknown(matrix: Matrix) -> None:
    assert query.requirements(matrix, "no-such-library", "1.0") == ()
    assert query.jax_release(matrix, "0.0.1") is None
    assert query.jax_plugin(matrix, "0.4.26", "13") is None
    assert query.tensorflow_release(matrix, "1.0") is None
    assert query.xid(matrix, 100000) is None
