"""What becomes of three hosts and an archive: planned, converged, moved up and down, made to fail.

Runs build on one another; each is a fixture, so that a run that cannot be had fails its own tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from envcheck.model.base import model
from envcheck.paths import data_dir
from tests.ansible.archive import BROKEN, DRIVER_SET, NEW, OLD, TOOLKIT_NEW
from tests.ansible.conftest import tool
from tests.ansible.fleet import Fleet, Played

pytestmark = pytest.mark.xdist_group("fleet")

MANAGED = ("h1", "h2", "h3")
LIMIT = ("--limit", ",".join(MANAGED))
DRIVER = ("--tags", "driver")
KERNEL = "/srv/sys/module/nvidia/version"


_REGISTER = (
    'echo \'{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}\''
    " > /etc/docker/daemon.json"
)


@model
class Scenario:
    """Where molecule runs, and what it is told of hosts and variables."""

    folder: Path
    hosts: Path
    vars: Path


@model
class Run:
    """A run, and which packages of the driver each host had after it."""

    played: Played
    driver: dict[str, dict[str, str]]
    holds: dict[str, set[str]]

    def versions(self, host: str) -> set[str]:
        """The versions of a host's driver packages; one, when all is well."""
        return set(self.driver[host].values())


def play(fleet: Fleet, *args: str, hosts: tuple[str, ...] = MANAGED, **settings: object) -> Run:
    inventory = settings.pop("inventory", None)
    assert inventory is None or isinstance(inventory, Path)
    assert not settings
    played = fleet.play(*args, inventory=inventory)
    names = (*DRIVER_SET, "nvidia-fabricmanager-580")
    return Run(
        played=played,
        driver={host: fleet.hosts.versions(host, *names) for host in hosts},
        holds={host: set(fleet.hosts.run(host, "apt-mark showhold").split()) for host in hosts},
    )


@pytest.fixture(scope="module")
def checked(fleet: Fleet) -> Run:
    """What would happen, asked of a fresh host."""
    return play(fleet, "--limit", "h4", "--check", "--diff", hosts=("h4",))


@pytest.fixture(scope="module")
def converged(fleet: Fleet, checked: Run) -> Run:
    """The first run; the kernel of h1 has the driver already, as after a start."""
    fleet.hosts.run("h1", f"echo {OLD} > {KERNEL}")
    return play(fleet, *LIMIT)


@pytest.fixture(scope="module")
def again(fleet: Fleet, converged: Run) -> Run:
    """The same once more."""
    return play(fleet, *LIMIT)


@pytest.fixture(scope="module")
def mixed(fleet: Fleet, again: Run) -> Run:
    """Another driver, which h1 gets and h2 has held by somebody; h5 is not there.

    h3, and h4 that is fresh, are given one that cannot be set up.
    """
    fleet.settings("h1", {"nvidia_driver_version": NEW})
    fleet.settings("h2", {"nvidia_driver_version": NEW})
    for host in ("h3", "h4"):
        fleet.settings(host, {"nvidia_driver_version": BROKEN})
    fleet.hosts.run("h1", f"echo {NEW} > {KERNEL}")
    # What this role put on hold it knows by this list; without it, the holds are somebody's.
    fleet.hosts.run("h2", "rm /etc/envcheck/nvidia-driver.held")
    inventory = fleet.hosts.inventory.with_name("with-absent.yml")
    inventory.write_text(fleet.hosts.inventory.read_text() + "    h5: {ansible_port: 1}\n")
    return play(fleet, "--tags", "driver,containers", hosts=(*MANAGED, "h4"), inventory=inventory)


@pytest.fixture(scope="module")
def back(fleet: Fleet, mixed: Run) -> Run:
    """h1 back to the lock, h2 up against the hold, h3 with Secure Boot."""
    fleet.settings(
        "h1",
        {
            "stack_cuda_toolkit": True,
            "cuda_toolkit_release": "13.0",
            "stack_gpu_tools": True,
            "gpu_tools_wanted": ["dcgm", "nsys"],
        },
    )
    fleet.settings("h2", {"nvidia_driver_version": NEW, "nvidia_driver_override_holds": True})
    fleet.settings("h3", {"nvidia_driver_version": NEW})
    fleet.hosts.run(
        "h3",
        "printf '\\006\\000\\000\\000\\001' >"
        " /srv/sys/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c",
    )
    return play(fleet, *LIMIT, "--tags", "driver,tools,toolkit")


