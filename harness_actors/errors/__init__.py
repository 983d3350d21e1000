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
│   ├── ModelsFailedError    no model of a chain answered
│   └── ModelSetupError      wrong key, unknown model, dead endpoint: asking again is useless
├── SummaryError             a summarizer answered nothing that can be used
├── ToolError                a tool failed; its text goes back to the model
│   ├── MissingPathError     nothing is at a path
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

from harness_actors.errors.cells import ActorLostError as ActorLostError
from harness_actors.errors.cells import CellError as CellError
from harness_actors.errors.cells import RunFileError as RunFileError
from harness_actors.errors.cells import StaleTermError as StaleTermError
from harness_actors.errors.cells import StoreError as StoreError
from harness_actors.errors.cells import StoreInUseError as StoreInUseError
from harness_actors.errors.inputs import AND_MORE as AND_MORE
from harness_actors.errors.inputs import SETUP_ADVICE as SETUP_ADVICE
from harness_actors.errors.inputs import AgentCodeError as AgentCodeError
from harness_actors.errors.inputs import BadInputError as BadInputError
from harness_actors.errors.inputs import ConfigError as ConfigError
from harness_actors.errors.inputs import SetupChangedError as SetupChangedError
from harness_actors.errors.inputs import ToolError as ToolError
from harness_actors.errors.inputs import WorkflowError as WorkflowError
from harness_actors.errors.models import ContextOverflowError as ContextOverflowError
from harness_actors.errors.models import ModelAnswerError as ModelAnswerError
from harness_actors.errors.models import ModelBusyError as ModelBusyError
from harness_actors.errors.models import ModelError as ModelError
from harness_actors.errors.models import ModelRefusedError as ModelRefusedError
from harness_actors.errors.models import ModelSetupError as ModelSetupError
from harness_actors.errors.models import ModelsFailedError as ModelsFailedError
from harness_actors.errors.models import SummaryError as SummaryError
from harness_actors.errors.root import HarnessError as HarnessError
from harness_actors.errors.root import error_facts as error_facts
from harness_actors.errors.runs import AnswerError as AnswerError
from harness_actors.errors.runs import ConversationBusyError as ConversationBusyError
from harness_actors.errors.runs import ConversationMovedOnError as ConversationMovedOnError
from harness_actors.errors.runs import RunNotFoundError as RunNotFoundError
from harness_actors.errors.runs import RunParkedError as RunParkedError
