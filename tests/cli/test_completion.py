"""The completion scripts complete."""

from __future__ import annotations

import subprocess

import pytest

from tests.cli.runner import run_cli


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("envcheck do", ["doctor"]),
        ("envcheck doctor --requ", ["--require-gpu"]),
        ("envcheck doctor --format js", ["json", "jsonl"]),
        ("envcheck completion z", ["zsh"]),
    ],
)
def test_bash_completes(words: str, expected: list[str]) -> None:
    script = run_cli("completion", "bash").stdout
    ask = f"""{script}
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMPREPLY=()
"$(complete -p envcheck | sed 's/.*-F \\([^ ]*\\).*/\\1/')"
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        ["bash", "-c", ask], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stderr, done.stdout.split()) == ("", expected)


@pytest.mark.parametrize(("shell", "start"), [("zsh", "#compdef envcheck"), ("tcsh", "#")])
def test_other_shells_get_a_script(shell: str, start: str) -> None:
    done = run_cli("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(start)
    assert "doctor" in done.stdout
