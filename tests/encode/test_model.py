"""Models told apart by their weights, and loaded from this machine only."""

import hashlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from naysay.encode import load_model, weights_hash
from naysay.errors import MissingExtraError, NaysayError


def with_state(state, **more):
    return SimpleNamespace(state_dict=lambda: state, **more)


STATE = {"a.weight": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False])}
GOLDEN = "afcdc20469017b61ec7be5923a4bee11b0c55d3b4740b693f9618e2a016f5604"


def test_a_golden_hash():
    """It must not change from one release to the next: caches would be lost."""
    parts = [b'["a.weight", "float32", [2, 3]]', STATE["a.weight"].tobytes(), b'["b", "bool", [2]]', b"\1\0"]
    assert hashlib.sha256(b"".join(parts)).hexdigest() == GOLDEN
    assert weights_hash(with_state(STATE)) == GOLDEN
    assert weights_hash(with_state(dict(reversed(STATE.items())))) == GOLDEN


@pytest.mark.parametrize(
    "state",
    [
        STATE | {"a.weight": STATE["a.weight"].reshape(3, 2)},
        STATE | {"a.weight": STATE["a.weight"].view(np.int32)},
        STATE | {"a.weight": STATE["a.weight"].T.copy().reshape(2, 3)},
        STATE | {"b": np.array([True, True])},
        STATE | {"c": np.zeros(0)},
        {"a": STATE["a.weight"], "b": STATE["b"]},
        {"a.weight": STATE["a.weight"]},
    ],
)
def test_whatever_changes_changes_it(state):
    assert weights_hash(with_state(state)) != GOLDEN


def test_tensors_are_hashed_as_arrays_are():
    torch = pytest.importorskip("torch")
    state = {name: torch.from_numpy(array) for name, array in STATE.items()}
    assert weights_hash(with_state(state)) == GOLDEN
    state["a.weight"] = torch.from_numpy(STATE["a.weight"].T.copy()).T  # laid out in another way
    assert weights_hash(with_state(state)) == GOLDEN


def test_keys():
    assert weights_hash(object()) is None
    assert weights_hash(with_state({})) is None
    named = [weights_hash(SimpleNamespace(cache_key=key)) for key in ("a", "b")]
    assert len({*named, GOLDEN, weights_hash(with_state(STATE, cache_key="a"))}) == 4


# ---- loading ----------------------------------------------------------------------------------------------


@pytest.fixture
def package(monkeypatch):
    """Stands for sentence_transformers; what it was called with."""
    calls = []
    model = lambda *given, **options: calls.append((given, options)) or "model"  # noqa: E731
    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=model))
    return calls


def test_a_folder_is_loaded_without_the_network(tmp_path, package):
    (tmp_path / "modules.json").write_text("[]")
    assert load_model(tmp_path, device="cpu") == "model"
    assert package == [((str(tmp_path),), {"device": "cpu", "local_files_only": True})]


class HfHubHTTPError(Exception):
    pass


@pytest.fixture
def hub(monkeypatch):
    """Stands for huggingface_hub: how it answers is `.answer`; what it was asked is `.asked`."""
    found = SimpleNamespace(asked=[], answer=None, errors=SimpleNamespace(HfHubHTTPError=HfHubHTTPError))

    def model_info(name, *, timeout):
        found.asked.append((name, timeout))
        if found.answer is not None:
            raise found.answer

    found.HfApi = lambda: SimpleNamespace(model_info=model_info)
    monkeypatch.setitem(sys.modules, "huggingface_hub", found)
    return found


@pytest.mark.parametrize(
    ("answer", "cache_only"),
    [(None, False), (HfHubHTTPError("401"), False), (OSError("no route"), True)],
)
def test_a_name_is_passed_on_and_without_a_network_only_the_cache_is_read(package, hub, answer, cache_only):
    name = "intfloat/e5-base_v2.1"
    hub.answer = answer
    load_model(name)
    assert package == [((name,), {"device": None, "local_files_only": cache_only})]
    assert hub.asked == [(name, 5.0)]


def test_a_package_that_fails_or_is_missing_is_named(tmp_path, monkeypatch, hub):
    def offline(*given, **options):
        raise OSError("We couldn't connect to 'https://huggingface.co'\nCheck your internet connection")

    monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=offline))
    with pytest.raises(NaysayError, match="OSError: We couldn't connect") as caught:
        load_model("a/b")
    assert caught.value.parameter == "name"
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match="pip install sentence-transformers"):
        load_model(tmp_path)
