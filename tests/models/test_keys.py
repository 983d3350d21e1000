"""Which value of a provider's key is used, where several could be, and when it is needed."""

import pickle

import pytest

from harness_actors.errors import ModelSetupError
from harness_actors.models.keys import NO_KEY, ProviderKey

NAME = "A_PROVIDERS_KEY"


def a_key(*, given: str | None = None, required: bool = False) -> ProviderKey:
    return ProviderKey(NAME, given=given, required=required)


def value(key: ProviderKey) -> str:
    return key.value(model="m", base_url="http://127.0.0.1:9/v1")


def test_a_key_that_was_handed_in_goes_before_that_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that serves runs of others may have another one in its environment."""
    monkeypatch.setenv(NAME, "of the process")
    key = a_key()

    key.use({NAME: "of the run", "ANOTHER_KEY": "of somebody else"})
    assert value(key) == "of the run"
    key.use({"ANOTHER_KEY": "of somebody else"})
    assert value(key) == "of the run"
    key.use({NAME: " changed\n"})
    assert value(key) == "changed"


def test_two_keys_of_one_name_do_not_get_each_others_values() -> None:
    one, two = a_key(given="first"), a_key(given="second")
    keys = {**one.secrets, **two.secrets}
    copies = [pickle.loads(pickle.dumps(key)) for key in (one, two)]

    for copy in copies:
        copy.use({NAME: "of the environment", **keys})

    assert [value(copy) for copy in copies] == ["first", "second"]
    assert a_key(given="first").name == one.name


def test_what_was_handed_in_stays_in_its_process() -> None:
    key = a_key()
    key.use({NAME: "handed"})

    assert value(pickle.loads(pickle.dumps(key))) == NO_KEY


@pytest.mark.parametrize(
    ("given", "required", "in_environment", "needed"),
    [
        (None, False, None, False),
        (None, False, "", False),
        (None, False, "a key", True),
        (None, True, None, True),
        ("a key", False, None, True),
    ],
)
def test_a_key_is_needed_where_it_was_given_or_is_wanted(
    given: str | None,
    required: bool,
    in_environment: str | None,
    needed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(NAME, raising=False)
    if in_environment is not None:
        monkeypatch.setenv(NAME, in_environment)

    assert a_key(given=given, required=required).needed is needed


@pytest.mark.parametrize("blank", ["", " ", "\n"])
def test_a_blank_key_is_none(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, blank)

    assert value(a_key()) == NO_KEY
    with pytest.raises(ModelSetupError, match=f"set {NAME} in the environment"):
        value(a_key(required=True))
