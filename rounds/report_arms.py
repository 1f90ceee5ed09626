"""The comparison of the two arms as a report: counts, fooling rates, the texts themselves, and what was pasted."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from dynaround.database import reading
from dynaround.errors import BadInput
from dynaround.settings import Workspace
from rounds.arm_rates import ArmRates, Estimate, Marked, arm_rates
from rounds.arms import ARMS, ArmAttempt, ArmExample, Arms, arms_of_release, arms_of_round
from rounds.report_arm_texts import texts_of_arms
from rounds.report_files import published_files, source_of_files, source_of_release
from rounds.report_parts import Cell, Plot, Report, Section, Series, Table
from rounds.report_undefined import table_with_reasons

PROMPT, NO_PROMPT = NAMES = tuple(ARMS.values())
DIFFERENCE = f"{PROMPT} − {NO_PROMPT}"

_AUTHORS = (
    "Intervals are 95 % percentile bootstraps that resample whole authors: the texts of one author are alike, and a "
    "few authors write most of them. With few authors they are too narrow."
)


def compare_arms(about: Sequence[str], release: Path | None, workspace_folder: Path, seed: int) -> Report:
    """Compare the arms of a round (its number), of published files (their paths) or of a release.

    The workspace is opened for a round alone. Raises BadInput where not exactly one of these is named, and what
    `arms_of_round`, `arms_of_release`, `source_of_files` and `source_of_release` raise.
    """
    if bool(about) == (release is not None):
        raise BadInput("name one thing to compare the arms of: a round by its number, files, or --release FOLDER")
    if release is not None:
        return arms_report(arms_of_release(source_of_release(release)), seed)
    if not any(name.isdecimal() for name in about):
        files = published_files([Path(name) for name in about])
        return arms_report(arms_of_release(source_of_files(files)), seed)
    if len(about) > 1:
        raise BadInput(f"{' '.join(about)}: name one round, or files (write ./1 for a file called 1)")
    workspace = Workspace(workspace_folder)
    with reading(workspace.engine()) as session:
        arms = arms_of_round(session, int(about[0]))
    workspace.close()
    return arms_report(arms, seed)


def arms_report(arms: Arms, seed: int) -> Report:
    """Build the report on two arms; the same arms and seed give the same report."""
    sections = [_outcomes(arms, seed), texts_of_arms(arms.examples, seed)]
    if arms.stored:
        sections.append(_pasted(arms, seed))
    return Report(arms.title, arms.about, tuple(sections), arms.marks)


def _outcomes(arms: Arms, seed: int) -> Section:
    rates = _rates(arms.attempts, arms.examples, seed)
    rows: list[tuple[Cell, ...]] = []
    for name, found in rates.items():
        for arm, rate in zip(NAMES, (found.first, found.second), strict=True):
            rows.append((name, arm, rate.hits, rate.texts, *_cells(rate.estimate)))
        rows.append((name, DIFFERENCE, None, None, *_cells(found.difference)))
    table = table_with_reasons(
        "arm-rates",
        "Rates of the arms",
        ("rate", "arm", "hits", "of", "rate of the arm", "low", "high"),
        rows,
        note=f"{_AUTHORS} The difference is from the same resamples.",
    )
    estimates = [
        [found.first.estimate for found in rates.values()],
        [found.second.estimate for found in rates.values()],
    ]
    plot = Plot(
        "arm-rates-points",
        "points",
        "Rates of the arms",
        table.key,
        tuple(rates),
        tuple(_series(arm, mine) for arm, mine in zip(NAMES, estimates, strict=True)),
        x_name="rate",
        y_name="share of texts",
    )
    paragraph = (
        "Claimed: the prediction differs from the target label. Verified: claimed, and the gold label of five "
        "responses is the target label. Model error: the prediction differs from a gold label that the model has; the "
        "published fooling rate counts these among all examples with a gold label. On dev and test it is set by their "
        "balance, not by how well the round went."
    )
    return Section("arms", "The two arms", (paragraph,), (_counts(arms), table), (plot,))


def _rates(attempts: Iterable[ArmAttempt], examples: Sequence[ArmExample], seed: int) -> dict[str, ArmRates]:
    """Return the rates by name, without those that nothing is known of."""
    marked = {
        "claimed, of attempts": [Marked(one.arm, one.author, one.fooled) for one in attempts],
        "claimed, of examples": _known((one, one.claimed) for one in examples),
        "verified, of decided examples": _known((one, one.verified) for one in examples),
        "verified, of decided claims": _known((one, one.verified) for one in examples if one.claimed),
        "model errors, of those with gold": _known((one, one.model_error) for one in examples),
    }
    return {name: arm_rates(texts, (PROMPT, NO_PROMPT), seed=seed) for name, texts in marked.items() if texts}


def _known(examples: Iterable[tuple[ArmExample, bool | None]]) -> list[Marked]:
    return [Marked(example.arm, example.author, hit) for example, hit in examples if hit is not None]


def _cells(estimate: Estimate) -> tuple[Cell, ...]:
    low, high = _ends(estimate) or (None, None)
    return estimate.value, low, high, estimate.reason


def _ends(estimate: Estimate) -> tuple[float, float] | None:
    return None if estimate.interval is None else (estimate.interval.low, estimate.interval.high)


def _series(name: str, estimates: Sequence[Estimate]) -> Series:
    return Series(name, tuple(one.value for one in estimates), tuple(map(_ends, estimates)))


def _counts(arms: Arms) -> Table:
    columns: tuple[str, ...] = ("arm", "authors", "examples", "with a gold label")
    if arms.stored:
        columns = ("arm", "sittings", "authors", "attempts", "fooled the model", "taken back")
        columns += ("examples", "claimed", "decided", "verified")
    return Table(
        "arm-counts",
        "Counts of the arms",
        columns,
        tuple(_stored_row(arms, arm) if arms.stored else _released_row(arms, arm) for arm in NAMES),
        note="In the Prompt arm an author starts from a natural sentence, in the other from nothing."
        + (" The arm is drawn for a sitting." if arms.stored else " Attempts and target labels are in no release."),
    )


def _stored_row(arms: Arms, arm: str) -> tuple[Cell, ...]:
    assert arms.sittings is not None
    tried = [attempt for attempt in arms.attempts if attempt.arm == arm]
    made = [example for example in arms.examples if example.arm == arm]
    decided = [example for example in made if example.verified is not None]
    return (
        *(arm, arms.sittings[arm], len({attempt.author for attempt in tried}), len(tried)),
        *(sum(attempt.fooled for attempt in tried), sum(attempt.taken_back for attempt in tried)),
        *(len(made), sum(example.claimed is True for example in made)),
        *(len(decided), sum(example.verified is True for example in decided)),
    )


def _released_row(arms: Arms, arm: str) -> tuple[Cell, ...]:
    made = [example for example in arms.examples if example.arm == arm]
    with_gold = sum(example.model_error is not None for example in made)
    return arm, len({example.author for example in made}), len(made), with_gold


def _pasted(arms: Arms, seed: int) -> Section:
    counted = [Marked(one.arm, one.author, one.pasted) for one in arms.attempts if one.pasted is not None]
    share = arm_rates(counted, (PROMPT, NO_PROMPT), seed=seed)
    rows: list[tuple[Cell, ...]] = []
    for arm, rate in zip(NAMES, (share.first, share.second), strict=True):
        tried = sum(attempt.arm == arm for attempt in arms.attempts)
        rows.append((arm, tried, rate.texts, rate.hits, *_cells(rate.estimate)))
    rows.append((DIFFERENCE, None, None, None, *_cells(share.difference)))
    table = table_with_reasons(
        "arm-pasted",
        "Pasted attempts",
        ("arm", "attempts", "watched", "pasted", "share of the watched", "low", "high"),
        rows,
        note="Pasted: at least one character came by pasting. Watched: the browser counted, with script on. "
        f"{_AUTHORS}",
    )
    return Section(
        "pasted",
        "Pasted texts",
        (
            "A browser's word on what was pasted is advice, no proof. Attempts that nobody watched stand among those "
            "without pasting.",
        ),
        (table, _without_pasted(arms, seed)),
    )


def _without_pasted(arms: Arms, seed: int) -> Table:
    every = _rates(arms.attempts, arms.examples, seed)
    rest = _rates(
        [attempt for attempt in arms.attempts if not attempt.pasted],
        [example for example in arms.examples if not example.pasted],
        seed,
    )
    rows: list[tuple[Cell, ...]] = []
    for name, found in every.items():
        left = rest.get(name)
        for place, arm in enumerate(NAMES):
            before = (found.first, found.second)[place]
            after = None if left is None else (left.first, left.second)[place]
            value = None if after is None else after.estimate.value
            change = None if value is None or before.estimate.value is None else value - before.estimate.value
            low, high = (after is not None and _ends(after.estimate)) or (None, None)
            texts = 0 if after is None else after.texts
            rows.append((name, arm, before.texts, before.estimate.value, texts, value, low, high, change))
    return Table(
        "arm-rates-without-pasted",
        "Rates without what was pasted",
        ("rate", "arm", "texts", "rate of all", "not pasted", "rate of these", "low", "high", "change"),
        tuple(rows),
        note=f"{_AUTHORS} A dash: no text, or no interval, as in the table of rates.",
    )
