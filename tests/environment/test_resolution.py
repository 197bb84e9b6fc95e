"""Which copy a name stands for, in cases that are clearer on paper than on disk."""

from __future__ import annotations

from envcheck.probe.libraries import Loading, plugin_choices, torch_choices
from envcheck.probe.loader import File, Loader, Search


def file(
    path: str,
    *needed: str,
    rpath: tuple[str, ...] | None = None,
    runpath: tuple[str, ...] | None = None,
) -> File:
    """A library whose SONAME is its file name."""
    name = path.rpartition("/")[2]
    return File(path=path, real=path, soname=name, needed=needed, rpath=rpath, runpath=runpath)


def test_cudnn_asks_for_the_files_of_its_own_release_first() -> None:
    """A copy of another release on LD_LIBRARY_PATH gets in under the short name only."""
    site = "/e/lib/python3.12/site-packages"
    front = file(f"{site}/nvidia/cudnn/lib/libcudnn.so.9", runpath=(f"{site}/nvidia/cudnn/lib",))
    cuda = file(
        f"{site}/torch/lib/libtorch_cuda.so", "libcudnn.so.9", rpath=(f"{site}/nvidia/cudnn/lib",)
    )
    own = file(f"{site}/nvidia/cudnn/lib/libcudnn_ops.so.9")
    short = file("/other/libcudnn_ops.so.9")
    same = File(
        path="/same/libcudnn_ops.so.9.10.2",
        real="/same/libcudnn_ops.so.9.10.2",
        soname="libcudnn_ops.so.9",
    )

    def ops(*folders: str, release: str | None = "9.10.2.21") -> str:
        chosen = torch_choices(
            (front, cuda, own, short, same),
            Search(library_path=folders),
            site,
            version=lambda _file: release,
        )
        assert chosen is not None
        return chosen["libcudnn_ops.so.9"].path

    assert ops() == own.path
    assert ops("/other") == short.path
    assert ops("/other", "/same") == same.path
    assert ops("/other", "/same", release="9.9.0.1") == short.path
    assert ops("/same", release=None) == own.path


def test_jax_opens_cublas_before_its_other_half() -> None:
    """So an older cuBLASLt on LD_LIBRARY_PATH wins over the wheel's, which comes too late."""
    site = "/e/lib/python3.12/site-packages"
    cu13 = f"{site}/nvidia/cu13/lib"
    plugin = file(f"{site}/jax_plugins/xla_cuda13/xla_cuda_plugin.so", rpath=(cu13,))
    blas = file(f"{cu13}/libcublas.so.13", "libcublasLt.so.13", runpath=(cu13,))
    half, older = file(f"{cu13}/libcublasLt.so.13"), file("/old/libcublasLt.so.13")
    files, search = (plugin, blas, half, older), Search(library_path=("/old",))
    order = (("cu13", "libcublas.so.13"), ("cu13", "libcublasLt.so.13"))
    for pairs, wins in ((order, older), (order[::-1], half)):
        chosen = plugin_choices(files, search, plugin, loading=Loading(always=pairs))
        assert chosen is not None
        assert chosen["libcublasLt.so.13"].path == wins.path
        assert chosen["libcublas.so.13"].path == blas.path


def test_the_cache_may_name_what_is_gone() -> None:
    """A file of a folder that was read, and is not in it, is passed over."""
    asking = file("/e/libtorch_cuda.so", "libnccl.so.2")
    there = file("/usr/lib/libnccl.so.2")
    stale = (("libnccl.so.2", ("/gone/libnccl.so.2", "/usr/lib/libnccl.so.2")),)
    loader = Loader((asking, there, file("/gone/libcudart.so.13")), Search(cache=stale))
    loader.load(asking)
    assert loader.loaded["libnccl.so.2"].path == "/usr/lib/libnccl.so.2"
    assert (loader.loaded["libnccl.so.2"].via, loader.missing) == ("cache", set())


def test_a_name_that_nobody_has_is_missing() -> None:
    loader = Loader(
        (root := file("/e/libtorch_cuda.so", "libcudart.so.13", "libz.so.1"),), Search()
    )
    loader.load(root)
    assert loader.missing == {"libcudart.so.13"}
