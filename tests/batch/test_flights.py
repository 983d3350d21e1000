"""Room for runs in flight: taken, given back, promised."""

import asyncio

from harness_actors.batch.flights import Flights


async def test_all_have_landed_only_when_no_place_is_promised_any_more() -> None:
    flights = Flights(1)
    await flights.take_place()
    landing = asyncio.ensure_future(flights.all_landed())
    await asyncio.sleep(0)

    # The last one lands, and before anybody hears of that another is to come.
    flights.give_place()
    flights.promise_place()
    await asyncio.sleep(0)
    assert not landing.done()

    await flights.take_place(promised=True)
    flights.give_place()
    await asyncio.wait_for(landing, 5.0)
