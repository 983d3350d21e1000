"""Bugs of fallback models."""

from tests.planted_bugs.bug import Bug

HTTP = "tests/test_fallback.py"
CHAIN = "tests/models/test_chain.py"

BUGS = (
    Bug(
        name="every failure is a reason to ask the next model",
        path="harness_actors/models/chain.py",
        before="                goes_on = at != order[-1] and _CAUSE_OF[why] in self.fallback.on\n",
        after="                goes_on = at != order[-1]\n",
        promise="refusals and overflow fall back where they are asked for, and nowhere else",
        tests=(f"{CHAIN}::test_the_next_is_asked_for_what_a_fallback_names_and_for_nothing_else",),
    ),
    Bug(
        name="those before the first that is asked are never asked again",
        path="harness_actors/models/chain.py",
        before="        order = [(first + step) % count for step in range(count)]\n",
        after="        order = list(range(first, count))\n",
        promise="no run fails of which a model would answer",
        tests=(f"{HTTP}::test_the_first_is_asked_again_where_the_second_breaks_in_the_same_turn",),
    ),
    Bug(
        name="a run that is to stop asks the next model",
        path="harness_actors/models/chain.py",
        before="""\
                with waiting():
                    pass
""",
        after="",
        promise="from Ctrl-C on no further model call is made",
        tests=(f"{HTTP}::test_after_a_pause_is_asked_for_no_further_model_is_asked",),
    ),
    Bug(
        name="an overflow of the last model hides that the others were only busy",
        path="harness_actors/models/chain.py",
        before="""\
        if len(errors) == 1 or all(isinstance(error, ContextOverflowError) for error in errors):
""",
        after="        if len(errors) == 1 or isinstance(errors[-1], ContextOverflowError):\n",
        promise="a run ends by its context only if it is too long for all of its models",
        tests=(f"{HTTP}::test_a_busy_first_and_a_small_second_are_no_overflow_of_the_run",),
    ),
    Bug(
        name="a dead provider is waited for in every round",
        path="harness_actors/turn/fallback.py",
        before="        answer, self._first = await self._chain.walk(request, said, self._first)\n",
        after="        answer, _ = await self._chain.walk(request, said, self._first)\n",
        promise="a turn stays with the model that has answered",
        tests=(f"{HTTP}::test_the_next_model_answers_where_the_first_has_failed_for_good[local]",),
    ),
    Bug(
        name="a refused answer is free of charge",
        path="harness_actors/turn/meter.py",
        before="        self._spend(spent)\n        if usage.input_tokens:\n",
        after="        if usage.input_tokens:\n",
        promise="a run's cost is what its providers charge for, failed tries included",
        tests=(f"{HTTP}::test_an_answer_that_a_filter_has_stopped_is_paid_for[True]",),
    ),
    Bug(
        name="a rerun takes a refused answer for a part of the conversation",
        path="harness_actors/replay/tape.py",
        before="            input_tokens=used.input_tokens - spent.input_tokens,\n",
        after="            input_tokens=used.input_tokens,\n",
        promise="a replay of a run with fallbacks is the same to the byte",
        tests=(f"{HTTP}::test_an_answer_that_a_filter_has_stopped_is_paid_for[True]",),
    ),
    Bug(
        name="only the key of the first model is asked for",
        path="harness_actors/agents.py",
        before="    yield from models_of(agent.model)\n",
        after="    yield from models_of(agent.model)[:1]\n",
        promise="a run with a fallback has all keys when it begins",
        tests=(f"{CHAIN}::test_keys_of_all_models_are_asked_for_when_a_run_is_submitted",),
    ),
    Bug(
        name="a bound on cost is taken if the price of one model is known",
        path="harness_actors/models/prices.py",
        before="""\
        if not getattr(one, "costs_known", False):
            return one
    return None
""",
        after="""\
        if getattr(one, "costs_known", False):
            return None
    return model
""",
        promise="a bound on cost bounds what every model of a chain costs",
        tests=(f"{CHAIN}::test_a_bound_on_cost_is_refused_where_one_model_has_no_price",),
    ),
    Bug(
        name="an answer that a content filter has stopped is taken for a whole one",
        path="harness_actors/turn/acceptance.py",
        before="    if response.finish_reason == CONTENT_FILTER:\n",
        after="    if not response.text and response.finish_reason == CONTENT_FILTER:\n",
        promise="what a content filter has stopped is never accepted as final",
        tests=(
            "tests/turn/test_bounds.py::test_an_answer_that_a_content_filter_has_stopped_is_no_answer",
        ),
    ),
    Bug(
        name="what the next model says is told without passing the filters",
        path="harness_actors/turn/answers.py",
        before="    filters: Any = chain.text_filters if chain else list\n",
        after="    filters: Any = list\n",
        promise="a secret is in nothing that is told, whichever model answers",
        tests=(
            "tests/test_fallback.py::test_a_secret_is_in_nothing_that_is_told_of_the_next_model",
        ),
    ),
)
