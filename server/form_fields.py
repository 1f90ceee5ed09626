"""The fields of a form beyond the label, as a page draws them from the plain model of the task, whatever it holds."""

from collections.abc import Mapping
from types import NoneType
from typing import Any, Literal, NamedTuple, get_args, get_origin

from pydantic import BaseModel

from dynaround.text_rules import storable

PREFIX = "form."
"""Stands before the name of every such field in a page, so that none can be taken for one of the page's own."""


class FormField(NamedTuple):
    """One field: `choices` where one of some words is wanted, otherwise a line of text."""

    name: str
    title: str
    choices: tuple[str, ...]
    required: bool


def form_fields(form: type[BaseModel]) -> list[FormField]:
    """Return the fields of a plain model in its order; raises TypeError for a type that a page cannot draw."""
    return [
        FormField(PREFIX + name, field.title or name.replace("_", " "), _choices(field.annotation), field.is_required())
        for name, field in form.model_fields.items()
    ]


def _choices(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is Literal:
        return tuple(str(choice) for choice in get_args(annotation))
    kinds = set(get_args(annotation)) or {annotation}
    if kinds - {NoneType} != {str}:
        raise TypeError(f"a form field of type {annotation!r} has no place on a page yet; use str or Literal of words")
    return ()


def asked_form(form: type[BaseModel], sent: Mapping[str, str]) -> dict[str, str]:
    """Return what was sent for the fields of a form, by their names in the plain model; empty ones are left out.

    What no database could store is replaced.
    """
    found = {name: storable(sent.get(PREFIX + name, "")).strip() for name in form.model_fields}
    return {name: value for name, value in found.items() if value}
