"""Collectors that read files and the output of programs, on texts as machines hold them."""

from __future__ import annotations

import json

import pytest

from envcheck.model.host import DkmsModule, Gpu, SystemPackage
from envcheck.probe import devices, driver_files, engines, gpu, kernel, operating_system
from envcheck.probe.driver import banner, proc_version
from envcheck.probe.driver_files import (
    DriverFiles,
    cached_libraries,
    find_libcuda,
    read_driver_files,
)
from envcheck.probe.quiet import Quiet
from envcheck.probe.source import Result, Stat
from tests.probe.fake import Fake, done, quiet

LONG_AGO = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  520.56.06  Thu Oct  6 21:38:55 UTC 2022\n"
    "GCC version:  gcc version 11.3.0 (Ubuntu 11.3.0-1ubuntu1~22.04)\n"
)


@pytest.mark.parametrize(
    ("text", "release", "opened"),
    [
        (LONG_AGO, "520.56.06", False),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build"
            "  (dvs-builder@U22-I3)\nGCC version:  gcc version 13.3.0\n",
            "580.159.04",
            True,
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  540.4.0  Release Build\n",
            "540.4.0",
            True,
        ),
        ("NVRM version: NVIDIA UNIX x86 Kernel Module  96.43.23  Mon Jul 16\n", "96.43.23", False),
        ("NVRM version: 470.256.02\n", "470.256.02", False),
        ("", None, None),
        ("what is this\n", None, None),
        (None, None, None),
    ],
)
def test_proc_version(text: str | None, release: str | None, opened: bool | None) -> None:
    assert proc_version(text) == (release, opened)


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        (
            "| NVIDIA-SMI 550.54.15    Driver Version: 550.54.15    CUDA Version: 12.4     |",
            ("550.54.15", "12.4"),
        ),
        (
            "| NVIDIA-SMI 610.43.02    KMD Version: 610.43.02    CUDA UMD Version: 13.3     |",
            ("610.43.02", "13.3"),
        ),
        ("| NVIDIA-SMI 396.37       Driver Version: 396.37                  |", ("396.37", None)),
        (
            "| NVIDIA-SMI 450.80.02  Driver Version: 450.80.02  CUDA Version: N/A |",
            ("450.80.02", None),
        ),
        (
            "| NVIDIA-SMI 470.57.02  Driver Version: 470.57.02  CUDA Version: ERR! |",
            ("470.57.02", None),
        ),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            (None, None),
        ),
        ("\0\ufffd garbage", (None, None)),
    ],
)
def test_banner(text: str, versions: tuple[str | None, str | None]) -> None:
    assert banner(text) == versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("00000000:06:00.0", "0000:06:00.0"),
        ("0000:06:00.0", "0000:06:00.0"),
        ("00010000:B1:00.0", "10000:b1:00.0"),
        (" 00000000:3B:00.0\n", "0000:3b:00.0"),
        ("", None),
        (None, None),
        ("bus:is:junk", "bus:is:junk"),
    ],
)
def test_bus_id(text: str | None, expected: str | None) -> None:
    assert gpu.bus_id(text) == expected


def gpus_of(stdout: str, code: int = 0) -> tuple[tuple[Gpu, ...] | None, str | None]:
    source, notes = quiet(Fake())
    found = gpu.read_gpus(source, {"nvidia-smi-query": done(stdout, code)}, notes)
    return found, next((each.reason for each in notes.gaps if each.path == "host.gpus"), None)


def test_gpus_of_nvidia_smi() -> None:
    found, gap = gpus_of(
        "0, NVIDIA H200, 9.0, 00000000:06:00.0, 143771, 4\n"
        '1, "NVIDIA A, B", [N/A], 00000000:07:00.0, [N/A], [Unknown Error]\n'
        "2, Tesla K80, [Not Supported], 0000:08:00.0, 11441, 0\n"
    )
    assert found == (
        Gpu(
            index=0,
            name="NVIDIA H200",
            arch="9.0",
            bus_id="0000:06:00.0",
            memory_total_bytes=143771 << 20,
            memory_used_bytes=4 << 20,
        ),
        Gpu(index=1, name="NVIDIA A, B", bus_id="0000:07:00.0"),
        Gpu(
            index=2,
            name="Tesla K80",
            bus_id="0000:08:00.0",
            memory_total_bytes=11441 << 20,
            memory_used_bytes=0,
        ),
    )
    assert gap is None


