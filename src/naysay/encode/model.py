"""Models that encode texts: loaded from a local folder or by their name, identified by their contents."""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from naysay.arrays import is_torch, need_torch
from naysay.checks import check_device, check_kind, public, raise_invalid, shown
from naysay.errors import MissingExtraError
from naysay.text import first_line

_SETTINGS = ("prompts", "default_prompt_name", "max_seq_length", "truncate_dim")
_PACKAGES = ("sentence_transformers", "transformers", "tokenizers")
_IRRELEVANT = ("_name_or_path", "transformers_version", "torch_dtype", "dtype")
_HUB_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)?")  # NAME or OWNER/NAME
_TIMEOUT = 5.0  # seconds
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@public
def load_model(name: str | Path, *, device: str | None = None) -> Any:
    """Load a SentenceTransformer from a local folder, or by its name on the Hugging Face hub.

    A folder is loaded without the network, and so is a name if the hub does not answer within seconds. Code that comes
    with a model never runs.

    Args:
        name: The folder, as `model.save` writes it; or a name such as "sentence-transformers/all-MiniLM-L6-v2".
        device: "cpu", "cuda", ...; chosen by sentence-transformers by default.

    Returns:
        The model.

    Raises:
        MissingExtraError: If sentence-transformers is not installed.

    Examples:
        >>> load_model("./no such folder")
        Traceback (most recent call last):
        naysay.errors.NaysayError: load_model: `name` must be a folder on this machine, or a name on the hub, ...
    """
    return load_sentence_transformer("SentenceTransformer", name, device)


def load_sentence_transformer(kind: str, name: str | Path, device: str | None) -> Any:
    """A model of a class of sentence-transformers, as `load_model` loads it."""
    folder = Path(name)
    if folder.is_dir():
        if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
            raise_invalid("name", "a folder with a modules.json or a config.json", shown(str(name)))
    elif not _HUB_NAME.fullmatch(str(name)):
        raise_invalid("name", "a folder on this machine, or a name on the hub", shown(str(name)))
    try:
        package: Any = importlib.import_module("sentence_transformers")
    except ImportError as error:
        message = "sentence-transformers is not installed. Run: pip install sentence-transformers"
        raise MissingExtraError(message) from error
    if device is not None:
        check_device("device", device)
    local = folder.is_dir() or not _hub_answers(str(name))
    try:
        return getattr(package, kind)(str(name), device=device, local_files_only=local)
    except Exception as error:  # of any of the packages that read the files
        advice = f"{type(error).__name__}: {first_line(error)}"
        raise_invalid("name", "a model that sentence-transformers can load", shown(str(name)), advice)


def _hub_answers(name: str) -> bool:
    """Whether the hub can be reached: one request, which also an error of the hub answers."""
    hub: Any = importlib.import_module("huggingface_hub")
    try:
        hub.HfApi().model_info(name, timeout=_TIMEOUT)
    except hub.errors.HfHubHTTPError:
        return True
    except Exception:  # of the packages for requests, which differ between versions; or HF_HUB_OFFLINE
        return False
    return True


@public
def weights_hash(model: Any) -> str | None:
    """Return a hash that changes with any weight of a model.

    Args:
        model: Any object. Its `state_dict()` is hashed name by name in sorted order (name, type, shape, bytes), and its
            `cache_key`, a string for objects without weights, for example one that calls a service.

    Returns:
        64 hexadecimal digits; None if the model has neither.

    Examples:
        >>> from types import SimpleNamespace
        >>> one, other = (SimpleNamespace(state_dict=lambda w=w: {"layer": np.full(3, w)}) for w in (1.0, 2.0))
        >>> weights_hash(one) == weights_hash(other), weights_hash(object())
        (False, None)
    """
    digest, found = hashlib.sha256(), False
    state = model.state_dict() if hasattr(model, "state_dict") else {}
    check_kind("model", state, Mapping, "with a state_dict() of names and tensors")
    for name in sorted(state):
        _add(digest, name, state[name])
        found = True
    key = getattr(model, "cache_key", None)
    if key is not None:
        if not isinstance(key, str) or not key:
            raise_invalid("model.cache_key", "a string that is not empty", shown(key))
        digest.update(b"key" + key.encode())
        found = True
    return digest.hexdigest() if found else None


def _add(digest: Any, name: str, tensor: Any) -> None:
    """Add one tensor: name, type, shape and bytes."""
    if is_torch(tensor):
        if tensor.is_sparse or tensor.is_quantized:
            advice = "Give the model a cache_key that changes with its weights."
            raise_invalid("model", "of dense tensors", f"{tensor.layout} in {name!r}", advice)
        kind = str(tensor.dtype).removeprefix("torch.")
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        raw = flat.view(need_torch().uint8).numpy() if len(flat) else b""
    elif isinstance(tensor, np.ndarray) and tensor.dtype.kind in "biufc":
        kind, raw = str(tensor.dtype), np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)
    else:
        advice = "Give the model a cache_key that changes with its weights, and no state_dict."
        raise_invalid(
            "model", "with a state_dict() of names and tensors", f"{type(tensor).__name__} in {name!r}", advice
        )
    digest.update(json.dumps([name, kind, list(tensor.shape)]).encode())
    digest.update(raw)


def settings_of(model: Any) -> str:
    """Return what else the vectors of a model depend on, as JSON: class, layers, settings, tokenizer, packages."""
    kind = type(model)
    parts = [model, *(model.modules() if callable(getattr(model, "modules", None)) else [])]
    # Layers print their sizes, but not everything that they do: an activation function has no weights.
    configs = {id(part.config): part.config for part in parts if hasattr(getattr(part, "config", None), "to_dict")}
    classes = {base for part in (*parts, getattr(model, "tokenizer", None)) for base in type(part).__mro__}
    packages = {base.__module__.partition(".")[0] for base in classes}  # not those that happen to be loaded
    found = {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        # A module prints its layers, with the settings of each; other objects print an address at most.
        "layers": repr(model) if hasattr(model, "state_dict") else "",
        "configs": [_without(_IRRELEVANT, config.to_dict()) for config in configs.values()],
        "settings": {name: getattr(model, name, None) for name in _SETTINGS},
        "tokenizer": _tokenizer_hash(getattr(model, "tokenizer", None)),
        "packages": {name: _version(name) for name in _PACKAGES if name in packages},
    }
    return _ADDRESS.sub("", json.dumps(found, sort_keys=True, default=repr))


def _tokenizer_hash(tokenizer: Any) -> str:
    """A hash of a fast tokenizer, else of the vocabulary; "" if there is none."""
    if hasattr(tokenizer, "backend_tokenizer"):
        # Each call of `encode` sets padding and truncation from `max_seq_length`.
        content = _without(("padding", "truncation"), json.loads(tokenizer.backend_tokenizer.to_str()))
    elif hasattr(tokenizer, "get_vocab"):
        content = tokenizer.get_vocab()
    else:
        return ""
    sides = [getattr(tokenizer, name, None) for name in ("padding_side", "truncation_side", "do_lower_case")]
    return hashlib.sha256(json.dumps([content, sides], sort_keys=True).encode()).hexdigest()


def _without(names: tuple[str, ...], entries: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if name not in names}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a copy on the path
        return ""
