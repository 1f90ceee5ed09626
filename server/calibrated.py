"""The probabilities that authors are shown: at the temperature of the target model, which the page names.

What is stored and released is uncalibrated, and whether the model was fooled never depends on the temperature.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dynaround.errors import BadInput, NotFound
from dynaround.folders import read_manifest
from dynaround.tables import Round
from dynaround.temperature import at_temperature


class Calibration(NamedTuple):
    """The temperature of a model, and in words what it is."""

    temperature: float
    words: str


def calibration_of(models: Path, round_: Round) -> Calibration | None:
    """Return the temperature of a round's target model, which stands in the folder `models`.

    None for a model without one, and where the folder is not there or holds another model.
    """
    try:
        return _told(models / round_.target_model, round_.target_model_hash)
    except (NotFound, BadInput):
        return None


# A model never changes; what is raised is not kept, so a folder that is put back is read.
@cache
def _told(folder: Path, model_hash: str) -> Calibration | None:
    manifest = read_manifest(folder)
    if manifest.get("hash") != model_hash:
        raise BadInput(f"{folder} holds another model than the round was opened with")
    found = manifest.get("temperature")
    if not found:
        return None
    return Calibration(
        found["value"],
        f"Calibrated with temperature {found['value']:.2f}, fitted on {found['rows']:,} {found['fitted_on']}.",
    )


def calibrated(probs: Mapping[str, float], calibration: Calibration | None) -> dict[str, float]:
    """Return probabilities by label as they are shown."""
    return dict(probs) if calibration is None else at_temperature(probs, calibration.temperature)
