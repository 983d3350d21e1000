"""The demo: a batch of agents that repair Python programs, on Ray actors. `make demo` runs it.

It makes the tasks; all else is four commands that you could type yourself, and it prints them:

    harness batch tasks.jsonl --run-dir DIR/expert --agent agent.yaml --model expert …
    harness batch tasks.jsonl --run-dir DIR/long --agent long.yaml --model expert-long --limit 8 …
    harness batch tasks.jsonl --run-dir DIR/delegated --agent delegated.yaml --limit 20 …
    harness batch tasks.jsonl --run-dir DIR/embedded --agent embedded.yaml --limit 20 …

The first has an expert that knows the fixes in place of a model: it shows that all the rest works.
In the second it looks a hundred times at everything, in a window of 8,000 tokens. In the third it
knows no fix, and has another agent find it out. The last has a model of 135M parameters that runs
inside the program. With a provider's model,
`--model gpt-4.1-mini`, it is one command instead.

Stop it by Ctrl-C or kill it: the same command goes on where it was.
"""

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from examples.repair import delegated, long_look
from examples.repair.archive import build_delegated
from examples.repair.build import build
from examples.repair.server import expert_server
from examples.repair.table import Row, draw_table, look_further, read_row
from harness_actors.cli.app import app
from harness_actors.models.prices import price_of

HERE = Path(__file__).parent
FOLDER = Path("runs", "demo")
MARK = ".harness-demo"
LONG_TASKS = 8
DELEGATED_TASKS = 20
EMBEDDED_TASKS = 20
BUDGET_USD = "2"
OK, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

EXPERT = """
[bold]{tasks} tasks with an expert that knows the fixes[/]
A script stands in for the model, behind a server on this machine. All else is real: its calls go
through the harness and its tools on Ray actors, and each repair is tested. It must reach 100 %."""
LONG = """
[bold]{tasks} tasks with the expert, after a hundred looks in a window of 8,000 tokens[/]
The conversation is summarized beside each run, and must stay within the window. It must reach
100 %."""
DELEGATED = """
[bold]{tasks} tasks with an expert that knows no fix, and delegates[/]
How each function was before its fault is somewhere in an archive. A sub-agent, `explore`, finds it
with its tools, and the expert writes what that answers. It must reach 100 %."""
EMBEDDED = """
[bold]{tasks} tasks with the embedded model[/]
SmolLM2-135M runs on this machine, without a key. A model of this size repairs next to nothing;
for each task it has 4 calls and 15 seconds. Its score is reported and decides nothing."""
PROVIDER = """
[bold]{tasks} tasks with {model}[/]
{bound}"""
PRICED = f"This costs money: it stops at {BUDGET_USD} USD, or at another --budget USD."
UNPRICED = """\
This may cost money, and as no price of this model is known, no budget stops it: a task has 30 model
calls at most, and --token-limit N bounds its tokens."""


