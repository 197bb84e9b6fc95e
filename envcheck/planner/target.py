"""Which machine a plan is for: read from a line of text, or taken from a snapshot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from envcheck.errors import UndeterminedError, UsageError
from envcheck.matrix import query
from envcheck.matrix.schema import GpuProduct, PciGpu
from envcheck.model.plan import Target
from envcheck.planner.lock import GPU
from envcheck.rules import compat, facts
from envcheck.spelling import nearest
from envcheck.versions import Release

if TYPE_CHECKING:
    from envcheck.matrix.loader import Matrix
    from envcheck.model.snapshot import Snapshot

PLATFORMS = {
    "x86_64": "linux_x86_64",
    "amd64": "linux_x86_64",
    "x64": "linux_x86_64",
    "aarch64": "linux_aarch64",
    "arm64": "linux_aarch64",
    "sbsa": "linux_aarch64",
}
"""Words for a platform."""

MOST_GPUS = 64
_COUNT = re.compile(
    r"(?:(\d{1,3})\s*[x\u00d7*]\s*(?=[a-z])(.+)|(.+?)\s*[x\u00d7*]\s*(\d{1,3}))", re.IGNORECASE
)
_DRIVER = re.compile(
    r"(?:nvidia\s+)?(?:driver|r)\s*[:=]?\s*v?(\d{3,4}(?:\.\d+){0,2})", re.IGNORECASE
)
_CUDA = re.compile(r"cuda\s*[:=]?\s*v?(\d{1,2}\.\d{1,2})(?:\.\d+)?", re.IGNORECASE)
_PYTHON = re.compile(
    r"(?:python|py)\s*[:=]?\s*v?(3\.\d{1,2})(?:\.\d+)?|cp(3)(\d{1,2})", re.IGNORECASE
)
_CAPABILITY = re.compile(
    r"(?:sm_?|compute_|cc\s*|(?:compute )?capability\s*)(\d{1,2})\.?(\d)", re.IGNORECASE
)
_KEYWORD = re.compile(r"\s+(?:with\s+|on\s+)?(?=(?:driver|cuda|python)\b)", re.IGNORECASE)
_FILLER = re.compile(r"^(?:with|on|and|an?|the|gpu)\s+", re.IGNORECASE)
# GPUs on one module with an Arm CPU.
_ARM = re.compile(r"G[BH]\d{2,3}\b|RTX Spark\b|\bOrin\b|\bThor\b|\bXavier\b|\bJetson\b")


def parse_target(text: str, matrix: Matrix) -> Target:
    """Read a target such as `8xH100, driver 580, python 3.12, ubuntu 24.04`.

    Items are separated by commas, in any order: GPUs as they are sold or called (`RTX 5090`,
    `4090`, `2x A100`), a compute capability (`sm_90`), the driver or what its `nvidia-smi` says of
    CUDA (`driver 570`, `cuda 12.4`), Python, an operating system, a platform (`aarch64`), `cpu`.

    Raises:
        UsageError: an item is not known, or two of them contradict each other.
    """
    read = _Reader(matrix)
    items = [part.strip() for part in re.split(r"[,;\n]", _KEYWORD.sub(", ", text))]
    for item in filter(None, items):
        while (bare := _FILLER.sub("", item)) != item:
            item = bare  # noqa: PLW2901
        read.item(item)
    return read.target()


class _Reader:
    """Gathers the items of a target; each kind may be given once."""

    def __init__(self, matrix: Matrix) -> None:
        self._matrix = matrix
        self._given: dict[str, str] = {}
        self._gpus: list[str] = []
        self._arches: list[str] = []

    def item(self, text: str) -> None:
        """Take one item."""
        if text.lower() in {"cpu", "cpu only", "no gpu"}:
            self._once("gpu", "none")
        elif match := _DRIVER.fullmatch(text):
            self._once("driver", match[1])
        elif match := _CUDA.fullmatch(text):
            self._once("cuda", match[1])
        elif match := _PYTHON.fullmatch(text):
            self._once("python", match[1] or f"3.{match[3]}")
        elif text.lower() in PLATFORMS:
            self._once("platform", PLATFORMS[text.lower()])
        elif match := _CAPABILITY.fullmatch(text):
            self._capability(f"{match[1]}.{match[2]}")
        elif (system := parse_os(text, self._matrix)) is not None:
            self._once("os", system)
        else:
            self._gpu(text)

    def _once(self, kind: str, value: str) -> None:
        if self._given.setdefault(kind, value) != value:
            raise _bad(f"{kind} is given twice: {self._given[kind]} and {value}")

    def _capability(self, cc: str) -> None:
        if query.capability(self._matrix, cc) is None:
            raise _bad(f"no GPU of compute capability {cc} is known")
        self._arches.append(cc)

    def _gpu(self, text: str) -> None:
        match = _COUNT.fullmatch(text)
        count, name = 1, text
        if match is not None and gpu_product(text, self._matrix) is None:
            count, name = int(match[1] or match[4]), (match[2] or match[3]).strip()
        product = gpu_product(name, self._matrix)
        if product is None:
            raise _bad(_unknown(name, self._matrix))
        if not 1 <= count <= MOST_GPUS:
            raise _bad(f"{count} GPUs: between 1 and {MOST_GPUS} can be planned for")
        self._gpus += [product.name] * count
        self._arches.append(product.cc)

    def target(self) -> Target:
        """The target, once every item was taken."""
        given = self._given
        if given.get("gpu") and (self._gpus or self._arches):
            raise _bad("no GPU, and yet one is named")
        arm = any(_ARM.search(name) for name in self._gpus)
        platform = given.get("platform") or ("linux_aarch64" if arm else "linux_x86_64")
        return Target(
            gpus=tuple(self._gpus),
            arches=tuple(dict.fromkeys(self._arches)),
            driver=self._driver(),
            platform=platform,
            os=given.get("os"),
            python=given.get("python"),
            forward_compat=compat.forward_eligible(self._matrix, tuple(self._gpus))[0]
            if self._gpus
            else None,
        )

    def _driver(self) -> str | None:
        driver, cuda = self._given.get("driver"), self._given.get("cuda")
        if driver is not None and cuda is not None:
            offers = query.driver_cuda(self._matrix, driver)
            if offers != cuda:
                raise _bad(
                    f"driver {driver} offers CUDA {offers or 'of no known release'}, not {cuda}"
                )
        if driver is not None or cuda is None:
            return driver
        row = query.oldest_branch_for_cuda(self._matrix, cuda)
        if row is None:
            raise _bad(f"no driver for CUDA {cuda} is known")
        return row.branch


def _bad(what: str) -> UsageError:
    return UsageError(f"--target: {what}")


def _unknown(name: str, matrix: Matrix) -> str:
    """Why an item is not understood, and what was probably meant."""
    products = [str(each) for each in matrix.values(GpuProduct, "name")]
    words = [each.removeprefix("GeForce ") for each in products]
    words += products
    words += [f"{row.id} {row.version}" for row in matrix.distros]
    words += PLATFORMS
    shown = {word.lower(): word for word in reversed(words)}
    asked = name.lower()
    # Two digits changed round is the likeliest mistake, and close to too many other names.
    swapped = next((word for word in shown if sorted(word) == sorted(asked)), None)
    near = swapped or nearest(asked, shown)
    hint = (
        f"did you mean '{shown[near]}'?"
        if near is not None
        else "name GPUs, 'driver N', 'cuda N.N', 'python 3.N', an operating system or a platform"
    )
    plain = "".join(char if char.isprintable() else "?" for char in name[:80])
    return f"'{plain}' is not known: {hint}"


def gpu_product(name: str, matrix: Matrix) -> GpuProduct | None:
    """A GPU by a name or a nickname: `RTX 5090`, `rtx5090`, `5090`, `A100-SXM4-80GB`."""
    spaced = re.sub(r"(?i)\b(rtx|gtx|gt)(?=\d)", r"\1 ", name.strip())
    spaced = re.sub(r"(?i)(?<=\d)(?=(?:ti|super)\b)", " ", spaced)
    tried = [name, spaced]
    if re.match(r"\d{3,4}\b", spaced):
        tried += [f"{family} {spaced}" for family in ("RTX", "GTX")]
    return next((row for each in tried if (row := query.product(matrix, each))), None)


def parse_os(text: str, matrix: Matrix) -> str | None:
    """A distribution release of the table, spelled as targets spell it; None when it is none.

    `Ubuntu 24.04 LTS`, `ubuntu24.04`, `rhel 9.4` and `rocky-9` are understood.
    """
    match = re.fullmatch(r"(?i)([a-z][a-z -]*?)[ :-]?(\d+(?:\.\d+){0,2})(?:\s+lts)?", text.strip())
    if match is None:
        return None
    words = {
        "red hat enterprise linux": "rhel",
        "red hat": "rhel",
        "rocky linux": "rocky",
        "amazon linux": "amzn",
        "amazon": "amzn",
        "oracle linux": "ol",
        "oracle": "ol",
        "opensuse leap": "opensuse-leap",
        "opensuse": "opensuse-leap",
        "azure linux": "azurelinux",
        "alma": "almalinux",
    }
    id = match[1].strip().lower()
    row = query.distro(matrix, words.get(id, id), match[2])
    return f"{row.id}{row.version}" if row is not None else None


# -- from a snapshot -------------------------------------------------------------------------------


def target_of(snapshot: Snapshot, matrix: Matrix) -> Target:
    """The target that a machine is: what will be there once its driver works.

    A driver that is not there leaves the plan free to choose one; GPUs come from the driver, and
    from the bus what the driver does not report.

    Raises:
        UndeterminedError: neither GPUs nor their absence could be read.
        UsageError: the machine runs no Linux.
    """
    platform = snapshot.env.python.platform or f"linux_{snapshot.host.os.machine or 'x86_64'}"
    if platform not in PLATFORMS.values():
        msg = f"plans are for Linux on x86_64 or aarch64, and this machine is {platform}"
        raise UsageError(msg)
    gpus = _gpus(snapshot, matrix)
    unread = snapshot.host.gpus is None and snapshot.host.pci is None
    nothing = snapshot.host.driver.version is None and not facts.on_jetson(snapshot)
    if not gpus and unread and nothing:
        msg = "which GPUs this machine has could not be read: name them with --target"
        raise UndeterminedError(msg)
    system = snapshot.host.os
    row = query.distro(matrix, system.id, system.version) if system.id and system.version else None
    python = Release.maybe(snapshot.env.python.version)
    names = tuple(name for name, _ in gpus if name)
    return Target(
        gpus=names,
        arches=tuple(dict.fromkeys(cc for _, cc in gpus if cc)),
        driver=_driver_of(snapshot) if gpus or snapshot.host.pci != () else None,
        platform=platform,
        os=f"{row.id}{row.version}" if row is not None else None,
        python=python.series if python is not None else None,
        forward_compat=compat.forward_eligible(matrix, names)[0] if names else None,
    )


def _driver_of(snapshot: Snapshot) -> str | None:
    """The release that runs here, or will after the restart that a mismatch asks for."""
    driver = snapshot.host.driver
    mismatch = facts.said_mismatch(snapshot)
    chosen = driver.userspace_version if mismatch else driver.module_version
    found = Release.maybe(chosen or driver.version or driver.userspace_version)
    return ".".join(found.text.split(".")[:3]) if found is not None else None


def _gpus(snapshot: Snapshot, matrix: Matrix) -> list[tuple[str, str]]:
    """Name and compute capability of each GPU; empty text for what is not known."""
    found = [(_name(gpu.name, matrix), gpu.arch or "") for gpu in facts.gpus(snapshot)]
    for device in facts.unreported_pci_gpus(snapshot):
        known = query.pci_gpu(matrix, device.device) if device.device else None
        if known is not None:
            found.append((_name(_marketing(known), matrix), known.cc))
    by_name = {name: query.product(matrix, name) for name, _ in found if name}
    return [
        (name, cc or (row.cc if (row := by_name.get(name)) is not None else ""))
        for name, cc in found
    ]


def _marketing(row: PciGpu) -> str:
    """The name in brackets of `GA102 [GeForce RTX 3090]`."""
    match = re.search(r"\[([^\]]+)\]", row.name)
    return match[1] if match else row.name


def _name(text: str | None, matrix: Matrix) -> str:
    """A GPU's name as the table has it, else reduced to what a lock may hold."""
    product = query.product(matrix, text) if text else None
    if product is not None:
        return product.name
    plain = re.sub(r"[^A-Za-z0-9 ._+-]+", " ", text or "")
    plain = " ".join(plain.split()).strip(" ._+-")[:80].strip()
    return plain if re.fullmatch(GPU, plain) else ""
