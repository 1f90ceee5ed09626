"""What work is paid, from the plan's rates and from counts of stored facts: hundredths of a currency, as integers."""

from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple


class Pay(NamedTuple):
    """What one worker is paid, in hundredths, and for what."""

    examples: int
    bonuses: int
    pages: int

    @property
    def total(self) -> int:
        """The whole, in hundredths."""
        return self.examples + self.bonuses + self.pages


def pay_of(rates: Mapping[str, int], *, examples: int, verified: int, pages: int) -> Pay:
    """Return the pay for what one worker did: examples written, verified fools among them, pages given in.

    `rates` are those of the plan in hundredths: `example`, `bonus`, `page`. An example is paid whether or not it
    fooled the model; the bonus is for verified fools alone (published: .30 and .30, the datasheet of DynaSent).
    """
    return Pay(rates["example"] * examples, rates["bonus"] * verified, rates["page"] * pages)


def shown(amount: int, currency: str) -> str:
    """Return an amount of hundredths as people read it: 60 is "0.60 USD"."""
    return f"{Decimal(amount).scaleb(-2)} {currency}"
