"""Every error this package raises on purpose.

HarnessError
├── ConfigError              a setting is unknown, out of range, or of a room that is not built
├── BadInputError            a tasks file, agent file or path that the caller must correct
│   └── SetupChangedError    a run directory has results of another agent, model or settings
├── AgentCodeError           a part of an agent cannot be sent to another process
├── ModelError               the provider failed; the subclass says what to do next
│   ├── ModelBusyError       ask again later: rate limit, overload, broken connection
│   ├── ContextOverflowError the conversation is larger than the model's window
│   ├── ModelRefusedError    the provider will not answer this conversation
│   ├── ModelAnswerError     an answer past all bounds, or with numbers that cannot be
│   └── ModelSetupError      wrong key, unknown model, dead endpoint: asking again is useless
├── ToolError                a tool failed; its text goes back to the model
│   └── WorkerToolError      the same, in a worker process
├── StoreError               the journal could not be read or written
│   ├── RunFileError         a file of a run directory, beside the journal, failed
│   ├── StaleTermError       a newer coordinator owns the journal
│   └── StoreInUseError      another command works on this store or run directory
├── CellError                the actors of a cell could not be started
├── ActorLostError           a process of the cell died
├── RunNotFoundError         no journal here knows this run
├── AnswerError              an answer to a run was not taken
├── RunParkedError           a run was put aside before it ended
├── ConversationBusyError    one harness was asked for two runs at once
├── ConversationMovedOnError another run has continued the conversation of a cut one
└── WorkflowError            a workflow graph that cannot run
"""

from harness_actors.errors.cells import (
    ActorLostError,
    CellError,
    RunFileError,
    StaleTermError,
    StoreError,
    StoreInUseError,
)
from harness_actors.errors.inputs import (
    AND_MORE,
    SETUP_ADVICE,
    AgentCodeError,
    BadInputError,
    ConfigError,
    SetupChangedError,
    ToolError,
    WorkflowError,
)
from harness_actors.errors.models import (
    ContextOverflowError,
    ModelAnswerError,
    ModelBusyError,
    ModelError,
    ModelRefusedError,
    ModelSetupError,
)
from harness_actors.errors.root import (
    HarnessError,
    error_facts,
)
from harness_actors.errors.runs import (
    AnswerError,
    ConversationBusyError,
    ConversationMovedOnError,
    RunNotFoundError,
    RunParkedError,
)

__all__ = [
    "AND_MORE",
    "SETUP_ADVICE",
    "ActorLostError",
    "AgentCodeError",
    "AnswerError",
    "BadInputError",
    "CellError",
    "ConfigError",
    "ContextOverflowError",
    "ConversationBusyError",
    "ConversationMovedOnError",
    "HarnessError",
    "ModelAnswerError",
    "ModelBusyError",
    "ModelError",
    "ModelRefusedError",
    "ModelSetupError",
    "RunFileError",
    "RunNotFoundError",
    "RunParkedError",
    "SetupChangedError",
    "StaleTermError",
    "StoreError",
    "StoreInUseError",
    "ToolError",
    "WorkflowError",
    "error_facts",
]