class DemoEndsError(Exception):
    """The demo cannot go on; `status` is its exit status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Demo:
    """One demo in one folder.

    Args:
        folder: Where tasks and run directories go.
        limit: Only the first so many tasks; None for all.
        fresh: Begin anew instead of going on.
        as_json: JSON on stdout; all else goes to stderr.
        flags: Further flags of `harness batch`.
    """

    def __init__(
        self, folder: Path, *, limit: int | None, fresh: bool, as_json: bool, flags: Sequence[str]
    ) -> None:
        self._folder = folder
        self._limit = limit
        self._fresh = fresh
        self._as_json = as_json
        self._flags = flags
        self._rows: list[Row] = []
        self._console = Console(stderr=as_json, highlight=False, soft_wrap=True)

    def run(self) -> int:
        """The expert, thrice, then the embedded model; returns 0 if the expert repaired all."""
        tasks = self._make_tasks()
        self._say(EXPERT.format(tasks=tasks))
        with expert_server(self._tasks / "fixes.json", self._folder / "expert.port") as base_url:
            model = ("--model", "expert", "--model-base-url", base_url)
            expert = self._batch("expert", tasks, "agent.yaml", *model, "-n", "20")
            some = min(tasks, LONG_TASKS)
            self._say(LONG.format(tasks=some))
            model = ("--model", long_look.MODEL, "--model-base-url", base_url)
            long = self._batch("long", some, "long.yaml", *model, "-n", "8")
            asked = min(tasks, self._make_delegated())
            self._say(DELEGATED.format(tasks=asked))
            model = ("--model", delegated.MODEL, "--model-base-url", base_url)
            flags = (*model, "-n", "20")
            exploring = self._batch(
                "delegated", asked, "delegated.yaml", *flags, of=self._delegated_tasks
            )

        few = min(tasks, EMBEDDED_TASKS)
        self._say(EMBEDDED.format(tasks=few))
        # It answers two requests at once: more runs would spend their time in its queue.
        embedded = self._batch("embedded", few, "embedded.yaml", "-n", "2", must_run=False)
        if not embedded.done:
            self._say("The demo goes on without it.")

        self._report()
        passed = (expert.passed, long.passed, exploring.passed)
        return OK if passed == (tasks, some, asked) else FAILED

    def run_provider(self, model: str) -> int:
        """A provider's model; returns 0 if each run came to an end of its own, at any score."""
        if not (os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")):
            self._say("error: set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint of your own")
            return BAD_INPUT
        tasks = self._make_tasks()
        priced = price_of(model) is not None
        bound = PRICED if priced else UNPRICED
        self._say(PROVIDER.format(tasks=tasks, model=model, bound=bound))
        budget = ("--budget", BUDGET_USD) if priced else ()
        flags = ("--model", model, *budget, "-n", "20")
        row = self._batch(f"model-{model.replace('/', '-')}", tasks, "agent.yaml", *flags)
        self._report()
        return OK if row.done == tasks and not row.failed else FAILED

    @property
    def _tasks(self) -> Path:
        return self._folder / "tasks"

    @property
    def _delegated_tasks(self) -> Path:
        return self._folder / "tasks-delegated"

    def _make_delegated(self) -> int:
        """Make the tasks of the part *delegated* unless they are there; returns how many."""
        if not self._delegated_tasks.exists():
            beside = self._folder / "tasks-delegated.new"
            shutil.rmtree(beside, ignore_errors=True)
            build_delegated(self._tasks, beside, DELEGATED_TASKS)
            beside.rename(self._delegated_tasks)
        return len((self._delegated_tasks / "tasks.jsonl").read_text("utf-8").splitlines())

    def _make_tasks(self) -> int:
        """Make the tasks unless they are there; returns how many are to be done."""
        self._claim()
        if self._fresh:
            # All parts at once: one that is not reached must not show what was there before.
            for journal in list(self._folder.glob("*/runs.db")):
                shutil.rmtree(journal.parent)
        if self._fresh or not self._tasks.exists():
            self._say("Making tasks derived from HumanEval: its solutions, one fault in each …")
            # Beside, and put in place when it is whole.
            beside = self._folder / "tasks.new"
            build(beside)
            shutil.rmtree(self._tasks, ignore_errors=True)
            shutil.rmtree(self._delegated_tasks, ignore_errors=True)
            beside.rename(self._tasks)
        lines = (self._tasks / "tasks.jsonl").read_text(encoding="utf-8").splitlines()
        return len(lines[: self._limit])

    def _claim(self) -> None:
        """Mark the folder as the demo's: what it makes anew, it removes before."""
        mark = self._folder / MARK
        if not mark.exists():
            if self._folder.exists() and any(self._folder.iterdir()):
                print(
                    f"error: {self._folder} is not empty, and was not made by the demo: "
                    "take another --dir",
                    file=sys.stderr,
                )
                raise DemoEndsError(BAD_INPUT)
            self._folder.mkdir(parents=True, exist_ok=True)
            mark.touch()

    def _batch(
        self,
        part: str,
        tasks: int,
        agent: str,
        *flags: str,
        of: Path | None = None,
        must_run: bool = True,
    ) -> Row:
        """`harness batch` for a part, unless an earlier command has done it all.

        Args:
            part: Its name.
            tasks: How many.
            agent: The agent's file.
            flags: Further flags.
            of: The folder of its tasks, where it has tasks of its own.
            must_run: The demo ends where it does not run.
        """
        run_dir, folder = self._folder / part, of or self._tasks
        row = read_row(part, folder, run_dir, tasks)
        if row.done == tasks:
            self._say(
                "All done by an earlier command. To begin anew: --fresh, or make demo FRESH=1"
            )
        else:
            status = self._harness(
                *("batch", str(folder / "tasks.jsonl"), "--run-dir", str(run_dir)),
                *("--agent", os.path.relpath(HERE / agent), "--limit", str(tasks)),
                *(*flags, *self._flags, *(["--json"] if self._as_json else [])),
            )
            row = read_row(part, folder, run_dir, tasks)
            # 1 says that not every check passed: the score is for the table.
            if status == INTERRUPTED or (must_run and not row.done):
                raise DemoEndsError(status)
        self._rows.append(row)
        return row

    def _harness(self, *command: str) -> int:
        """The command line, in this process; returns its exit status."""
        self._say(f"[bold cyan]$ harness {escape(shlex.join(command))}[/]")
        try:
            app(command, prog_name="harness")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else FAILED
        return OK

    def _report(self) -> None:
        """The table, and where to look further."""
        if self._as_json:
            print(json.dumps({"demo": [asdict(row) for row in self._rows]}), flush=True)
            return
        self._console.print(draw_table(self._rows))
        for line in look_further(self._rows, self._tasks):
            self._say(escape(line))

    def _say(self, text: str) -> None:
        self._console.print(text)


def main(given: Sequence[str] | None = None) -> int:
    """Run the demo; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.repair.demo",
        allow_abbrev=False,
        description="A batch of agents that repair Python programs, on Ray actors.",
        epilog="Any other flag goes to `harness batch`, such as -n 50 or --runtime local.",
    )
    parser.add_argument("--model", help="a provider's model, in place of expert and embedded one")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N tasks")
    parser.add_argument("--dir", type=Path, default=FOLDER, help="default: %(default)s")
    parser.add_argument("--fresh", action="store_true", help="begin anew; earlier results go")
    parser.add_argument("--json", action="store_true", help="JSON on stdout, for scripts")
    chosen, flags = parser.parse_known_args(given)
    if chosen.limit is not None and chosen.limit < 1:
        parser.error("--limit: must be at least 1")
    demo = Demo(
        chosen.dir, limit=chosen.limit, fresh=chosen.fresh, as_json=chosen.json, flags=flags
    )
    try:
        return demo.run_provider(chosen.model) if chosen.model else demo.run()
    except KeyboardInterrupt:
        status = INTERRUPTED
    except DemoEndsError as end:
        status = end.status
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return FAILED
    if status == INTERRUPTED:
        again = " without --fresh (or FRESH=1)" if chosen.fresh else ""
        print(f"Stopped. The same command{again} goes on where it was.", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
