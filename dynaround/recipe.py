"""What a model is trained on, as a person writes it down: a small TOML file, or corpora named one by one."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from dynaround.corpus.labelled import LABELLED_KINDS, Unit
from dynaround.corpus.reviews import REVIEW_KINDS
from dynaround.corpus.sources import parse_spec
from dynaround.errors import BadInput, NotFound
from dynaround.training_settings import TrainingSettings

LabelMode = Literal["majority", "distribution", "soft"]
MixedRule = Literal["both", "drop"]

STAR_KINDS = ("yelp", "amazon", "parquet")
"""Kinds whose stars are the labels without saying so: they have no others."""
HUB = "hf"
CORPUS_KINDS = tuple(dict.fromkeys((*LABELLED_KINDS, *REVIEW_KINDS, HUB)))

RECIPE_NAME = "recipe.toml"
"""What the file is called in the model's folder."""


class CorpusChoice(BaseModel):
    """One corpus of a mixture: where it lies, how it is read, how much of it is taken, and what a row of it weighs.

    `fields` names other columns, `words` says which label a word of the corpus stands for. `most` bounds the sentences.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: str
    unit: Unit = "sentences"
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    most: Annotated[int, Field(ge=1)] | None = None
    by_stars: bool = False
    fields: dict[str, str] = {}
    words: dict[str, str] = {}
    config: str | None = None
    revision: str | None = None

    @property
    def kind(self) -> str:
        """The word before the colon of the source."""
        return self.source.partition(":")[0]

    @property
    def stars(self) -> bool:
        """Whether whole reviews are read, with their stars as labels."""
        return self.by_stars or self.kind in STAR_KINDS

    @model_validator(mode="after")
    def refuse_what_does_not_fit(self) -> "CorpusChoice":
        """Refuse a source of no known kind, and settings that its kind has no use for."""
        try:
            parse_spec(self.source, CORPUS_KINDS)
        except BadInput as error:
            raise ValueError(str(error)) from error
        if self.by_stars and self.kind not in REVIEW_KINDS:
            raise ValueError(f"{self.source} has no stars; by_stars is for {', '.join(REVIEW_KINDS)}")
        if self.unit == "phrases" and self.kind != "sst":
            raise ValueError(f"{self.source} has no phrases, only trees have (sst:)")
        if self.fields and not (self.stars or self.kind == HUB):
            raise ValueError(f"the columns of {self.source} have fixed names; fields is for reviews and {HUB}:")
        if self.words and self.stars:
            raise ValueError(f"{self.source} has stars for labels; words is for corpora with words")
        if (self.config or self.revision) and self.kind != HUB:
            raise ValueError(f"{self.source} has no config and no revision; both are for {HUB}:")
        return self

    def placed(self, place: Callable[[str], str]) -> "CorpusChoice":
        """Return the same corpus with its source as `place` writes it; a dataset of a hub lies nowhere."""
        return self if is_of_hub(self.source) else self.model_copy(update={"source": place(self.source)})


class MixtureRecipe(BaseModel):
    """Corpora with their weights, the label mode, the sets that must not leak in, and settings of training."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: LabelMode = "majority"
    mixed: MixedRule = "both"
    draw_seed: Annotated[int, Field(ge=0)] = 0
    evaluate_on: list[str] = []
    training: dict[str, Any] = {}
    corpus: Annotated[list[CorpusChoice], Field(min_length=1)]

    def placed(self, place: Callable[[str], str]) -> "MixtureRecipe":
        """Return the same recipe with all sources as `place` writes them."""
        sets = [spec if is_of_hub(spec) else place(spec) for spec in self.evaluate_on]
        corpora = [choice.placed(place) for choice in self.corpus]
        return self.model_copy(update={"evaluate_on": sets, "corpus": corpora})


class WrittenRecipe(NamedTuple):
    """A recipe and the text of the file it was read from."""

    recipe: MixtureRecipe
    text: str


