"""`envcheck emit` as users run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import envcheck
from tests.cli.runner import run_cli
from tests.emit.locks import EXAMPLES

LOCK = EXAMPLES / "torch-ubuntu24.04" / "envcheck.lock"
WHEEL = f"envcheck-{envcheck.__version__}-py3-none-any.whl"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_a_dockerfile_with_everything_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "image"
    done = run_cli("emit", "dockerfile", "--lock", str(LOCK), "-o", str(out))
    assert (done.returncode, done.stderr) == (0, "")
    context = {".dockerignore", "Dockerfile", WHEEL, "envcheck.lock", "requirements.txt"}
    assert names(out) == context
    assert done.stdout.splitlines() == [f"wrote {out / name}" for name in sorted(context)]
    assert (out / "envcheck.lock").read_bytes() == LOCK.read_bytes()
    expected = EXAMPLES / "torch-ubuntu24.04" / "runtime" / "Dockerfile"
    assert (out / "Dockerfile").read_bytes() == expected.read_bytes()
    done = run_cli("emit", "dockerfile", "--lock", str(LOCK), "-o", str(out))
    assert done.returncode == 0
    assert done.stdout.splitlines() == [f"kept  {out / name}" for name in sorted(context)]


def test_the_lock_of_the_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "envcheck.lock").write_bytes(LOCK.read_bytes())
    done = run_cli("emit", "requirements", "-o", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "wrote out/requirements.txt\n"


def test_without_a_lock_this_machine_is_planned_for(tmp_path: Path) -> None:
    done = run_cli("emit", "requirements", "-o", "out", cwd=tmp_path)
    if done.returncode == 0:
        assert "\ntorch==" in (tmp_path / "out" / "requirements.txt").read_text()
    else:  # a machine of which nothing can be read, or that nothing fits
        assert done.returncode in (3, 5)
        assert done.stderr.startswith("envcheck: ")
        assert names(tmp_path) == set()


def test_what_was_changed_by_hand_is_not_overwritten(tmp_path: Path) -> None:
    run_cli("emit", "dockerfile", "--lock", str(LOCK), "-o", str(tmp_path))
    (tmp_path / "Dockerfile").write_text("FROM mine:1\n", encoding="utf-8")
    again = ("emit", "dockerfile", "--lock", str(LOCK), "-o", str(tmp_path), "--gpus", "2")
    done = run_cli(*again)
    message = f"envcheck: {tmp_path} has other content in Dockerfile: --force overwrites it\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)
    assert (tmp_path / "Dockerfile").read_text() == "FROM mine:1\n"
    assert run_cli(*again, "--force").returncode == 0
    assert "--gpus 2" in (tmp_path / "Dockerfile").read_text()


def test_a_devcontainer_stands_in_its_folder(tmp_path: Path) -> None:
    done = run_cli("emit", "devcontainer", "--lock", str(LOCK), "-o", str(tmp_path))
    assert done.returncode == 0
    assert f".devcontainer/{WHEEL}" in names(tmp_path)
    assert {name.partition("/")[0] for name in names(tmp_path)} == {".devcontainer"}
    container = json.loads((tmp_path / ".devcontainer" / "devcontainer.json").read_text())
    assert container["runArgs"] == ["--gpus=all", "--shm-size=8g", "--ipc=private"]
    assert container["remoteUser"] == "app"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["dockerfile", "--lock", "absent.lock", "-o", "x"], 2, "absent.lock: no such file"),
        (["dockerfile", "--lock", ".", "-o", "x"], 4, ".: is no file"),
        (["dockerfile", "--lock", "bad.lock", "-o", "x"], 4, "bad.lock: stack.pins[0].version: "),
        (["dockerfile", "--lock", "binary.lock", "-o", "x"], 4, "binary.lock: not TOML: no UTF-8"),
        (["dockerfile", "--lock", str(LOCK)], 2, "the following arguments are required: -o"),
        (["dockerfil"], 2, "no action 'dockerfil': did you mean 'dockerfile'?"),
        (["dockerfile", "--lock", str(LOCK), "--profile", "rntime", "-o", "x"], 2, "'runtime'?"),
        (["dockerfile", "--lock", str(LOCK), "--with", "nvtop", "-o", "x"], 2, "'nvitop'?"),
        (["dockerfile", "--lock", str(LOCK), "--base", "ubuntu", "-o", "x"], 2, "--base: ubuntu"),
        (["dockerfile", "--lock", str(LOCK), "--shm-size", "8 g", "-o", "x"], 2, "--shm-size: "),
        (["dockerfile", "--lock", str(LOCK), "-o", "bad.lock"], 2, "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said_and_nothing_written(
    tmp_path: Path, words: list[str], code: int, text: str
) -> None:
    bad = LOCK.read_text(encoding="utf-8").replace('version = "2.11.0+', 'version = "$(id)+')
    (tmp_path / "bad.lock").write_text(bad, encoding="utf-8")
    (tmp_path / "binary.lock").write_bytes(b"\xff\xfe")
    done = run_cli("emit", *words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert text in done.stderr
    assert done.stderr.startswith("envcheck: ")
    assert names(tmp_path) == {"bad.lock", "binary.lock"}
