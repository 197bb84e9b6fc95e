"""What `envcheck emit ansible` writes: settings that say what a lock says, and a whole folder."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from envcheck.emit import ansible
from envcheck.emit.options import Options
from envcheck.errors import LockError, UsageError
from envcheck.matrix.loader import Matrix
from envcheck.planner.lock import parse_lock
from tests.emit.locks import EXAMPLES, example

MATRIX = Matrix.shipped()
GPU_LOCK = "torch-ubuntu24.04"


def stack(name: str = GPU_LOCK, **options: Any) -> dict[str, Any]:
    made = ansible.files(example(name), MATRIX, Options(**options))
    found: dict[str, Any] = yaml.safe_load(made[ansible.STACK])
    return found


def test_versions_are_those_of_the_lock() -> None:
    lock, found = example(GPU_LOCK), stack()
    assert found["stack_driver"] is True
    assert found["nvidia_driver_minimum"] == lock.stack.min_driver
    assert found["python_stack_python"] == lock.stack.python
    assert [(each["name"], each["version"]) for each in found["python_stack_packages"]] == [
        (pin.name, pin.version) for pin in lock.stack.pins
    ]


def test_the_driver_is_the_one_of_the_target_else_of_the_plan_else_asked_for() -> None:
    lock = example(GPU_LOCK)

    def driver(on_target: str | None, **options: Any) -> tuple[str, str]:
        target = dataclasses.replace(lock.target, driver=on_target)
        changed = dataclasses.replace(
            lock,
            target=target,
            stack=dataclasses.replace(lock.stack, driver_branch="595", min_driver="580"),
        )
        made = ansible.files(changed, MATRIX, Options(**options))
        found = yaml.safe_load(made[ansible.STACK])
        return found["nvidia_driver_branch"], found["nvidia_driver_version"]

    assert driver("580.95.05") == ("580", "580.95.05")
    assert driver("580") == ("580", "580")
    assert driver(None) == ("595", "595")
    assert driver("580", driver_version="595.45.04") == ("595", "595.45.04")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("535.104.05", "older than"),
        ("565", "older than"),
        ("newest", "is not a driver release"),
        ("580; reboot", "is not a driver release"),
    ],
)
def test_a_driver_that_cannot_be_followed_is_refused(version: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ansible.files(example(GPU_LOCK), MATRIX, Options(driver_version=version))


def test_the_kind_of_module_is_that_of_the_gpus() -> None:
    lock = example(GPU_LOCK)

    def flavour(module: Any, driver: str) -> str:
        changed = dataclasses.replace(
            lock, stack=dataclasses.replace(lock.stack, driver_module=module, min_driver="535")
        )
        made = ansible.files(changed, MATRIX, Options(driver_version=driver))
        found: str = yaml.safe_load(made[ansible.STACK])["nvidia_driver_flavour"]
        return found

    assert flavour("open", "550.90.07") == "open"
    assert flavour("proprietary", "580.95.05") == "proprietary"
    # Either will do: what the branch itself installs.
    assert flavour(None, "580.95.05") == "open"
    assert flavour(None, "550.90.07") == "proprietary"


def test_a_stack_for_the_cpu_asks_for_no_driver() -> None:
    found = stack("torch-debian12")
    assert (found["stack_driver"], found["stack_container_toolkit"]) == (False, False)
    assert "nvidia_driver_version" not in found


def test_devices_are_told_apart_by_what_drives_them() -> None:
    made = ansible.files(example(GPU_LOCK), MATRIX, Options())
    found = yaml.safe_load(made[ansible.DEVICES])
    assert "1db6" in found["nvidia_driver_ids_proprietary_only"]  # V100
    assert "2901" in found["nvidia_driver_ids_open_only"]  # B200
    for name in ("proprietary", "open"):
        assert "2330" not in found[f"nvidia_driver_ids_{name}_only"]  # H100
    assert "22a3" in found["nvidia_driver_ids_nvswitch"]


def test_the_inventory_has_the_hosts() -> None:
    made = ansible.files(example(GPU_LOCK), MATRIX, Options(hosts=("gpu[01:16]", "login.a.b")))
    assert yaml.safe_load(made["inventory.yml"]) == {
        "all": {"hosts": {"gpu[01:16]": {}, "login.a.b": {}}}
    }
    skeleton = ansible.files(example(GPU_LOCK), MATRIX, Options())
    assert "inventory.yml" not in skeleton
    assert yaml.safe_load(skeleton["inventory.example.yml"])["all"]["hosts"]


@pytest.mark.parametrize("host", ["hosts.d/a", 'a": {}', "a b", "-a", "{{ 1 }}", "a\nb", ""])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(UsageError, match="--inventory: "):
        ansible.files(example(GPU_LOCK), MATRIX, Options(hosts=(host,)))


def test_hostile_text_in_a_lock_is_refused() -> None:
    lock = example(GPU_LOCK)
    hostile = dataclasses.replace(
        lock, stack=dataclasses.replace(lock.stack, driver_branch="{{ lookup('pipe', 'id') }}")
    )
    with pytest.raises(LockError, match="driver_branch"):
        ansible.files(hostile, MATRIX, Options())


def test_the_collection_is_copied_as_it_is() -> None:
    made = ansible.files(example(GPU_LOCK), MATRIX, Options())
    other = ansible.files(example("torch-debian12"), MATRIX, Options())
    copied = {path for path in made if path.startswith(ansible.COLLECTION)}
    assert len(copied) > 40
    assert {path for path in copied if made[path] != other[path]} == set()
    assert not [path for path in copied if "molecule" in path]
    assert parse_lock(made["envcheck.lock"], "it") == example(GPU_LOCK)


def test_the_folder_is_complete_and_the_same_twice(tmp_path: Path) -> None:
    def emit(folder: Path) -> dict[str, bytes]:
        subprocess.run(
            [
                *(sys.executable, "-m", "envcheck", "emit", "ansible", "-o", str(folder)),
                *("--lock", str(EXAMPLES / GPU_LOCK / "envcheck.lock")),
            ],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        return {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }

    first = emit(tmp_path / "a")
    assert emit(tmp_path / "b") == first
    wheels = {path.rpartition("/")[2].partition("-")[0] for path in first if path.endswith(".whl")}
    assert wheels == {"envcheck", "distro", "nvidia_ml_py", "packaging", "tomli"}


def test_wheels_hold_what_a_host_without_an_index_needs(tmp_path: Path) -> None:
    """Unpacked as the role does it, they judge a recorded machine with nothing else on the path."""
    from envcheck.commands.needed_wheels import needed_wheels
    from envcheck.commands.own_wheel import own_wheel

    name, content = own_wheel()
    for wheel in {name: content, **needed_wheels()}.values():
        zipfile.ZipFile(io.BytesIO(wheel)).extractall(tmp_path / "lib")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'lib')!r})\n"
        "from envcheck.cli import main; sys.exit(main())"
    )
    lock = EXAMPLES / "torch-debian12/envcheck.lock"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program, "doctor", "--json", "--against", lock],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    assert '"schema_version": "1"' in done.stdout