@pytest.fixture(scope="module")
def special(fleet: Fleet, back: Run) -> Run:
    """h1 is another system, h2 has NVSwitches and runs its driver, h3 an old GPU."""
    fleet.hosts.run("h1", 'printf \'ID="rocky"\\nVERSION_ID="8.10"\\n\' > /srv/os-release')
    fleet.settings("h1", {"preflight_os_release": "/srv/os-release"})
    fleet.hosts.run(
        "h2",
        "switch=/srv/sys/bus/pci/devices/0000:05:00.0; mkdir -p $switch;"
        " echo 0x10de > $switch/vendor;"
        f" echo 0x068000 > $switch/class; echo 0x22a3 > $switch/device; echo {NEW} > {KERNEL}",
    )
    fleet.settings("h2", {"nvidia_driver_version": NEW})
    fleet.hosts.run("h3", "echo 0x1db6 > /srv/sys/bus/pci/devices/0000:01:00.0/device")
    return play(fleet, *LIMIT, *DRIVER)


# -- on fresh hosts --------------------------------------------------------------------------------


def test_check_mode_says_what_would_be_installed_and_changes_nothing(checked: Run) -> None:
    assert checked.played.code == 0, checked.played.text[-3000:]
    assert checked.played.recap["h4"]["changed"] > 0
    assert f"Would install nvidia-open-580={OLD}" in checked.played.text
    assert "Would install torch==2.15.0+cpu" in checked.played.text
    assert "+Pin-Priority: 1001" in checked.played.text
    assert checked.driver == {"h4": {}}


def test_check_mode_leaves_no_file_behind(fleet: Fleet, checked: Run) -> None:
    assert checked.played.code == 0
    listed = fleet.hosts.run("h4", "ls /etc/apt/preferences.d /etc/apt/sources.list.d /opt")
    assert "envcheck" not in listed


def test_the_first_run_brings_every_host_there(converged: Run) -> None:
    assert converged.played.code == 0, converged.played.text[-3000:]
    for host in MANAGED:
        assert converged.driver[host] == dict.fromkeys(DRIVER_SET, f"{OLD}-1")
        assert set(DRIVER_SET) <= converged.holds[host]


def test_the_first_run_sets_up_containers(fleet: Fleet, converged: Run) -> None:
    assert converged.played.code == 0
    found = fleet.hosts.versions("h1", "nvidia-container-toolkit", "libnvidia-container1")
    assert set(found.values()) == {f"{TOOLKIT_NEW}-1"}
    assert "nvidia-container-runtime" in fleet.hosts.run("h1", "cat /etc/docker/daemon.json")
    assert f"libcuda.so.{OLD}" in fleet.hosts.run("h1", "cat /etc/cdi/nvidia.yaml")
    # No driver runs on the others, so that there are no devices to describe.
    assert "No such file" in fleet.hosts.run("h2", "cat /etc/cdi/nvidia.yaml", check=False)


def test_a_host_is_started_anew_only_where_that_is_allowed(fleet: Fleet, converged: Run) -> None:
    assert "start this host anew, or set nvidia_driver_reboot" in converged.played.text
    asked = "systemctl is-active nvidia-persistenced; systemctl is-enabled nvidia-persistenced"
    assert fleet.hosts.run("h2", asked).split() == ["inactive", "enabled"]
    assert fleet.hosts.run("h1", asked).split() == ["active", "enabled"]


def test_every_host_is_judged_and_its_report_fetched(fleet: Fleet, converged: Run) -> None:
    assert converged.played.code == 0
    for host in MANAGED:
        report = json.loads((fleet.folder / f"reports/{host}.json").read_text())
        assert report["drift"] == []
        assert [each["version"] for each in report["snapshot"]["env"]["frameworks"]] == [
            "2.15.0+cpu"
        ]


def test_the_second_run_changes_nothing(again: Run) -> None:
    assert again.played.code == 0, again.played.text[-3000:]
    assert {host: again.played.recap[host]["changed"] for host in MANAGED} == dict.fromkeys(
        MANAGED, 0
    )


def test_envcheck_runs_on_the_host_by_hand(fleet: Fleet, again: Run) -> None:
    assert again.played.code == 0
    text = fleet.hosts.run("h1", "envcheck doctor --no-color --python /opt/envcheck/stack")
    assert "torch 2.15.0+cpu" in text


