"""Commands that change the Python environment, for the tool that manages it.

Every command names the target interpreter, so that it does the right thing whatever is activated in
the shell that it is pasted into. Index addresses come from the tables, never from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from envcheck.model.finding import Fix

if TYPE_CHECKING:
    from envcheck.model.environment import Framework, Package, Python
    from envcheck.model.snapshot import Snapshot

CONDA_ORIGINS = frozenset({"conda", "conda-forge"})

CONDA_NAMES = {"torch": "pytorch"}
"""Names that conda-forge gives to packages whose pip name is another."""

NEW_ENVIRONMENT = "~/gpu-env"


def word(text: str) -> str:
    """A path as one word of a shell command; a leading `~` stays outside the quotes."""
    if all(letter.isalnum() or letter in "~/._-+:\\" for letter in text):
        return text
    if text.startswith("~/"):
        return f'~/"{text[2:]}"'
    return f'"{text}"'


def interpreter(python: Python) -> str:
    """The target interpreter as a shell word."""
    return word(python.executable or "python")


def by_conda(snapshot: Snapshot, name: str) -> bool:
    """Whether conda, and not pip inside a conda environment, installed a package."""
    framework = snapshot.env.framework(name)
    if framework is not None and framework.origin != "unknown":
        return framework.origin in CONDA_ORIGINS
    package = snapshot.env.package(name)
    if package is None or package.installer in {"pip", "uv"}:
        return False
    return package.installer == "conda" or package.channel is not None


def _quoted(requirements: tuple[str, ...]) -> str:
    return " ".join(f'"{each}"' for each in requirements)


def install(
    snapshot: Snapshot,
    requirements: tuple[str, ...],
    *,
    index_url: str | None = None,
    reinstall: bool = False,
    dependencies: bool = True,
    upgrade: bool = False,
) -> tuple[str, ...]:
    """Commands that install requirements into the target environment.

    Args:
        snapshot: says which interpreter, and which tool manages it.
        requirements: as `torch==2.8.0`.
        index_url: index to take everything from; the configured one when None.
        reinstall: also when the same version is there already, as another variant of it.
        dependencies: False leaves dependencies alone, to put one colliding wheel back; that is
            done in place even where the system manages this Python, for it is where the wheel is.
        upgrade: to the newest release that the requirement allows.

    Returns:
        Shell commands, in order.
    """
    python = snapshot.env.python
    exe = interpreter(python)
    prepare: tuple[str, ...] = ()
    if python.manager == "poetry" and dependencies:
        return _poetry(requirements, index_url)
    if python.manager == "pdm" and dependencies:
        return _pdm(requirements, index_url)
    locked = bool(python.externally_managed) and python.kind != "venv"
    if locked and dependencies:
        prepare = (f"{exe} -m venv {NEW_ENVIRONMENT}",)
        exe = f"{NEW_ENVIRONMENT}/bin/python"
        reinstall = False
    index = f" --index-url {index_url}" if index_url else ""
    common = (" --upgrade" if upgrade else "") + ("" if dependencies else " --no-deps")
    if locked and not dependencies:
        common += " --break-system-packages"
    if python.manager == "uv" and not prepare:
        options = (" --reinstall" if reinstall else "") + common
        return (f"uv pip install --python {exe}{options} {_quoted(requirements)}{index}",)
    options = (" --force-reinstall" if reinstall else "") + common
    return (*prepare, f"{exe} -m pip install{options} {_quoted(requirements)}{index}")


def uninstall(snapshot: Snapshot, names: tuple[str, ...]) -> tuple[str, ...]:
    """Commands that remove distributions from the target environment."""
    python = snapshot.env.python
    exe = interpreter(python)
    if python.manager == "uv":
        return (f"uv pip uninstall --python {exe} {' '.join(names)}",)
    locked = python.externally_managed and python.kind != "venv"
    options = " --break-system-packages" if locked else ""
    return (f"{exe} -m pip uninstall -y{options} {' '.join(names)}",)


def _source_name(index_url: str) -> str:
    return index_url.rstrip("/").rpartition("/")[2]


def _poetry(requirements: tuple[str, ...], index_url: str | None) -> tuple[str, ...]:
    """Poetry takes packages from other indexes through a named, explicit source."""
    if index_url is None:
        return (f"poetry add {_quoted(requirements)}",)
    name = _source_name(index_url)
    return (
        f"poetry source add --priority=explicit {name} {index_url}",
        f"poetry add --source {name} {_quoted(requirements)}",
    )


def _pdm(requirements: tuple[str, ...], index_url: str | None) -> tuple[str, ...]:
    """PDM takes packages from other indexes through a named one in the project's configuration."""
    if index_url is None:
        return (f"pdm add {_quoted(requirements)}",)
    name = _source_name(index_url)
    return (
        f"pdm config --local pypi.{name}.url {index_url}",
        f"pdm add {_quoted(requirements)}",
    )


def conda_install(
    snapshot: Snapshot, name: str, *, version: str | None, cuda: str | None
) -> tuple[str, ...]:
    """Commands that install a CUDA build from conda-forge.

    Args:
        snapshot: says which environment.
        name: the pip name, `torch`.
        version: release to keep, None for any.
        cuda: CUDA release of the build, `12.6`; None for the newest that the driver allows.
    """
    prefix = snapshot.env.python.prefix
    where = f" -p {word(prefix)}" if prefix else ""
    build = f"=cuda{cuda.replace('.', '')}*" if cuda else "=cuda*"
    package = CONDA_NAMES.get(name, name)
    return (f'conda install{where} -c conda-forge "{package}={version or "*"}{build}"',)


def reinstall_pinned(
    snapshot: Snapshot, title: str, remove: tuple[str, ...], requirements: tuple[str, ...]
) -> Fix:
    """Uninstall wheels that overwrite one another, then put the right ones back.

    Both are removed first: uninstalling one of two that share files deletes the other's files too.
    """
    return Fix(
        title=title,
        commands=(
            *uninstall(snapshot, remove),
            *(
                install(snapshot, requirements, dependencies=False, reinstall=True)
                if requirements
                else ()
            ),
        ),
    )


def public_version(version: str) -> str:
    """A version without its local tag: `2.8.0` of `2.8.0+cu128`."""
    return version.partition("+")[0]


def local_tag(version: str) -> str:
    """The local tag of a version: `cu128` of `2.8.0+cu128`, empty without one."""
    return version.partition("+")[2]


def label(package: Package | Framework) -> str:
    """`torch 2.8.0+cu128`."""
    return f"{package.name} {package.version}"
