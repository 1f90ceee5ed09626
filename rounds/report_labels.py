"""What a report says of labels: sizes, gold labels, responses, winning votes, and gold beside prediction and rating."""

from collections import Counter
from collections.abc import Iterable, Sequence

from dynaround.labels import RESPONSES, label_distribution
from dynaround.scoring import winning_votes
from rounds.report_parts import Cell, Plot, Section, Series, Table
from rounds.report_source import Part, ReportSource

NO_MAJORITY = "no majority"


def about_section(source: ReportSource) -> Section:
    """Return how large the splits are and where their sentences come from, and the plan that was frozen."""
    columns = ("split", "examples", "gold label the model has", "responses", "workers", "reviews", "authors")
    sizes = Table("sizes", "Sizes", columns, tuple(_size(part, source) for part in source.rows))
    plan = Table("plan", "The plan, frozen when the round opened", ("setting", "value"), tuple(source.plan.items()))
    return Section("about", "About", source.notes, (sizes, plan) if source.plan else (sizes,))


def _size(part: Part, source: ReportSource) -> tuple[Cell, ...]:
    reviews = {e.review_id or (e.prompt.review_id if e.prompt else None) for e in part.examples} - {None}
    authors = {example.author for example in part.examples} - {None}
    workers = {response.worker for example in part.examples for response in example.responses}
    for_model = sum(example.gold in source.task.model_labels for example in part.examples)
    responses = sum(map(len, part.responses))
    return part.name, len(part.examples), for_model, responses, len(workers), len(reviews) or None, len(authors) or None


def labels_section(source: ReportSource) -> Section:
    """Return gold labels, responses and winning votes of every split, and what a model trained on them would see."""
    labels, rows = source.task.labels, source.rows
    gold = Table(
        "gold",
        "Gold labels",
        ("split", "examples", *labels, NO_MAJORITY),
        tuple((p.name, len(p.examples), *(n for _, n in gold_counts(p, labels))) for p in rows),
        note=f"A gold label has a majority of the {RESPONSES} retained responses.",
    )
    given = [label_distribution((one for answers in p.responses for one in answers), labels) for p in rows]
    responses = Table(
        "responses",
        "Responses",
        ("split", "responses", *labels),
        tuple((p.name, sum(d.values()), *d.values()) for p, d in zip(rows, given, strict=True)),
    )
    votes = _votes(rows, labels)
    sizes = [column for column in votes.columns if column.endswith(f"of {RESPONSES}")]
    plots = (
        stacked("gold-shares", gold, "Gold labels", "examples", (*labels, NO_MAJORITY)),
        stacked("response-shares", responses, "Responses", "responses", labels),
        stacked("vote-shares", votes, "Size of the winning vote", "examples", (*sizes, NO_MAJORITY)),
    )
    tables = (gold, responses, votes, _gold_by_response(rows, labels), _training_rows(source))
    return Section("labels", "Labels", tables=tables, plots=plots)


def gold_counts(part: Part, labels: Sequence[str]) -> list[tuple[str, int]]:
    """Count the examples of a part by gold label, those without one last."""
    counts = Counter(example.gold for example in part.examples)
    return [*((label, counts[label]) for label in labels), (NO_MAJORITY, counts[None])]


def stacked(key: str, table: Table, title: str, of: str, columns: Sequence[str]) -> Plot:
    """Return a plot of the shares that `columns` of a table of counts have in each of its rows."""
    places = [table.columns.index(column) for column in columns]
    counts = [[row[place] for place in places] for row in table.rows]
    totals = [sum(value for value in row if isinstance(value, int)) for row in counts]
    series = tuple(
        Series(column, tuple(_share(row[at], total) for row, total in zip(counts, totals, strict=True)))
        for at, column in enumerate(columns)
    )
    names = tuple(str(row[0]) for row in table.rows)
    return Plot(key, "stacked", title, table.key, names, series, "split", f"share of the {of}", y_range=(0, 1))


def _share(count: Cell, total: int) -> float | None:
    return count / total if isinstance(count, int) and total else None


def _votes(rows: Iterable[Part], labels: Sequence[str]) -> Table:
    sizes = list(winning_votes([]).sizes)
    columns = ("split", *(f"{size} of {RESPONSES}" for size in sizes), NO_MAJORITY)
    cells: list[tuple[Cell, ...]] = []
    for part in rows:
        votes = winning_votes(label_distribution(answers, labels) for answers in part.responses)
        accuracy = votes.agreeing, votes.responses, votes.accuracy
        cells.append((part.name, *(votes.sizes[size] for size in sizes), votes.no_majority, *accuracy))
    return Table(
        "votes",
        "Size of the winning vote",
        (*columns, "responses equal to gold", "responses on gold", "vote accuracy"),
        tuple(cells),
        note="Vote accuracy is the share of all responses on examples with a gold label that are equal to it.",
    )