@pytest.mark.parametrize(
    ("stdout", "code"),
    [
        ("No devices were found\n", 6),
        ('Field "compute_cap" is not a valid field to query.\n', 2),
        ("", 0),
        ("\0\0\0garbage,,,\n\u00b2,b,c,d,e,f\n", 0),
        ("x" * 300_000, 0),
        ('"' + "y," * 200_000, 0),
    ],
)
def test_nvidia_smi_that_lists_nothing_leaves_the_gpus_unknown(stdout: str, code: int) -> None:
    assert gpus_of(stdout, code) == (None, "was not asked")


def test_dpkg() -> None:
    found = driver_files._dpkg(
        done(
            "nvidia-driver-550 550.54.15-0ubuntu1 install installed\n"
            "nvidia-dkms-535 535.183.06-0ubuntu0.22.04.1 hold installed\n"
            "libnvidia-compute-470 470.256.02-0ubuntu1 deinstall config-files\n"
            "nvidia-dkms-580-open 580.95.05-0ubuntu1 install half-configured\n"
            "nvidia-driver  unknown not-installed\n"
            "nvidia-cuda-toolkit-doc 12.0.140 install installed\n"
            "libcudnn9-cuda-12 9.10.2.21-1 install installed\n"
            "\n",
            code=1,
        )
    )
    assert found == (
        SystemPackage(name="libcudnn9-cuda-12", version="9.10.2.21-1"),
        SystemPackage(name="nvidia-dkms-535", version="535.183.06-0ubuntu0.22.04.1", state="held"),
        SystemPackage(
            name="nvidia-dkms-580-open", version="580.95.05-0ubuntu1", state="half-configured"
        ),
        SystemPackage(name="nvidia-driver-550", version="550.54.15-0ubuntu1"),
    )
    assert driver_files._dpkg(None) is None
    assert driver_files._dpkg(Result(outcome="timeout")) is None
    assert driver_files._dpkg(done("", code=2, stderr="dpkg-query: error: database\n")) is None


def test_rpm() -> None:
    found = driver_files._rpm(
        done(
            "bash 0:5.1.8-9.el9\n"
            "kmod-nvidia-open-dkms 3:580.95.05-1.el9\n"
            "nvidia-container-toolkit 0:1.17.8-1\n"
            "gpg-pubkey (none):d42d0685-62589a51\n"
        )
    )
    assert found == (
        SystemPackage(name="kmod-nvidia-open-dkms", version="3:580.95.05-1.el9"),
        SystemPackage(name="nvidia-container-toolkit", version="1.17.8-1"),
    )
    assert driver_files._rpm(done("", code=1)) is None


def test_which_package_list_is_asked() -> None:
    debian, _ = quiet(Fake({"/var/lib/dpkg/status": ""}))
    redhat, _ = quiet(Fake({"/var/lib/rpm/rpmdb.sqlite": ""}))
    other, _ = quiet(Fake())
    names = [
        [each.name for each in driver_files.package_commands(source)]
        for source in (debian, redhat, other)
    ]
    assert names == [["dpkg"], ["rpm"], []]


def test_the_loaders_cache_without_32_bit_libraries() -> None:
    found = cached_libraries(
        done(
            "3 libs found in cache `/etc/ld.so.cache'\n"
            "\tlibcuda.so.1 (libc6,x86-64) => /usr/lib/x86_64-linux-gnu/libcuda.so.1\n"
            "\tlibcuda.so.1 (libc6) => /usr/lib/i386-linux-gnu/libcuda.so.1\n"
            "\tlibcuda.so.1 (libc6,AArch64) => /usr/lib/aarch64-linux-gnu/libcuda.so.1\n"
            "\tlibm.so.6 (libc6,x86-64, OS ABI: Linux 3.2.0) => /lib/x86_64-linux-gnu/libm.so.6\n"
        )
    )
    assert found == {
        "libcuda.so.1": (
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            "/usr/lib/aarch64-linux-gnu/libcuda.so.1",
        ),
        "libm.so.6": ("/lib/x86_64-linux-gnu/libm.so.6",),
    }
    assert cached_libraries(None) == cached_libraries(Result(outcome="missing")) == {}


LIB = "/usr/lib/x86_64-linux-gnu"
INSTALLED = {
    f"{LIB}/libcuda.so.550.54.15": "",
    f"{LIB}/libnvidia-ml.so.550.54.15": "",
}
LINKS = {
    f"{LIB}/libcuda.so.1": "libcuda.so.550.54.15",
    f"{LIB}/libnvidia-ml.so.1": "libnvidia-ml.so.550.54.15",
}


