"""What stands in a module under a name: pickled by that name, where the module can be imported."""

from typing import Any


def standing(module: str, qualname: str) -> Any:
    """The thing that stands in a module; what a pickle by reference calls."""
    from importlib import import_module

    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found


def travels_by_name(thing: Any) -> bool:
    """Whether it is that which stands under its name, in a module that is pickled by reference."""
    from cloudpickle import list_registry_pickle_by_value

    by_value = list_registry_pickle_by_value()
    parts = thing.__module__.split(".")
    parents = {".".join(parts[: end + 1]) for end in range(len(parts))}
    if thing.__module__ == "__main__" or parents & set(by_value):
        return False
    try:
        return standing(thing.__module__, thing.__qualname__) is thing
    except (KeyError, AttributeError, ImportError):
        return False
