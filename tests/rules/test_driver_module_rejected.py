"""driver-module-rejected."""

from __future__ import annotations

from envcheck.model.host import SystemPackage
from tests.rules.asking import only, said
from tests.rules.test_driver_not_loaded import unloaded

REJECTED = "[   12.3] Loading of module with unavailable key is rejected"


def test_key_is_not_enrolled() -> None:
    found = only(
        unloaded(
            {
                "host.driver.secure_boot": True,
                "host.driver.kernel_log": (REJECTED,),
                "host.driver.module_file": "/lib/modules/6.8.0-60-generic/updates/dkms/nvidia.ko",
                "host.driver.packages": (
                    SystemPackage(name="nvidia-driver-580-open", version="580"),
                ),
            }
        )
    )
    assert (found.id, found.severity) == ("driver-module-rejected", "error")
    assert found.consequences == ("driver-not-loaded",)
    assert found.fix[0].commands[0] == "sudo mokutil --import /var/lib/shim-signed/mok/MOK.der"
    assert found.fix[1].commands[0] == (
        "sudo apt-get install -y linux-modules-nvidia-580-open-$(uname -r)"
    )


def test_modprobe_says_so() -> None:
    line = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    found = only(
        unloaded({"host.driver.kernel_log": (line,), "host.os.id": "fedora", "host.os.like": ()})
    )
    assert found.id == "driver-module-rejected"
    assert found.fix[0].commands[0] == "sudo mokutil --import /var/lib/dkms/mok.pub"


def test_secure_boot_alone_proves_nothing() -> None:
    assert said(unloaded({"host.driver.secure_boot": True})) == [("driver-not-loaded", "error")]


def test_a_tainted_kernel_is_no_refusal() -> None:
    line = "nvidia: module verification failed: signature and/or required key missing - tainting"
    assert said(unloaded({"host.driver.kernel_log": (line,)})) == [("driver-not-loaded", "error")]
