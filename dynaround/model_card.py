"""The card of a model, README.md in its folder: its manifest in words, for whoever finds the folder."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

CARD = "README.md"

# What Markdown or the HTML in it would take for its own.
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$-])")


def model_card(manifest: Mapping[str, Any]) -> str:
    """Return the card as Markdown; every text of the manifest is escaped."""
    settings, encoder = manifest["settings"], manifest["encoder"]
    parent = manifest["parent"]
    start = (
        f"From the pretrained encoder {plain(encoder['name'])} (weights SHA-256 {plain(encoder['weights_sha256'])})."
        if parent is None
        else f"**Not from scratch**: it goes on from the weights of {plain(parent['name'])} "
        f"(hash {plain(parent['hash'])}), to reproduce a published comparison."
    )
    return "\n".join(
        [
            f"# {plain(manifest['name'])}",
            "",
            f"A classifier of sentences ({plain(manifest['task'])}): {', '.join(map(plain, manifest['labels']))}.",
            "It is the target model or a candidate of a benchmark in rounds, made by dynaround. This card is written",
            "from `manifest.json`, which says everything; it is no part of the model's hash.",
            "",
            "## Where it comes from",
            "",
            start,
            "",
            *_table(("corpus", "rows", "SHA-256"), _corpora(manifest["origin"])),
            f"{manifest['rows']} rows in all, of which {manifest['held_out']['rows']} were held out of training.",
            "",
            *_table(
                ("label", "rows", "part of the weight"),
                [
                    (label, f"{row['rows']:g}", f"{row['weight']:.3f}")
                    for label, row in manifest["class_balance"].items()
                ],
            ),
            "## How it was trained",
            "",
            *_table(("setting", "value"), settings.items()),
            f"{manifest['steps']['taken']} of {manifest['steps']['planned']} steps, in {plain(manifest['precision'])}, "
            f"{manifest['threads']} threads, {manifest['processes']} processes on {plain(manifest['device'])}, torch "
            f"{plain(manifest['versions']['torch'])}.",
            "",
            "## What is known of it",
            "",
            *_known(manifest),
            "",
            "The figures above were read while it was trained; `dynaround evaluate` and `dynaround solved` judge it.",
            "It learned what its corpora hold, from the people who labelled them; sentences of another kind, language",
            "or time may get any label.",
            "",
        ]
    )


def _corpora(origin: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return [(c.get("spec"), c.get("rows"), c.get("sha256")) for c in origin.get("corpora", []) if isinstance(c, dict)]


def _known(manifest: Mapping[str, Any]) -> list[str]:
    lines = []
    stopping, temperature = manifest["early_stopping"], manifest["temperature"]
    if stopping is not None:
        lines.append(
            f"- Macro F1 {stopping['macro_f1']:.3f} on {plain(', '.join(stopping['on']))} after step "
            f"{stopping['best_step']}, whose weights were kept: the best of {len(stopping['checks'])} checks, so "
            "higher than on new sentences."
        )
    if temperature is not None:
        lines.append(
            f"- Temperature {temperature['value']:.3f}, fitted on {temperature['rows']} "
            f"{plain(temperature['fitted_on'])}: negative log likelihood {temperature['nll_before']:.3f} before, "
            f"{temperature['nll_after']:.3f} after. "
            "Stored and released probabilities are uncalibrated."
        )
    for chosen in manifest["selected_on"]:
        lines.append(f"- Chosen on {plain(chosen['spec'])} ({plain(chosen['use'])}): it is not judged on that file.")
    return lines or ["- Nothing was held out, so nothing was measured."]


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    titles, lines = list(head), [[plain(cell) for cell in row] for row in rows]
    if not lines:
        return []
    return [_line(titles), _line(["---"] * len(titles)), *map(_line, lines), ""]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def plain(value: Any) -> str:
    """Return a value as one line of text in which Markdown finds nothing to do."""
    return _MARKUP.sub(r"\\\1", " ".join(str(value).split()))
