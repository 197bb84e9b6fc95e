"""The target environment: interpreter, packages, frameworks, libraries."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, cast

from envcheck.model.environment import (
    Environment,
    Library,
    Package,
    Python,
    SharedFile,
    Variable,
)
from envcheck.paths import payload
from envcheck.probe import libraries, loader, toolkits
from envcheck.probe.answers import payload_answer
from envcheck.probe.driver_files import LDCONFIG, cached_libraries
from envcheck.probe.frameworks import deep_commands, read_frameworks
from envcheck.probe.quiet import Quiet
from envcheck.probe.redact import recorded_variables
from envcheck.probe.shapes import ENVIRONMENT
from envcheck.probe.source import Command, Result
from envcheck.probe.target import without_interpreter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from envcheck.model.environment import Framework, Manager
    from envcheck.probe.notes import Notes
    from envcheck.probe.source import Source
    from envcheck.probe.target import Target

INSPECT = "payload:inspect_env"
READ_AS_FILES = "payload:inspect_env-as-files"
_CUDA_SONAME = re.compile(r"lib(?:cud|cub|cuf|cur|cus|nccl|nvrtc|nvJit|cupti)")
_NOT_SHOWN = frozenset({"PATH", "HOME", "NO_COLOR"})
_PLATFORMS = {"linux": "linux", "win": "win", "macosx": "macosx"}


def environment_commands(
    source: Source, target: Target, deep: bool, timeout: float, cache: Result | None
) -> tuple[Command, ...]:
    """What must be run to describe the environment.

    Args:
        source: the machine.
        target: the environment.
        deep: also import the frameworks, each in a child of its own.
        timeout: seconds that each child gets.
        cache: `ldconfig -p`, which names the folders outside the environment to look into.
    """
    interpreter = target.interpreter
    command = _inspect(source, target, cache, timeout)
    more = deep_commands(interpreter, timeout) if deep and interpreter is not None else ()
    return (command, *toolkits.compiler_commands(Quiet(source)), *more)


def _inspect(source: Source, target: Target, cache: Result | None, timeout: float) -> Command:
    """Ask the target's interpreter; where it has none, let envcheck's own read its files."""
    arguments = []
    for folder in _outer_folders(source, cache):
        arguments += ["--library-folder", folder]
    if target.interpreter is None:
        arguments += ["--prefix", target.prefix or "/"]
        for site in target.sites:
            arguments += ["--site", site]
    return Command(
        name=INSPECT,
        argv=(target.interpreter or source.interpreter(), str(payload("inspect_env")), *arguments),
        timeout=timeout,
        payload=True,
        limit_bytes=64_000_000,
    )


def _outer_folders(source: Source, cache: Result | None) -> tuple[str, ...]:
    """Folders of LD_LIBRARY_PATH, and those where the loader's cache has CUDA libraries."""
    folders = list(_library_path(source.variables))
    folders += [path.rpartition("/")[0] for path in _preload(source.variables)]
    for soname, paths in cached_libraries(cache).items():
        if _CUDA_SONAME.match(soname):
            folders += [path.rpartition("/")[0] for path in paths]
    return tuple(dict.fromkeys(folders))


def _library_path(variables: Mapping[str, str]) -> tuple[str, ...]:
    text = variables.get("LD_LIBRARY_PATH", "").replace(";", ":")
    return tuple(each.rstrip("/") for each in text.split(":") if each.startswith("/"))


