"""Addresses of version 6 are taken out; what only looks like one stays."""

from __future__ import annotations

import pytest

from envcheck.probe.redact import Redactor


def redact(text: str) -> str:
    return Redactor({}, lambda _path: None)(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("inet6 fe80::5054:ff:feab:cdef%eth0/64", "inet6 ::/64"),
        ("tcp://[2001:db8:0:1::17]:29500", "tcp://[::]:29500"),
        ("NCCL_COMM_ID=[fd12:3456:789a::1]:1234", "NCCL_COMM_ID=[::]:1234"),
        ("2001:0db8:0000:0000:0000:ff00:0042:8329", "::"),
        ("GID fe80:0000:0000:0000:0002:c903:0029:7de1", "GID ::"),
        ("from 2a02:2788::.", "from ::."),
        ("ff02::1 and FE80::ABCD", ":: and ::"),
        ("::ffff:192.168.17.23 64:ff9b::192.0.2.33", ":: ::"),
        ('"peer": "2001:db8::1"', '"peer": "::"'),
    ],
)
def test_addresses_are_taken_out(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) == expected


@pytest.mark.parametrize(
    "text",
    [
        "::1 :: [::]:8080",
        "0000:01:00.0 00000000:06:00.0 0000:3b:00.0-0000:3c:00.0",
        "PCI:0000:c1:00 pci 0000:00:1f.3: [8086:a348] type 00 class 0x040300",
        "10de:2335 10DE:20B0 (rev a1)",
        "00:00:00:00:00:00",
        "c10::Error at::cuda std::bad_alloc c10::f add::bad dead::beef fe::ed f00::bar",
        "12:30:45 2026-12-01T04:05:06Z [Tue Dec  1 05:07:13 2026]",
        "1:535.183.06-0ubuntu1 2:9.10.2.21 12.4.127 torch==2.8.0+cu128",
        "sha256:2001db8ffffe nccl:2.28.9:x",
        "10.3.5.147 0x2001:0x3 fe80 2001:db8",
        "file.py:2001:13: error",
        "/usr/lib:/opt/2001:/x",
    ],
)
def test_what_only_looks_like_one_stays(text: str) -> None:
    assert redact(text) == text