def files_of(fake: Fake, release: str | None = None, **results: Result) -> DriverFiles:
    source = quiet(fake)[0]
    return read_driver_files(source, release, find_libcuda(source, results), results)


def test_driver_libraries_name_their_release() -> None:
    facts = files_of(Fake(INSTALLED, links=LINKS))
    assert (facts.libcuda_path, facts.libcuda_version, facts.nvml_version, facts.installed) == (
        f"{LIB}/libcuda.so.550.54.15",
        "550.54.15",
        "550.54.15",
        True,
    )
    assert (facts.compat_path, facts.compat_version) == (None, None)


def test_cuda_compat_is_not_the_driver() -> None:
    compat = "/usr/local/cuda/compat"
    fake = Fake(
        {**INSTALLED, f"{compat}/libcuda.so.580.95.05": ""},
        links={**LINKS, f"{compat}/libcuda.so.1": "libcuda.so.580.95.05"},
        variables={"LD_LIBRARY_PATH": f"relative:{compat}/:"},
    )
    facts = files_of(fake)
    assert (facts.compat_path, facts.compat_version, facts.libcuda_version) == (
        f"{compat}/libcuda.so.580.95.05",
        "580.95.05",
        "550.54.15",
    )


def test_a_machine_without_any_driver_file() -> None:
    facts = files_of(Fake(folders=("/usr/lib",)), dpkg=done("", code=1))
    assert (facts.installed, facts.packages, facts.dkms, facts.module_file) == (False, (), (), None)


def test_a_loop_of_links_ends() -> None:
    facts = files_of(Fake(links={f"{LIB}/libcuda.so.1": "libcuda.so.1"}))
    assert (facts.libcuda_path, facts.libcuda_version) == (f"{LIB}/libcuda.so.1", None)


def test_dkms_trees() -> None:
    base = "/var/lib/dkms"
    fake = Fake(
        {
            f"{base}/nvidia/550.54.15/6.8.0-60-generic/x86_64/module/nvidia.ko.zst": "",
            f"{base}/nvidia/550.54.15/6.8.0-60-generic/x86_64/log/make.log": "",
            f"{base}/nvidia/550.54.15/6.11.0-1-generic/x86_64/log/make.log": "",
            f"{base}/nvidia/580.95.05/build/Makefile": "",
            f"{base}/zfs/2.2.2/6.8.0-60-generic/x86_64/module/zfs.ko": "",
        },
        links={
            f"{base}/nvidia/550.54.15/source": "/usr/src/nvidia-550.54.15",
            f"{base}/nvidia/kernel-6.8.0-60-generic-x86_64": "550.54.15/6.8.0-60-generic/x86_64",
        },
    )
    assert files_of(fake).dkms == (
        DkmsModule(name="nvidia", version="550.54.15", kernel="6.11.0-1-generic", state="failed"),
        DkmsModule(name="nvidia", version="550.54.15", kernel="6.8.0-60-generic", state="built"),
        DkmsModule(name="nvidia", version="580.95.05", state="added"),
    )
    assert files_of(Fake(refused=(base,))).dkms is None


@pytest.mark.parametrize(
    "place",
    [
        "updates/dkms/nvidia.ko",
        "updates/dkms/nvidia.ko.zst",
        "updates/dkms/nvidia-current.ko",
        "extra/nvidia.ko.xz",
        "kernel/nvidia-550/nvidia.ko",
        "kernel/drivers/video/nvidia.ko.xz",
    ],
)
def test_module_files_of_the_running_kernel_only(place: str) -> None:
    fake = Fake({f"/lib/modules/6.8.0-60-generic/{place}": ""})
    found = files_of(fake, "6.8.0-60-generic")
    assert (found.module_file, found.installed) == (f"/lib/modules/6.8.0-60-generic/{place}", True)
    other = files_of(fake, "6.11.0-1-generic")
    assert (other.module_file, other.installed) == (None, False)


def test_other_modules_are_no_driver() -> None:
    fake = Fake({"/lib/modules/6.8/kernel/drivers/video/nvidiafb.ko": ""})
    assert files_of(fake, "6.8").module_file is None


EFI_VARIABLE = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"


