"""The figures of one round as plain data, and as lines of text; whoever did not come from people is named as such."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from sqlmodel import Session, col, func, select

from dynaround.agreement import CountTable, fleiss_kappa, krippendorff_alpha
from dynaround.human import expected_human_scores
from dynaround.labels import RESPONSES, label_distribution
from dynaround.scoring import fooling_rates, winning_votes
from dynaround.splits import SPLITS
from dynaround.tables import CLOSED, OPEN, RELEASED, Example, Placement, Round
from dynaround.task import Task
from dynaround.tasks import get_task
from rounds.check_figures import check_item_figures, check_item_lines
from rounds.harvest_report import earlier_harvest
from rounds.labelling import CountedResponse, held_examples, responses_by_example
from rounds.lifecycle import response_counts
from rounds.releasing import responses_from
from rounds.validation_status import validation_figures

Counted = list[tuple[Example, list[CountedResponse]]]


def round_figures(session: Session, round_: Round) -> dict[str, Any]:
    """Return every figure of a round: where it stands, what was harvested, what the responses say.

    Until the round is closed the label figures are of examples with exactly five responses so far, afterwards of the
    retained ones. Examples that are held or left out want no response, and are counted apart; of a round that is not
    open all that are without retained responses are left out.
    """
    assert round_.id is not None
    task = get_task(round_.task)
    frozen = round_.state in (CLOSED, RELEASED)
    counts, held = response_counts(session, round_.id), held_examples(session, round_.id)
    served = [count for example_id, count in counts.items() if example_id not in held]
    undecided = 0 if frozen else sum(decision is None for decision in held.values())
    short = [count for count in served if count < RESPONSES]
    harvest = earlier_harvest(session, round_.id)
    figures: dict[str, Any] = {
        "round": round_.number,
        "task": round_.task,
        "state": round_.state,
        "target_model": round_.target_model,
        "target_model_hash": round_.target_model_hash,
        "plan": round_.plan,
        "examples": len(counts),
        "responses": sum(counts.values()),
        "examples_by_responses": {str(k): n for k, n in sorted(Counter(served).items())},
        "held": undecided,
        "left_out": len(held) - undecided + (len(short) if frozen else 0),
        "still_wanted": 0 if frozen else sum(RESPONSES - count for count in short),
        "harvest": None if harvest is None else {**harvest._asdict(), "pool": harvest.pool._asdict()},
        "splits": _splits(session, round_.id),
        "check_items": check_item_figures(session, round_),
    }
    answered = _answered(session, round_.id, held, retained_only=frozen)
    figures["labels"] = _label_figures(answered, task, "retained" if frozen else "so far") if answered else None
    return figures


def status_figures(session: Session, round_: Round) -> dict[str, Any]:
    """Return every figure of a round, and how validating goes in it (`validation`)."""
    return {**round_figures(session, round_), "validation": validation_figures(session, round_)}


def _answered(session: Session, round_id: int, held: Container[int | None], *, retained_only: bool) -> Counted:
    by_example = responses_by_example(session, round_id, retained_only=retained_only)
    examples = session.exec(select(Example).where(Example.round_id == round_id).order_by(col(Example.number)))
    whole = {id_ for id_, responses in by_example.items() if len(responses) == RESPONSES and id_ not in held}
    return [(e, by_example[e.id]) for e in examples if e.id in whole]


def _splits(session: Session, round_id: int) -> dict[str, int] | None:
    rows = session.exec(
        select(Placement.split, func.count())
        .join(Example, col(Example.id) == col(Placement.example_id))
        .where(Example.round_id == round_id)
        .group_by(col(Placement.split))
    )
    found = dict(iter(rows))
    return {split: found.get(split, 0) for split in SPLITS} if found else None


def _label_figures(answered: Counted, task: Task, which: str) -> dict[str, Any]:
    labels = [[c.label for c in counted] for _, counted in answered]
    distributions = [label_distribution(one, task.labels) for one in labels]
    golds = [task.gold(one).label for one in labels]
    votes = winning_votes(distributions)
    table = CountTable.from_distributions(distributions, task.labels)
    kinds = sorted({c.kind for _, counted in answered for c in counted})
    with_model_gold = [gold for gold in golds if gold in task.model_labels]
    crowd = (
        expected_human_scores(list(zip(golds, labels, strict=True)), task.model_labels, task.labels)
        if with_model_gold
        else None
    )
    rates = fooling_rates([(g, e.prediction) for g, (e, _) in zip(golds, answered, strict=True)], task.model_labels)
    return {
        "which": which,
        "responses_from": responses_from(kinds),
        "examples": len(answered),
        "gold": {**{label: golds.count(label) for label in task.labels}, "no majority": golds.count(None)},
        "responses": {label: sum(d[label] for d in distributions) for label in task.labels},
        "winning_vote": {str(size): count for size, count in votes.sizes.items()},
        "vote_accuracy": votes.accuracy,
        "fleiss_kappa": fleiss_kappa(table)._asdict(),
        "krippendorff_alpha": krippendorff_alpha(table)._asdict(),
        "labellers_macro_f1": None if crowd is None else crowd.macro_f1,
        "gold_beyond_the_model": None if crowd is None else crowd.mixed_gold,
        "fooling": {name: rate._asdict() for name, rate in rates._asdict().items()},
        "gold_by_prediction": _crossed(golds, [e.prediction for e, _ in answered], task),
    }


def _crossed(golds: Sequence[str | None], predictions: Sequence[str], task: Task) -> dict[str, dict[str, int]]:
    counts = Counter(zip(golds, predictions, strict=True))
    return {gold: {said: counts[gold, said] for said in task.model_labels} for gold in task.labels}


def figure_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the figures of a round as lines of text."""
    yield f"round {figures['round']} ({figures['task']}) is {figures['state']}, target {figures['target_model']}"
    if figures["harvest"]:
        yield from harvest_lines(figures["harvest"])
    yield (
        f"responses: {figures['responses']} on {figures['examples']} examples, {figures['still_wanted']} still wanted; "
        f"{figures['held']} held, {figures['left_out']} left out"
    )
    if figures["state"] == OPEN:
        yield from check_item_lines(figures["check_items"])
    if "validation" in figures:
        yield from _validation_lines(figures["validation"])
    if figures["labels"]:
        yield from _label_lines(figures["labels"])
    if figures["splits"]:
        yield "splits: " + ", ".join(f"{count} {split}" for split, count in figures["splits"].items())


