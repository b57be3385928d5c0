"""``python -m gnomon.profiler script.py args…``: run any program under the sampler and show where its time went.

The program runs as it does under plain ``python``: arguments, import path, ``__main__``, output, exit code and
traceback are its own. When it has ended, by its last line, an exception or Ctrl-C, its threads and exit functions
included, the call tree is printed on standard error, or the result is written to a file in the format that the file's
name asks for.

    python -m gnomon.profiler script.py --its --own options
    python -m gnomon.profiler -o flame.html -m package.module
    python -m gnomon.profiler --load old.profile -o old.speedscope.json

Child processes are not profiled, and a program that ends by a signal or ``os._exit`` leaves nothing.
"""

from __future__ import annotations

import argparse
import atexit
import os
import shutil
import sys
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from gnomon.profiler import export
from gnomon.profiler.export.text import to_text
from gnomon.profiler.program import Program, ProgramError, load_module, load_script, run, shorten_tracebacks
from gnomon.profiler.sampling.sampler import Sampler
from gnomon.profiler.sessions.processors import below, drop_functions, hide_library, keep_busy
from gnomon.profiler.sessions.session import Function, Session

__all__ = ["main"]

_NAME = "python -m gnomon.profiler"

#: Options without a value.
_FLAGS = frozenset(["--main-thread", "--all", "--busy", "--open", "-h", "--help"])


def main(arguments: Sequence[str] | None = None) -> None:
    """The command. Leaves by SystemExit or by what the program raises."""
    mine, theirs = _split(list(sys.argv[1:] if arguments is None else arguments))
    parser = _parser()
    options = parser.parse_args(mine)
    _check(parser, options, theirs)
    if options.load is not None:
        try:
            session = Session.load(options.load)
        except (OSError, ValueError) as error:
            parser.error(f"{options.load}: {error}")
        _show(session, options)
        return
    try:
        sampler = Sampler(
            interval=options.interval,
            budget=options.budget,
            bucket=0.25,
            depth=512,
            every_thread=not options.main_thread,
            process=os.path.basename(options.module or theirs[0]),
        )
    except ValueError as error:
        parser.error(str(error))
    try:
        program = load_module(options.module, theirs) if options.module else load_script(theirs[0], theirs[1:])
    except ProgramError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(error.exit_code) from None
    except SyntaxError:
        shorten_tracebacks(None)
        raise
    _profile(program, sampler, options)


def _profile(program: Program, sampler: Sampler, options: argparse.Namespace) -> None:
    owner = os.getpid()

    def finish() -> None:
        # A child that was forked has this exit function as well, but not the sampler's thread.
        if os.getpid() == owner:
            sampler.stop()
            _show(_of_program(sampler.session(), program), options)

    # The interpreter calls this when the program's threads have ended, and after the program's own exit functions.
    atexit.register(finish)
    sampler.watch_thread()
    sampler.start()
    run(program)


def _of_program(session: Session, program: Program) -> Session:
    """The session without the frames that started the program, and without what they did themselves."""
    code, here = program.code, _profile.__code__.co_filename

    def is_first(function: Function) -> bool:
        return (function.name, function.file) == (code.co_qualname, code.co_filename)

    return drop_functions(below(session, is_first), lambda function: function.file == here)


# -------------------------------------------------------------------------------------------------------------- options


