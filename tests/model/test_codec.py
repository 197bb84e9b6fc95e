"""Snapshots survive the way through JSON, and bad data is refused with its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envcheck.model.codec import CodecError, decode, encode
from envcheck.model.snapshot import Snapshot
from tests.support import gpu, machine, torch


def test_a_snapshot_survives_json() -> None:
    """Every fact comes back, and as the same type."""
    snapshot = machine(gpus=(gpu(0), gpu(1, arch="8.9")), frameworks=(torch(),))
    assert decode(Snapshot, json.loads(json.dumps(encode(snapshot)))) == snapshot


def test_fields_with_defaults_may_be_absent() -> None:
    """An empty object is an empty snapshot."""
    assert decode(Snapshot, {}) == Snapshot()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            {"host": {"gpus": [{"index": 0, "arch": 9.0}]}},
            r"\$\.host\.gpus\[0\]\.arch: expected str",
        ),
        ({"host": {"gpus": [{}]}}, r"\$\.host\.gpus\[0\]\.index: missing"),
        ({"host": {"gpus": {}}}, r"\$\.host\.gpus: expected a list, found dict"),
        ({"hosts": {}}, r"\$\.hosts: unknown field"),
        ({"host": []}, r"\$\.host: expected an object, found list"),
        ({"schema": True}, r"\$\.schema: expected int, found bool"),
        (
            {"host": {"gpus": [{"index": 0, "compute_mode": "shared"}]}},
            r"\$\.host\.gpus\[0\]\.compute_mode: 'shared' is not one of",
        ),
    ],
)
def test_bad_data_is_refused_with_its_place(data: Any, message: str) -> None:
    """The message starts with the path of what is wrong."""
    with pytest.raises(CodecError, match=message):
        decode(Snapshot, data)