def harvest_lines(harvest: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a harvest read, found and drew."""
    read, pool = harvest["read"], harvest["pool"]
    yield (
        f"harvest: {read['loaded']} reviews read, {read['rejected']} rejected, {pool['sentences']} sentences"
        f" ({pool['not_admitted']} not admitted by their rating, {pool['reviews_left_out']} used reviews left out,"
        f" {pool['truncated']} truncated)"
    )
    for rating, by_label in pool["by_rating_and_prediction"].items():
        yield f"pool, rating {rating}: " + ", ".join(f"{count} predicted {label}" for label, count in by_label.items())
    drawn = sum(harvest["examples"].values())
    yield f"drawn: {drawn} examples: " + "; ".join(f"{name}: {count}" for name, count in harvest["examples"].items())
    for note in shortage_notes(harvest):
        yield f"note: {note}"
    if harvest["rejects_file"]:
        yield f"rejected lines: work/{harvest['rejects_file']}"


def shortage_notes(harvest: Mapping[str, Any]) -> Iterator[str]:
    """Yield where a harvest fell short of its plan."""
    if harvest["disagreeing_drawn"] < harvest["disagreeing_wanted"]:
        yield (
            f"{harvest['disagreeing_wanted']} disagreeing sentences were wanted, {harvest['disagreeing_drawn']} found;"
            " the random share filled the rest"
        )
    drawn = sum(harvest["examples"].values())
    if drawn < harvest["wanted"]:
        yield f"{harvest['wanted']} examples were wanted; the reviews gave {drawn}"


def _validation_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield "validating: " + ", ".join(f"{count} {state}" for state, count in found["examples"].items())
    removed = sum(worker["removed"] for worker in found["workers"])
    yield f"workers: {len(found['workers'])}, {removed} of them removed; {found['uncounted']} responses do not count"


def _label_lines(labels: Mapping[str, Any]) -> Iterator[str]:
    who = labels["responses_from"]
    yield f"labels of {labels['examples']} examples ({labels['which']}), by {who}:"
    yield "  gold: " + ", ".join(f"{count} {label}" for label, count in labels["gold"].items())
    accuracy = "undefined" if labels["vote_accuracy"] is None else f"{labels['vote_accuracy']:.3f}"
    sizes = ", ".join(f"{size} of 5: {count}" for size, count in labels["winning_vote"].items())
    yield f"  winning vote {sizes}; vote accuracy {accuracy}"
    for key, name in (("fleiss_kappa", "Fleiss kappa"), ("krippendorff_alpha", "Krippendorff alpha")):
        one = labels[key]
        yield f"  {name} " + (f"{one['value']:.3f}" if one["value"] is not None else str(one["reason"]))
    if labels["labellers_macro_f1"] is not None:
        beyond = labels["gold_beyond_the_model"]
        yield f"  macro F1 of {who}: {labels['labellers_macro_f1']:.3f} (gold labels that the model lacks: {beyond})"
    rate = labels["fooling"]["published"]
    shown = "undefined" if rate["rate"] is None else f"{rate['rate']:.3f}"
    yield f"  fooling rate {shown} = {rate['numerator']}/{rate['denominator']} ({rate['rule']})"
