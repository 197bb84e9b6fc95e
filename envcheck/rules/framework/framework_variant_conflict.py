"""framework-variant-conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Evidence, Fix
from envcheck.rules import facts, install, pins
from envcheck.rules.base import finding, rule

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot
    from envcheck.rules.base import Answer

FAMILIES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "onnxruntime",
        "onnxruntime-gpu",
        (
            "onnxruntime",
            "onnxruntime-gpu",
            "onnxruntime-directml",
            "onnxruntime-openvino",
            "onnxruntime-rocm",
            "onnxruntime-training",
        ),
    ),
    (
        "tensorflow",
        "tensorflow",
        (
            "tensorflow",
            "tensorflow-cpu",
            "tensorflow-gpu",
            "tensorflow-rocm",
            "tf-nightly",
            "tf-nightly-cpu",
        ),
    ),
    ("paddle", "paddlepaddle-gpu", ("paddlepaddle", "paddlepaddle-gpu")),
    ("faiss", "faiss-gpu", ("faiss-cpu", "faiss-gpu", "faiss-gpu-cu11", "faiss-gpu-cu12")),
    (
        "cupy",
        "",
        ("cupy", "cupy-cuda110", "cupy-cuda111", "cupy-cuda11x", "cupy-cuda12x", "cupy-cuda13x"),
    ),
)
"""Import name, the variant for GPUs, and distributions that install into that one folder."""

_SILENT = frozenset({"onnxruntime", "tensorflow", "paddle"})
"""Families that go on without a GPU, and say nothing, when the CPU variant wins."""


@rule("framework-variant-conflict", component="framework", when=pins.packages_known)
def framework_variant_conflict(snapshot: Snapshot, _matrix: Matrix) -> Answer:
    """No two variants of one package share its folder.

    Conda's packages are left out: there, such names are empty packages that select a build. An
    error on a machine with a GPU for packages that fall back to the CPU without a word, else a
    warning.

    Why: `onnxruntime` and `onnxruntime-gpu` install the same files. The one installed last wins,
    and removing one breaks the other.

    Fix: uninstall all variants, then install the one that is wanted.
    """
    for folder, wanted, names in FAMILIES:
        present = [
            p
            for p in snapshot.env.packages or ()
            if p.name in names and p.channel is None and p.installer != "conda"
        ]
        if len({p.name for p in present}) < 2:
            continue
        keep = next((p for p in present if p.name == wanted), None)
        listed = tuple(dict.fromkeys(p.name for p in present))
        commands = install.uninstall(snapshot, listed)
        if keep is not None:
            commands += install.install(
                snapshot, (f"{keep.name}=={install.public_version(keep.version)}",)
            )
        gpu = facts.has_gpu(snapshot)
        yield finding(
            "framework-variant-conflict",
            "error" if gpu and folder in _SILENT else "warning",
            "framework",
            ", ".join(install.label(p) for p in present),
            f"Several variants of {folder} are installed over each other",
            found=" and ".join(install.label(p) for p in present),
            needed=f"one of them: {wanted}" if keep else "one of them",
            why=f"They all install into the folder {folder}, so the files are a mix of both, "
            "mostly of the one installed last.",
            fix=(
                Fix(
                    title="Remove all of them, then install the one that you want",
                    commands=commands,
                ),
            ),
            evidence=tuple(
                Evidence(label="installed", value=install.label(p), via=p.location or "metadata")
                for p in present
            ),
        )
