"""What each run of the workload is to do: known beforehand, so that nothing can go missing."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from harness_actors.testing import Reply

SORTS = ("look", "look", "put", "put", "note", "note", "work")
"""Read-only; idempotent; neither; and neither, in a process of its own."""
TEXT_EVERY = 6
"""Each so-manieth answer calls nothing, so the turn ends and all executors come round again."""
ASKS_EVERY = 4
"""Each so-manieth answer of a run that asks has a question to its user."""
ASK = "ask_user"
PAYS_EVERY = 3
"""Each so-manieth answer of a run that pays has a call that somebody must approve of."""
PAY = "pay"
WAVES = (3, 8)
"""How many calls that only read stand together in the answers of a run that reads in waves."""
DELEGATES_EVERY = 3
"""Each so-manieth answer of a run that delegates has calls that are runs of their own."""
READS_ONLY = "explore"
WAITED_FOR = (READS_ONLY, "run_task")
BESIDE = "document"
"""To whom it delegates in the background, at the answer after."""
WAIT = "agent_wait"
AGENTS = (*WAITED_FOR, BESIDE)
"""To whom it delegates; each is also the name of the actors that serve it."""
CHILDREN = (1, 3)
"""How many of these calls stand together."""
CHILD_ROUNDS = (2, 4)
CHILD_ASKS = 0.03
"""Share of the children that may ask who ask their user, and of those that need approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """A run whose model's every answer follows from its place in the conversation.

    Attributes:
        name: Id of its task.
        seed: What its answers depend on.
        rounds: Answers before the one that completes it; the fewest where it is patient.
        log: Where its tools log.
        poison: How its tools crash their process from the second answer on; empty for a
            healthy run.
        seconds: The longest that a call takes.
        asks: It asks its user now and then.
        pays: It makes calls now and then that must be approved of.
        waves: Most of its calls are read-only ones that run at once.
        patient: It goes on until it is told that all has happened that is to happen.
        bulk: Bytes that each of its calls returns besides.
        delegates: It has children now and then, and some of them in the background.
        agent: Of a child, to whom it was delegated; empty of any other run.
        answered: There are people who answer, also the children of a run that delegates.
    """

    name: str
    seed: int
    rounds: int
    log: str
    poison: str = ""
    seconds: float = 0.2
    patient: bool = False
    bulk: int = 0
    asks: bool = False
    pays: bool = False
    waves: bool = False
    delegates: bool = False
    agent: str = ""
    answered: bool = False

    @classmethod
    def of_request(cls, messages: Sequence[dict[str, Any]]) -> "RunPlan":
        """The plan that a conversation follows: its task is the first user message."""
        return cls.of_task(next(m["content"] for m in messages if m["role"] == "user"))

    @classmethod
    def of_task(cls, text: str) -> "RunPlan":
        return cls(**json.loads(text))

    @property
    def task(self) -> str:
        return json.dumps(asdict(self))

    def as_task(self) -> dict[str, str]:
        return {"id": self.name, "task": self.task}

    def answer(self, spoken: int, *, released: bool = True) -> Reply:
        """What the model says when it has spoken so often before.

        Args:
            spoken: How often.
            released: Patient runs may end.
        """
        if self.is_over(spoken, released=released):
            return self.last(spoken)
        return self.step(spoken)

    def is_over(self, spoken: int, *, released: bool) -> bool:
        """Whether the next answer is the last."""
        return spoken >= self.rounds and (released or not self.patient)

    def last(self, spoken: int) -> Reply:
        said = f"{self.name} after {spoken} answers"
        if self.agent in WAITED_FOR:
            # Such a child is done when it answers without a call.
            return Reply.text(said)
        calls: list[tuple[str, dict[str, Any]]] = [("work_complete", {"summary": said})]
        if self.delegates:
            # Whoever is still at work would end with it.
            calls.insert(0, (WAIT, {}))
        return Reply.calls(calls, ids=[f"s{spoken}_{place}" for place in range(len(calls))])

    def step(self, spoken: int) -> Reply:
        """An answer that is not the last."""
        if self.poison and spoken:
            return Reply.call("crash", {"log": self.log, "run": self.name, "how": self.poison})
        if self.thinks_at(spoken):
            return Reply.text(f"I think about step {spoken}.")
        random = Random(f"{self.seed}:{spoken}")
        calls: list[tuple[str, dict[str, Any]]] = [
            (
                random.choice(("look",) if self.agent == READS_ONLY else SORTS),
                {
                    "log": self.log,
                    "run": self.name,
                    "seconds": round(random.uniform(0.01, self.seconds), 3),
                    "bulk": self.bulk,
                    "step": spoken,
                },
            )
            for _ in range(random.randint(1, 3))
        ]
        if self.waves:
            facts = calls[0][1]
            calls[:0] = [("look", facts)] * random.randint(*WAVES)
        if self.pays_at(spoken):
            what = f"step {spoken} of {self.name}"
            paid = {"log": self.log, "run": self.name, "seconds": self.seconds / 2, "what": what}
            calls.insert(random.randint(0, len(calls)), (PAY, paid))
        if self.asks_at(spoken):
            place = random.randint(0, len(calls))
            calls.insert(place, (ASK, {"question": f"May {self.name} go on at step {spoken}?"}))
        if self.delegates_at(spoken) or self.sends_out_at(spoken):
            place = random.randint(0, len(calls))
            calls[place:place] = [
                (child.agent, {"prompt": child.task}) for child in self.children(spoken)
            ]
        if self.delegates_at(spoken):
            calls.insert(random.randint(0, len(calls)), (WAIT, {}))
        # By the step, and not by how much the model is shown: no two calls have one id.
        return Reply.calls(calls, ids=[f"s{spoken}_{place}" for place in range(len(calls))])

    def children(self, spoken: int) -> "list[RunPlan]":
        """What the runs are to do to which the answer at this step delegates."""
        random = Random(f"children:{self.seed}:{spoken}")
        agents = (BESIDE,) if self.sends_out_at(spoken) else WAITED_FOR
        return [
            replace(
                self,
                name=f"{self.name}.{spoken}.{number}",
                seed=random.randrange(1_000_000),
                rounds=random.randint(*CHILD_ROUNDS),
                patient=False,
                delegates=False,
                agent=agent,
                # Who only reads has no tool for either.
                asks=self.answered and agent != READS_ONLY and random.random() < CHILD_ASKS,
                pays=self.answered and agent != READS_ONLY and random.random() < CHILD_ASKS,
            )
            for number in range(random.randint(*CHILDREN))
            for agent in (random.choice(agents),)
        ]

    def thinks_at(self, spoken: int) -> bool:
        """Whether the answer at this step, which is not the last, calls nothing."""
        text = spoken % TEXT_EVERY == self.seed % TEXT_EVERY
        return text and spoken > 0 and not self.agent

    def asks_at(self, spoken: int) -> bool:
        """Whether the answer at this step, which is not the last, has a question."""
        text = spoken % TEXT_EVERY == self.seed % TEXT_EVERY
        return self.asks and not text and spoken > 0 and spoken % ASKS_EVERY == 1

    def pays_at(self, spoken: int) -> bool:
        """Whether the answer at this step, which is not the last, has a call to be approved of."""
        text = spoken % TEXT_EVERY == self.seed % TEXT_EVERY
        return self.pays and not text and spoken > 0 and spoken % PAYS_EVERY == 1

    def delegates_at(self, spoken: int) -> bool:
        """Whether the answer at this step, which is not the last, has calls that delegate, and
        waits for all that were sent out in the background."""
        return self.delegates and not self.thinks_at(spoken) and spoken % DELEGATES_EVERY == 1

    def sends_out_at(self, spoken: int) -> bool:
        """Whether the answer at this step, which is not the last, sends out in the background."""
        return self.delegates and not self.thinks_at(spoken) and spoken % DELEGATES_EVERY == 2

    def waits_at(self, spoken: int) -> bool:
        """Whether the run waits for people or for its children after the answer at this step."""
        return self.asks_at(spoken) or self.pays_at(spoken) or self.delegates_at(spoken)

    def calls(self, steps: int) -> list[tuple[tuple[str, str], ...]]:
        """The calls of each answer, names with arguments, of a run that took so many steps."""
        replies = [self.step(spoken) for spoken in range(steps)]
        return [reply.asked for reply in (*replies, self.last(steps))]


