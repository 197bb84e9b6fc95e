"""`envcheck doctor --report`, as a process: texts in, judgements out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.runner import run_cli

CASES = Path(__file__).parent.parent / "intake" / "cases"
CPU_BUILD = CASES / "215-collectenv-win-anaconda-cpu-3060.txt"
HEALTHY = CASES / "351-vllm-36835-gb10-cu130-healthy.txt"


def test_a_text_is_judged() -> None:
    done = run_cli("doctor", "--report", str(CPU_BUILD))
    assert done.returncode == 1
    assert "error framework-cpu-build:" in done.stdout
    assert "not read" not in done.stdout


def test_a_healthy_text_is_ok() -> None:
    done = run_cli("doctor", "--report", str(HEALTHY), "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["verdict"], report["exit_code"]) == (0, "ok", 0)
    assert report["snapshot"]["source"] == "report"
    assert [gpu["name"] for gpu in report["snapshot"]["host"]["gpus"]] == ["NVIDIA GB10"]


def test_standard_input() -> None:
    done = run_cli("doctor", "--report", "-", "--json", input=CPU_BUILD.read_text(encoding="utf-8"))
    assert done.returncode == 1
    assert json.loads(done.stdout)["findings"][0]["id"] == "framework-cpu-build"


def test_markdown_is_ready_to_paste_and_names_nobody(tmp_path: Path) -> None:
    text = CPU_BUILD.read_text(encoding="utf-8") + (
        "\n/home/marguerite/venv/lib/python3.10/site-packages/torch/__init__.py"
        "\nmarguerite@buildbox17:~$ nvidia-smi -L"
        "\nGPU 0: NVIDIA GeForce RTX 3060 (UUID: GPU-0b0c1d2e-3f40-5162-7384-95a6b7c8d9ea)"
        "\nE: C:\\Users\\marguerite\\x.py: line 3\n"
    )
    path = tmp_path / "issue.txt"
    path.write_text(text, encoding="utf-8")
    for form in ("markdown", "json", "text", "sarif", "junit"):
        done = run_cli("doctor", "--report", str(path), "--format", form)
        assert done.returncode == 1
        for secret in ("marguerite", "buildbox17", "0b0c1d2e"):
            assert secret not in done.stdout, form
    done = run_cli("doctor", "--report", str(path), "--format", "markdown")
    assert done.stdout.startswith("**1 error")


def test_several_texts_give_one_line_each(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("", encoding="utf-8")
    for at, path in enumerate((CPU_BUILD, HEALTHY)):
        (tmp_path / f"{at}.txt").write_bytes(path.read_bytes())
    done = run_cli("doctor", "--report", str(tmp_path), "--format", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert [line["name"] for line in lines] == ["0.txt", "1.txt", "empty.txt"]
    assert [line.get("verdict") for line in lines] == ["error", "ok", None]
    assert lines[2]["error"]["exit_code"] == 3
    assert "nothing to judge: it is empty" in done.stderr


def test_several_healthy_texts_are_ok(tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    done = run_cli(
        "doctor", "--report", str(HEALTHY), str(HEALTHY), "--format", "jsonl", "-o", str(output)
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert len(output.read_text(encoding="utf-8").splitlines()) == 2


def test_several_texts_one_after_the_other() -> None:
    done = run_cli("doctor", "--report", str(HEALTHY), str(CPU_BUILD), "--format", "text")
    assert done.returncode == 1
    assert done.stdout.startswith(f"== {HEALTHY.name}\n")
    assert f"\n== {CPU_BUILD.name}\n" in done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "nothing to judge: it is empty"),
        (b" \n\t\r\n", "nothing to judge: it is empty"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "nothing to judge: it is an image, an archive"),
        (b"\x7fELF\x02\x01\x01\0", "nothing to judge: it is an image, an archive"),
        (bytes(range(256)) * 40, "nothing to judge: it is not a text"),
    ],
)
def test_what_is_no_text_is_said_in_a_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "report"
    path.write_bytes(content)
    done = run_cli("doctor", "--report", str(path))
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"envcheck: {path}: {message}\n" or done.stderr.startswith(
        f"envcheck: {path}: {message}"
    )
    assert len(done.stderr.splitlines()) == 1


def test_a_text_that_speaks_of_something_else_determines_nothing(tmp_path: Path) -> None:
    path = tmp_path / "poem.txt"
    path.write_text("The quick brown fox\njumps over the lazy dog.\n", encoding="utf-8")
    done = run_cli("doctor", "--report", str(path), "--json")
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (3, "unknown")


def test_paths_that_cannot_be_followed(tmp_path: Path) -> None:
    done = run_cli("doctor", "--report", str(tmp_path / "nowhere.txt"))
    assert (done.returncode, done.stderr) == (
        2,
        f"envcheck: no such file or folder: {tmp_path}/nowhere.txt\n",
    )
    done = run_cli("doctor", "--report", str(tmp_path))
    assert (done.returncode, done.stderr) == (2, f"envcheck: no reports in {tmp_path}\n")
    done = run_cli("doctor", "--report", str(HEALTHY), "--machine", str(tmp_path))
    assert done.returncode == 2
    done = run_cli("doctor", "--report", str(HEALTHY), str(CPU_BUILD), "--json")
    assert (done.returncode, "give --format jsonl" in done.stderr) == (2, True)


def test_encodings(tmp_path: Path) -> None:
    text = CPU_BUILD.read_text(encoding="utf-8") + "\nRésumé: größer\n"
    for encoding in ("utf-16", "utf-16-le", "utf-8-sig", "latin-1", "cp1252"):
        path = tmp_path / f"{encoding}.txt"
        path.write_bytes(text.encode(encoding))
        done = run_cli("doctor", "--report", str(path), "--json")
        assert (done.returncode, json.loads(done.stdout)["findings"][0]["id"]) == (
            1,
            "framework-cpu-build",
        ), encoding