def _gold_by_response(rows: Iterable[Part], labels: Sequence[str]) -> Table:
    cells: list[tuple[Cell, ...]] = []
    for part in rows:
        counts = Counter((e.gold, r.label) for e in part.examples for r in e.responses)
        for gold in (*labels, None):
            if any(counts[gold, label] for label in labels):
                cells.append((part.name, gold or NO_MAJORITY, *(counts[gold, label] for label in labels)))
    return Table("gold-by-response", "Gold label by response", ("split", "gold", *labels), tuple(cells))


def _training_rows(source: ReportSource) -> Table:
    task = source.task
    cells: list[tuple[Cell, ...]] = []
    for part in source.rows:
        majority = sum(example.gold in task.model_labels for example in part.examples)
        drawn = Counter(row for answers in part.responses for one in answers for row in task.training_labels(one))
        cells.append((part.name, majority, drawn.total(), *(drawn[label] for label in task.model_labels)))
    return Table(
        "training-rows",
        "Rows that a model is trained on",
        ("split", "majority rule", "distribution rule", *task.model_labels),
        tuple(cells),
        note="One row an example with a gold label that the model has, or (distribution rule) one or more rows a "
        "response; the labels are those of the distribution rule. No model is trained on dev and test.",
    )


def crossed_section(source: ReportSource) -> Section | None:
    """Return gold labels beside what the target model predicted and how the review was rated; None without either."""
    predicted = [part for part in source.rows if part.predicted]
    rated = [part for part in source.rows if any(example.rating is not None for example in part.examples)]
    tables = []
    plots = []
    if predicted:
        tables.append(_by_prediction(predicted, source))
        # Dev or test alone has the same number in every cell.
        plots += [_prediction_grid(p, source) for p in source.whole_rounds if p.predicted and not p.held_out]
    if rated:
        tables.append(_by_rating(rated, source))
    if both := [part for part in rated if part.predicted]:
        tables.append(_by_rating_and_prediction(both, source))
    title = "Gold label by prediction and rating" if rated else "Gold label by prediction"
    return Section("gold-by", title, tables=tuple(tables), plots=tuple(plots)) if tables else None


def _golds(part: Part, source: ReportSource) -> list[str | None]:
    """Return the gold labels that occur in a part, in the order of the task, or None for no majority last."""
    found = {example.gold for example in part.examples}
    return [gold for gold in (*source.task.labels, None) if gold in found or gold in source.task.model_labels]


def _by_prediction(parts: Sequence[Part], source: ReportSource) -> Table:
    model_labels = source.task.model_labels
    cells: list[tuple[Cell, ...]] = []
    for part in parts:
        counts = Counter((example.gold, example.prediction.label) for example in part.examples)
        for gold in _golds(part, source):
            cells.append((part.name, gold or NO_MAJORITY, *(counts[gold, said] for said in model_labels)))
    return Table(
        "gold-by-prediction",
        "Gold label by the target model's prediction",
        ("split", "gold", *(f"predicted {label}" for label in model_labels)),
        tuple(cells),
        note="Dev and test of a release hold every cell equally often: there the target model is at chance.",
    )


def _prediction_grid(part: Part, source: ReportSource) -> Plot:
    model_labels = source.task.model_labels
    counts = Counter((example.gold, example.prediction.label) for example in part.examples)
    return Plot(
        f"gold-by-prediction-{part.round}",
        "grid",
        f"Gold label by prediction, {part.name}",
        "gold-by-prediction",
        model_labels,
        tuple(
            Series(gold or NO_MAJORITY, tuple(counts[gold, said] for said in model_labels))
            for gold in _golds(part, source)
        ),
        x_name="predicted",
        y_name="gold",
    )


def _by_rating(parts: Sequence[Part], source: ReportSource) -> Table:
    ratings = sorted({e.rating for part in parts for e in part.examples if e.rating is not None})
    cells: list[tuple[Cell, ...]] = []
    for part in parts:
        counts = Counter((example.gold, example.rating) for example in part.examples)
        for gold in _golds(part, source):
            cells.append((part.name, gold or NO_MAJORITY, *(counts[gold, rating] for rating in ratings)))
    columns = ("split", "gold", *(f"rated {rating}" for rating in ratings))
    note = "The rating is the review's; it was never a label."
    return Table("gold-by-rating", "Gold label by the review's rating", columns, tuple(cells), note=note)


def _by_rating_and_prediction(parts: Sequence[Part], source: ReportSource) -> Table:
    labels = source.task.labels
    cells: list[tuple[Cell, ...]] = []
    for part in parts:
        counts = Counter((e.rating, e.prediction.label, e.gold) for e in part.examples)
        for rating in sorted({e.rating for e in part.examples if e.rating is not None}):
            for said in source.task.model_labels:
                cells.append((part.name, rating, said, *(counts[rating, said, gold] for gold in (*labels, None))))
    return Table(
        "rating-by-prediction-by-gold",
        "Rating by prediction by gold label",
        ("split", "rating", "predicted", *(f"gold {label}" for label in labels), NO_MAJORITY),
        tuple(cells),
    )