def test_findings_end_the_play(fleet: Fleet, again: Run, tmp_path: Path) -> None:
    assert again.played.code == 0
    # Into a folder of its own: the report of the healthy host is read again below.
    facts = ("-e", "envcheck_require_gpu=true", "-e", f"envcheck_reports={tmp_path}")
    done = fleet.play("--limit", "h1", "--tags", "envcheck", *facts)
    assert done.code == 2
    assert "error no-gpu: " in done.said("h1")


# -- the scenarios of molecule ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def scenario(fleet: Fleet, again: Run, tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    """Molecule's scenarios, pointed at h1, which the runs above brought to the lock."""
    assert again.played.code == 0
    place = tmp_path_factory.mktemp("molecule") / "ansible_collections/envcheck/stack"
    shutil.copytree(data_dir("ansible"), place)
    inventory = fleet.hosts.inventory
    lines = inventory.read_text().splitlines()
    hosts = inventory.with_name("molecule.yml")
    hosts.write_text("\n".join(line for line in lines if not re.match(r"    h[2-9]:", line)))
    variables = yaml.safe_load((fleet.folder / "group_vars/all/stack.yml").read_text())
    variables |= json.loads((fleet.folder / "group_vars/all/zz-test.yml").read_text())
    variables |= {
        "envcheck_reports": str(fleet.folder / "reports"),
        "envcheck_wheels": str(fleet.folder / "files/wheels"),
        "envcheck_lock": "",
        "container_toolkit_engines": ["docker"],
    }
    (place.parents[2] / "vars.yml").write_text(json.dumps(variables))
    return Scenario(folder=place / "extensions", hosts=hosts, vars=place.parents[2] / "vars.yml")