def _preload(variables: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(
        each for each in re.split(r"[:\s]+", variables.get("LD_PRELOAD", "")) if each[:1] == "/"
    )


def read_environment(
    source: Source, target: Target, results: Mapping[str, Result], notes: Notes
) -> Environment:
    """Describe the environment.

    Args:
        source: the machine.
        target: the environment.
        results: of `environment_commands` and of `ldconfig -p`.
        notes: where gaps go.
    """
    quiet = Quiet(source)
    variables = tuple(
        Variable(name=name, value=value)
        for name, value in recorded_variables(source.variables).items()
        if name not in _NOT_SHOWN
    )
    data, reason = payload_answer(results.get(INSPECT), ENVIRONMENT)
    rest = without_interpreter(source, target, reason) if data is None else None
    if rest is not None:
        target = rest
        command = _inspect(source, target, results.get(LDCONFIG.name), timeout=10.0)
        data, _ = payload_answer(
            source.run(dataclasses.replace(command, name=READ_AS_FILES)), ENVIRONMENT
        )
    compilers = toolkits.read_compilers(quiet, results)
    if data is None:
        words = target.error or f"{target.interpreter or target.prefix}: {reason}"
        notes.missing("env", words)
        return Environment(
            python=Python(
                executable=target.interpreter, chosen_because=target.because, error=words
            ),
            toolkits=toolkits.read_toolkits(quiet, target.prefix),
            compilers=compilers,
            variables=variables,
        )
    python = _python(target, data)
    if python.error:
        notes.missing("env.python.version", python.error)
    frameworks = read_frameworks(data, python, results, notes)
    search = loader.Search(
        library_path=_library_path(source.variables),
        cache=tuple(cached_libraries(results.get(LDCONFIG.name)).items()),
        preload=_preload(source.variables),
        executable=_executable(data),
    )
    return Environment(
        python=python,
        packages=_packages(data),
        frameworks=frameworks,
        libraries=_libraries(data, search, frameworks, python, notes),
        shared_files=tuple(
            SharedFile(path=path, packages=tuple(sorted(names)))
            for path, names in sorted(data["shared_files"].items())
        ),
        toolkits=toolkits.read_toolkits(quiet, python.prefix),
        compilers=compilers,
        variables=variables,
    )


def _executable(data: dict[str, Any]) -> loader.File | None:
    facts = (data.get("python") or {}).get("elf")
    return loader.file_of(facts) if facts else None


def _python(target: Target, data: dict[str, Any]) -> Python:
    facts = data.get("python") or {}
    files = data["files"]
    prefix = facts.get("prefix") or target.prefix
    venv = (
        facts.get("prefix") != facts.get("base_prefix")
        if facts
        else files.get("pyvenv") is not None
    )
    kind = "venv" if venv else "conda" if files["conda"] else None
    if kind is None and facts:
        place = str(facts.get("executable") or "")
        managed = facts.get("externally_managed") or place.startswith(("/usr/bin/", "/bin/"))
        kind = "system" if managed else "other"
    version = facts.get("version")
    pyvenv = files.get("pyvenv") or ""
    if version is None:
        match = re.search(r"^version(?:_info)?\s*=\s*(\d+\.\d+\.\d+)", pyvenv, re.M)
        version = match.group(1) if match else None
    return Python(
        version=version,
        executable=facts.get("executable") or target.interpreter,
        prefix=prefix,
        kind=cast("Any", kind),
        manager=_manager(data, str(prefix or ""), pyvenv, kind),
        externally_managed=facts.get("externally_managed"),
        implementation=facts.get("implementation"),
        tag=facts.get("tag"),
        platform=_platform(facts.get("platform")),
        libc=facts.get("libc"),
        chosen_because=target.because,
        error=target.error,
    )


def _platform(text: str | None) -> str | None:
    """`linux_x86_64` of what sysconfig says; macOS and Windows keep their machine only."""
    if text is None:
        return None
    system = next((name for prefix, name in _PLATFORMS.items() if text.startswith(prefix)), None)
    if system is None:
        return text
    machine = next(
        (each for each in ("x86_64", "aarch64", "arm64", "amd64") if text.endswith(each)), None
    )
    return f"{system}_{machine}" if machine else text


def _manager(data: dict[str, Any], prefix: str, pyvenv: str, kind: str | None) -> Manager:
    """What installs packages here, by the marks that the tools leave."""
    if data["files"]["pipx"] or "/pipx/venvs/" in prefix:
        return "pipx"
    if "/pypoetry/" in prefix:
        return "poetry"
    if kind == "conda":
        return "conda"
    if re.search(r"^uv\s*=", pyvenv, re.M):
        return "uv"
    installers = [each.get("installer") for each in data["packages"] if each.get("installer")]
    # The installer of the frameworks counts; a venv made by hand may be filled by any of them.
    names: tuple[Manager, ...] = ("uv", "poetry", "pdm")
    for name in names:
        if installers and installers.count(name) * 2 > len(installers):
            return name
    return "system" if kind == "system" else "pip"


def _packages(data: dict[str, Any]) -> tuple[Package, ...]:
    found = [
        Package(
            name=each["name"],
            version=each["version"],
            installer=each.get("installer"),
            location=each.get("location"),
            requires=tuple(each.get("requires") or ()),
            build=each.get("wheel") or each.get("build"),
        )
        for each in data["packages"]
    ]
    known = {each.name for each in found}
    found += [
        Package(
            name=each["name"],
            version=each["version"],
            installer="conda",
            build=each.get("build"),
            channel=each.get("channel"),
        )
        for each in data["conda_packages"]
        if each["name"] not in known
    ]
    return tuple(sorted(found, key=lambda each: each.name))


def _libraries(
    data: dict[str, Any],
    search: loader.Search,
    frameworks: tuple[Framework, ...],
    python: Python,
    notes: Notes,
) -> tuple[Library, ...] | None:
    """Copies on disk and which of them each framework would load."""
    files = tuple(loader.file_of(each) for each in (*data["libraries"], *data["outer_libraries"]))
    versions = {each["name"]: each["version"] for each in data["packages"]}
    opened = data.get("loading") or {}

    def release(file: loader.File) -> str | None:
        return libraries.version_of(file, versions)

    winners: dict[str, Mapping[str, loader.Choice]] = {}
    for framework in frameworks:
        if framework.name == "torch" and framework.cuda and framework.location:
            chosen = libraries.torch_choices(
                files,
                search,
                framework.location,
                loading=libraries.torch_loading(opened.get("torch")),
                cuda=framework.cuda,
                version=release,
            )
            if chosen is None:
                notes.missing(
                    "env.libraries", "torch's own libraries are not where a wheel has them"
                )
                return None
            winners["torch"] = chosen
    for each in files:
        if each.path.endswith("/xla_cuda_plugin.so"):
            chosen = libraries.plugin_choices(
                files,
                search,
                each,
                loading=libraries.jax_loading(opened.get("jax")),
                version=release,
            )
            if chosen is not None:
                winners["jax"] = chosen
    folders = tuple(
        dict.fromkeys(
            each
            # Any other prefix is shared with what is no environment: /usr/local holds toolkits too.
            for each in (
                python.prefix if python.kind in {"venv", "conda"} else None,
                *(p.get("location") for p in data["packages"]),
            )
            if each and each not in {"/usr", "/"}
        )
    )
    return libraries.rows(files, winners, versions, folders, search)