@pytest.mark.parametrize(
    ("fake", "answer"),
    [
        (Fake({EFI_VARIABLE: "\x06\0\0\0\x01"}), True),
        (Fake({EFI_VARIABLE: "\x06\0\0\0\0"}), False),
        (Fake({EFI_VARIABLE: ""}), None),
        (Fake({EFI_VARIABLE: "\x06\0\0\0\x01"}, refused=(EFI_VARIABLE,)), None),
        (Fake(folders=("/sys/firmware/efi",)), None),
        (Fake(folders=("/sys/firmware/acpi",)), False),
        (Fake(refused=("/sys/firmware/efi",)), None),
    ],
)
def test_secure_boot(fake: Fake, answer: bool | None) -> None:
    assert kernel.read_kernel(quiet(fake)[0]).secure_boot is answer


def test_modules_and_lockdown() -> None:
    source, _ = quiet(
        Fake(
            {
                "/sys/module/nvidia/version": "550.54.15\n",
                "/sys/kernel/security/lockdown": "none [integrity] confidentiality\n",
            },
            folders=("/sys/module/nvidia_uvm", "/sys/module/ext4"),
        )
    )
    facts = kernel.read_kernel(source)
    assert (facts.module_version, facts.module_loaded, facts.uvm_loaded, facts.nouveau_loaded) == (
        "550.54.15",
        True,
        True,
        False,
    )
    assert facts.lockdown == "integrity"
    blind = kernel.read_kernel(quiet(Fake(refused=("/sys/module",)))[0])
    assert (blind.module_loaded, blind.nouveau_loaded) == (None, None)


def test_the_kernel_log_or_why_there_is_none() -> None:
    _, notes = quiet(Fake())
    lines = "".join(f"NVRM: {number}\n" for number in range(1000))
    log = kernel.kernel_log(done(lines), notes)
    assert log is not None
    assert (len(log), log[-1], notes.gaps) == (400, "NVRM: 999", ())
    refusal = "dmesg: read kernel buffer failed: Operation not permitted"
    assert kernel.kernel_log(done("", 1, refusal + "\n"), notes) is None
    assert [(each.path, each.reason) for each in notes.gaps] == [
        ("host.driver.kernel_log", refusal)
    ]


WSL2 = "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@a) (gcc (GCC) 11.2.0) #1 SMP"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (WSL2, 2),
        ("Linux version 4.19.104-microsoft-standard (oe-user@oe-host) (gcc version 8.2.0)", 2),
        (
            "Linux version 4.4.0-19041-Microsoft (Microsoft@Microsoft.com) "
            "(gcc version 5.4.0 (GCC) ) #1237-Microsoft",
            1,
        ),
        ("Linux version 6.8.0-60-generic (buildd@lcy02) (x86_64-linux-gnu-gcc-13)", 0),
        ("Linux version 6.6.47.1-1.azl3 (builder@microsoft.com) (gcc 13.2.0)", 0),
    ],
)
def test_wsl(text: str, answer: int) -> None:
    assert operating_system.read_wsl(quiet(Fake({"/proc/version": text}))[0]) == answer


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic, EABI: aarch64", "36.4.0"),
        ("# R32 (release), REVISION: 7.1, GCID: 29818004, BOARD: t210ref", "32.7.1"),
        ("junk", None),
    ],
)
def test_jetson(text: str, answer: str | None) -> None:
    assert operating_system.read_jetson(quiet(Fake({"/etc/nv_tegra_release": text}))[0]) == answer
    assert operating_system.read_jetson(quiet(Fake())[0]) is None


@pytest.mark.parametrize(
    ("fake", "kind"),
    [
        (Fake(), "none"),
        (Fake({"/.dockerenv": "", "/proc/2/comm": "sleep\n"}), "docker"),
        (Fake({"/.dockerenv": "", "/proc/2/comm": "kthreadd\n"}), "none"),
        (Fake({"/run/.containerenv": ""}), "podman"),
        (Fake({"/run/systemd/container": "lxc\n"}), "lxc"),
        (Fake({"/run/systemd/container": "wsl\n"}), "unknown"),
        (Fake({"/proc/1/cgroup": "0::/kubepods.slice/x"}), "kubernetes"),
        (Fake({"/proc/1/cgroup": "0::/init.scope"}), "none"),
        (Fake(variables={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}), "kubernetes"),
        (Fake(variables={"APPTAINER_CONTAINER": "/x.sif"}), "apptainer"),
    ],
)
def test_containers(fake: Fake, kind: str) -> None:
    assert operating_system.read_container(quiet(fake)[0]).kind == kind


