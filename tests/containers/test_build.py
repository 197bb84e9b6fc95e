"""`envcheck image build`: what it prints, keeps and says when a build fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.containers.asking import envcheck
from tests.containers.engine import BASE, Engine
from tests.environment.sites import write


@pytest.fixture
def folder(engine: Engine, tmp_path: Path) -> Path:
    engine.base_image(BASE)
    return tmp_path / "My image"


def test_a_build_is_named_after_its_folder_and_its_log_is_kept(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    write(folder / "Dockerfile", f"FROM {BASE}\nARG WORD=none\nRUN echo the-$WORD > /word\n")
    done = envcheck(
        engine, "image", "build", folder, "--build-arg", "WORD=given",
        XDG_STATE_HOME=str(tmp_path / "state"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    log = tmp_path / "state/envcheck/build-my-image.log"
    assert done.stdout.startswith("built my-image, 0.")
    assert done.stdout.endswith(f"; log: {log}\n")
    for text in (done.stderr, log.read_text()):
        assert "] RUN echo the-" in text
    assert engine.cli("run", "--rm", "my-image", "cat", "/word").stdout == "the-given\n"


def test_a_failing_step_is_named_with_what_it_said(
    engine: Engine, folder: Path, tmp_path: Path
) -> None:
    write(folder / "Dockerfile", f"FROM {BASE}\nRUN echo before; echo the cause >&2; exit 9\n")
    log = tmp_path / "log"
    done = envcheck(engine, "image", "build", folder, "-t", "x:1", "--log", log, "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["built"], data["kind"]) == (1, False, "step")
    assert "echo before; echo the cause >&2; exit 9" in data["reason"]
    assert data["words"][:2] == ["before", "the cause"]
    assert "exit code: 9" in data["words"][-1]
    assert (data["engine_exit_code"], data["log"]) == (1, str(log))
    last = done.stderr.splitlines()
    assert f"envcheck: docker build failed: {data['reason']}" in last
    assert last[-1] == f"  (docker ended with exit status 1; everything it said: {log})"


def test_an_image_that_cannot_be_had(engine: Engine, folder: Path, tmp_path: Path) -> None:
    write(folder / "Dockerfile", "FROM localhost:9/absent/image:1\n")
    log = tmp_path / "log"
    done = envcheck(engine, "image", "build", folder, "--log", log, "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["kind"]) == (1, "pull-refused")
    assert data["reason"].startswith("localhost:9/absent/image:1 could not be had")
    assert "localhost:9" in data["words"][0]


def test_a_full_disk(engine: Engine, folder: Path, tmp_path: Path) -> None:
    """By the words that every program has for it."""
    write(
        folder / "Dockerfile",
        f"FROM {BASE}\nRUN echo 'write /big: no space left on device' >&2; exit 1\n",
    )
    done = envcheck(engine, "image", "build", folder, "--log", tmp_path / "log", "--json")
    data = json.loads(done.stdout)
    assert (data["kind"], data["reason"]) == ("disk-full", "the engine's disk is full")


def test_a_dockerfile_that_is_none(engine: Engine, folder: Path, tmp_path: Path) -> None:
    write(folder / "Dockerfile", f"FROM {BASE}\nRUUN true\n")
    done = envcheck(engine, "image", "build", folder, "--log", tmp_path / "log", "--json")
    data = json.loads(done.stdout)
    assert (done.returncode, data["kind"]) == (1, "refused")
    assert "unknown instruction: RUUN" in data["words"][-1]


def test_what_cannot_be_built(engine: Engine, tmp_path: Path) -> None:
    for args, words in (
        ((tmp_path / "absent",), f"{tmp_path / 'absent'}: no such folder"),
        ((tmp_path,), f"{tmp_path}: no Dockerfile in it"),
    ):
        done = envcheck(engine, "image", "build", *args)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"envcheck: {words}\n")
    write(tmp_path / "Dockerfile", "FROM scratch\n")
    done = envcheck(engine, "image", "build", tmp_path, "--build-arg", "no value")
    assert done.stderr.startswith("envcheck: --build-arg no value: not NAME=VALUE\n")


def test_an_engine_that_does_not_run(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "Dockerfile", "FROM scratch\n")
    for command in (
        ("image", "build", str(tmp_path)),
        ("image", "check", "any"),
        ("doctor", "--image", "any"),
    ):
        done = envcheck(engine, *command, "--json", DOCKER_HOST=f"unix://{tmp_path}/none.sock")
        assert done.returncode == 3
        error = json.loads(done.stdout)["error"]
        assert error["exit_code"] == 3
        lines = error["message"].splitlines()
        assert lines[0] == "docker is not running"
        assert lines[-1] == "start it: sudo systemctl start docker"
        assert len(lines) >= 3


def test_no_engine_at_all(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "Dockerfile", "FROM scratch\n")
    done = envcheck(engine, "image", "build", tmp_path, PATH=str(tmp_path), DOCKER_HOST=None)
    assert done.returncode == 3
    assert done.stderr == (
        "envcheck: no container engine is installed\n"
        "  looked for docker and podman on PATH: not found\n"
    )
