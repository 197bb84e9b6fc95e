"""The command line: parse, hand over to a command, and end with a documented status.

Only argparse is imported here; each command imports what it works with when it runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from envcheck import __version__, helptext
from envcheck.errors import EnvcheckError, UsageError
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from _typeshed import SupportsWrite

FORMATS = ("text", "json", "markdown", "junit", "sarif")
SHELLS = ("bash", "zsh", "tcsh")
INTERRUPTED = 130
"""Status of a run that Ctrl-C ended, as shells count it."""
INTERNAL = 3
"""Status of a run that a fault of envcheck's own ended: nothing was determined."""


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, and knows its flags so that a misspelt one can be put right."""

    def __init__(self, **settings: Any) -> None:
        """Take argparse's own settings; flags are never abbreviated."""
        self.flags: list[str] = []
        super().__init__(allow_abbrev=False, formatter_class=helptext.Formatter, **settings)

    def add_argument(self, *names: str, **settings: Any) -> argparse.Action:
        """Add an argument and remember its flags."""
        self.flags.extend(name for name in names if name.startswith("-"))
        return super().add_argument(*names, **settings)

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Print like every other output: in any locale, and to a reader who may have gone away."""
        from envcheck.commands.output import emit

        if file is None:
            emit(self.format_help(), None)
        else:
            super().print_help(file)

    def error(self, message: str) -> NoReturn:
        """Leave the printing to `main`, which also knows about `--json`."""
        raise UsageError(message)


class _Version(argparse.Action):
    """Prints the version through `emit`, for the sake of which `print_help` is overridden too."""

    def __call__(self, parser: argparse.ArgumentParser, *_values: object) -> None:
        from envcheck.commands.output import emit

        emit(f"envcheck {__version__}\n", None)
        parser.exit()


def build_parser() -> tuple[Parser, dict[str, Parser]]:
    """The parser of the whole command line, and those of the commands by name."""
    parser = Parser(prog="envcheck", description=helptext.MAIN, epilog=helptext.MAIN_END)
    parser.add_argument(
        "-V", "--version", nargs=0, action=_Version, help="print the version and exit"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    made = _add_parsers(commands, helptext.COMMANDS)
    _doctor(made["doctor"])
    _snapshot(made["snapshot"])
    _explain(made["explain"])
    _tables(made["tables"])
    made["completion"].add_argument(
        "shell", type=_one_of(SHELLS), choices=SHELLS, metavar="SHELL", help="bash, zsh or tcsh"
    )
    return parser, made


def _add_parsers(
    commands: argparse._SubParsersAction[Parser], pages: Mapping[str, tuple[str, str, str]]
) -> dict[str, Parser]:
    """One parser per page, by name; a page is its summary, its description and its end."""
    return {
        name: commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}.\n\n{description}",
            epilog=end,
        )
        for name, (summary, description, end) in pages.items()
    }


def _doctor(parser: Parser) -> None:
    _machine(parser)
    parser.add_argument(
        "--format",
        type=_one_of(FORMATS),
        choices=FORMATS,
        default=None,
        metavar="FORMAT",
        help="text (default), json, markdown, junit or sarif",
    )
    parser.add_argument("--json", action="store_true", help="the same as --format json")
    _output(parser, "the report")
    for flag, text in (
        ("--select", "give only these findings; repeatable"),
        ("--ignore", "give every finding but these; repeatable"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar="ID,...", help=text)
    parser.add_argument(
        "--fail-on",
        type=_one_of(("warning", "error", "never")),
        choices=("warning", "error", "never"),
        default="error",
        metavar="LEVEL",
        help="mildest severity that makes the exit status 1: warning, error (default) or never",
    )
    parser.add_argument(
        "--require-gpu", action="store_true", help="a machine without a GPU is an error"
    )
    parser.add_argument("--tables", metavar="DIR", help="lay your own tables over the shipped ones")
    parser.add_argument("--no-color", action="store_true", help="never colour the text")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="list also what could not be read and the tables that were used",
    )


def _snapshot(parser: Parser) -> None:
    _machine(parser)
    parser.add_argument(
        "--record", metavar="DIR", help="write a recording of this machine to a new folder"
    )
    _output(parser, "the facts")


def _explain(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="id of a finding, as reports show it")
    parser.add_argument("--list", action="store_true", help="list every id with its one-line title")


def _tables(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions")
    made = _add_parsers(actions, helptext.TABLES)
    made["show"].add_argument("name", metavar="NAME", help="a table, as the list names it")
    made["refresh"].add_argument("name", metavar="NAME", help="torch, tensorflow, jax, cudnn, nccl")
    for name in ("list", "show"):
        made[name].add_argument("--json", action="store_true", help="print JSON")
    made["check"].add_argument("--dir", metavar="DIR", help="check the tables in a folder")
    _refresh(made["refresh"])
    for each in made.values():
        each.add_argument(
            "--tables", metavar="DIR", help="lay your own tables over the shipped ones"
        )
        parser.flags.extend(each.flags)


def _refresh(parser: Parser) -> None:
    parser.add_argument("--write", action="store_true", help="also change the file")
    parser.add_argument(
        "--release",
        action="append",
        default=[],
        metavar="VERSION",
        help="read this release only; repeatable (default: all from the oldest listed one on)",
    )
    parser.add_argument(
        "--arches",
        action="store_true",
        help="also read which GPUs torch was compiled for: some ten requests more a wheel",
    )
    parser.add_argument(
        "--index-url",
        metavar="URL",
        help="package index (default: the one that pip is configured to use)",
    )
    parser.add_argument(
        "--cache",
        metavar="DIR",
        help="keep what was read in this folder (default: below $XDG_CACHE_HOME)",
    )
    parser.add_argument(
        "--from",
        dest="saved",
        metavar="DIR",
        help="read from a folder that --cache filled, without any network",
    )


def _machine(parser: Parser) -> None:
    parser.add_argument(
        "--python",
        metavar="PATH",
        help="interpreter, or folder of an environment, to judge"
        " (default: the active environment, else python3 on PATH, else envcheck's own)",
    )
    parser.add_argument(
        "--machine", metavar="DIR", help="read a recorded machine instead of this one"
    )
    parser.add_argument(
        "--deep",
        action="store_true",
        help="also import the frameworks, each in a child, and ask tools for their versions",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=10.0,
        metavar="S",
        help="seconds that each child process gets (default: 10)",
    )


def _output(parser: Parser, what: str) -> None:
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=f"write {what} to a file, as a whole or not at all ('-': standard output)",
    )


def _one_of(names: Sequence[str]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text in names:
            return text
        hint = suggestion(text, names) or f"choose from {', '.join(names)}"
        msg = f"'{text}' is not known: {hint}"
        raise argparse.ArgumentTypeError(msg)

    return check


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    # Compared from both sides, so that NaN and infinity fall out too.
    if not 0.0 < value <= 86400.0:
        msg = f"'{text}' is not a number of seconds between 0 and 86400"
        raise argparse.ArgumentTypeError(msg)
    return value


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    Raises:
        UsageError: it cannot be understood; the message says what was probably meant.
    """
    parser, commands = build_parser()
    plain = [word for word in argv if not word.startswith("-")]
    command = plain[0] if plain else None
    if command is not None:
        _known("command", command, tuple(commands))
    if command == "tables" and len(plain) > 1:
        _known("action", plain[1], tuple(helptext.TABLES))
    args, extra = parser.parse_known_args(argv)
    if extra:
        flags = (commands[command] if command else parser).flags
        word = extra[0].partition("=")[0]
        meant = suggestion(word, flags) if word.startswith("-") else None
        msg = f"unexpected argument '{extra[0]}'" + (f": {meant}" if meant else "")
        raise UsageError(msg)
    if command is None:
        msg = "no command given: try 'envcheck doctor'"
        raise UsageError(msg)
    if command == "tables" and args.action is None:
        msg = f"no action given: choose from {', '.join(helptext.TABLES)}"
        raise UsageError(msg)
    return args


