"""Labels by models of who answered, beside the majority: Dawid-Skene and MACE, as the library crowd-kit has them.

They stand in reports and are never gold. crowd-kit is an optional package (`pip install 'dynaround[crowd]'`).
"""

import warnings
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from dynaround.agreement import WorkerResponse
from dynaround.errors import BadInput, NotInstalled
from dynaround.text import natural_order

DAWID_SKENE, MACE = "Dawid-Skene", "MACE"
METHODS = (DAWID_SKENE, MACE)

MOST_STEPS, MACE_STEPS = 100, 50
"""At most so many steps of Dawid-Skene, and exactly so many of MACE, which has no other end; as crowd-kit has them."""


def is_installed() -> bool:
    """Whether the optional package that aggregates is there."""
    return find_spec("crowdkit") is not None


def aggregated(responses: Iterable[WorkerResponse], method: str) -> dict[str, str]:
    """Return the most probable label of every example by a method of `METHODS`.

    - Dawid-Skene (1979) fits, by EM from the shares of votes, what each worker answers for each true label.
    - MACE (Hovy et al. 2013) fits how often each worker does not look, and what such a worker answers then, by
      variational Bayes from one fixed start.

    The same for any order of responses; equal probabilities go to the label that sorts first. Raises NotInstalled
    without crowd-kit, BadInput for another method.
    """
    if method not in METHODS:
        raise BadInput(f"there is no way to aggregate called {method!r}; there is {', '.join(METHODS)}")
    if not is_installed():
        raise NotInstalled(f"{method} needs crowd-kit; run: pip install 'dynaround[crowd]'")
    ordered = sorted(responses, key=lambda one: (natural_order(one.example), natural_order(one.worker)))
    if not ordered:
        return {}
    examples = _numbers(one.example for one in ordered)
    workers = _numbers(one.worker for one in ordered)
    labels = _numbers(one.label for one in ordered)
    names = list(labels)
    probabilities = _fitted(
        method,
        {
            "task": [examples[one.example] for one in ordered],
            "worker": [workers[one.worker] for one in ordered],
            "label": [labels[one.label] for one in ordered],
        },
    )
    by_name = sorted(range(len(names)), key=lambda place: names[place])
    return {
        example: names[max(by_name, key=lambda place: probabilities[number][place])]
        for example, number in examples.items()
    }


def _numbers(names: Iterable[str]) -> dict[str, int]:
    # In order of first appearance, which MACE of crowd-kit 1.4 needs: it codes workers and labels in that order, sorts
    # them where it sums, and would take one for another if both orders were not the same.
    numbers: dict[str, int] = {}
    for name in names:
        numbers.setdefault(name, len(numbers))
    return numbers


def _fitted(method: str, columns: Mapping[str, list[int]]) -> list[list[float]]:
    with warnings.catch_warnings():
        # crowd-kit 1.4 calls pandas in ways that newer versions warn of, once a step.
        warnings.simplefilter("ignore")
        import pandas
        from crowdkit.aggregation.classification.dawid_skene import DawidSkene
        from crowdkit.aggregation.classification.mace import MACE as Mace

        model: Any
        if method == DAWID_SKENE:
            model = DawidSkene(n_iter=MOST_STEPS)
        else:
            # More restarts would begin at the same start, since crowd-kit seeds each alike.
            model = Mace(n_restarts=1, n_iter=MACE_STEPS, random_state=0)
        table = model.fit_predict_proba(pandas.DataFrame(columns))
        places = sorted(set(columns["label"]))
        found: list[list[float]] = table.sort_index()[places].to_numpy().tolist()
    return found
