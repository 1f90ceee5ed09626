"""What a plan promises before anything is collected."""

import pytest

from dynaround.solved_power import chance_called_solved
from dynaround.tasks.sentiment import SENTIMENT
from rounds.plan import AuthoringPlan, RoundPlan
from rounds.planning import planned_power, power_lines
from rounds.shown_names import shown_plan

BASE = RoundPlan(task="sentiment", reviews="csv:r.csv", reviews_sha256="0" * 64, size=2000, seed=1)


def test_a_stated_size_of_cells_is_what_dev_and_test_hold() -> None:
    power = planned_power(BASE.model_copy(update={"per_cell": 80}), SENTIMENT)
    assert (power["items"], power["at_most"]) == (1440, False)
    assert power["chance"] == chance_called_solved(1440, 0.02)
    assert [line.split(":")[0] for line in power_lines(power)] == ["1440 items in dev and test"]


def test_without_one_the_share_held_out_is_the_most() -> None:
    power = planned_power(BASE, SENTIMENT)
    assert (power["items"], power["at_most"]) == (600, True)
    first, warning = power_lines(power)
    assert first.startswith("at most 600 items") and "at most 40% chance" in first
    assert warning.startswith(f"warning: that is less than half; from {power['items_for_80']} items on")


@pytest.mark.parametrize("margin", [0.05, 0.1])
def test_a_larger_margin_needs_no_warning(margin: float) -> None:
    power = planned_power(BASE.model_copy(update={"margin": margin}), SENTIMENT)
    assert len(list(power_lines(power))) == 1


def test_how_much_people_will_write_is_not_known_and_how_much_it_takes_is() -> None:
    power = planned_power(BASE.model_copy(update={"authoring": AuthoringPlan(), "size": 0}), SENTIMENT)
    assert (power["items"], power["chance"]) == (None, None)
    [line] = power_lines(power)
    assert f"from {power['items_for_80']} items on" in line and "80 % chance (margin 0.02)" in line


def test_a_plan_is_shown_in_words_and_its_amounts_as_people_read_them() -> None:
    plan = BASE.model_copy(update={"reviews": "csv:/home/launcher/private/r.csv", "authoring": AuthoringPlan()})
    shown = shown_plan(plan.model_dump(mode="json"))
    assert shown["pay"] == "currency: USD, example: 0.30, bonus: 0.30, page: 0.25"
    assert shown["authoring"].startswith("attempts: 10, take backs: 3, attempts a day: 300")
    assert (shown["reviews"], shown["reviews SHA-256"]) == ("csv:r.csv", "0" * 64)
    assert (shown["per cell"], shown["quotas"]) == ("not set", "none")
