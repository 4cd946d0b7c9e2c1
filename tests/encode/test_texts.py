"""encode_texts: the vectors of texts in a file, cached, resumed, and never those of another model."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from text_model import DISTINCT, TEXTS, Model, expected, names

from naysay.encode import encode_texts, load_model, weights_hash
from naysay.encode import texts as encode
from naysay.errors import NaysayError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(encode, "BLOCK", 3)


def test_a_row_for_each_text_and_a_call_for_each_distinct_one(tmp_path):
    model = Model()
    path = encode_texts(model, TEXTS, folder=tmp_path, batch_size=5)
    found = np.load(path, allow_pickle=False)
    assert found.dtype == np.float32
    assert (found == expected(TEXTS, model)).all()
    assert model.asked == [DISTINCT[:3], DISTINCT[3:6], DISTINCT[6:]]
    assert model.options[0] == {"batch_size": 5, "convert_to_numpy": True, "show_progress_bar": False}
    assert names(tmp_path) == [path.name]  # no part and no draft is left


@settings(max_examples=10)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=3), min_size=1, max_size=12))
def test_any_texts(tmp_path_factory, texts):
    model = Model()
    path = encode_texts(model, texts, folder=tmp_path_factory.mktemp("vectors"))
    assert (np.load(path) == expected(texts, model)).all()
    assert [text for block in model.asked for text in block] == [*dict.fromkeys(texts)]


def test_forms_of_texts(tmp_path):
    model = Model()
    chunks = pa.chunked_array([TEXTS[:4], TEXTS[4:]])
    forms = [TEXTS, tuple(TEXTS), np.array(TEXTS), pa.array(TEXTS), chunks, pa.array(["x", *TEXTS])[1:]]
    assert len({encode_texts(model, form, folder=tmp_path) for form in forms}) == 1
    assert len(model.asked) == 3


def test_prompts_sides_and_half_precision(tmp_path):
    class Sided(Model):
        def encode_query(self, texts, **options):
            return -self.encode(texts, **options)

    model = Sided()
    prompted = np.load(encode_texts(model, TEXTS, folder=tmp_path, prompt="query: "))
    assert (prompted == expected(TEXTS, model, "query: ")).all()
    found = {side: np.load(encode_texts(model, ["one"], folder=tmp_path, side=side)) for side in ("query", "document")}
    assert (found["query"] == -found["document"]).all()
    model.encode = lambda texts, **options: torch.ones(len(texts), 2, dtype=torch.bfloat16) / 3
    half = np.load(encode_texts(model, TEXTS, folder=tmp_path, cache=False))
    assert half.dtype == np.float32
    assert np.allclose(half, 1 / 3, atol=1e-2)


# ---- the cache ------------------------------------------------------------------------------------------


class Other(Model):
    pass


def changed(**settings):
    model = Model()
    vars(model).update(settings)
    return model


@pytest.mark.parametrize(
    ("model", "texts", "options"),
    [
        (Model(np.nextafter(1.0, 2.0)), TEXTS, {}),  # one bit of one weight
        (Other(), TEXTS, {}),
        (changed(max_seq_length=9), TEXTS, {}),
        (changed(prompts={"query": "q: "}), TEXTS, {}),
        (Model(), TEXTS[:-1], {}),
        (Model(), TEXTS[::-1], {}),
        (Model(), ["".join(TEXTS)], {}),  # the same letters in other texts
        (Model(), [*TEXTS[:3], "two", *TEXTS[4:]], {}),  # another row repeats
        (Model(), TEXTS, {"prompt": "q"}),
        (Model(), TEXTS, {"side": "query"}),
    ],
)
def test_only_the_same_texts_by_the_same_model_are_reused(tmp_path, model, texts, options):
    first = encode_texts(Model(), TEXTS, folder=tmp_path)
    again = Model()
    assert encode_texts(again, TEXTS, folder=tmp_path) == first
    assert again.asked == []
    path = encode_texts(model, texts, folder=tmp_path, **options)
    assert path != first
    assert (np.load(path) == expected(texts, model, options.get("prompt", ""))).all()


def test_a_model_without_weights_needs_a_key(tmp_path):
    class Service:
        def encode(self, texts, **options):
            return np.ones((len(texts), 2))

    with pytest.warns(UserWarning, match=r"^encode_texts: Service has no weights and no cache_key"):
        first = encode_texts(Service(), TEXTS, folder=tmp_path)
    assert np.load(first).shape == (10, 2)
    quiet = [encode_texts(Service(), TEXTS, folder=tmp_path, cache=False) for _ in range(2)]
    assert len({first, *quiet}) == 3
    assert quiet[0].read_bytes() == quiet[1].read_bytes()
    named = Service()
    named.cache_key = "service 3"
    kept = [encode_texts(named, TEXTS, folder=tmp_path) for _ in range(2)]
    assert kept[0] == kept[1]
    named.cache_key = "service 4"
    assert encode_texts(named, TEXTS, folder=tmp_path) != kept[0]


# ---- killed, at the same time, damaged ------------------------------------------------------------------


def test_a_failed_run_is_resumed_and_only_own_files_are_removed(tmp_path):
    whole = encode_texts(Model(), TEXTS, folder=tmp_path / "whole")
    folder, model = tmp_path / "parts", Model()
    model.fail_at = 2
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, TEXTS, folder=folder)
    assert not list(folder.glob("*.npy"))  # nothing half made has the name of a result
    (parts,) = (path for path in folder.iterdir() if path.is_dir())
    others = [parts / "notes.txt", folder / "vectors-of-mine.npy"]
    for other in others:
        other.write_text("mine")
    model.fail_at, model.asked = None, []
    path = encode_texts(model, TEXTS, folder=folder)
    assert model.asked == [DISTINCT[6:]]
    assert path.name == whole.name
    assert path.read_bytes() == whole.read_bytes()
    assert names(folder) == sorted([parts.name, path.name, *(str(other.relative_to(folder)) for other in others)])


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
import text_model
from naysay.encode import texts as encode
encode.BLOCK = 3
model = text_model.Model()
answer = model.encode
def once(texts, **options):
    if len(model.asked) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return answer(texts, **options)
model.encode = once
encode.encode_texts(model, text_model.TEXTS, folder=sys.argv[1])
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_a_killed_run_is_resumed(tmp_path):
    arguments = [sys.executable, "-c", KILLED, str(tmp_path), str(Path(__file__).parent)]
    finished = subprocess.run(arguments, capture_output=True, timeout=120, check=False)
    assert finished.returncode == -signal.SIGKILL, finished.stderr.decode()
    model = Model()
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert model.asked == [DISTINCT[6:]]
    assert (np.load(path) == expected(TEXTS, model)).all()
    assert names(tmp_path) == [path.name]


def test_a_second_run_at_the_same_time_is_refused_and_takes_nothing_from_the_first(tmp_path):
    model, refused = Model(), []
    encode_one = model.encode

    def meanwhile(texts, **options):
        with pytest.raises(NaysayError) as error:
            encode_texts(Model(), TEXTS, folder=tmp_path)
        refused.append(error.value.parameter)
        encode_texts(Model(2.0), TEXTS, folder=tmp_path)  # another model, whose vectors are another file
        return encode_one(texts, **options)

    model.encode = meanwhile
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert refused == ["folder"] * 3
    assert np.array_equal(np.load(path), expected(TEXTS, model))
    assert names(tmp_path) == sorted([path.name, encode_texts(Model(2.0), TEXTS, folder=tmp_path).name])


def flipped(data):
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.parametrize("damage", [flipped, lambda data: data[:-5]])
def test_what_is_damaged_is_encoded_again(tmp_path, damage):
    model = Model()
    model.fail_at = 2
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, TEXTS, folder=tmp_path)
    parts = sorted(tmp_path.rglob("*.npz"))
    assert len(parts) == 2
    parts[0].write_bytes(damage(parts[0].read_bytes()))
    model.fail_at, model.asked = None, []
    path = encode_texts(model, TEXTS, folder=tmp_path)
    assert model.asked == [DISTINCT[:3], DISTINCT[6:]]
    good = path.read_bytes()
    assert (np.load(path) == expected(TEXTS, model)).all()
    path.write_bytes(damage(good)[: len(good) - 1])
    assert encode_texts(Model(), TEXTS, folder=tmp_path).read_bytes() == good
    assert names(tmp_path) == [path.name]


# ---- processes -----------------------------------------------------------------------------


def test_processes_are_started_and_stopped(tmp_path):
    class Many(Model):
        log = ()

        def start_multi_process_pool(self, target_devices=None):
            self.log = (*self.log, ("start", target_devices))
            return {"input": 1}

        def stop_multi_process_pool(self, pool):
            self.log = (*self.log, ("stop", pool))

    model = Many()
    encode_texts(model, TEXTS, folder=tmp_path, processes=["cpu", "cpu"])
    assert model.log == (("start", ["cpu", "cpu"]), ("stop", {"input": 1}))
    assert {str(options["pool"]) for options in model.options} == {"{'input': 1}"}
    encode_texts(model, TEXTS, folder=tmp_path, processes=True)
    assert len(model.log) == 2  # what is cached needs none
    model.fail_at = 0
    with pytest.raises(RuntimeError, match="out of memory"):
        encode_texts(model, ["other"], folder=tmp_path, processes=True)
    assert model.log[2:] == (("start", None), ("stop", {"input": 1}))


# ---- invalid calls --------------------------------------------------------------------------------------


def returning(*answers):
    """A model that returns these, one after another, and then the last one."""
    given = list(answers)
    model = Model()
    model.encode = lambda texts, **options: given.pop(0) if len(given) > 1 else given[0]
    return model


def with_state(state):
    return SimpleNamespace(state_dict=lambda: state)


CALL = {"model": Model(), "texts": TEXTS, "folder": "vectors"}
SPARSE = torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), check_invariants=True)
INVALID = [
    *(
        (encode_texts, {**CALL, "texts": texts}, "texts")
        for texts in ([], "one", 7, ["a", None], ["a", 3], ["a", "\ud800"], pa.array([1]), pa.array(["a", None]))
    ),
    *(
        (encode_texts, {**CALL, "model": model}, "model")
        for model in (
            *(3, "MiniLM"),
            *(returning(np.ones(3)), returning(np.ones((2, 4))), returning(np.ones((3, 0)))),
            *(returning(np.full((3, 2), "a")), returning(np.array([[0, 0], [0, np.nan], [np.inf, 0]]))),
            returning(np.ones((3, 2)), np.ones((3, 3))),
        )
    ),
    (encode_texts, {**CALL, "batch_size": 0}, "batch_size"),
    (encode_texts, {**CALL, "side": "querry"}, "side"),
    (encode_texts, {**CALL, "folder": __file__}, "folder"),
    *((weights_hash, {"model": with_state(state)}, "model") for state in ({"x": {}}, [], {"x": np.array([None])})),
    (weights_hash, {"model": with_state({"w": SPARSE})}, "model"),
    *((weights_hash, {"model": SimpleNamespace(cache_key=key)}, "model.cache_key") for key in ("", 3)),
    *((load_model, {"name": name}, "name") for name in ("./encoder", "/no/such", "a/b/c", "no such folder", ".")),
]


@pytest.mark.parametrize(("call", "given", "parameter"), INVALID)
def test_an_invalid_call_names_its_parameter(call, given, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NaysayError) as error:
        call(**given)
    assert error.value.parameter == parameter
    assert f"`{parameter}` must be " in str(error.value)
    assert not list(tmp_path.rglob("*.np*")) or len(list(tmp_path.rglob("*.npz"))) == 1  # a first block that was sound
