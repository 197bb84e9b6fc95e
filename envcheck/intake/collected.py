"""What readers find in a text, before it is put together."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from envcheck.model.environment import Package


@dataclasses.dataclass(slots=True)
class TorchFacts:
    """What a text says about torch, wherever it says so; the first word on each counts."""

    version: str | None = None
    cuda: str | None = None
    cuda_said: bool = False
    """Whether the text says what it was built for, `None` included."""
    hip: str | None = None
    xpu: str | None = None
    available: bool | None = None
    arches: tuple[str, ...] | None = None
    settings: str = ""
    """Compiler settings that torch prints of its own build."""


@dataclasses.dataclass(slots=True)
class GpuFacts:
    """What a text says about one GPU."""

    name: str | None = None
    arch: str | None = None
    facts: dict[str, Any] = dataclasses.field(default_factory=dict)


class Collected:
    """Facts of a text; every reader adds what it finds, and the first word on a fact counts."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        """Start with nothing known.

        Args:
            lines: of the text, cleaned.
        """
        self.lines = lines
        self.text = "\n".join(lines)
        self.lower = self.text.lower()
        self.torch = TorchFacts()
        self.packages: dict[str, Package] = {}
        self.complete_list = False
        """A whole list of packages was there, so what it does not name is not installed."""
        self.frameworks: dict[str, dict[str, Any]] = {}
        """Other frameworks by distribution name: facts of `Framework`."""
        self.gpus: dict[int, GpuFacts] = {}
        self.no_gpus = False
        """The driver's tool says that there is none."""
        self.loose_gpus: list[GpuFacts] = []
        """GPUs that are named without a number."""
        self.driver: dict[str, Any] = {}
        self.readings: list[tuple[str, str]] = []
        """(driver version, where it was read), the most trusted first."""
        self.cuda_readings: list[tuple[str, str]] = []
        self.answers: dict[str, tuple[str, int | None, str]] = {}
        """nvml, libcuda, smi -> outcome, code, message."""
        self.kernel_log: list[str] = []
        self.system_packages: list[tuple[str, str, str]] = []
        self.os: dict[str, Any] = {}
        self.python: dict[str, Any] = {}
        self.wsl: int | None = None
        self.jetson: str | None = None
        self.container: dict[str, Any] = {}
        self.engines: dict[str, dict[str, Any]] = {}
        self.fabric_manager: dict[str, Any] = {}
        self.pci: list[dict[str, Any]] = []
        self.shm_bytes: int | None = None
        self.toolkits: list[dict[str, Any]] = []
        self.compilers: list[tuple[str, str]] = []
        self.variables: dict[str, str] = {}
        self.toolkit_version: str | None = None
        self.cdi_devices: list[str] = []
        self.recognised = False
        """Whether any reader understood anything."""

    def answer(self, who: str, outcome: str, code: int | None = None, message: str = "") -> None:
        """Note what nvml, libcuda or smi answered; an error is not overwritten by a success."""
        known = self.answers.get(who)
        if known is None or (known[0] == "ok" and outcome != "ok"):
            self.answers[who] = (outcome, code, message)

    def first(self, facts: dict[str, Any], name: str, value: Any) -> None:
        """Note a fact unless it is known already."""
        if value is not None and facts.get(name) is None:
            facts[name] = value

    def gpu(self, index: int) -> GpuFacts:
        """The GPU of a number."""
        return self.gpus.setdefault(index, GpuFacts())

    def has(self, *marks: str) -> bool:
        """Whether the text holds any of some lower-case marks."""
        return any(mark in self.lower for mark in marks)
