"""Which GPUs a text is about: listed by a tool, named in a message, or mentioned in a sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.intake.collected import GpuFacts
from envcheck.matrix import query
from envcheck.model.host import Gpu

if TYPE_CHECKING:
    from envcheck.intake.collected import Collected
    from envcheck.matrix.loader import Matrix
    from envcheck.matrix.schema import GpuProduct

_BOARD = re.compile(
    r"\b((?:NVIDIA[ -])?(?:GeForce[ -])?(?:RTX|GTX)[ -]?(?:PRO[ -]?)?"
    r"(?:A?\d{3,4}(?:[ -]?(?:Ti|SUPER|Ada))*|TITAN)"
    r"|(?:NVIDIA |Tesla )?(?:[AHBLVTPK]\d{1,3}S?|GH200|GB[23]00|GB10)"
    r"(?:[ -](?:PCIe|SXM\d?|NVL|\d{2,3}GB))*|DGX Spark|Titan (?:RTX|Xp|V|X))(?![\w.])",
    re.IGNORECASE,
)
_MAKERS = re.compile(r"^(?:NVIDIA |Tesla |GeForce |Quadro )+", re.IGNORECASE)


def gpus_of(found: Collected, matrix: Matrix) -> tuple[Gpu, ...] | None:
    """GPUs of a text; None when it speaks of none, empty when the driver says there is none."""
    if found.gpus:
        loose = {each.name: each for each in found.loose_gpus if each.name}
        return tuple(
            _gpu(index, facts, matrix, loose.get(facts.name or ""))
            for index, facts in sorted(found.gpus.items())
        )
    if found.no_gpus:
        return ()
    named = list(found.loose_gpus) or _mentioned(found)
    unique = {(each.name, each.arch): each for each in named if each.name}
    if not unique:
        return None
    known = [(each, _product(matrix, each.name or "")) for each in unique.values()]
    kept = [each for each, product in known if product is not None or each.arch is not None]
    return tuple(_gpu(index, each, matrix) for index, each in enumerate(kept)) or None


def _gpu(index: int, found: GpuFacts, matrix: Matrix, other: GpuFacts | None = None) -> Gpu:
    product = _product(matrix, found.name or "")
    arch = found.arch or (other.arch if other else None) or (product.cc if product else None)
    name = found.name
    if name and name.endswith("...") and product is not None:
        name = product.name
    return Gpu(index=index, name=name, arch=arch, **found.facts)


def _product(matrix: Matrix, name: str) -> GpuProduct | None:
    """The table's row of a GPU; one whose name was cut short counts when only one fits."""
    row = query.product(matrix, name)
    if row is None and name.endswith("..."):
        start = re.sub(r"^(?:NVIDIA|Tesla|GeForce|Quadro)[ -]+", "", name[:-3].rstrip(" -"))
        start = re.sub(r"[- ](?:PCI|SXM|P|PC|S|SX)$", "", re.sub(r"^GeForce ", "", start)).lower()
        if len(start) < 3:
            return None
        rows = [each for each in matrix.products if _bare(each.name).startswith(start)]
        exact = [each for each in rows if _bare(each.name) == start]
        rows = exact or rows
        if rows and len({each.cc for each in rows}) == 1:
            return rows[0]
        return None
    return row


def _bare(name: str) -> str:
    return _MAKERS.sub("", name).lower()


def _mentioned(found: Collected) -> list[GpuFacts]:
    """GPUs that people name in a sentence; used only where nothing lists them."""
    names = dict.fromkeys(match[1] for match in _BOARD.finditer(found.text))
    return [GpuFacts(name=re.sub(r"\bDGX Spark\b", "GB10", name)) for name in names]
