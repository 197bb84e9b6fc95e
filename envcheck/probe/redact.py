"""Takes out of a recording what tells who and whose: names, addresses, serials, secrets.

Home folders become `~` (in recordings a fixed path, so that a replay finds them); other paths stay,
because fixes need them, with `$USER` for the user's name. Each identifier is replaced by one
constant word of its kind, so a recording of the same machine reads the same.
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
    (
        re.compile(
            r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I
        ),
        r"\1-00000000-0000-0000-0000-000000000000",
    ),
    (
        re.compile(
            r"(?<![\w-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])", re.I
        ),
        "00000000-0000-0000-0000-000000000000",
    ),
    (re.compile(r"(?<![\w:.])(?:[0-9a-f]{2}:){5,}[0-9a-f]{2}(?![\w:])", re.I), "00:00:00:00:00:00"),
    (re.compile(r"(?<=:\\Users\\)(?!user\b)[^\\\s\"':,;]+"), "user"),
    (re.compile(r"(?<=://)[^\s/:@\"']*:[^\s/@\"']+@"), ""),
    (re.compile(r"(?<![\w.@-])[\w.+-]+@[a-z][\w-]*(?:\.[\w-]+)*", re.I), "user@host"),
    (
        re.compile(
            r"((?<![a-z])(?:serial(?:[ _-]?(?:number|no\.?))?|S/N)\"?\s*[:=]\s*\"?)[\w-]{6,}", re.I
        ),
        r"\g<1>0",
    ),
)


def recorded_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that a recording keeps: those that change how CUDA and Python behave."""
    return {
        name: _VARIABLE_ADDRESS.sub("0.0.0.0", value)
        for name, value in sorted(variables.items())
        if (name in KEPT_NAMES or name.startswith(KEPT_PREFIXES)) and not _SECRET.search(name)
    }


KERNEL_COMMAND_LINE = "/proc/cmdline"
_TELLING = re.compile(
    r"(?:intel_|amd_)?iommu|pci\w*|nvidia\S*|nouveau\S*|rd\.driver\.\w+|modprobe\.blacklist"
    r"|module_blacklist|nomodeset|video|hugepages\w*|vfio\S*"
)


def telling_words(command_line: str) -> str:
    """The words of a kernel's command line that concern PCI, IOMMU and display drivers.

    The others name disks, hosts and addresses, and sometimes secrets.
    """
    return " ".join(
        word for word in command_line.split() if _TELLING.fullmatch(word.partition("=")[0].lower())
    )


