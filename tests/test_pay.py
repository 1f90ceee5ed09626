"""Pay: whole hundredths from rates and counts."""

import pytest

from workers.pay import Pay, pay_of, shown

RATES = {"example": 30, "bonus": 30, "page": 25}


def test_two_examples_without_a_verified_fool_are_paid_as_written():
    pay = pay_of(RATES, examples=2, verified=0, pages=0)
    assert (pay, pay.total) == (Pay(60, 0, 0), 60)
    assert shown(pay.total, "USD") == "0.60 USD"


def test_the_bonus_is_for_verified_fools_and_pages_are_paid_one_by_one():
    pay = pay_of(RATES, examples=3, verified=2, pages=7)
    assert (pay, pay.total) == (Pay(90, 60, 175), 325)


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "0.00 EUR"), (7, "0.07 EUR"), (100, "1.00 EUR"), (123456, "1234.56 EUR")]
)
def test_amounts_have_two_decimals(amount: int, text: str):
    assert shown(amount, "EUR") == text