_HINTS = get_type_hints(TrainingSettings)
# Threads belong to the machine, not to what a model is made from.
_SETTINGS: Mapping[str, Any] = {f.name: (_HINTS[f.name], f.default) for f in fields(TrainingSettings)}
_TrainingKeys = create_model(
    "_TrainingKeys",
    __config__=ConfigDict(extra="forbid", strict=True),
    **{name: setting for name, setting in _SETTINGS.items() if name != "threads"},
)


def is_of_hub(spec: str) -> bool:
    """Whether a spec names a dataset of a hub, and no place on this machine ("hf:./folder" does)."""
    return spec.startswith(f"{HUB}:") and not spec.startswith((f"{HUB}:.", f"{HUB}:/"))


def choices(corpora: Sequence[CorpusChoice | str]) -> list[CorpusChoice]:
    """Return corpora named on a command line as those of a recipe; raise BadInput for one that is none."""
    found = []
    for corpus in corpora:
        try:
            found.append(CorpusChoice(source=corpus) if isinstance(corpus, str) else corpus)
        except ValidationError as error:
            raise BadInput(_said(error)) from error
    return found


def read_recipe(path: Path) -> WrittenRecipe:
    """Read a recipe, with relative paths starting at its folder.

    Raises NotFound, or BadInput naming the file and the first key that is unknown or does not fit.
    """
    if not path.is_file():
        raise NotFound(f"there is no recipe {path}; docs/training.md shows one")
    try:
        text = path.read_bytes().decode("utf-8-sig")
        given = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"{path} is not TOML: {error}") from error
    try:
        recipe = MixtureRecipe.model_validate(given)
    except ValidationError as error:
        raise BadInput(f"{path}: {_said(error)}") from error
    try:
        settings = _TrainingKeys.model_validate(recipe.training).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise BadInput(f"{path}: {_said(error, 'training')}") from error

    def place(spec: str) -> str:
        kind, _, where = spec.partition(":")
        return f"{kind}:{path.parent / where}"

    return WrittenRecipe(recipe.model_copy(update={"training": settings}).placed(place), text)


def recipe_of(
    path: Path | None, corpora: Sequence[str], *, evaluate_on: Sequence[str] = (), **given: Any
) -> WrittenRecipe:
    """Return the recipe of a file, or of corpora named one by one; what is `given` besides wins over the file.

    Sets of `evaluate_on` come to those of the file. The text is empty where there is no file. Raises BadInput for both
    and for neither, and what `read_recipe` raises.
    """
    if (path is None) == (not corpora):
        found = "both are" if corpora else "neither is"
        raise BadInput(f"a model is trained on a --recipe or on corpora (--corpus), and {found} given; give one")
    if path is None:
        written = WrittenRecipe(MixtureRecipe(corpus=choices(corpora)), "")
    else:
        written = read_recipe(path)
    wins = {key: value for key, value in given.items() if value is not None}
    wins["evaluate_on"] = [*written.recipe.evaluate_on, *evaluate_on]
    return written._replace(recipe=written.recipe.model_copy(update=wins))


def _said(error: ValidationError, table: str = "") -> str:
    """Say the first thing that is wrong, in one sentence."""
    first = error.errors()[0]
    where = [table, *first["loc"]] if table else list(first["loc"])
    in_corpus = len(where) > 1 and where[0] == "corpus"
    if in_corpus:
        place = f"corpus {int(where[1]) + 1}"
        where = where[2:]
    else:
        place = f"the table {where.pop(0)}" if len(where) > 1 else "the recipe"
    key = where[0] if where else ""
    if first["type"] == "extra_forbidden":
        model = CorpusChoice if in_corpus else _TrainingKeys if table else MixtureRecipe
        return f"{place} has the key {key!r}, which is none of {', '.join(model.model_fields)}"
    if first["type"] == "missing":
        return f"{place} lacks the key {key!r}; docs/training.md shows a recipe"
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    return f"{place}: {key} is {first['input']!r}; {first['msg'][0].lower()}{first['msg'][1:]}"
