"""Draws what envcheck prints, as PNG, to be looked at: in two widths, dark and light.

    python tools/pictures.py [-o DIR] [--only doctor-broken,plan] [--themes dark]

Each command runs as in a terminal of 80 or 140 columns, on recorded machines, public reports and
recorded samples, so that no GPU is needed. Needs rich, and chromium or chrome, which draws the SVG
that rich makes of the output. `--torch-python` adds the smoke test on the CPU.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, MONOKAI, TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
MACHINES = ROOT / "tests" / "machines"
CASES = ROOT / "tests" / "intake" / "cases"
WIDTHS = (80, 140)
THEMES: dict[str, TerminalTheme] = {"dark": MONOKAI, "light": DEFAULT_TERMINAL_THEME}
LONGEST = 110
"""Lines of one picture; what follows is left out, and said to be."""

_CELL, _LINE, _FRAME = 12.2, 24.4, 100
"""What rich's SVG takes for a column, for a line and around it."""


def _machine(name: str) -> tuple[str, ...]:
    return ("--machine", str(MACHINES / name))


def scenes(fleet: Path, torch: str | None) -> dict[str, tuple[str, ...]]:
    """Name of each picture -> arguments of envcheck."""
    report = sorted(CASES.glob("*.txt"))
    target = ("--target", "RTX 5090, driver 570, python 3.12")
    found = {
        "doctor-healthy": ("doctor", *_machine("h200x1")),
        "doctor-broken": ("doctor", *_machine("v100-torch211-cu130")),
        "doctor-two-causes": ("doctor", *_machine("rtx3090-library-mismatch")),
        "doctor-driver-missing": ("doctor", *_machine("rtx3090-driver-missing")),
        "doctor-no-gpu": ("doctor",),
        "doctor-verbose": ("doctor", "-v", *_machine("debian12-toolkit-only")),
        "plan": ("plan", *target, "--want", "torch>=2.6", "--want", "torchvision"),
        "no-plan": ("plan", "--target", "Tesla K80, driver 470", "--want", "torch>=2.9"),
        "watch": ("watch", "--replay", str(ROOT / "tests/watch/series/slow_loader-1.jsonl")),
        "fleet": ("fleet", "report", str(fleet)),
        "explain": ("explain", "driver-too-old"),
        "tables": ("tables", "list"),
        "help": ("--help",),
        "help-doctor": ("doctor", "--help"),
        "misspelt": ("docter",),
    }
    if report:
        found["report"] = ("doctor", "--report", str(report[0]))
    if torch is not None:
        device = ("--device", "cpu", "--distributed", "off")
        found["smoke"] = ("smoke", *device, "--python", torch)
    return found


def main() -> int:
    """Draw the pictures; 1 when there is no program to draw them with."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("pictures"), metavar="DIR")
    parser.add_argument("--only", default="", metavar="NAME,...")
    parser.add_argument("--torch-python", metavar="PATH")
    parser.add_argument("--themes", default=",".join(THEMES), metavar="NAME,...")
    args = parser.parse_args()
    browsers = ("chromium", "chromium-browser", "google-chrome")
    browser = next(filter(None, map(shutil.which, browsers)), None)
    if browser is None:
        print(f"none of {', '.join(browsers)} is installed", file=sys.stderr)
        return 1
    args.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="envcheck-pictures-") as folder:
        fleet = Path(folder) / "reports"
        _reports(fleet)
        wanted = scenes(fleet, args.torch_python)
        for name in filter(None, args.only.split(",")) if args.only else wanted:
            for width in WIDTHS:
                text = _output(wanted[name], width)
                for theme in args.themes.split(","):
                    path = args.output / f"{name}-{width}-{theme}.png"
                    _draw(browser, text, width, THEMES[theme], path, Path(folder))
                    print(path)
    return 0


def _reports(folder: Path) -> None:
    """Reports of three recorded machines, one of them twice: a small fleet."""
    folder.mkdir()
    names = ("h200x1", "h200x1", "h200-nccl-of-two-majors", "rtx4090-r575-cu130")
    for at, name in enumerate(names):
        output = folder / f"gpu{at}.json"
        _envcheck("doctor", "--json", *_machine(name), "-o", str(output))


def _envcheck(*args: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "envcheck", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        check=False,
    )
    return done.stdout


def _output(args: tuple[str, ...], width: int) -> str:
    prompt = " ".join(
        re.sub(r"^/.*/", "", word) if " " not in word else f'"{word}"' for word in args
    )
    settings = {"FORCE_COLOR": "1", "COLUMNS": str(width), "TERM": "xterm-256color"}
    lines = _envcheck(*args, **settings).splitlines()
    left_out = len(lines) - LONGEST
    if left_out > 0:
        lines[LONGEST:] = [f"[{left_out} more lines]"]
    return "\n".join((f"$ envcheck {prompt}", *lines))


def _draw(
    browser: str, text: str, width: int, theme: TerminalTheme, path: Path, folder: Path
) -> None:
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    # As a terminal does: what is longer goes on in the next line, wherever that breaks it.
    lines = Text.from_ansi(text).split("\n", allow_blank=True)
    pieces = [
        piece for line in lines for piece in line.divide(range(width, max(len(line), 1), width))
    ]
    for piece in pieces:
        console.print(piece, no_wrap=True)
    svg = folder / f"{path.stem}.svg"
    # Fonts of this machine, since the one that rich names is fetched.
    code = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="", theme=theme), flags=re.S)
    svg.write_text(code.replace("Fira Code", "DejaVu Sans Mono"), encoding="utf-8")
    size = f"{int(width * _CELL + _FRAME)},{int(len(pieces) * _LINE + _FRAME)}"
    subprocess.run(
        [
            browser,
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            f"--screenshot={path.absolute()}",
            f"--window-size={size}",
            svg.as_uri(),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )


if __name__ == "__main__":
    sys.exit(main())
