"""Which package index is asked: what pip says, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from envcheck.errors import UsageError
from envcheck.refresh.settings import configured, parsed

HELP = "  -i, --index-url <url>  Base URL (default\n        https://default.example/simple). More."


def pip(listed: str | None, shown: str = HELP, asked: list[list[str]] | None = None) -> object:
    def ask(args: Sequence[str]) -> str | None:
        if asked is not None:
            asked.append(list(args))
        return listed if args[0] == "config" else shown

    return ask


def test_a_configured_index_with_all_that_belongs_to_it() -> None:
    asked: list[list[str]] = []
    listed = (
        "global.cert='/etc/ssl/ours.pem'\n"
        "global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'\n"
        "global.index-url='https://ours.example/simple'\n"
        "global.timeout='60'\n"
    )
    found = configured(pip(listed, asked=asked))  # type: ignore[arg-type]
    assert found.url == "https://ours.example/simple"
    assert found.extra == ("https://a.example/simple", "https://b.example/simple")
    assert found.ca_file == "/etc/ssl/ours.pem"
    assert asked == [["config", "list"]]


def test_the_stronger_section_wins() -> None:
    listed = (
        ":env:.index-url='https://variable.example'\n"
        "download.index-url='https://download.example'\n"
        "global.index-url='https://global.example'\n"
        "install.cert='/install.pem'\n"
        "global.cert='/global.pem'\n"
    )
    assert parsed(listed) == {"index-url": "https://variable.example", "cert": "/install.pem"}


def test_lines_that_are_no_options_are_left_out() -> None:
    assert parsed("WARNING: something = odd\nglobal.cert=unquoted\n\nglobal.a.b='x'") == {}


def test_pips_own_default_is_asked_of_pip() -> None:
    found = configured(pip("global.timeout='60'\n"))  # type: ignore[arg-type]
    assert (found.url, found.extra, found.ca_file) == ("https://default.example/simple", (), None)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (pip(None), "there is no pip to ask for the package index: give --index-url URL"),
        (
            pip(":env:.no-index='1'\nglobal.index-url='https://ours.example'"),
            "pip is configured to use no package index: give --index-url URL",
        ),
        (pip("", "no such option"), "pip does not say which package index it uses: "),
    ],
)
def test_without_an_index_the_flag_is_named(ask: object, message: str) -> None:
    with pytest.raises(UsageError) as error:
        configured(ask)  # type: ignore[arg-type]
    assert str(error.value).startswith(message)


def test_the_real_pip_reads_its_files_and_variables(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://file.example/simple\n", encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    assert configured().url == "https://file.example/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://user:word@variable.example/simple")
    assert configured().url == "https://user:word@variable.example/simple"


def test_the_real_pip_knows_a_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")  # then pip reads no file at all
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.delenv("PIP_NO_INDEX", raising=False)
    assert configured().url.startswith("https://")
