"""``python -m judge``: ``compare BASE [HEAD]`` measures and judges, ``verdict FOLDER`` judges what was measured.

``campaign`` tries out what the verdicts are worth, on commits that are the same and on slow-downs that it plants.

Exit codes: 0 no regression, 1 regression, 2 no verdict (too noisy), 3 broken environment, 4 improvement. A wrong
command line is 3 as well, so that no mistake reads as a verdict.
"""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from .campaign import Campaign, read_outcomes, run, table
from .comparison import read_comparison
from .driver import PROBE, Plan, gate_patterns, measure
from .evidence import find_commit, report_diff
from .results import BrokenResultsError
from .summary import describe, describe_broken
from .verdict import Change, Exit, Judgement, Rules, judge

__all__ = ["main"]


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(Exit.BROKEN, f"{self.prog}: {message}\n")


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    options = _parser().parse_args(arguments)
    rules = Rules(factor=options.factor)
    if options.command == "campaign":
        return _campaign(options, rules)
    try:
        if options.command == "compare":
            measure(_plan(options), rules, _tell)
        comparison = read_comparison(options.folder)
        judgement = judge(comparison, rules)
    except (BrokenResultsError, ValueError, OSError) as error:
        text, code = describe_broken(error), Exit.BROKEN
    else:
        text, code = describe(comparison, judgement), judgement.exit
        if code is Exit.REGRESSION and options.command == "compare":
            text += _evidence(_plan(options), judgement, options)
    sys.stdout.write(text)
    if options.summary:
        with options.summary.open("a", encoding="utf-8") as file:
            file.write(text)
    return int(code)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="judge", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    compare = commands.add_parser("compare", help="measure two commits in interleaved rounds, then judge them")
    compare.add_argument("base", help="the commit to compare with")
    compare.add_argument("head", nargs="?", default="HEAD", help="the commit to judge")
    compare.add_argument("--bench", action="append", metavar="PATTERN", help="instead of the gate's benchmarks")
    compare.add_argument("--rounds", type=int, default=9, help="first rounds (default 9)")
    compare.add_argument("--confirm", type=int, default=16, help="more rounds for suspects (default 16; 0: none)")
    compare.add_argument("--settle", action="store_true", help="stop where counters show a regression already")
    compare.add_argument("--null", action="store_true", help="measure the base twice, to learn the noise")
    compare.add_argument("--pure", action="store_true", help="compare interpreted instead of compiled")
    compare.add_argument("--no-diff", dest="diff", action="store_false", help="no recordings of a regression")
    compare.add_argument("--bisect", action="store_true", help="search for the commit of the largest regression")
    compare.add_argument("-a", "--attribute", action="append", default=[], help="passed to asv, as NAME=VALUE")
    compare.add_argument("--config", type=Path, default=Path("asv.conf.json"), help="asv's configuration")
    compare.add_argument("--probe", default=PROBE, help="Python code that prints how the project was built")
    compare.add_argument("--folder", type=Path, default=Path(".asv/compare/rounds"), help="where the rounds go")
    verdict = commands.add_parser("verdict", help="judge a folder of rounds")
    verdict.add_argument("folder", type=Path)
    campaign = commands.add_parser("campaign", help="validate the judge: no change, and planted slow-downs")
    campaign.add_argument("base", nargs="?", default="HEAD", help="the commit to plant slow-downs on")
    campaign.add_argument("--runs", type=int, default=10, help="comparisons of each kind (default 10)")
    campaign.add_argument("--only", action="append", default=[], metavar="NAME", help="a plant, or: same")
    campaign.add_argument("--whole-gate", action="store_true", help="compare plants, too, by all of the gate")
    campaign.add_argument("--config", type=Path, default=Path("asv.conf.json"), help="asv's configuration")
    campaign.add_argument("--folder", type=Path, default=Path(".asv/campaign"), help="clone, environments, outcomes")
    campaign.add_argument("--table", action="store_true", help="only print the table of what was done so far")
    for command in (compare, verdict, campaign):
        command.add_argument("--factor", type=float, default=Rules().factor, help="the least ratio that counts")
        command.add_argument("--summary", type=Path, help="append the verdict to this file, too")
    return parser


def _campaign(options: argparse.Namespace, rules: Rules) -> int:
    """Code 0 once all is done, whatever was found: the table says it."""
    config, folder = options.config.resolve(), options.folder.resolve()
    chosen = Campaign(config, folder, options.base, options.runs, options.only, options.whole_gate)
    try:
        outcomes = read_outcomes(folder) if options.table else run(chosen, rules, _tell)
    except (BrokenResultsError, ValueError, OSError) as error:
        sys.stdout.write(describe_broken(error))
        return int(Exit.BROKEN)
    sys.stdout.write(table(outcomes))
    return 0


def _evidence(plan: Plan, judgement: Judgement, options: argparse.Namespace) -> str:
    """What goes with a regression; it must not change a verdict that stands."""
    worst = judgement.of(Change.REGRESSION)[0].row
    finders: list[tuple[str, Callable[[], str]]] = []
    if options.diff:
        finders.append(("diff of recordings", lambda: report_diff(plan)))
    if options.bisect:
        finders.append(("search for the commit", lambda: find_commit(plan, worst)))
    text = ""
    for name, find in finders:
        try:
            found = find()
        except (BrokenResultsError, OSError) as error:
            found = f"The {name} failed: {error}"
        text += f"\n{found.strip()}\n" if found else ""
    return text


def _plan(options: argparse.Namespace) -> Plan:
    config = options.config.resolve()
    benchmarks = config.parent / "benchmarks"
    return Plan(
        config=config,
        folder=options.folder.resolve(),
        base=options.base,
        head=options.head,
        patterns=options.bench or gate_patterns(benchmarks, "times"),
        counters=[] if options.bench else gate_patterns(benchmarks, "counters"),
        rounds=options.rounds,
        confirming=options.confirm,
        settle=options.settle,
        null=options.null,
        pure=options.pure,
        probe=options.probe,
        attributes=options.attribute,
    )


def _tell(message: str) -> None:
    sys.stderr.write(f"judge: {message}\n")
    sys.stderr.flush()


def _run() -> int:
    try:
        return main()
    except Exception:  # noqa: BLE001  Python would exit with 1, which means "regression" here
        traceback.print_exc()
        return int(Exit.BROKEN)


if __name__ == "__main__":
    sys.exit(_run())
