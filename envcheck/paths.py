"""Where the files beside the code are: in the installed wheel, or in the checkout."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def data_dir(name: str) -> Path:
    """Folder of shipped data.

    Args:
        name: top-level data folder, such as `matrices`, `containers` or `ansible`; `tables` is the
            compiled form of `matrices`, which exists in an installed wheel only.

    Returns:
        `envcheck/_data/<name>` of a wheel when it is there, else `<checkout>/<name>`. The folder
        need not exist: a caller that requires it says so in its own words.
    """
    installed = _PACKAGE / "_data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def payload(name: str) -> Path:
    """Path of a payload script, such as `inspect_env`, that another interpreter runs as a file."""
    return _PACKAGE / "payloads" / f"{name}.py"
