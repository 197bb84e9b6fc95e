"""The command line: parse, hand over to a command, and end with a documented status.

Only argparse is imported here; each command imports what it works with when it runs.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from envcheck import __version__, helptext
from envcheck.errors import EnvcheckError, UsageError
from envcheck.spelling import suggestion

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from _typeshed import SupportsWrite

Commands = dict[str, "Parser"]

INTERRUPTED = 130
"""Status of a run that Ctrl-C ended, as shells count it."""
ALLOCATIONS = 50_000
"""Objects that are made before Python looks for cycles among them: a run makes few, and looking as
often as Python does by itself takes a twentieth of a diagnosis."""
INTERNAL = 3
"""Status of a run that a fault of envcheck's own ended: nothing was determined."""


class Parser(argparse.ArgumentParser):
    """Raises instead of exiting, and knows its flags so that a misspelt one can be put right."""

    def __init__(self, **settings: Any) -> None:
        """Take argparse's own settings; flags are never abbreviated."""
        self.flags: list[str] = []
        self.actions: tuple[str, ...] = ()
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


def build_parser(wanted: Collection[str] = tuple(helptext.COMMANDS)) -> tuple[Parser, Commands]:
    """The parser of the command line, and those of the commands by name.

    Args:
        wanted: commands whose arguments are added; the others are only named.
    """
    parser = Parser(prog="envcheck", description=helptext.MAIN, epilog=helptext.MAIN_END)
    parser.add_argument(
        "-V", "--version", nargs=0, action=_Version, help="print the version and exit"
    )
    # Without a name for the usage line argparse asks for the width of the screen each time.
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", prog="envcheck"
    )
    made: Commands = {}
    for name, summary in helptext.COMMANDS.items():
        if name in wanted:
            module = import_module(f"envcheck.arguments.{name}")
            made[name] = _add(commands, name, summary, module.DESCRIPTION, module.END)
            _add_arguments(made[name], module)
        else:
            made[name] = commands.add_parser(name, help=summary)
    return parser, made


def _add(
    parsers: argparse._SubParsersAction[Parser], name: str, summary: str, *texts: str
) -> Parser:
    description, end = texts
    return parsers.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.\n\n{description}",
        epilog=end,
    )


def _add_arguments(parser: Parser, module: Any) -> None:
    """Add what a module of `arguments/` declares: arguments, or actions with arguments."""
    pages = getattr(module, "ACTIONS", None)
    if pages is None:
        module.add_arguments(parser)
        return
    actions = parser.add_subparsers(
        dest="action", metavar="ACTION", title="actions", prog=parser.prog
    )
    made = {name: _add(actions, name, *page) for name, page in pages.items()}
    module.add_action_arguments(made)
    parser.actions = tuple(made)
    for each in made.values():
        parser.flags.extend(each.flags)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line.

    Raises:
        UsageError: it cannot be understood; the message says what was probably meant.
    """
    plain = [word for word in argv if not word.startswith("-")]
    command = plain[0] if plain else None
    if command is not None:
        _known("command", command, tuple(helptext.COMMANDS))
    parser, commands = build_parser(() if command is None else (command,))
    actions = commands[command].actions if command else ()
    if actions and len(plain) > 1:
        _known("action", plain[1], actions)
    flags = (commands[command] if command else parser).flags
    own = list(argv)[: list(argv).index("--")] if "--" in argv else argv
    for word in own:
        # First of all: a misspelt flag is why a required one is missing.
        if word.startswith("--") and word.partition("=")[0] not in {*flags, *parser.flags}:
            raise _unexpected(word, suggestion(word.partition("=")[0], flags))
    args, extra = parser.parse_known_args(argv)
    if extra:
        raise _unexpected(extra[0], _meant(command, extra[0]))
    if command is None:
        msg = "no command given: try 'envcheck doctor'"
        raise UsageError(msg)
    if actions and args.action is None:
        msg = f"no action given: choose from {', '.join(actions)}"
        raise UsageError(msg)
    return args


def _unexpected(word: str, meant: str | None) -> UsageError:
    return UsageError(f"unexpected argument '{word}'" + (f": {meant}" if meant else ""))


def _meant(command: str | None, word: str) -> str | None:
    """What flag a word was probably meant for."""
    from pathlib import Path

    path = Path(word)
    flag = None
    if command == "plan":
        library = word.isidentifier() or any(mark in word for mark in "=<>~")
        flag = "--want" if library else "--target"
    elif command == "doctor" and path.is_file() and not os.access(path, os.X_OK):
        flag = "--report"
    elif command in {"doctor", "snapshot"} and (path / "machine.toml").is_file():
        flag = "--machine"
    elif command in {"doctor", "snapshot", "smoke"} and (path / "bin").is_dir():
        flag = "--python"
    return f"did you mean '{flag} {word}'?" if flag is not None else None


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
    gc.set_threshold(ALLOCATIONS)
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
    except MemoryError:
        code = _fail("out of memory", INTERNAL, words, args)
    except Exception as error:  # a user is owed a line and a status, not a traceback
        message = f"internal error, please report it: {type(error).__name__}: {error}"
        code = _fail(message, INTERNAL, words, args)
        if verbose:
            import traceback

            traceback.print_exc()
    return _flushed(code)


def _run(args: argparse.Namespace) -> int:
    if args.command == "completion":
        args.parser = build_parser()[0]
    code: int = import_module(f"envcheck.commands.{args.command}").run(args)
    return code


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