CARD = "/sys/bus/pci/devices/0000:06:00.0"


def test_pci_devices() -> None:
    fake = Fake(
        {
            f"{CARD}/vendor": "0x10de\n",
            f"{CARD}/class": "0x030200\n",
            f"{CARD}/device": "0x2335\n",
            "/sys/bus/pci/devices/0000:06:00.1/vendor": "0x10de\n",
            "/sys/bus/pci/devices/0000:06:00.1/class": "0x040300\n",
            "/sys/bus/pci/devices/0000:00:02.0/vendor": "0x8086\n",
            "/sys/bus/pci/devices/0000:00:02.0/class": "0x030000\n",
        },
        links={f"{CARD}/driver": "../../../bus/pci/drivers/vfio-pci"},
    )
    source, notes = quiet(fake)
    found = devices.read_pci(source, notes)
    assert found is not None
    assert [(each.address, each.device, each.class_code, each.kernel_driver) for each in found] == [
        ("0000:06:00.0", "2335", "0302", "vfio-pci")
    ]
    assert devices.read_pci(*quiet(Fake(folders=("/sys/bus/usb",)))) == ()
    source, notes = quiet(Fake(refused=("/sys/bus/pci/devices",)))
    assert devices.read_pci(source, notes) is None
    assert notes.gaps[0].reason == "/sys/bus/pci/devices: Permission denied"


def test_device_files() -> None:
    fake = Fake(
        stats={
            "/dev/nvidia0": Stat(kind="char", readable=True, writable=False),
            "/dev/nvidiactl": Stat(kind="char", readable=False, writable=False),
            "/dev/nvidia-caps": Stat(kind="directory"),
            "/dev/null": Stat(kind="char", readable=True, writable=True),
        }
    )
    found = devices.read_nodes(quiet(fake)[0])
    assert found is not None
    assert [(each.path, each.readable, each.writable) for each in found] == [
        ("/dev/nvidia0", True, False),
        ("/dev/nvidiactl", False, False),
    ]


DAEMON = "/etc/docker/daemon.json"


@pytest.mark.parametrize(
    ("text", "runtimes", "default", "cgroup"),
    [
        (
            json.dumps(
                {
                    "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}, "crun": {}},
                    "default-runtime": "nvidia",
                    "exec-opts": ["native.cgroupdriver=cgroupfs"],
                }
            ),
            ("crun", "nvidia"),
            "nvidia",
            "cgroupfs",
        ),
        ("{}", (), None, None),
        (None, (), None, None),
        ('{"runtimes": {"nvidia": {}},}', None, None, None),
        ("", None, None, None),
        ("[]", None, None, None),
        ('{"runtimes": "nvidia"}', None, None, None),
        ('{"runtimes": {"nvidia": {}}, "default-runtime": 5}', ("nvidia",), None, None),
        ("[" * 100_000, None, None, None),
    ],
)
def test_docker_configurations(
    text: str | None, runtimes: tuple[str, ...] | None, default: str | None, cgroup: str | None
) -> None:
    files = {"/usr/bin/dockerd": "", **({DAEMON: text} if text is not None else {})}
    (engine,) = engines.read_engines(quiet(Fake(files))[0], {})
    assert (engine.name, engine.runtimes, engine.default_runtime, engine.cgroup_driver) == (
        "docker",
        runtimes,
        default,
        cgroup,
    )


def test_an_unreadable_docker_configuration_is_unknown() -> None:
    fake = Fake(
        {"/usr/bin/dockerd": "", "/usr/bin/nvidia-container-runtime-hook": ""}, refused=(DAEMON,)
    )
    (engine,) = engines.read_engines(quiet(fake)[0], {})
    assert (engine.runtimes, engine.hook_path) == (None, "/usr/bin/nvidia-container-runtime-hook")


