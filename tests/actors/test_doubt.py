"""Signs of life are counted in looks, so that one's own pause is not the other's silence."""

from harness_actors.actors.doubt import TICKS, SignsOfLife


def after(looks: int, signs: SignsOfLife) -> SignsOfLife:
    for _ in range(looks):
        signs.look()
    return signs


def test_an_actor_is_asked_in_the_middle_of_its_time_and_gone_at_the_end() -> None:
    signs = after(1, SignsOfLife())
    assert not after(TICKS // 2 - 1, signs).is_doubtful
    assert after(1, signs).is_doubtful
    assert not after(TICKS - TICKS // 2 - 1, signs).is_gone
    assert after(1, signs).is_gone


def test_whatever_it_says_is_a_sign_of_life() -> None:
    signs = after(TICKS, SignsOfLife())
    signs.heard()
    assert not after(1, signs).is_doubtful


def test_a_broken_connection_is_half_of_a_silence() -> None:
    signs = after(1, SignsOfLife())
    signs.doubted()
    assert signs.is_doubtful
    assert not signs.is_gone
    assert after(TICKS - TICKS // 2, signs).is_gone


def test_a_connection_that_breaks_again_and_again_does_not_put_the_end_off() -> None:
    signs = after(1, SignsOfLife())
    for _ in range(TICKS):
        signs.look()
        signs.doubted()
    assert signs.is_gone
