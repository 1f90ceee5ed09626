"""Probabilities at a temperature: what is shown to people of a model that is surer, or less sure, than it is right."""

from collections.abc import Mapping


def at_temperature(probs: Mapping[str, float], temperature: float) -> dict[str, float]:
    """Return the probabilities that the same logits give when divided by `temperature`, which is above 0.

    Temperature scaling, Guo et al. 2017, sec. 4.2: softmax(z / T) is p^(1/T), normalised. The order of labels by
    probability never changes.
    """
    # By the largest, so that a low temperature does not round all of them to 0.
    most = max(probs.values())
    powers = {label: (value / most) ** (1 / temperature) for label, value in probs.items()}
    total = sum(powers.values())
    return {label: power / total for label, power in powers.items()}
