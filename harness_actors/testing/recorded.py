"""A model that is asked once, and answers from a file ever after."""

from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from harness_actors.errors import ConfigError, ModelSetupError
from harness_actors.ports import Model, ModelRequest, ModelResponse
from harness_actors.testing.cassette import Cassette, Question, Taken
from harness_actors.testing.scripted import words_of

Record = Literal["never", "missing", "all"]


class RecordedModel:
    """Answers the `Model` port from a file, and where it may, fills the file.

    An answer is found by the conversation and the tools of the request, byte for byte, and
    never by a cursor: a run that is taken up in another process gets the same answers.

    Args:
        path: The file, a JSON line per answer; see `cassette`. It holds no keys, but the
            beginning of each message, so look at it before you publish it.
        model: The real model; not needed where nothing is to be recorded.
        record: ``"never"`` answers from the file alone; ``"missing"`` asks the model what
            the file does not have, and writes it down; ``"all"`` asks everything anew.
        name: Name of the model; by default that of the real one, or of the one that was
            recorded.

    Raises:
        ConfigError: It is to record and has no model.
        BadInputError: The file is no cassette.

    A test usually reads its own switch, once, where it makes the model:

        RecordedModel(path, LocalModel(), record="all" if os.environ.get("RECORD") else "never")
    """

    def __init__(
        self,
        path: str | Path,
        model: Model | None = None,
        *,
        record: Record = "never",
        name: str | None = None,
    ) -> None:
        if record not in ("never", "missing", "all"):
            raise ConfigError("record", f"must be 'never', 'missing' or 'all', not {record!r}")
        if record != "never" and model is None:
            raise ConfigError("model", f"record={record!r} needs a model to ask")
        # Absolute: an actor's current folder is another.
        self._cassette = Cassette(Path(path).absolute())
        self._cassette.find(Question((), ""))
        self._model = model if record != "never" else None
        self._record = record
        self.name = (
            name or (model.name if model is not None else self._cassette.model) or "recorded"
        )

    def __repr__(self) -> str:
        return f"RecordedModel({str(self._cassette.path)!r}, record={self._record!r})"

    def __getstate__(self) -> dict[str, Any]:
        # What was read of the file stays here; it is there for the other process too.
        return {**self.__dict__, "_cassette": self._cassette.path}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._cassette = Cassette(state["_cassette"])

    async def complete(self, request: ModelRequest) -> ModelResponse:
        """Answer one request.

        Raises:
            ModelSetupError: The file does not have it and nothing may be recorded; names
                the nearest request that it has, and what differs.
            ModelError: The real model failed, which is not recorded.
        """
        taken = self._taken(request)
        if taken is None:
            assert self._model is not None
            response = await self._model.complete(request)
            taken = self._keep(request, Taken(response=_without_waits(response)))
        return taken.response

    async def stream(self, request: ModelRequest) -> AsyncIterator[str | ModelResponse]:
        """Answer one request, its text in the pieces that were recorded, or word by word."""
        taken = self._taken(request)
        if taken is not None:
            for piece in taken.pieces or words_of(taken.response.text or ""):
                yield piece
            yield taken.response
            return
        assert self._model is not None
        pieces: list[str] = []
        stream: Any = self._model.stream(request)
        async with aclosing(stream):
            async for part in stream:
                if isinstance(part, ModelResponse):
                    whole = Taken(response=_without_waits(part), pieces=tuple(pieces))
                    yield self._keep(request, whole).response
                else:
                    pieces.append(part)
                    yield part

    def _taken(self, request: ModelRequest) -> Taken | None:
        """The recorded answer; None where the model is to be asked."""
        if self._record == "all":
            return None
        taken = self._cassette.find(Question.of(request))
        if taken is None and self._record == "never":
            path = str(self._cassette.path)
            problem = (
                f"{path!r} has no answer to this request: {self._cassette.nearest(request)}; "
                "record it with RecordedModel(path, model, record='missing'), or "
                "record='all' where the requests have changed"
            )
            raise ModelSetupError(self.name, problem)
        return taken

    def _keep(self, request: ModelRequest, taken: Taken) -> Taken:
        if self._record == "missing":
            # Somebody else may have asked the same meanwhile; then both go on alike.
            earlier = self._cassette.find(Question.of(request))
            if earlier is not None:
                return earlier
        self._cassette.add(request, taken, model=self.name)
        return taken

    # ---- the model that is recorded, for the cell that it runs in -------------------

    @property
    def key_names(self) -> tuple[str, ...]:
        """Keys that recording needs; none for answers from the file."""
        return tuple(getattr(self._model, "key_names", ()))

    @property
    def costs_known(self) -> bool:
        """Whether its answers say what they cost; those of the file say what they have cost."""
        return self._model is None or bool(getattr(self._model, "costs_known", False))

    @property
    def secrets(self) -> Mapping[str, str]:
        """Keys that the real model was given in code, by name."""
        return dict(getattr(self._model, "secrets", {}))

    @property
    def needs_local_host(self) -> bool:
        """Recording asks the embedded model, of which a cell has one."""
        return bool(getattr(self._model, "needs_local_host", False))

    def use_keys(self, keys: Mapping[str, str]) -> None:
        """Hand keys on to the real model."""
        use = getattr(self._model, "use_keys", None)
        if use is not None:
            use(keys)

    def connect(self, base_url: str) -> None:
        """Tell the embedded model where its server is."""
        connect = getattr(self._model, "connect", None)
        if connect is not None:
            connect(base_url)


def _without_waits(response: ModelResponse) -> ModelResponse:
    return replace(response, waited_s=0.0)
