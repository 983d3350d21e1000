"""Which host serves which run, and that nothing is kept of runs that are over."""

from harness_actors.coordination.protocol import CUSTOM, QUARANTINE, Slot
from harness_actors.coordination.routing import Router
from harness_actors.state import AGENT_TURN, REPAIR


def home(router: Router, run_id: str, losses: int = 0) -> Slot:
    return router.slot_for(run_id, AGENT_TURN, "", losses)


def test_a_new_run_goes_to_the_host_with_the_fewest_runs() -> None:
    router = Router(3)
    assert [home(router, f"run{i}").index for i in range(6)] == [0, 1, 2, 0, 1, 2]
    router.forget("run1")
    router.forget("run4")
    assert home(router, "next").index == 1


def test_a_run_stays_at_its_host() -> None:
    router = Router(2)
    first = home(router, "run")
    home(router, "other")
    assert home(router, "run") == first


def test_two_losses_lead_to_quarantine_and_progress_leads_back() -> None:
    router = Router(2)
    own = home(router, "run", losses=1)
    assert home(router, "run", losses=2).index == QUARANTINE
    assert home(router, "run", losses=0) == own


def test_children_are_served_by_their_pool_until_they_are_isolated() -> None:
    router = Router(2)
    assert router.slot_for("run.1", AGENT_TURN, "", 0, "explore") == Slot(
        AGENT_TURN, pool="explore"
    )
    assert router.slot_for("run.1", AGENT_TURN, "", 2, "explore") == Slot(
        AGENT_TURN, index=QUARANTINE
    )
    assert router.slot_for("run.1", REPAIR, "", 0, "explore") == Slot(REPAIR)


def test_other_executors_have_one_host_and_each_code_its_own() -> None:
    router = Router(2)
    assert router.slot_for("run", REPAIR, "", 5) == Slot(REPAIR)
    assert router.slot_for("run", "mine", "abc", 5) == Slot(CUSTOM, "abc", pool="mine")
    assert router.slot_for("run", AGENT_TURN, "abc", 5) == Slot(CUSTOM, "abc", pool=AGENT_TURN)


def test_quarantine_is_handed_over_in_the_order_of_asking() -> None:
    router = Router(1)
    assert router.isolate("a")
    assert not router.isolate("b")
    assert not router.isolate("c")
    assert not router.isolate("b"), "asking twice changes nothing"
    assert router.isolate("a"), "who has it keeps it"
    assert router.released("c") is None, "it only waited"
    assert router.released("a") == "b"
    assert router.released("b") is None
    assert router.isolate("d")
    for _ in range(3):
        assert not router.isolate("e"), "nor for who waits longest"
    assert router.released("d") == "e"
    assert router.released("e") is None


def test_forgetting_a_run_twice_does_no_harm() -> None:
    router = Router(2)
    home(router, "run")
    router.forget("run")
    router.forget("run")
    assert home(router, "next").index == 0


def test_slots_have_names_for_people() -> None:
    slots = [Slot(AGENT_TURN), Slot(AGENT_TURN, index=2), Slot(AGENT_TURN, index=QUARANTINE)]
    assert [str(slot) for slot in slots] == [
        "agent_turn",
        "agent_turn[2]",
        "agent_turn[quarantine]",
    ]
