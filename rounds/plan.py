"""What a round is opened with: a plain model, validated once and frozen from then on."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dynaround.errors import BadInput
from dynaround.screening_measures import ScreeningRule


class AuthoringPlan(BaseModel):
    """How authors write against the target model: what they may try, how much, and when claims bar them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempts: Annotated[int, Field(ge=1)] = 10
    take_backs: Annotated[int, Field(ge=0)] = 3
    attempts_a_day: Annotated[int, Field(ge=1)] = 300
    authors_per_prompt: Annotated[int, Field(ge=1)] = 1
    max_characters: Annotated[int, Field(ge=10)] = 500
    idle_minutes: Annotated[int, Field(ge=1)] = 60
    quiz_attempts: Annotated[int, Field(ge=1)] = 5
    refuted_claims: Annotated[int, Field(ge=1)] = 5
    of_last_claims: Annotated[int, Field(ge=1)] = 10
    bar_days: Annotated[int, Field(ge=1)] = 7


class ValidationPlan(ScreeningRule):
    """How people validate: pages, leases, batches, what comes before the work, and who is removed by which rule."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    places: Annotated[int, Field(ge=1, le=50)] = 10
    lease_minutes: Annotated[int, Field(ge=1)] = 60
    batch: Annotated[int, Field(ge=1)] = 500
    quiz_attempts: Annotated[int, Field(ge=1)] = 5
    screening_items: Annotated[int, Field(ge=0)] = 10
    screening_right: Annotated[int, Field(ge=0)] = 8
    silent_share: Annotated[float, Field(ge=0, le=1)] = 0.3
    flags_that_hold: Annotated[int, Field(ge=1)] = 2


class PayPlan(BaseModel):
    """What work is paid, in hundredths of `currency` (published: 30 an example, 30 a verified fool, 25 a page)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    currency: str = "USD"
    example: Annotated[int, Field(ge=0)] = 30
    bonus: Annotated[int, Field(ge=0)] = 30
    page: Annotated[int, Field(ge=0)] = 25


class RoundPlan(BaseModel):
    """The plan of a round. `reviews` is a source such as `yelp:FILE`; shares and margin are parts of 1.

    `size` examples are harvested (0: none); with `authoring`, people write against the target model too, starting from
    `prompts` natural sentences in the Prompt arm.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    task: str
    reviews: str
    reviews_sha256: str
    fields: dict[str, str] = {}
    size: Annotated[int, Field(ge=0)]
    disagreement_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    per_review: Annotated[int, Field(ge=1)] = 4
    quotas: dict[str, Annotated[int, Field(ge=0)]] = {}
    margin: Annotated[float, Field(gt=0, lt=1)] = 0.02
    seed: int
    held_out_share: Annotated[float, Field(gt=0, lt=1)] = 0.3
    per_cell: Annotated[int, Field(ge=1)] | None = None
    prompts: Annotated[int, Field(ge=0)] = 0
    prompts_sha256: str | None = None
    authoring: AuthoringPlan | None = None
    validation: ValidationPlan = ValidationPlan()
    pay: PayPlan = PayPlan()


def make_plan(**values: object) -> RoundPlan:
    """Build a plan from options; raise BadInput naming the option that does not fit."""
    try:
        return RoundPlan.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).replace("quotas", "quota") if first["loc"] else "plan"
        raise BadInput(f"--{name.replace('_', '-')}: {first['msg']} (found {first['input']!r})") from error