def _parser() -> argparse.ArgumentParser:
    formats = "\n".join(f"  {row.name:18} {row.says} ({', '.join(row.endings)})" for row in export.FORMATS.values())
    parser = argparse.ArgumentParser(
        prog=_NAME,
        usage=f"{_NAME} [options] (script.py | -m module) [arguments of the program]",
        description="Run a program under the sampler and show where its time went.",
        epilog=f"formats:\n{formats}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("-m", dest="module", metavar="MODULE", help="run a module; what follows are its arguments")
    add("-o", "--output", metavar="FILE", help="write the result there; - is standard output")
    add(
        "-f",
        "--format",
        choices=list(export.FORMATS),
        metavar="FORMAT",
        help="one of those below, if the file's name doesn't tell",
    )
    add("-i", "--interval", type=float, default=0.0101, metavar="SECONDS", help="between samples (default: 0.0101)")
    add("--budget", type=float, default=0.02, metavar="SHARE", help="of the time, for sampling (default: 0.02)")
    add("--main-thread", action="store_true", help="sample the main thread only")
    add("--busy", action="store_true", help="leave out samples of threads that wait")
    add("--all", action="store_true", help="text: show the insides of libraries, too")
    add("--share", type=_share, default=0.01, help="text: put calls below this share together (default: 0.01)")
    add("--open", action="store_true", help="open the file in the browser")
    add("--load", metavar="FILE", help="show a saved session (.profile) instead of running a program")
    return parser


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must lie between 0 and 1")
    return value


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Our options, and the program's part: as with ``python``, all that follows the script or the module's name."""
    position = 0
    while position < len(arguments):
        word = arguments[position]
        if word == "--":
            return arguments[:position], arguments[position + 1 :]
        if not word.startswith("-"):
            break
        # An option with its value in a word of its own takes two.
        whole = word in _FLAGS or "=" in word or (not word.startswith("--") and len(word) > 2)
        position += 1 if whole else 2
        if word.startswith("-m"):
            break
    return arguments[:position], arguments[position:]


def _check(parser: argparse.ArgumentParser, options: argparse.Namespace, theirs: list[str]) -> None:
    """Refuse now what else would fail when the program has run; settle the format and where the result goes."""
    if options.load is None and options.module is None and not theirs:
        parser.error("say which script or which -m module to run")
    if options.load is not None and (options.module or theirs):
        parser.error("--load shows a saved session and runs no program")
    if options.output not in (None, "-"):
        folder = Path(options.output).absolute().parent
        if not folder.is_dir():
            parser.error(f"there is no folder {folder}")
        try:
            options.format = options.format or export.format_of(options.output)
        except ValueError as error:
            parser.error(str(error))
        return
    options.format = options.format or "text"
    if not export.FORMATS[options.format].source:
        parser.error(f"the format {options.format} needs a file: -o FILE")


# --------------------------------------------------------------------------------------------------------------- result


def _show(session: Session, options: argparse.Namespace) -> None:
    """Print the session, or write it and say where."""
    if options.busy:
        session = keep_busy(session)
    path = options.output
    if path == "-" or (path is None and options.format not in ("html", "pyinstrument-html")):
        # The program may have replaced sys.stdout and sys.stderr; these are the ones it was started with.
        apart = path is None and options.format == "text"
        _print(session, options, sys.__stderr__ if apart else sys.__stdout__)
        return
    if path is None:
        handle, path = tempfile.mkstemp(prefix="profile-", suffix=".html")
        os.close(handle)
    try:
        export.write(session, path, options.format)
    except OSError as error:
        _say(sys.__stderr__, f"{_NAME}: {path}: {error.strerror}\n")
        return
    _say(sys.__stderr__, f"profile written to {path}\n")
    if options.open or options.output is None:
        webbrowser.open(Path(path).absolute().as_uri())


def _print(session: Session, options: argparse.Namespace, stream: TextIO | None) -> None:
    if options.format != "text":
        _say(stream, export.render(session, options.format))
        return
    terminal = stream is not None and not stream.closed and stream.isatty()
    text = to_text(
        session if options.all else hide_library(session),
        width=shutil.get_terminal_size().columns if terminal else 0,
        color=terminal and not os.environ.get("NO_COLOR"),
        share=options.share,
        unicode=(getattr(stream, "encoding", "") or "").lower().startswith("utf"),
    )
    _say(stream, f"\n{text}")


def _say(stream: TextIO | None, text: str) -> None:
    """Write it, whatever characters the stream takes; nothing if the program has closed the stream."""
    if stream is None or stream.closed:
        return
    encoding = stream.encoding or "utf-8"
    stream.write(text.encode(encoding, "replace").decode(encoding))
    stream.flush()


if __name__ == "__main__":
    main()
