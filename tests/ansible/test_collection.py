"""The collection's data against the tables, its documentation against its code, and the linters."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from envcheck.matrix import query
from envcheck.matrix.loader import Matrix
from envcheck.matrix.schema import Distro
from envcheck.paths import data_dir
from tests.ansible.conftest import tool

COLLECTION = data_dir("ansible")
ROLES = sorted(path.name for path in (COLLECTION / "roles").iterdir())
MATRIX = Matrix.shipped()


def load(path: str) -> Any:
    return yaml.safe_load((COLLECTION / path).read_text(encoding="utf-8"))


SYSTEMS: dict[str, dict[str, Any]] = load("roles/preflight/vars/main.yml")["preflight_systems"]


def row(system: str) -> Distro:
    match = re.fullmatch(r"([a-z]+)([0-9.]+)", system)
    assert match is not None
    found = query.distro(MATRIX, match[1], match[2])
    assert found is not None
    return found


# -- names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", SYSTEMS)
def test_systems_are_those_of_the_table(system: str) -> None:
    known, ours = row(system), SYSTEMS[system]
    assert (known.family, known.manager, known.repo) == (
        ours["family"],
        ours["manager"],
        ours["repo"],
    )


def filled(name: str) -> str:
    """A name of the table as the roles spell it."""
    parts = {
        "{branch}": "{{ nvidia_driver_branch }}",
        "{kernel}": "{{ ansible_facts.kernel }}",
        "{kernel_flavour}": "{{ nvidia_driver_kernel_flavour }}",
        "{cuda}": "{{ cuda_toolkit_release | replace('.', '-') }}",
        "{cuda_major}": "{{ gpu_tools_cuda_major }}",
        "{arch}": "{{ preflight_arch }}",
        "{repo}": "{{ preflight_system.repo }}",
    }
    for part, spelled in parts.items():
        name = name.replace(part, spelled)
    return name


def table(system: str, purpose: str, origin: str = "nvidia") -> str | None:
    found = query.distro_package_row(MATRIX, row(system), purpose, origin)
    return None if found is None else filled(found.package)


@pytest.mark.parametrize("system", SYSTEMS)
def test_names_of_driver_packages_are_those_of_the_table(system: str) -> None:
    variables = load("roles/nvidia_driver/vars/main.yml")
    names = variables["nvidia_driver_names"][row(system).family]
    streams = variables["nvidia_driver_streams"].get(row(system).repo, {})
    for flavour in ("open", "proprietary"):
        known = table(system, f"driver-{flavour}")
        ours = names.get(flavour, {}).get("nvidia")
        if known is not None and known.startswith("dnf module install "):
            # Of a module, the branch is a stream; the metapackage has no branch in its name.
            assert known == f"dnf module install nvidia-driver:{streams[flavour]}"
        else:
            assert ours == known
        if row(system).family == "ubuntu":
            assert names[flavour]["distribution"] == table(
                system, f"driver-{flavour}", "distribution"
            )
            assert names["signed"][flavour] == table(
                system, f"signed-modules-{flavour}", "distribution"
            )
    assert names["fabric_manager"] == table(system, "fabric-manager")
    assert names["subnet_manager"] == table(system, "subnet-manager")
    assert names["headers"] == table(system, "headers", "distribution")


@pytest.mark.parametrize("system", SYSTEMS)
def test_names_of_other_packages_are_those_of_the_table(system: str) -> None:
    toolkit = load("roles/container_toolkit/vars/main.yml")["container_toolkit_packages"]
    assert toolkit[0] == table(system, "container-toolkit")
    cuda = load("roles/cuda_toolkit/vars/main.yml")["cuda_toolkit_metapackage"]
    assert cuda == table(system, "cuda-toolkit")
    tools = load("roles/gpu_tools/vars/main.yml")["gpu_tools_packages"]
    assert tools == {"dcgm": table(system, "dcgm"), "nsys": table(system, "nsight-systems")}


@pytest.mark.parametrize("system", SYSTEMS)
def test_repositories_and_keys_are_those_of_the_table(system: str) -> None:
    variables = load("roles/nvidia_repository/vars/main.yml")
    places = variables["nvidia_repository_places"][row(system).manager]
    host = f"{variables['nvidia_repository_host']}/"
    folder = "{{ preflight_system.repo }}/{{ preflight_arch }}/"
    assert variables["nvidia_repository_folder"] == "{{ nvidia_repository_host }}/" + folder
    repository = table(system, "repository")
    assert repository is not None
    assert repository.startswith(host + folder)
    key = places["cuda"]["key"].replace("{{ nvidia_repository_folder }}", host + folder)
    key = key.replace(
        "{{ nvidia_repository_rpm_keys[preflight_system.repo] }}",
        variables["nvidia_repository_rpm_keys"].get(row(system).repo, ""),
    )
    assert key == table(system, "repository-key")
    assert places["container_toolkit"]["key"] == table(system, "container-toolkit-key")
    added = table(system, "container-toolkit-repository")
    assert added is not None
    assert added.rpartition("/")[0] == places["container_toolkit"]["url"].partition("/$")[0]


# -- variables -------------------------------------------------------------------------------------


def options(role: str) -> dict[str, Any]:
    found: dict[str, Any] = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"][
        "options"
    ]
    return found


def defaults(role: str) -> dict[str, Any]:
    place = f"roles/{role}/defaults/main.yml"
    return load(place) or {} if (COLLECTION / place).exists() else {}


@pytest.mark.parametrize("role", ROLES)
def test_every_default_is_documented_as_it_is(role: str) -> None:
    documented = {
        name: spec["default"] for name, spec in options(role).items() if "default" in spec
    }
    assert documented == defaults(role)


@pytest.mark.parametrize("role", ROLES)
def test_no_version_is_a_default(role: str) -> None:
    for name, value in defaults(role).items():
        assert not re.search(r"(?<![A-Za-z])\d+\.\d+", str(value)), f"{name}: {value}"
        assert not (name.endswith(("_version", "_branch", "toolkit_release")) and value), name


def test_what_a_plan_decides_is_required() -> None:
    required = {
        name for role in ROLES for name, spec in options(role).items() if spec.get("required")
    }
    assert required == {
        "container_toolkit_version",
        "cuda_toolkit_release",
        "envcheck_wheels",
        "nvidia_driver_branch",
        "nvidia_driver_flavour",
        "nvidia_driver_version",
        "nvidia_repository_name",
        "python_stack_packages",
        "python_stack_python",
    }


def test_only_modules_of_ansible_itself_are_used() -> None:
    known = re.compile(r"^\s*(?:- )?([a-z_]+\.[a-z_]+\.[a-z_]+):", re.MULTILINE)
    used = {
        name
        for path in (COLLECTION / "roles").rglob("*.yml")
        for name in known.findall(path.read_text(encoding="utf-8"))
    }
    assert len(used) > 10
    assert {name.rpartition(".")[0] for name in used} == {"ansible.builtin"}


def test_the_collection_has_the_version_of_envcheck() -> None:
    import envcheck

    assert load("galaxy.yml")["version"] == envcheck.__version__


def test_the_readme_lists_every_role_and_system() -> None:
    text = (COLLECTION / "README.md").read_text(encoding="utf-8")
    for role in ROLES:
        assert f"`{role}`" in text
    for name in SYSTEMS:
        assert name in text


# -- linters ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The collection where Ansible finds it by its name."""
    place = tmp_path_factory.mktemp("lint") / "ansible_collections/envcheck/stack"
    shutil.copytree(COLLECTION, place)
    return place


def lint(copied: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        cwd=copied,
        env={
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(copied.parents[2]),
            "ANSIBLE_HOME": str(copied.parents[2] / "home"),
            "NO_COLOR": "1",
            "PATH": f"{Path(argv[0]).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_yamllint_is_content(copied: Path) -> None:
    done = lint(copied, tool("yamllint"), "--strict", ".")
    assert (done.stdout, done.returncode) == ("", 0)


def test_ansible_lint_is_content_with_it_as_a_product(copied: Path) -> None:
    done = lint(copied, tool("ansible-lint"), "--offline", "--profile", "production")
    assert "Passed: 0 failure(s), 0 warning(s)" in done.stdout + done.stderr
    assert done.returncode == 0
