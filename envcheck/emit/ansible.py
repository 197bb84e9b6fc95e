"""`envcheck emit ansible`: a folder that brings machines to a stack, complete for a host offline.

The collection is copied as it is: what a lock decides stands in `group_vars`, and nowhere else.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import envcheck
from envcheck.emit import describe
from envcheck.emit.check import checked, shown
from envcheck.emit.render import render
from envcheck.errors import UsageError
from envcheck.matrix import query
from envcheck.matrix.schema import Capability, ImageTool, PciGpu
from envcheck.paths import data_dir
from envcheck.planner.lock import DRIVER, lock_text
from envcheck.versions import Release

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from envcheck.emit.options import Options
    from envcheck.matrix.loader import Matrix
    from envcheck.model.plan import Lock, Pin

COLLECTION = "collections/ansible_collections/envcheck/stack"
WHEELS = "files/wheels"
WHEEL_IN = WHEELS
NEEDS_IN = WHEELS
"""Folder for wheels of what envcheck needs, so that a host needs no index."""
LOCK = "envcheck.lock"
STACK = "group_vars/all/stack.yml"
DEVICES = "group_vars/all/devices.yml"

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]|\[[0-9]{1,6}:[0-9]{1,6}\]){0,120}")
"""A host of an inventory, or a range of hosts: `gpu[01:16].example.org`."""
_MOST_HOSTS = 10_000
_KEPT = {".yml", ".md", ".j2", ".cfg", ".txt", ".py", ".sh", ""}
"""Endings of the collection's files; what caches leave between them has others."""
_LEFT_OUT = {"extensions", "tests", "__pycache__"}


def files(lock: Lock, matrix: Matrix, options: Options) -> dict[str, str]:
    """Playbook, variables, inventory, settings, and the collection.

    Raises:
        LockError, UsageError: see `checked`; or a host or the driver cannot be followed.
    """
    checked(lock, options)
    _check_hosts(options.hosts)
    collection = dict(_collection(data_dir("ansible")))
    inventory = "inventory.yml" if options.hosts else "inventory.example.yml"
    return {
        "README.md": _readme(lock, options),
        "ansible.cfg": _CFG,
        "requirements.txt": _requirements(collection["meta/runtime.yml"]),
        "site.yml": collection["playbooks/site.yml"],
        inventory: _inventory(options.hosts or ("gpu01.example.org", "gpu02.example.org")),
        LOCK: lock_text(lock),
        STACK: _stack(lock, matrix, options),
        DEVICES: _devices(matrix),
        **{f"{COLLECTION}/{path}": text for path, text in collection.items()},
    }


def _collection(folder: Path) -> Iterable[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in relative.parts)
        wanted = path.suffix in _KEPT and not hidden and not _LEFT_OUT & set(relative.parts)
        if wanted and path.is_file():
            yield relative.as_posix(), path.read_text(encoding="utf-8")


def _check_hosts(hosts: tuple[str, ...]) -> None:
    if len(hosts) > _MOST_HOSTS:
        msg = f"--inventory: more than {_MOST_HOSTS} hosts"
        raise UsageError(msg)
    for host in hosts:
        if not _HOST.fullmatch(host):
            msg = (
                f"--inventory: {shown(host)} is not the name of a host: an inventory of your own"
                " goes to 'ansible-playbook -i FILE site.yml'"
            )
            raise UsageError(msg)


# -- what a lock decides ---------------------------------------------------------------------------


def _stack(lock: Lock, matrix: Matrix, options: Options) -> str:
    stack = lock.stack
    branch, version = _driver(lock, options)
    parts: list[tuple[str, Mapping[str, Any]]] = [
        (
            "What is done. Parts can also be chosen with --tags.",
            {
                "stack_driver": branch is not None,
                "stack_container_toolkit": branch is not None,
                "stack_cuda_toolkit": False,
                "stack_gpu_tools": False,
                "stack_python": True,
            },
        )
    ]
    if branch is not None:
        parts.append(
            (
                "The driver. A version that is only a branch takes the newest that a host is"
                " offered at first, and stays there.",
                {
                    "nvidia_driver_branch": branch,
                    "nvidia_driver_version": version,
                    "nvidia_driver_flavour": _flavour(lock, matrix, branch),
                    "nvidia_driver_minimum": stack.min_driver or "",
                },
            )
        )
        parts.append(
            (
                "The container toolkit.",
                {"container_toolkit_version": matrix.toolkit_releases[-1].version},
            )
        )
        parts.append(("Tools, where stack_gpu_tools is true.", _tools(matrix, branch)))
    cuda = Release.maybe(describe.cuda(stack))
    if cuda is not None and len(cuda.parts) > 1:
        parts.append(
            (
                "The CUDA toolkit, where stack_cuda_toolkit is true: what the framework was built"
                " with. Wheels bring their own libraries and need none.",
                {"cuda_toolkit_release": cuda.series},
            )
        )
    parts.append(
        (
            f"The Python environment: {describe.frameworks(stack)}.",
            {
                "python_stack_python": stack.python,
                "python_stack_packages": [_package(pin) for pin in stack.pins],
            },
        )
    )
    parts.append(
        (
            "envcheck.",
            {
                "envcheck_wheels": "{{ playbook_dir }}/" + WHEELS,
                "envcheck_lock": "{{ playbook_dir }}/" + LOCK,
                "envcheck_python": "{{ python_stack_path | default('/opt/envcheck/stack') }}",
            },
        )
    )
    head = (
        f"# Made by envcheck {envcheck.__version__} from {LOCK}: {describe.frameworks(stack)} for"
        f" Python {stack.python},\n# for {describe.machine(lock)}.\n"
        "# Whatever differs on your side belongs in a file of your own beside this one.\n"
    )
    body = "\n".join(f"# {title}\n{_yaml(values)}" for title, values in parts)
    return f"---\n{head}\n{body}"


