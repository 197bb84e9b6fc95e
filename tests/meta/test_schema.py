"""The shipped JSON Schema says what the models say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema

import envcheck
from tests.cli.runner import environment

ROOT = Path(__file__).parents[2]
SCHEMA = Path(envcheck.__file__).parent / "schema" / "report-1.schema.json"


def test_the_generated_part_is_fresh() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "snapshot_schema.py"), "--check"],
        capture_output=True,
        text=True,
        env=environment(),
        cwd="/",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_schema_refuses_what_is_no_report() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    for data in (
        {},
        {"schema_version": "2", "error": {"message": "x", "exit_code": 2}},
        {"schema_version": "1", "error": {"message": "x"}},
        {"schema_version": "1", "verdict": "ok"},
        {"schema_version": "1", "verdict": "ok", "error": {"message": "x", "exit_code": 2}},
    ):
        assert not validator.is_valid(data), data