def molecule(scenario: Scenario, *args: str) -> subprocess.CompletedProcess[str]:
    program = tool("molecule")
    return subprocess.run(
        [program, *args],
        cwd=scenario.folder,
        env={
            **os.environ,
            "ENVCHECK_HOSTS": str(scenario.hosts),
            "ENVCHECK_VARS": str(scenario.vars),
            "ENVCHECK_COLLECTIONS": str(scenario.vars.parent),
            "ANSIBLE_HOME": str(scenario.vars.parent / "home"),
            "NO_COLOR": "1",
            "PATH": f"{Path(program).parent}{os.pathsep}{os.environ.get('PATH', '')}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def test_scenarios_converge_without_change_where_nothing_is_amiss(scenario: Scenario) -> None:
    for name in ("container_toolkit", "python_stack"):
        done = molecule(scenario, "converge", "--scenario-name", name)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        assert "changed=0" in done.stdout + done.stderr


def test_scenarios_verify_what_was_converged(scenario: Scenario) -> None:
    done = molecule(scenario, "verify")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize(
    ("damage", "repair"),
    [
        ("apt-mark unhold libcuda1", "apt-mark hold libcuda1"),
        ("echo '{\"runtimes\": {}}' > /etc/docker/daemon.json", _REGISTER),
        (
            "mv /etc/apt/preferences.d/envcheck-nvidia-driver /root/pin",
            "mv /root/pin /etc/apt/preferences.d/envcheck-nvidia-driver",
        ),
    ],
    ids=["hold", "runtime", "pin"],
)
def test_scenarios_see_what_is_amiss(
    fleet: Fleet, scenario: Scenario, damage: str, repair: str
) -> None:
    fleet.hosts.run("h1", damage)
    try:
        assert molecule(scenario, "verify").returncode != 0
    finally:
        fleet.hosts.run("h1", repair)


# -- another driver --------------------------------------------------------------------------------


def test_an_upgrade_moves_the_whole_driver(mixed: Run) -> None:
    assert mixed.played.recap["h1"]["failed"] == 0
    assert mixed.driver["h1"] == dict.fromkeys(DRIVER_SET, f"{NEW}-1")
    assert set(DRIVER_SET) <= mixed.holds["h1"]


def test_the_devices_are_described_anew_for_another_driver(fleet: Fleet, mixed: Run) -> None:
    assert mixed.played.recap["h1"]["failed"] == 0
    assert f"libcuda.so.{NEW}" in fleet.hosts.run("h1", "cat /etc/cdi/nvidia.yaml")


def test_what_somebody_holds_is_not_moved(mixed: Run) -> None:
    assert mixed.played.recap["h2"] | {"ok": 0, "skipped": 0} == {
        "ok": 0,
        "changed": 0,
        "unreachable": 0,
        "failed": 1,
        "skipped": 0,
        "rescued": 0,
        "ignored": 0,
    }
    assert "apt-mark unhold" in mixed.played.said("h2")
    assert mixed.versions("h2") == {f"{OLD}-1"}


def test_a_driver_that_cannot_be_set_up_is_taken_back(fleet: Fleet, mixed: Run) -> None:
    said = mixed.played.said("h3")
    assert f"Installing the driver {BROKEN} failed" in said
    assert "Bad return status for module build" in said
    assert f"The host is back at what it had before: {OLD}-1." in said
    assert mixed.driver["h3"] == dict.fromkeys(DRIVER_SET, f"{OLD}-1")
    assert set(DRIVER_SET) <= mixed.holds["h3"]
    assert fleet.hosts.run("h3", "dpkg --audit") == ""


def test_a_first_driver_that_cannot_be_set_up_leaves_none(fleet: Fleet, mixed: Run) -> None:
    assert "The host is back at what it had before: no driver." in mixed.played.said("h4")
    assert mixed.driver["h4"] == {}
    assert fleet.hosts.run("h4", "dpkg --audit; ls /etc/apt/preferences.d") == ""


def test_a_host_that_is_not_there_stops_no_other(mixed: Run) -> None:
    assert mixed.played.recap["h5"]["unreachable"] == 1
    assert {host: each["unreachable"] for host, each in mixed.played.recap.items()} == {
        "h1": 0,
        "h2": 0,
        "h3": 0,
        "h4": 0,
        "h5": 1,
    }
    # Hosts that cannot be reached make it 4, and hosts that failed 2 where there are none of those.
    assert mixed.played.code == 4


def test_a_way_back_to_the_lock_moves_the_whole_driver(back: Run) -> None:
    assert back.played.recap["h1"]["failed"] == 0
    assert back.driver["h1"] == dict.fromkeys(DRIVER_SET, f"{OLD}-1")
    assert set(DRIVER_SET) <= back.holds["h1"]


def test_tools_and_a_toolkit_come_where_they_are_asked_for(fleet: Fleet, back: Run) -> None:
    assert back.played.recap["h1"]["failed"] == 0
    names = ("cuda-toolkit-13-0", "datacenter-gpu-manager-4-cuda13", "nsight-systems-cli")
    assert set(fleet.hosts.versions("h1", *names)) == set(names)
    assert fleet.hosts.run("h1", "systemctl is-active nvidia-dcgm").split() == ["active"]
    assert fleet.hosts.versions("h2", *names) == {}


def test_a_hold_of_somebody_can_be_overridden(back: Run) -> None:
    assert back.played.recap["h2"]["failed"] == 0
    assert back.driver["h2"] == dict.fromkeys(DRIVER_SET, f"{NEW}-1")


def test_secure_boot_is_refused_before_anything_changes(back: Run) -> None:
    assert back.played.recap["h3"]["changed"] == 0
    assert "mokutil --import" in back.played.said("h3")
    assert back.versions("h3") == {f"{OLD}-1"}


# -- other hosts -----------------------------------------------------------------------------------


def test_a_system_that_ansible_left_behind_is_refused_with_the_reason(special: Run) -> None:
    assert special.played.recap["h1"]["changed"] == 0
    assert "rocky8 is not managed by these roles: its system Python is 3.6" in special.played.said(
        "h1"
    )


def test_machines_with_nvswitches_get_the_fabric_manager_of_the_driver(
    fleet: Fleet, special: Run
) -> None:
    assert special.played.recap["h2"]["failed"] == 0, special.played.text[-3000:]
    assert special.driver["h2"]["nvidia-fabricmanager-580"] == f"{NEW}-1"
    assert special.versions("h2") == {f"{NEW}-1"}
    assert fleet.hosts.run("h2", "systemctl is-active nvidia-fabricmanager").split() == ["active"]


def test_modules_that_do_not_drive_a_gpu_are_refused(special: Run) -> None:
    assert "GPU 10de:1db6 of this host does not run with the open kernel modules" in (
        special.played.said("h3")
    )
    assert special.versions("h3") == {f"{OLD}-1"}