def _driver(lock: Lock, options: Options) -> tuple[str | None, str | None]:
    """Branch and version to install; neither where the stack needs no driver.

    Raises:
        UsageError: the version asked for is none, is too old, or none is known.
    """
    stack, asked = lock.stack, options.driver_version
    if asked is None and stack.min_driver is None:
        return None, None
    if asked is not None and not re.fullmatch(DRIVER, asked):
        msg = f"--driver-version: {shown(asked)} is not a driver release such as 580.95.05"
        raise UsageError(msg)
    version = asked or lock.target.driver or stack.driver_branch or stack.min_driver
    least, chosen = Release.maybe(stack.min_driver), Release.maybe(version)
    if version is None or chosen is None:
        msg = "the lock names no driver: give --driver-version"
        raise UsageError(msg)
    whole = len(chosen.parts) > 1
    if asked is not None and least is not None and _older(chosen, least):
        msg = f"--driver-version: {asked} is older than {stack.min_driver}, which the lock needs"
        raise UsageError(msg)
    branch = str(chosen.major)
    return branch, version if whole else branch


def _older(chosen: Release, least: Release) -> bool:
    """Whether a release, or the newest of a branch, is older than another."""
    return chosen < least if len(chosen.parts) > 1 else chosen.major < least.major


def _flavour(lock: Lock, matrix: Matrix, branch: str) -> str:
    if lock.stack.driver_module is not None:
        return lock.stack.driver_module
    row = query.branch(matrix, branch)
    return "open" if row is None or row.open_module in ("default", "only") else "proprietary"


def _tools(matrix: Matrix, branch: str) -> dict[str, Any]:
    cuda = Release.maybe(query.driver_cuda(matrix, branch))
    nvitop = next((row.version for row in matrix.find(ImageTool, name="nvitop")), "")
    return {
        "gpu_tools_wanted": ["dcgm", "nsys", "nvitop"],
        "gpu_tools_cuda_major": "" if cuda is None else str(cuda.major),
        "gpu_tools_nvitop_version": nvitop,
    }


def _package(pin: Pin) -> dict[str, Any]:
    found: dict[str, Any] = {"name": pin.name, "version": pin.version}
    if pin.extras:
        found["extras"] = list(pin.extras)
    if pin.index:
        found["index"] = pin.index
    return found


def _devices(matrix: Matrix) -> str:
    """Which kernel modules drive which devices, for the check that a host fits the plan."""
    modules = {row.cc: row.module for row in matrix.rows(Capability)}
    devices = matrix.rows(PciGpu)
    values = {
        f"nvidia_driver_ids_{module}_only": sorted(
            row.id for row in devices if modules.get(row.cc) == module
        )
        for module in ("open", "proprietary")
    }
    values["nvidia_driver_ids_nvswitch"] = sorted(row.id for row in matrix.nvswitches)
    dates = ", ".join(f"{name} of {matrix.date(name)}" for name in ("gpu", "pci"))
    lines = [f"{name}:\n{_wrapped(ids)}" for name, ids in values.items()]
    return "---\n" + "\n".join([f"# PCI device ids from envcheck's tables {dates}.", *lines])


def _wrapped(words: list[str]) -> str:
    """A list in lines of sixteen: a line for each of a thousand would be in everybody's way."""
    rows = [words[at : at + 16] for at in range(0, len(words), 16)]
    lines = [", ".join(f'"{word}"' for word in row) for row in rows]
    return "  [\n" + "".join(f"    {line},\n" for line in lines) + "  ]\n" if lines else "  []\n"


def _yaml(values: Mapping[str, Any]) -> str:
    """Settings as YAML. Strings are quoted, since 12.10 without quotes is the number 12.1."""
    lines = []
    for name, value in values.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            lines.append(f"{name}:")
            lines += [f"  - {_flow(each)}" for each in value]
        else:
            lines.append(f"{name}: {_flow(value)}")
    return "\n".join([*lines, ""])


def _flow(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return json.dumps(value)


# -- what stands around it -------------------------------------------------------------------------

_CFG = """\
[defaults]
inventory = inventory.yml
collections_path = collections
forks = 20
# Hosts that cannot be reached are told apart from those that failed, and the others go on.
any_errors_fatal = False
retry_files_enabled = False

[ssh_connection]
pipelining = True
"""


def _requirements(runtime: str) -> str:
    match = re.search(r'requires_ansible: "([^"]+)"', runtime)
    wanted = match[1] if match else ""
    return f"# What the machine that runs the playbook needs.\nansible-core{wanted}\n"


def _inventory(hosts: tuple[str, ...]) -> str:
    lines = [
        "---",
        "# ansible_host, ansible_port and ansible_user stand behind a host that needs them.",
        "all:",
        "  hosts:",
        *(f'    "{host}": {{}}' for host in hosts),
    ]
    return "\n".join([*lines, ""])


def _readme(lock: Lock, options: Options) -> str:
    return render(
        "ansible-readme.md",
        frameworks=describe.frameworks(lock.stack),
        python=lock.stack.python,
        machine=describe.machine(lock),
        skeleton=not options.hosts,
        collection=COLLECTION,
    )
