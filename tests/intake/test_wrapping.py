"""What a text was wrapped in comes off, and what only looks like a wrapping stays."""

from __future__ import annotations

import pytest

from envcheck.intake.cleaning import lines
from envcheck.intake.locales import english
from tests.symptoms.data import tables


def test_labels_of_a_launcher_come_off_when_most_lines_have_them() -> None:
    assert lines("0: torch 2.5.1\n1: torch 2.5.1\n0: done") == (
        "torch 2.5.1",
        "torch 2.5.1",
        "done",
    )
    listed = "3 GPUs:\n0: A100\nmore\nlines\nfollow\nhere"
    assert lines(listed) == tuple(listed.split("\n"))


def test_a_table_of_two_columns_becomes_fields() -> None:
    assert lines("| Is CUDA available | False |\n") == ("Is CUDA available: False", "")
    row = "| N/A   38C    P0    27W /  70W |  10544MiB / 15109MiB |      0%      Default |"
    assert lines(row) == (row,)


def test_escapes_of_an_address_are_read() -> None:
    assert lines("libtorch_cuda.so:%20undefined%20symbol:%20nccl") == (
        "libtorch_cuda.so: undefined symbol: nccl",
    )
    assert lines("100%2 done") == ("100%2 done",)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("bash: nvidia-smi : commande introuvable", "bash: nvidia-smi: command not found"),
        ("bash: nvidia-smi: Kommando nicht gefunden.", "bash: nvidia-smi: command not found"),
        ("nvidia-smi:未找到命令", "nvidia-smi: command not found"),
        ("'nvidia-smi' 不是内部或外部命令", "'nvidia-smi' is not recognized"),
        (
            "libcudnn.so.9: Kann die Shared-Object-Datei nicht öffnen: "
            "Datei oder Verzeichnis nicht gefunden",
            "libcudnn.so.9: cannot open shared object file: No such file or directory",
        ),
        ("a.so: symbole non défini: ncclX", "a.so: undefined symbol: ncclX"),
        ("die Datei wurde nicht gefunden", "die Datei wurde nicht gefunden"),
    ],
)
def test_other_languages(said: str, expected: str) -> None:
    assert english(said) == expected


def test_what_lightning_and_echo_say_of_the_visible_devices() -> None:
    from envcheck.intake import read

    def visible(text: str) -> str | None:
        return read(text, tables()).env.variable("CUDA_VISIBLE_DEVICES")

    assert visible("LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]") == "0,1"
    assert visible("$ echo $CUDA_VISIBLE_DEVICES\n-1\n") == "-1"
    assert visible("$ echo $CUDA_VISIBLE_DEVICES\n$ ls\n") is None
