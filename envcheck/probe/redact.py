"""Takes out of a recording what tells who and whose: names, addresses, serials, secrets.

Home folders become `~` (in recordings a fixed path, so that a replay finds them); other paths stay, because fixes need them. Each identifier is
replaced by one constant word of its kind, so a recording of the same machine reads the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

KEPT_PREFIXES = (
    "CUDA_",
    "NVIDIA_",
    "NCCL_",
    "TORCH_",
    "PYTORCH_",
    "TF_",
    "XLA_",
    "JAX_",
    "GLOO_",
    "MIG_",
    "CONDA_",
    "ENVCHECK_",
)
KEPT_NAMES = frozenset(
    {
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "LIBRARY_PATH",
        "PATH",
        "VIRTUAL_ENV",
        "CUDACXX",
        "CUDAHOSTCXX",
        "CC",
        "CXX",
        "PYTHONPATH",
        "PYTHONHOME",
        "PYTHONNOUSERSITE",
        "HOME",
        "KUBERNETES_SERVICE_HOST",
        "WSL_DISTRO_NAME",
        "APPTAINER_CONTAINER",
        "SINGULARITY_CONTAINER",
        "NO_COLOR",
        "TRITON_PTXAS_PATH",
        "OMPI_COMM_WORLD_SIZE",
        "WORLD_SIZE",
        "SLURM_JOB_ID",
        "SLURM_JOB_GPUS",
        "SLURM_STEP_GPUS",
        "LOCAL_RANK",
    }
)
_SECRET = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|CREDENTIAL|AUTH", re.I)

_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I),
     r"\1-00000000-0000-0000-0000-000000000000"),
    (re.compile(r"(?<![\w-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])", re.I),
     "00000000-0000-0000-0000-000000000000"),
    (re.compile(r"(?<![\w:.])(?:[0-9a-f]{2}:){5}[0-9a-f]{2}(?![\w:])", re.I), "00:00:00:00:00:00"),
    (re.compile(r"(?<![\w.@-])[\w.+-]+@[a-z][\w-]*(?:\.[\w-]+)*", re.I), "user@host"),
    (re.compile(r"((?:serial|S/N)[^\n:=]{0,12}[:=]\s*)\"?[\w-]{6,}\"?", re.I), r"\g<1>0"),
)


def recorded_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that a recording keeps: those that change how CUDA and Python behave."""
    return {
        name: value
        for name, value in sorted(variables.items())
        if (name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)) and not _SECRET.search(name)
    }


class Redactor:
    """Redacts texts of one machine."""

    def __init__(
        self, variables: Mapping[str, str], read: Callable[[str], str | None], home: str = "~"
    ) -> None:
        """Learn the names that must not come through.

        Args:
            variables: environment of the machine.
            read: reads a file of the machine; its refusals are taken as absence.
            home: what stands for a home folder: `~` for people, a path where programs read on.
        """
        self._tilde = home
        self._home = variables.get("HOME", "").rstrip("/")
        names = {variables.get(name, "") for name in ("USER", "LOGNAME", "HOSTNAME", "SUDO_USER")}
        for path in ("/etc/hostname", "/proc/sys/kernel/hostname"):
            try:
                names.add((read(path) or "").strip())
            except OSError:
                continue
        # Words that are part of paths and packages everywhere name nobody.
        words = sorted(
            (each for each in names if len(each) > 2 and each not in _COMMON), key=len, reverse=True
        )
        self._names = (
            re.compile(r"(?<![\w.-])(?:" + "|".join(map(re.escape, words)) + r")(?![\w-])")
            if words
            else None
        )

    def __call__(self, text: str) -> str:
        """The text without identifiers."""
        if len(self._home) > 1:
            text = re.sub(re.escape(self._home) + r"(?![\w.-])", self._tilde, text)
        text = re.sub(r"/(?:home|Users)/(?!user\b)[^/\s\"':]+", self._tilde, text)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        text = _ADDRESS.sub(_address, text)
        return self._names.sub("host", text) if self._names is not None else text

    def data(self, value: Any) -> Any:
        """Plain data without identifiers, keys included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.data(each) for each in value]
        if isinstance(value, dict):
            return {self(name): self.data(each) for name, each in value.items()}
        return value


_COMMON = frozenset({"root", "user", "host", "localhost", "admin", "ubuntu", "debian", "nvidia", "vm"})
# Four numbers below 256 that are not part of a longer version number: an IPv4 address. Driver and
# library versions have a first number above 255 or stand behind a letter, slash, dash or equals sign.
_ADDRESS = re.compile(r"(?<![\w./=+-])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\w.-])")


def _address(match: re.Match[str]) -> str:
    parts = [int(each) for each in match.groups()]
    first = parts[0]
    private = first in {10, 172, 192, 169} or first >= 100
    return "0.0.0.0" if private and first < 255 and all(each < 256 for each in parts) else match.group()