CDI_YAML = """---
cdiVersion: 0.5.0
containerEdits:
  deviceNodes:
  - path: /dev/nvidiactl
  hooks:
  - args: [nvidia-ctk, hook, update-ldcache]
    hookName: createContainer
    path: /usr/bin/nvidia-ctk
  mounts:
  - containerPath: /usr/lib/libcuda.so.550.54.15
    hostPath: /usr/lib/libcuda.so.550.54.15
  - containerPath: /usr/lib/libnvidia-ml.so.550.54.15
    hostPath: /usr/lib/libnvidia-ml.so.550.54.15
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
  name: "0"
- containerEdits: {}
  name: all
kind: nvidia.com/gpu
"""
CDI_JSON = json.dumps(
    {
        "cdiVersion": "0.6.0",
        "kind": "nvidia.com/gpu",
        "devices": [{"name": "0"}, {"name": "all"}],
        "containerEdits": {
            "mounts": [
                {"hostPath": "/usr/lib/libcuda.so.550.54.15", "containerPath": "/x"},
                {"hostPath": "/usr/lib/libnvidia-ml.so.550.54.15", "containerPath": "/y"},
            ]
        },
    }
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nvidia.yaml", CDI_YAML),
        ("nvidia.yaml", CDI_YAML.replace("kind: nvidia.com/gpu", "kind: 'nvidia.com/gpu'")),
        ("nvidia.json", CDI_JSON),
    ],
)
def test_cdi_specifications(name: str, text: str) -> None:
    """Met twice, as /run and /var/run are one; a library that is gone makes it stale."""
    fake = Fake(
        {
            f"/var/run/cdi/{name}": text,
            f"/run/cdi/{name}": text,
            "/etc/cdi/vendor.yaml": "kind: vendor.com/net\ndevices:\n- name: eth0\n",
            "/etc/cdi/notes.txt": CDI_YAML,
            "/usr/lib/libcuda.so.550.54.15": "",
        }
    )
    found = engines.read_cdi(quiet(fake)[0])
    assert found.paths == (f"/var/run/cdi/{name}",)
    assert found.devices == ("nvidia.com/gpu=0", "nvidia.com/gpu=all")
    assert found.missing_paths == ("/usr/lib/libnvidia-ml.so.550.54.15",)


def test_relative_path_entries_hold_no_tools() -> None:
    fake = Fake({"bin/nvcc": "", "/opt/bin/nvcc": ""}, variables={"PATH": "bin::.:/opt/bin/"})
    assert engines.find(quiet(fake)[0], "nvcc") == "/opt/bin/nvcc"


def test_fabric_manager_and_toolkit() -> None:
    packages = (
        SystemPackage(name="nvidia-fabricmanager-580", version="580.95.05-1"),
        SystemPackage(name="nvidia-container-toolkit", version="1.17.8-1"),
    )
    source, _ = quiet(Fake())
    found = engines.read_fabric_manager(source, packages)
    assert (found.installed, found.installed_version, found.running) == (True, "580.95.05-1", False)
    assert engines.read_fabric_manager(source, None).running is None
    assert engines.toolkit_version(packages) == "1.17.8"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"/sys/hypervisor/type": "xen\n"}, "xen"),
        ({"/sys/class/dmi/id/sys_vendor": "QEMU\n"}, "kvm"),
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n",
                "/sys/class/dmi/id/product_name": "Virtual Machine\n",
            },
            "hyper-v",
        ),
        # Microsoft makes laptops too, and clouds lend whole machines.
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Microsoft Corporation\n",
                "/sys/class/dmi/id/product_name": "Surface Laptop 5\n",
            },
            None,
        ),
        (
            {
                "/sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
                "/sys/class/dmi/id/product_name": "p5.metal\n",
            },
            None,
        ),
        ({"/sys/class/dmi/id/sys_vendor": "Dell Inc.\n"}, None),
        ({}, None),
    ],
)
def test_virtual_machines(files: dict[str, str], expected: str | None) -> None:
    assert operating_system.read_virtual(Quiet(Fake(files=files))) == expected


def test_the_kernels_command_line_keeps_what_concerns_gpus() -> None:
    line = (
        "BOOT_IMAGE=/vmlinuz-6.8.0 root=UUID=11111111-2222-3333-4444-555555555555 ro quiet "
        "intel_iommu=on iommu=pt pcie_aspm=off nvidia-drm.modeset=1 modprobe.blacklist=nouveau\n"
    )
    source = Quiet(Fake(files={"/proc/cmdline": line}))
    assert operating_system.read_command_line(source) == (
        "intel_iommu=on iommu=pt pcie_aspm=off nvidia-drm.modeset=1 modprobe.blacklist=nouveau"
    )
    assert operating_system.read_command_line(Quiet(Fake(files={"/proc/cmdline": "ro\n"}))) == ""
    assert operating_system.read_command_line(Quiet(Fake(files={}))) is None
