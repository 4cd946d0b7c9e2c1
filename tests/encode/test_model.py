"""Models told apart by their weights, and loaded from this machine only."""

import hashlib
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from naysay.encode.model import load_model, settings_of, weights_hash
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


def test_tensors_of_every_kind():
    torch = pytest.importorskip("torch")
    kinds = [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.bool, torch.complex64, torch.float32]
    found = {
        weights_hash(with_state({"w": torch.ones(shape).to(kind)})) for kind in kinds for shape in ((), (1,), (0, 2))
    }
    assert len(found) == 3 * len(kinds)
    one = torch.ones(2, dtype=torch.bfloat16)
    assert weights_hash(with_state({"w": one})) != weights_hash(with_state({"w": one.nextafter(one + 1)}))


def test_keys():
    assert weights_hash(object()) is None
    assert weights_hash(with_state({})) is None
    named = [weights_hash(SimpleNamespace(cache_key=key)) for key in ("a", "b")]
    assert len({*named, GOLDEN, weights_hash(with_state(STATE, cache_key="a"))}) == 4


# ---- settings -------------------------------------------------------------------------------------------


class Module:
    def __init__(self, text="Layers()", **more):
        self.text = text
        vars(self).update(more)

    def state_dict(self):
        return {}

    def __repr__(self):
        return self.text


def test_settings_that_decide():
    fast, strips = ({"normalizer": how, "model": {"vocab": {"a": 0}}} for how in ("lower", "strip"))
    words = SimpleNamespace(get_vocab=lambda: {"a": 0})
    models = [
        Module(),
        Module("Layers(3)"),
        Module(max_seq_length=3),
        Module(truncate_dim=3),
        Module(prompts={"query": "q"}),
        Module(default_prompt_name="query"),
        Module(tokenizer=tokenizer(fast)),
        Module(tokenizer=tokenizer(strips)),
        Module(tokenizer=tokenizer(fast | {"model": {"vocab": {"b": 0}}})),
        Module(tokenizer=tokenizer(fast, padding_side="left")),
        Module(tokenizer=words),
        SimpleNamespace(),
    ]
    assert len({settings_of(model) for model in models}) == len(models)


def tokenizer(content, **more):
    """Stands for a fast tokenizer of transformers."""
    return SimpleNamespace(backend_tokenizer=SimpleNamespace(to_str=lambda: json.dumps(content)), **more)


def test_what_a_call_does_to_the_tokenizer_is_no_setting():
    content = {"model": {"vocab": {"a": 0}}, "padding": None, "truncation": None}
    model = Module(tokenizer=tokenizer(content))
    before = settings_of(model)
    content |= {"padding": {"strategy": "BatchLongest"}, "truncation": {"max_length": 32}}
    assert settings_of(model) == before


def configured(**config):
    part = SimpleNamespace(config=SimpleNamespace(to_dict=lambda: config))
    return Module(modules=lambda: [part, part, SimpleNamespace()])


def test_how_layers_were_made():
    assert settings_of(Module("f at 0x7f12>")) == settings_of(Module("f at 0x8e34>"))  # an address is no setting
    assert settings_of(configured(hidden_act="gelu")) != settings_of(configured(hidden_act="relu"))
    assert settings_of(configured(_name_or_path="/here")) == settings_of(configured(_name_or_path="/there"))


class Layer:
    __module__ = "transformers.models"


class Own(Layer):
    pass


@pytest.mark.parametrize("layer", [Layer(), Own()])
def test_versions_of_the_packages_that_a_model_is_made_of(monkeypatch, layer):
    model = Module(modules=lambda: [layer])
    found = []
    for number in ("1", "2"):
        monkeypatch.setattr("naysay.encode.model.version", lambda name, number=number: number)
        found.append((settings_of(model), settings_of(Module())))
    assert found[0][0] != found[1][0]
    assert found[0][1] == found[1][1]


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


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "intfloat/e5-base_v2.1"])
@pytest.mark.parametrize(
    ("answer", "cache_only"),
    [(None, False), (HfHubHTTPError("401"), False), (OSError("no route"), True), (TimeoutError(), True)],
)
def test_a_name_is_passed_on_and_without_a_network_only_the_cache_is_read(package, hub, name, answer, cache_only):
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