def _known(what: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        hint = suggestion(word, known) or f"choose from {', '.join(known)}"
        msg = f"no {what} '{word}': {hint}"
        raise UsageError(msg)


def main(argv: Sequence[str] | None = None) -> int:
    """Run envcheck.

    Args:
        argv: arguments without the program's name; None for the process's own.

    Returns:
        The exit status, as documented in `--help`; never raises for an expected state.
    """
    _open_missing_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    args: argparse.Namespace | None = None
    verbose = False
    try:
        args = parse(words)
        verbose = getattr(args, "verbose", False)
        code = _run(args)
    except SystemExit as end:  # argparse, after --help and --version
        code = end.code if isinstance(end.code, int) else 0
    except EnvcheckError as error:
        code = _fail(str(error), error.exit_code, words, args)
    except KeyboardInterrupt:
        code = _fail("interrupted", INTERRUPTED, words, args)
    except Exception as error:  # a user is owed a line and a status, not a traceback
        message = f"internal error, please report it: {type(error).__name__}: {error}"
        code = _fail(message, INTERNAL, words, args)
        if verbose:
            import traceback

            traceback.print_exc()
    return _flushed(code)


def _run(args: argparse.Namespace) -> int:
    match args.command:
        case "doctor":
            from envcheck.commands import doctor

            return doctor.run(args)
        case "snapshot":
            from envcheck.commands import snapshot

            return snapshot.run(args)
        case "explain":
            from envcheck.commands import explain

            return explain.run(args)
        case "tables":
            from envcheck.commands import tables

            return tables.run(args)
        case _:
            from envcheck.commands import completion

            return completion.run(args, build_parser()[0])


def _fail(message: str, code: int, words: list[str], args: argparse.Namespace | None) -> int:
    """Say why the run ends: a line on stderr, and JSON where JSON was asked for."""
    from envcheck.commands.output import say, write_failure

    first, *rest = message.splitlines() or [""]
    say("\n".join([f"envcheck: {first}", *(f"  {line}" for line in rest)]))
    if args is None:
        command = next((word for word in words if word in helptext.COMMANDS), "")
        say(f"  see 'envcheck {command} --help'".replace("  --", " --"))
    if _wants_json(words, args):
        write_failure(message, code, getattr(args, "output", None))
    return code


def _wants_json(words: list[str], args: argparse.Namespace | None) -> bool:
    if args is not None:
        wanted: bool = getattr(args, "json", False) or getattr(args, "format", None) == "json"
        return wanted or args.command == "snapshot"
    return any(
        word in ("--json", "--format=json") or (word, after) == ("--format", "json")
        for word, after in zip(words, [*words[1:], ""], strict=False)
    )


def _open_missing_streams() -> None:
    """Occupy closed standard descriptors, or the first file opened would become an output."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _flushed(code: int) -> int:
    """Flush now, while a reader that has gone away can still be met quietly."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            _discard(stream.fileno())
        except (OSError, ValueError):
            # What was asked for did not arrive: that is no success.
            _discard(stream.fileno())
            code = code or UsageError.exit_code
    return code


def _discard(descriptor: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)
