"""Build hook: compile the TOML tables to JSON, which a start-up reads ten times faster.

Only wheels get the compiled form. A checkout and an editable install read the TOML, so that an
edited table counts at once.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SOURCE = "matrices"
TARGET = "envcheck/_data/tables"


class CustomBuildHook(BuildHookInterface[Any]):
    """Adds `envcheck/_data/tables/<name>.json` for each `matrices/<name>.toml`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary folder and have the wheel take the results from there."""
        if self.target_name != "wheel" or version == "editable":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="envcheck-tables-"))
        for name, path in compile_tables(Path(self.root) / SOURCE, self._folder).items():
            build_data["force_include"][str(path)] = f"{TARGET}/{name}.json"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary folder."""
        folder = getattr(self, "_folder", None)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def compile_tables(source: Path, target: Path) -> dict[str, Path]:
    """Write every TOML table below `source` as JSON below `target`.

    Returns:
        The written file of each table name, `frameworks/torch` among them.
    """
    written = {}
    for path in sorted(source.rglob("*.toml")):
        name = path.relative_to(source).with_suffix("").as_posix()
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        result = target / f"{name}.json"
        result.parent.mkdir(parents=True, exist_ok=True)
        result.write_text(
            json.dumps(table, ensure_ascii=False, separators=(",", ":")), encoding="utf-8"
        )
        written[name] = result
    return written
