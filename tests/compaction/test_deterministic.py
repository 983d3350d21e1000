"""Rules alone find what was decided, marked, left open, and what came of calls."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_actors.compaction import DeterministicSummarizer
from harness_actors.compaction.deterministic import MOST_FACTS, decisions_in
from harness_actors.compaction.wanted import MOST_WANTED
from harness_actors.conversation import Conversation
from harness_actors.messages import Message, ToolCall
from harness_actors.plan import Decision, OpenItem, Reference, Shown, Summary, ToolPolicy
from harness_actors.plan.view import with_calls
from harness_actors.ports import SummaryRequest
from harness_actors.testing.fidelity import narration
from tests.compaction.logs import logs

SHOWN = Shown({"web_search": ToolPolicy(durability="non_replayable")})


async def summarized(*log: Message, facts: tuple[str, ...] = (), keep: str = "") -> Summary:
    messages = tuple(with_calls(log, 0, len(log)))
    request = SummaryRequest(messages=messages, shown=SHOWN, facts=facts, keep=keep)
    return (await DeterministicSummarizer().summarize(request)).summary


async def answered(text: str) -> Summary:
    return await summarized(Message.assistant(text))


@pytest.mark.parametrize(
    ("text", "what", "why"),
    [
        (
            "We'll use Postgres instead of MySQL because it has JSON indexes.",
            "We'll use Postgres instead of MySQL",
            "it has JSON indexes",
        ),
        ("Let's go with gRPC; REST would double the payload.", "Let's go with gRPC",
         "REST would double the payload"),
        ("As the file is append-only, I will skip locking.", "I will skip locking",
         "the file is append-only"),
        ("I'm dropping the Windows build — nobody uses it.", "I'm dropping the Windows build",
         "nobody uses it"),
        ("Paging will be cursor based to avoid skipped rows.", "Paging will be cursor based",
         "skipped rows"),
        ("Redis it is. Reason: it is there already.", "Redis it is",
         "Reason: it is there already"),
        ("**Decision:** SQLite for the cache.", "Decision: SQLite for the cache", ""),
    ],
)  # fmt: skip
async def test_a_decision_has_its_reason(text: str, what: str, why: str) -> None:
    assert (await answered(text)).decisions == (Decision(what=what, why=why, at=0),)


DECIDED = """
Decision: SQLite for the local cache, Postgres in production.
I've decided to keep the parser hand-written because the grammar is tiny.
Let's go with gRPC; REST would double the payload size.
After weighing both, I chose asyncio over threads since most calls wait on the network.
We'll use UUIDv7 keys instead of serial ids so that shards never collide.
Redis it is.
Given the deadline, the refactoring will have to wait until after the release.
I'm going to stick with the existing logger.
The simplest option here is to vendor the library, so that's what I'll do.
We won't support Python 3.8 anymore as it reached end of life.
I am leaning towards Kafka for the event bus, so I'll set up the topics accordingly.
It makes more sense to validate at the boundary than in every handler.
From now on, all timestamps are stored in UTC.
The plan is to ship the importer first and the UI second.
We're better off writing our own retry loop.
Rather than patching the old module, I'll rewrite it from scratch.
Best to leave the public API untouched.
No ORM: raw SQL is easier to reason about for three tables.
Pagination will be cursor based to avoid skipping rows under concurrent writes.
I ruled out MongoDB because we need multi-document transactions.
Dropping the Windows build in order to cut CI time in half.
Since the dataset fits in memory, a plain dict beats a database here.
For authentication we opt for short-lived JWTs with refresh tokens.
Let's not introduce a message broker yet.
The team settled on trunk-based development.
I'd rather keep one binary than maintain two.
Okay, switching to pnpm, npm's hoisting breaks our monorepo.
Use exponential backoff with jitter for retries, capped at 30 seconds.
Going forward the CLI reads its settings from TOML.
We are not going to cache negative lookups.
Both work, but Terraform wins on ecosystem, so Terraform.
My recommendation is a monolith for now.
Instead of polling, the worker will subscribe to the queue.
The API stays synchronous; async would complicate the SDK.
To keep latency low we put the cache in front of the database.
I think we should pin numpy below 2.0, because the C extension does not build with it.
Tabs versus spaces: spaces, four of them.
As the file is append-only, I will skip locking.
Let's make the default timeout 10 seconds.
I'm rejecting the plugin architecture; nobody asked for it.
The way to go is a two-phase migration.
We can safely drop the legacy column.
We'll handle errors at the top level only.
Feature flags live in the database, not in the environment.
There's no need for Kubernetes here, a single VM with systemd is enough.
I will name the package `quarry` — the short name was free on PyPI.
Considering the licence, LGPL is out and we go for the MIT alternative.
It's safer to run the migration in two steps.
Everything considered, sticking to Flask is the right call.
We agreed on a maximum of five retries.
I'll treat missing values as zero, matching what the spec says.
Preferring composition over inheritance for the handlers.
So the answer is to denormalize the orders table.
We no longer need the feature toggle, so it goes.
Final call: ship without dark mode.
OK, I'll implement this with a trie, since prefix lookups dominate.
We'll defer the search feature to the next milestone.
The endpoint will return 404 rather than 403, so as not to leak which ids exist.
I'm keeping the old endpoint alive for six months so clients can migrate.
Avoid global state: pass the config explicitly.
I think the cleanest solution is a single writer process.
Our choice for the queue is NATS JetStream.
Alright, Vue then.
I'll write the migration by hand; autogenerate mangles the enum types.
Having compared the three, option B is what we want.
This pushes us to an event-sourced design.
Eventually I landed on a ring buffer, as it never allocates.
Nothing beats plain HTTP for this, so no websockets.
I've opted not to add a config flag for it.
The database schema will use soft deletes.
We'd better not touch the billing code in this release.
Because the vendor throttles us at 10 rps, requests go through a token bucket.
Compression is off by default: most payloads are already images.
It was decided that the nightly job runs at 02:00 UTC.
I'd go for the boring solution: cron and a shell script.
Linting moves to ruff, since it replaces four tools at once.
Enough evidence — we abandon the sharding idea.
The retry budget is fixed at three attempts so that the caller sees a failure within a second.
To sum up: one repository, two packages.
My vote goes to the REST interface.
For consistency with the rest of the code, I'll return a Result instead of throwing.
We shall treat the spec as the source of truth.
Conclusion: no caching layer.
Instead of a new table, I'm adding a JSON column.
Postgres full-text search is sufficient for our scale, so Elasticsearch is unnecessary.
I am going to do this without a framework.
Let us limit uploads to 20 MB, otherwise the proxy times out.
We're moving forward with the second proposal.
The better trade-off is eventual consistency.
I'm inclined to use a monorepo given that the services share types.
Let's hold off on the rename until the release is out.
Tests will run against a real database, not mocks.
Scrap that. We do it in one pass.
Hence, the lock is taken per key and not globally.
We should err on the side of strictness here.
Going with the LRU cache over the TTL one because entries never expire.
I'm making the field optional to stay backward compatible.
Docker Compose, not Kubernetes: there is one host.
The name stays `worker`.
I'd argue for leaving the timeouts where they are.
Our policy will be fail-fast.
After the benchmark there is no question: msgpack.
We end up with a two-level index.
So be it: we pay the extra round trip.
As agreed, the admin pages stay server-rendered.
I will not add retries here, the client already has them.
Time zones are handled in the frontend only.
Best option: batch the writes every 500 ms.
We've chosen Rust for the hot path.
Whatever the cost, secrets never go into the environment.
I'd say we do the validation client-side as well.
Webpack out, Vite in.
The config format question is closed: YAML.
We'll represent money as integer cents.
Seems cleanest to inject the clock.
I'm not going to mock the network in these tests; a local server is more honest.
Let me make this a separate package, as it has no dependency on the rest.
So we're doing blue-green deployments.
No point in optimising this path, it runs once a day.
What we'll do: write to both tables for a week, then cut over.
I went back and forth, but ultimately chose the visitor pattern.
Events are going to be immutable.
Threads it'll be.
I will go with `httpx` since it supports both sync and async.
Easiest fix: bump the memory limit.
The schema change ships in its own PR.
My choice: keep the fork and rebase monthly.
Neither library is maintained, therefore I'll write a small parser myself.
Staying on version 3 for the moment, as 4 drops our plugin.
We can live without transactions here.
Considering team familiarity, Django wins over FastAPI.
I prefer explicit imports in this module.
We want one log line per request, nothing more.
Cutting scope: the export feature is postponed.
The user id becomes the partition key because every query filters on it.
Let's treat warnings as errors from here on.
I'm settling for a linear scan given n < 100.
It has to be idempotent, so I'll key every write by request id.
Moving the retry logic into the client makes the most sense.
For simplicity, I will assume all files are UTF-8.
Better to fail loudly than to guess.
Two workers rather than four: the machine has two cores.
I'm opting out of the beta API.
Tokens expire after 15 minutes, to limit the damage of a leak.
Decided: monthly releases.
We go serverless for the image resizing.
After some thought, I'm dropping the singleton.
I'll make the cache write-through so reads never see stale data.
Going to use a materialized view instead of recomputing it.
Since backwards compatibility matters more than elegance, the old flags remain.
This should be a background job, not a request handler.
I'll leave the legacy parser in place.
The solution I picked is optimistic locking.
OK — no feature flags then.
We're using semantic versioning for the public packages.
I concluded that a rewrite isn't justified.
Simplicity beats flexibility here, so a flat file it is.
The conflict between the two specs is resolved in favour of RFC 9110.
I'm choosing to ignore the linter warning in generated code.
Passwords are hashed with argon2id because bcrypt truncates at 72 bytes.
Stack: FastAPI plus SQLAlchemy, chosen for the team's experience with both.
Going with a token bucket; a leaky bucket makes bursts impossible.
I think I'll make the ids opaque strings so we can change the scheme later.
Considering all this, the import job will stay in Python.
No caching for now.
Let's cap the page size at 100.
We'll accept the duplication.
I am not adding a dependency for eleven lines of code.
For the frontend: SvelteKit.
It's settled: two environments, staging and production.
I have chosen to put the rate limiter in the gateway, as that is what sees all traffic.
We picked Avro over Protobuf because the schema registry already speaks it.
I'll go ahead and use the built-in sqlite3 module.
The right thing is to reject such input.
Instead of fixing the old script I will replace it with a make target.
Since we can't change the vendor's API, I'll wrap it.
My preference would be a separate repository.
Let's do optimistic updates in the UI.
The database will be Postgres 16.
I'm going for the second approach — it touches fewer files.
We need strong consistency here, hence etcd.
Not worth adding a queue for this volume.
Keeping it simple: one table.
We should use the async client throughout.
I favour explicit state machines over flags here.
Cron won't do; we take Temporal.
So, final answer: 24 hours retention.
I will store the uploads in S3 rather than on disk because the pods are ephemeral.
That leaves option C, which I'll implement.
I'd better not change the public signature.
The team has agreed to freeze the schema until March.
The deciding factor is cost, so spot instances.
Let's drop it.
We'll be using conventional commits.
I've made up my mind: no inheritance.
Errors are to be returned, not thrown.
The API will version by header.
We reject requests without an idempotency key.
I'm convinced a single queue suffices.
Do not retry on 4xx.
As the budget is tight, we skip the load test.
For this milestone we only support Linux.
After comparing both I believe pandas is the better fit.
To stay within the limit, summaries are cut at 200 words.
Alright: Celery stays.
We have decided against microservices.
I'll hardcode the locale for now.
The tie-breaker was licensing, so MIT-licensed Foo it is.
Let me go with the simpler regex.
I would rather pay for the managed service than run Kafka ourselves.
I decided on FastAPI because of its async support.
We are going with a microkernel layout.
Let's stay on Node 18 for the time being.
After some benchmarks, I'm picking LZ4 since it decompresses faster.
I'd recommend using environment variables for secrets.
Settled: the CLI will be written in Go.
It's best if we version the API in the URL.
We chose not to parallelise the tests, because the fixtures share a database.
PostgreSQL is the database we'll use.
I will use dataclasses rather than dicts for the records.
No, we're keeping REST.
I'm ditching Selenium in favour of Playwright.
The retries will use exponential backoff.
Let's avoid premature abstraction here and inline the helper.
In the end I picked the event-driven design.
We should go with option 2.
For logging, structlog it is.
I opted for optimistic locking to reduce contention.
Because of the memory limit we'll stream the file.
We'll drop IE11 support.
The cache TTL will be five minutes.
I prefer to leave the tests in one file.
We'll go for a monorepo, since both packages release together.
I've settled on port 8443 for the admin interface.
Better keep the interface small.
Our approach: write-ahead log plus snapshots.
I think we're better off with plain SQL.
Not going to bother with i18n.
We'll write the docs in Markdown, not reStructuredText.
It has been agreed to postpone the launch.
I will stick to the standard library.
The winner is DuckDB.
Agreed, sticking with the current schema.
So we'll use a B-tree index on (user_id, created_at).
I'm going to replace the cron job with a systemd timer.
Let's keep backwards compatibility with v1 clients.
We'd rather fail fast than serve stale data.
Using Alembic for migrations, given that we already use SQLAlchemy.
I won't be adding a mutex, the GIL suffices.
My decision is to store dates as ISO strings.
I'm choosing MIT as the license.
Switching from unittest to pytest.
This leaves us with Kafka.
The default will be opt-out.
To minimise risk, the rollout happens in three waves.
Instead of a singleton, pass the client in the constructor.
We've ruled out a rewrite.
I'll name the branch `feature/import`.
Let's use snake_case for JSON keys, as the backend already does.
We will no longer publish a 32-bit build.
"""
NARRATED = """
I will read the file first.
Let me check the tests.
Now I'll run the test suite to see what fails.
The function returns None when the key is missing.
Let me look at how the parser handles comments.
Next, I'll open config.py and search for the timeout.
There are three modules in this directory.
I need to find where the session is created.
Should we use Postgres or MySQL?
It looks like the import fails because the path is wrong.
Let me use grep to find all callers.
I'll start by listing the files.
The tests pass now.
This class uses a lock to protect the counter.
You could use either of them.
I'm not sure whether we should keep this.
Let me go through the code.
The server listens on port 8080.
I fixed the typo in the README.
I'll keep looking for the cause.
We could consider Redis for this.
I found the bug in line 42.
Here is the summary of what I did.
The build failed with exit code 1.
Would you like me to continue?
It seems that the cache is not invalidated.
I'll use the search tool to look for usages.
Let me try a different command.
The variable is never used.
Looking at the stack trace, the error comes from the driver.
I have updated the file as requested.
Let me know if you have any questions.
Let me see what the config says.
The repository has a tests folder.
I'm going to verify the output of the script.
Reading the documentation now.
The loop iterates over the items.
First, I'll explore the project structure.
I can see that the handler is registered twice.
The log shows a timeout after 30 seconds.
I'll run the tests again now that the fix is in.
The code is better structured than I expected.
We have three services: api, worker and scheduler.
The error goes away when the variable is set.
I will now update the documentation.
Let me first understand the requirements.
The class keeps a list of handlers.
Both tests are failing because of a missing fixture.
I see that the config uses YAML instead of JSON.
The command returned no output.
I've added the missing import and the tests pass.
This will take a few minutes.
Now let me fix the second test.
Checking whether the port is in use.
It is not clear why the test fails.
The plan has five steps.
I need more information before I can continue.
If you prefer, I can use a different name.
The script takes two arguments.
Which of the options do you prefer?
Great, the build succeeded.
The README says to use Python 3.11.
The user wants a CSV export.
I'll open the file to see its contents.
Let me go ahead and run it.
There are no usages of this function.
That is the cause of the error.
I have not decided yet.
It might be better to use a queue.
The method is called once per request.
I'll go through each file one by one.
I've run the migration and it completed without errors.
The endpoint returns a list of users.
Let's see whether that helps.
Now I have a clear picture of the code.
The dependency was added last year.
It uses a global variable for the connection.
We need to look at the logs.
The diff is small.
I wrote three tests for the new function.
Running the linter.
I created the file src/app.py.
This test is flaky because it depends on the clock.
There is a TODO in the parser.
I think the problem is in the serializer.
The output shows two warnings.
What would you like me to do next?
I'll add the missing test now.
I have read the specification.
I will create the directory and the file.
The request will fail with a 403.
Let me update the import.
We can see three open connections.
The tool returned an error.
The page loads in two seconds.
I'll write the tests for the parser.
It took 30 seconds to finish.
Then I'll commit the changes.
The user asked for a summary of the report.
The first argument is the path, the second is the mode.
I'll check whether the tests cover this.
Let me now look at the failing test in more detail.
The config file was not found, so I'll search for it.
I noticed that the function is called twice.
Let me write the file.
The server returned 500 because the database was down.
I ran the tests and all of them passed.
The README describes how to install the package.
I'm checking the logs.
The data has 300 rows and 12 columns.
This function parses the header and returns a dict.
I'll now create the test file.
It appears the variable is overwritten in the loop.
Next I will examine the database schema.
OK, the file exists.
I need to install the dependencies first.
Let me count the lines.
Your report is ready.
We are seeing a lot of timeouts.
The value is stored in the variable x.
I'm waiting for the command to finish.
The issue is that the lock is never released.
There was an error while reading the file.
The last commit changed the signature.
I will report back when it is done.
It is used in four places.
The import takes most of the time.
I'll take a look at the second file.
Here are the results of the query.
The fix works as expected.
"""


def test_decisions_are_found_in_whatever_words() -> None:
    said = DECIDED.strip().splitlines()
    missed = [one for one in said if not list(decisions_in(one))]
    assert len(missed) <= len(said) // 50, missed


def test_what_is_only_told_is_no_decision() -> None:
    wrong = [one for one in NARRATED.strip().splitlines() if list(decisions_in(one))]
    assert wrong == []


async def test_text_beside_calls_decides_too_and_what_the_user_says_does_not() -> None:
    summary = await summarized(
        Message.user("We'll use Oracle instead of Postgres."),
        Message.assistant("We'll use Postgres.", [ToolCall("c1", "run_command", "{}")]),
        Message.tool_result("c1", "We'll use MySQL."),
    )
    assert summary.decisions == (Decision(what="We'll use Postgres", at=1),)


async def test_code_decides_nothing() -> None:
    assert await answered("```python\n# We'll use Postgres instead.\n```") == Summary()


async def test_given_facts_come_first_word_for_word() -> None:
    given = "The  release is on Friday."
    user = Message.user("Note: the API lives at /v2.\nthe release is on friday.\nPORT=8080")
    summary = await summarized(user, facts=(given,))
    assert summary.facts == (given, "Note: the API lives at /v2.", "PORT=8080")


@pytest.mark.parametrize(
    "text",
    [
        "Remember that the staging server is slow.",
        "Important: do not touch the billing code.",
        "All dates must be in UTC.",
        "Never commit to main.",
        "The schema is located at db/schema.sql.",
        "timeout: 30s",
        "base_url = https://example.org",
    ],
)
async def test_what_is_marked_as_a_fact_is_one(text: str) -> None:
    assert (await summarized(Message.user(text))).facts == (text,)


async def test_what_is_wanted_is_kept_in_its_order() -> None:
    log = (
        Message.user("The first ticket came from Ms. Lee. The weather is fine."),
        Message.assistant("I read the ticket and its invoice. Nothing else happened."),
        Message.assistant("Two invoices are open."),
    )
    # Nothing of it is a decision, or marked as a fact.
    assert (await summarized(*log)).facts == ()
    summary = await summarized(*log, keep="Please keep all that is said about tickets and invoices")
    assert summary.facts == (
        "The first ticket came from Ms. Lee.",
        "I read the ticket and its invoice.",
        "Two invoices are open.",
    )


async def test_of_what_is_wanted_the_best_is_kept() -> None:
    tickets = "\n".join(f"Ticket number {at} was filed." for at in range(100))
    best = "Ticket 7 has an invoice."
    summary = await summarized(Message.user(f"{best}\n{tickets}"), keep="ticket, invoice")
    assert len(summary.facts) == MOST_WANTED
    assert summary.facts[0] == best
    assert summary.facts[-1] == "Ticket number 99 was filed."


async def test_words_that_say_nothing_want_nothing() -> None:
    said = Message.user("What they want is this and that.")
    assert (await summarized(said, keep="keep what they want")).facts == ()


async def test_facts_are_bounded() -> None:
    lines = "\n".join(f"Note that number {at} counts." for at in range(100))
    assert len((await answered(lines)).facts) == MOST_FACTS


async def test_open_items_are_found_and_closed() -> None:
    summary = await answered(
        "TODO: write the docs\n"
        "- [ ] fix CI\n"
        "- [x] add tests\n"
        "I still need to update the changelog.\n"
        "FIXME: the lock leaks\n"
        "Next steps:\n- deploy\n- announce it later\n"
        "Done."
    )
    assert summary.open_items == (
        OpenItem(what="write the docs"),
        OpenItem(what="fix CI"),
        OpenItem(what="add tests", done=True),
        OpenItem(what="update the changelog"),
        OpenItem(what="the lock leaks", priority="high"),
        OpenItem(what="deploy"),
        OpenItem(what="announce it later", priority="low"),
    )


async def test_each_result_is_an_outcome() -> None:
    call = ToolCall("c1", "run_command", '{"command": "make"}')
    summary = await summarized(
        Message.assistant(None, [call]),
        Message.tool_result("c1", json.dumps({"exit_code": 2, "stderr": "no rule\nto make"})),
        Message.assistant(None, [call]),
        Message.tool_result("c1", "gone\nat line 3", is_error=True),
        Message.assistant(None, [call]),
        Message.tool_result("c1", '{"exit_code": 0}'),
    )
    assert [(one.came, one.at) for one in summary.outcomes] == [
        ("failure", 1),
        ("failure", 3),
        ("success", 5),
    ]
    assert summary.outcomes[0].fields == {"command": '"make"', "exit_code": "2"}
    assert [one.error for one in summary.outcomes] == ["no rule", "gone", ""]
    assert {one.tool for one in summary.outcomes} == {"run_command"}


async def test_all_results_that_no_call_brings_back_are_referred_to() -> None:
    log = [
        message
        for _ in range(100)
        for message in (
            Message.assistant(None, [ToolCall("c1", "web_search", '{"query":"x"}')]),
            Message.tool_result("c1", "found"),
        )
    ]
    summary = await summarized(*log)
    assert len(summary.references) == 100
    assert summary.references[0] == Reference(at=1, what='web_search({"query":"x"})')


async def test_the_newest_task_and_plan_are_the_current_ones() -> None:
    summary = await summarized(
        Message.user("Write a parser."),
        Message.assistant("Plan:\n1. read\n2. write"),
        Message.user("Write a lexer. It should be fast."),
        Message.told("Go on."),
        Message.assistant("My plan:\n- [ ] **look**\n- build\n\nFindings:\n1. a\n2. b"),
    )
    assert summary.current_task == "Write a lexer. It should be fast."
    assert summary.current_plan == ("look", "build")


@settings(deadline=None, max_examples=50)
@given(logs(20))
async def test_any_log_can_be_summarized_and_gives_the_same_again(log: Conversation) -> None:
    summary = await summarized(*log)
    assert await summarized(*log) == summary
    assert Summary.from_plain(summary.as_plain()) == summary


ODD = st.text(max_size=300) | st.text(
    alphabet=st.sampled_from("we'll use, so:—-*[]x1.\n\t `{}\ud800\u2028é"), max_size=300
)


@settings(deadline=None)
@given(ODD, ODD)
async def test_odd_texts_are_summarized_too(text: str, other: str) -> None:
    call = ToolCall("c1", other, text)
    await summarized(
        Message.user(text),
        Message.assistant(other, [call]),
        Message.tool_result("c1", text, is_error=True),
        Message.tool_result("unknown", other),
        Message.system(text),
    )


async def test_bodies_of_other_shapes_are_summarized_too() -> None:
    deep = '{"path":' + "[" * 1000 + "]" * 1000 + "}"
    await summarized(
        Message("user", b"{}", 0),
        Message("user", b'{"content": 5}', 0),
        Message("assistant", b'{"content": ["a", null]}', 0),
        Message.assistant(None, [ToolCall("c1", "read_file", deep)]),
        Message.tool_result("c1", deep),
    )


def test_of_phrasings_that_were_written_without_a_look_at_the_rules_nearly_all_are_found() -> None:
    """Three sets of 50, of which 40, 37 and 43 were found when they were first tried."""
    given = json.loads(Path(__file__).with_name("phrasings.json").read_text())
    lost = [
        one["decides"]
        for one in given
        if not any(
            plain_words(one["decides"]) in plain_words(" ".join(found))
            for found in decisions_in(one["said"])
        )
    ]
    assert len(given) == 150
    assert len(lost) <= 7, lost


def test_what_only_tells_decides_nothing() -> None:
    said = [one for one in narration() if list(decisions_in(one))]
    assert said == []


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"[\w']+", text)).casefold()