def make_plans(
    runs: int,
    *,
    seed: int,
    rounds: tuple[int, int],
    log: str,
    poison: str = "",
    patient: int = 0,
    asking: int = 0,
    paying: int = 0,
    waving: int = 0,
    delegating: int = 0,
    seconds: float = 0.2,
    bulk: int = 0,
) -> list[RunPlan]:
    """Plans of a batch.

    Args:
        runs: How many.
        seed: What they depend on.
        rounds: The fewest and the most answers before the last of each.
        log: Where their tools log.
        poison: How one of them crashes its process; empty for none that does.
        patient: How many of them go on until they are told to end.
        asking: How many of them ask their user.
        paying: How many others make calls that must be approved of.
        waving: How many others read in waves.
        delegating: How many others delegate.
        seconds: The longest that a call takes.
        bulk: Bytes that each call returns besides.
    """
    random = Random(f"plans:{seed}")
    names = random.sample(range(runs), runs)
    sick = names.pop() if poison else -1
    ask, pay, wave = (
        names[at :: max(1, len(names) // count)][:count] if count else []
        for at, count in enumerate((asking, paying, waving))
    )
    busy = {*ask, *pay, *wave}
    delegate = [name for name in names if name not in busy][:delegating]
    return [
        RunPlan(
            name=f"t{number}",
            seed=random.randrange(1_000_000),
            rounds=random.randint(*rounds),
            log=log,
            poison=poison if number == sick else "",
            patient=number in names[:patient],
            asks=number in ask,
            pays=number in pay,
            waves=number in wave,
            delegates=number in delegate,
            answered=asking > 0,
            seconds=seconds,
            bulk=bulk,
        )
        for number in range(runs)
    ]
