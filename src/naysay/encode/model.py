"""Models that turn texts into vectors: loaded from a local folder, and told apart by what is in them, not by a name."""

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
from naysay.checks import public, raise_invalid, shown
from naysay.errors import MissingExtraError

_SETTINGS = ("prompts", "default_prompt_name", "max_seq_length", "truncate_dim")
_PACKAGES = ("sentence_transformers", "transformers", "tokenizers")
_NO_MATTER = ("_name_or_path", "transformers_version", "torch_dtype", "dtype")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def load_model(name: str | Path, *, download: bool = False, device: str | None = None) -> Any:
    """A SentenceTransformer from a folder on this machine.

    Args:
        name: The folder, as `model.save` writes it.
        download: Whether a name that is no folder may be fetched from the Hugging Face hub. Nothing goes over the
            network unless this is True, and code that comes with a model never runs.
        device: "cpu", "cuda", ...; the package chooses if it is None.
    """
    folder = Path(name)
    if not download:
        if not folder.is_dir():
            advice = "Pass the folder that it was saved in; in Python, download=True fetches it by its name."
            raise_invalid("name", "a folder on this machine", shown(str(name)), advice)
        if not any((folder / file).is_file() for file in ("modules.json", "config.json")):
            raise_invalid("name", "a folder with a modules.json or a config.json", shown(str(name)))
    try:
        package: Any = importlib.import_module("sentence_transformers")
    except ImportError as error:
        message = "sentence-transformers is not installed. Run: pip install sentence-transformers"
        raise MissingExtraError(message) from error
    return package.SentenceTransformer(str(name), device=device, local_files_only=not download)


@public
def weights_hash(model: Any) -> str | None:
    """64 hexadecimal digits that change with any weight of a model; None if there is nothing to go by.

    A name of a model says nothing about its weights: a local checkpoint has none, and training does not change it.
    Cost: one pass over the weights, a tensor at a time.

    Args:
        model: Anything; looked at are `state_dict()`, name by name in sorted order (name, type, shape, bytes), and
            `cache_key`, a string that an object without weights, one that calls a service say, may have.

    Example:
        >>> from types import SimpleNamespace
        >>> one, other = (SimpleNamespace(state_dict=lambda w=w: {"layer": np.full(3, w)}) for w in (1.0, 2.0))
        >>> weights_hash(one) == weights_hash(other), weights_hash(object())
        (False, None)
    """
    digest, found = hashlib.sha256(), False
    state = model.state_dict() if hasattr(model, "state_dict") else {}
    if not isinstance(state, Mapping):
        raise_invalid("model", "with a state_dict() of names and tensors", type(state).__name__)
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
    """One tensor: what it is called, its type and shape, its bytes."""
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
    """What else decides about the vectors of a model, as JSON: its class, layers, settings, tokenizer, packages."""
    kind = type(model)
    # A module prints its layers, with the settings of each; other objects print an address at most.
    layers = repr(model) if hasattr(model, "state_dict") else ""
    found = {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "layers": layers,
        "configs": _configs(model),
        "settings": {name: getattr(model, name, None) for name in _SETTINGS},
        "tokenizer": _tokenizer(model),
        "packages": {name: _version(name) for name in _PACKAGES if name in _roots(model)},
    }
    return _ADDRESS.sub("", json.dumps(found, sort_keys=True, default=repr))


def _parts(model: Any) -> list[Any]:
    """The model, its layers and their layers."""
    return [model, *(model.modules() if callable(getattr(model, "modules", None)) else [])]


def _roots(model: Any) -> set[str]:
    """The packages that a model is made of: not those that happen to be loaded, which another run may not have."""
    kinds = {type(part) for part in (*_parts(model), getattr(model, "tokenizer", None))}
    return {base.__module__.partition(".")[0] for kind in kinds for base in kind.__mro__}


def _configs(model: Any) -> list[Any]:
    """What the parts of a model were made by, without the path that it was loaded from and the types of its weights.

    Layers print their sizes, but not everything that they do: an activation function has no weights.
    """
    parts = _parts(model)
    configs = {id(part.config): part.config for part in parts if hasattr(getattr(part, "config", None), "to_dict")}
    found = [config.to_dict() for config in configs.values()]
    return [{name: value for name, value in config.items() if name not in _NO_MATTER} for config in found]


def _tokenizer(model: Any) -> str:
    """A hash of all that a fast tokenizer does, else of its words; empty where there is none to be seen."""
    tokenizer: Any = getattr(model, "tokenizer", None)
    if hasattr(tokenizer, "backend_tokenizer"):
        text = tokenizer.backend_tokenizer.to_str()
    elif hasattr(tokenizer, "get_vocab"):
        text = json.dumps(tokenizer.get_vocab(), sort_keys=True)
    else:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:  # a copy that was put on the path
        return ""