_MARKED = re.compile(r"[/:=@\\]|(?:-[^-]*){4}|(?:\.[^.]*){3}")
"""What every pattern here asks for: a path, a separator, a UUID's dashes or an address's dots."""


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
        home_folder = variables.get("HOME", "").rstrip("/")
        # `/root` may also end another path, `/opt/root`; a home folder of a person is unmistakable.
        before = r"(?<![\w.-])" if home_folder == "/root" else ""
        self._home = (
            re.compile(before + re.escape(home_folder) + r"(?![\w.-])")
            if home_folder.startswith("/")
            else None
        )
        users = {variables.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
        names = {*users, variables.get("HOSTNAME", "")}
        for path in ("/etc/hostname", "/proc/sys/kernel/hostname"):
            try:
                name = (read(path) or "").strip()
            except OSError:
                continue
            names |= {name, name.partition(".")[0]}
        # Words that are part of paths and packages everywhere name nobody.
        words = sorted(
            (each for each in names if len(each) > 2 and each.lower() not in _COMMON),
            key=len,
            reverse=True,
        )
        self._known: dict[str, str] = {}
        self._users = users
        self._names = re.compile("|".join(map(_standing_alone, words))) if words else None

    def __call__(self, text: str) -> str:
        """The text without identifiers."""
        # Names, versions and words come again and again.
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._redacted(text)
        return known

    def _redacted(self, text: str) -> str:
        if _MARKED.search(text) is None:  # a word or a version, which can only be a name
            return self._names.sub(self._nameless, text) if self._names is not None else text
        if self._home is not None:
            text = self._home.sub(self._tilde, text)
        text = _OTHER_HOMES.sub(self._tilde, text)
        for pattern, replacement in _PATTERNS:
            text = pattern.sub(replacement, text)
        text = _ADDRESS.sub(_address, text)
        text = _ADDRESS_6.sub("::", text)
        return self._names.sub(self._nameless, text) if self._names is not None else text

    def _nameless(self, match: re.Match[str]) -> str:
        """What stands for a name: in a path the variable, so that a command with it still works."""
        text, start, end = match.string, match.start(), match.end()
        before = _LAST_WORD.search(text, max(0, start - _LONGEST_PATH), start)
        if match.group() not in self._users or before is None or "/" not in before.group():
            return "host"
        return "${USER}" if text[end : end + 1] == "_" else "$USER"

    def data(self, value: Any) -> Any:
        """Plain data without identifiers, keys included."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            return [self.data(each) for each in value]
        if isinstance(value, dict):
            return {self(name): self.data(each) for name, each in value.items()}
        return value


_OTHER_HOMES = re.compile(r"/(?:home|Users)/(?!user(?![\w.-]))[^/\s\"':,;]+")

_COMMON = frozenset(
    # Accounts and machines that tell nothing, folders that paths are made of, words of NVIDIA's
    # software and of the answers that programs give: taken out, a recording could not be replayed.
    """
    root user host localhost admin ubuntu debian fedora centos rocky alma linux vm server
    desktop laptop workstation docker container worker node master builder default guest
    nobody bin boot cache cdi config containers data dev devices dist-packages driver drivers
    envs etc home hostname include kernel lib lib32 lib64 local media mnt modules module opt
    packages pci proc python python3 run sbin share shm site-packages snap src srv sys targets
    tmp updates usr var venv version versions work workspace nvidia cuda cudnn nccl gpu gpus
    nvml nvcc dkms compat runtime tesla geforce quadro hopper torch pytorch jax tensorflow
    triton numpy conda pip test name path index arch count errors error code message mode
    memory power total used list stat read file files kind size none true false null timeout
    crash missing
    """.split()  # noqa: SIM905 - one word a line helps nobody
)


_LONGEST_PATH = 400
_LAST_WORD = re.compile(r"[^\s\"'=:,;(\[]+\Z")


def _standing_alone(word: str) -> str:
    """Pattern of a name that is not a part of a longer word; short ones are told less easily.

    Packages are called after people and the other way round: a payload's `"name": "ray"` is one.
    """
    part = r"[^\W_]" if len(word) > 4 else r"[\w.-]"
    return rf"(?<!{part})(?<!\"name\": \"){re.escape(word)}(?!{part})"


# A variable's value has no library version of four parts but in paths.
_VARIABLE_ADDRESS = re.compile(r"(?:(?<=//)|(?<![\w./+-]))(?:\d{1,3}\.){3}\d{1,3}(?![\w-]|\.\d)")

# Four numbers below 256 that are not part of a longer version number. Versions of four parts are as
# common in what is recorded (cuRAND is 10.3.5.147), and below 100 their first number tells nothing:
# there an address must look like one by what stands around it.
_ADDRESS = re.compile(
    r"(?P<before>//|@|\b(?:inet|addr|address|ip|host|peer|server)[\"' =:]{1,4})?"
    r"(?<![\w.+-])(?<!==)(?<![\w\])]/)"
    r"(?P<numbers>(?:\d{1,3}\.){3}\d{1,3})"
    r"(?P<after>:\d{2,5}\b|/\d{1,2}\b)?(?![\w-]|\.\d)",
    re.I,
)


# Of version 6: eight groups, or a shortened form that starts as addresses in use do: global (2, 3),
# local (fc, fd), link-local (fe8 to feb) or multicast (ff). Others are as likely to be names of C++
# (`c10::f`), times or addresses of PCI devices; `::` and `::1` tell nothing.
_GROUP = r"[0-9a-f]{1,4}"
_ADDRESS_6 = re.compile(
    r"(?<![\w:.])(?:"
    rf"(?:{_GROUP}:){{7}}{_GROUP}"
    rf"|(?=(?:[23][0-9a-f]{{3}}|f[cd][0-9a-f]{{2}}|fe[89ab][0-9a-f]|ff[0-9a-f]{{2}}):)"
    rf"(?:{_GROUP}:){{1,7}}(?::(?:{_GROUP}(?::{_GROUP}){{0,5}})?)"
    r"|(?:::ffff:|64:ff9b::)(?:\d{1,3}\.){3}\d{1,3}"
    r")(?:%[\w.-]+)?(?![\w:]|\.\d)",
    re.I,
)


def _address(match: re.Match[str]) -> str:
    parts = [int(each) for each in match["numbers"].split(".")]
    shown = match["before"] or match["after"] or parts[0] >= 100
    if not shown or parts[0] in {0, 127, 255} or max(parts) > 255:
        return match.group()
    return f"{match['before'] or ''}0.0.0.0{match['after'] or ''}"
