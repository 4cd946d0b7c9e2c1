"""encode_texts: the vectors of texts in a file, kept, resumed, and never those of another model."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from text_model import DISTINCT, TEXTS, Model, expected, names

from naysay.encode import texts as encode
from naysay.encode.texts import encode_texts
from naysay.errors import NaysayError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(encode, "BLOCK", 3)


# ---- the vectors ----------------------------------------------------------------------------------------


def test_a_row_for_each_text_and_a_call_for_each_distinct_one(tmp_path):
    model = Model()
    path = encode_texts(model, TEXTS, folder=tmp_path)
    found = np.load(path, allow_pickle=False)
    assert found.dtype == np.float32
    assert (found == expected(TEXTS, model)).all()
    assert model.asked == [DISTINCT[:3], DISTINCT[3:6], DISTINCT[6:]]
    assert names(tmp_path) == [path.name]  # no block and no draft is left


@settings(max_examples=30)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=3), min_size=1, max_size=12))
def test_any_texts(tmp_path_factory, texts):
    model = Model()
    path = encode_texts(model, texts, folder=tmp_path_factory.mktemp("vectors"))
    assert (np.load(path) == expected(texts, model)).all()
    asked = [text for block in model.asked for text in block]
    assert asked == [*dict.fromkeys(texts)]


def test_forms_of_texts(tmp_path):
    model = Model()
    chunks = pa.chunked_array([TEXTS[:4], TEXTS[4:]])
    forms = [TEXTS, tuple(TEXTS), np.array(TEXTS), pa.array(TEXTS), chunks, pa.array(["x", *TEXTS])[1:]]
    paths = {encode_texts(model, form, folder=tmp_path) for form in forms}
    assert len(paths) == 1
    assert len(model.asked) == 3


def test_what_the_model_is_asked(tmp_path):
    model = Model()
    encode_texts(model, TEXTS, folder=tmp_path, batch_size=5, prompt="query: ")
    assert model.options[0] == {
        "batch_size": 5, "prompt": "query: ", "convert_to_numpy": True, "show_progress_bar": False,
    }  # fmt: skip
    assert (
        np.load(encode_texts(model, TEXTS, folder=tmp_path, prompt="query: ")) == expected(TEXTS, model, "query: ")
    ).all()


def test_sides(tmp_path):
    class Sided(Model):
        def encode_query(self, texts, **options):
            return -self.encode(texts, **options)

    model = Sided()
    found = {side: np.load(encode_texts(model, ["one"], folder=tmp_path, side=side)) for side in ("query", "document")}
    assert (found["query"] == -found["document"]).all()


def test_a_tensor_in_half_precision(tmp_path):
    torch = pytest.importorskip("torch")
    model = Model()
    model.encode = lambda texts, **options: torch.ones(len(texts), 2, dtype=torch.bfloat16) / 3
    found = np.load(encode_texts(model, TEXTS, folder=tmp_path))
    assert found.dtype == np.float32
    assert np.allclose(found, 1 / 3, atol=1e-2)


# ---- kept, by what they are made of ------------------------------------------------------------------------


def test_the_second_run_asks_nothing(tmp_path):
    first = encode_texts(Model(), TEXTS, folder=tmp_path)
    again = Model()
    assert encode_texts(again, TEXTS, folder=tmp_path) == first
    assert again.asked == []


class Other(Model):
    pass


def longer():
    model = Model()
    model.max_seq_length = 9
    return model


def prompted():
    model = Model()
    model.prompts = {"query": "q: "}
    return model


@pytest.mark.parametrize(
    ("model", "texts", "options"),
    [
        (Model(np.nextafter(1.0, 2.0)), TEXTS, {}),  # one bit of one weight
        (Other(), TEXTS, {}),
        (longer(), TEXTS, {}),
        (prompted(), TEXTS, {}),
        (Model(), TEXTS[:-1], {}),
        (Model(), TEXTS[::-1], {}),
        (Model(), [*TEXTS[:3], "two", *TEXTS[4:]], {}),  # another row is the double
        (Model(), TEXTS, {"prompt": "q"}),
        (Model(), TEXTS, {"side": "query"}),
    ],
)
def test_whatever_is_another_is_encoded_anew(tmp_path, model, texts, options):
    first = encode_texts(Model(), TEXTS, folder=tmp_path)
    model.asked.clear()
    path = encode_texts(model, texts, folder=tmp_path, **options)
    assert path != first
    assert model.asked
    assert (np.load(path) == expected(texts, model, options.get("prompt", ""))).all()


def test_the_same_letters_in_other_texts(tmp_path):
    lists = [["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["", "abc"], ["", "ab", "c"]]
    assert len({encode_texts(Model(), texts, folder=tmp_path) for texts in lists}) == len(lists)


def test_a_model_that_was_trained_is_another_model(tmp_path):
    """ST 0: its cache goes by the name of the base model, and returns the vectors from before the training."""
    model = Model()
    before = np.load(encode_texts(model, TEXTS, folder=tmp_path))
    model.weight[0] = 2.0
    after = np.load(encode_texts(model, TEXTS, folder=tmp_path))
    assert (after == 2 * before).all()


def test_a_model_without_weights(tmp_path):
    class Service:
        def encode(self, texts, **options):
            return np.ones((len(texts), 2))

    with pytest.warns(UserWarning, match=r"^encode_texts: Service has no weights and no cache_key, so its vectors are"):
        first = encode_texts(Service(), TEXTS, folder=tmp_path)
    assert np.load(first).shape == (10, 2)
    quiet = encode_texts(Service(), TEXTS, folder=tmp_path, cache=False)
    assert quiet != first
    named = Service()
    named.cache_key = "service 3"
    kept = [encode_texts(named, TEXTS, folder=tmp_path) for _ in range(2)]
    assert kept[0] == kept[1]
    named.cache_key = "service 4"
    assert encode_texts(named, TEXTS, folder=tmp_path) != kept[0]
    assert len(names(tmp_path)) == 4


def test_without_a_cache_nothing_is_found(tmp_path):
    model = Model()
    first, second = (encode_texts(model, TEXTS, folder=tmp_path, cache=False) for _ in range(2))
    assert first != second
    assert first.read_bytes() == second.read_bytes()
    assert len(model.asked) == 6
    assert len(names(tmp_path)) == 2


# ---- errors --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], r"^encode_texts: `texts` must be at least one text, got none\.$"),
        ("one", r"^encode_texts: `texts` must be a sequence of strings, got 'one'\.$"),
        (7, r"^encode_texts: `texts` must be a sequence of strings, got 7\.$"),
        (["a", None, None], r"^encode_texts: `texts` must be strings, got None at row 1 \(2 such rows\)\.$"),
        (["a", 3], r"^encode_texts: `texts` must be strings, got 3 at row 1 \(1 such row\)\.$"),
        (["a", "\ud800"], r"^encode_texts: `texts` must be text that UTF-8 can hold, got '\\ud800' at row 1 \(surr"),
        (pa.array([1, 2]), r"^encode_texts: `texts` must be strings, got an Arrow column of int64\.$"),
        (pa.array(["a", None]), r"^encode_texts: `texts` must be strings, got None at row 1 \(1 such row\)\.$"),
    ],
)
def test_texts_that_are_none(tmp_path, texts, message):
    with pytest.raises(NaysayError, match=message):
        encode_texts(Model(), texts, folder=tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            np.ones(3),
            r"^encode_texts: `model` must be a model that returns \(3, d\) numbers for 3 texts, got shape \(3,\)",
        ),
        (np.ones((2, 4)), r"got shape \(2, 4\)\.$"),
        (np.ones((3, 0)), r"got shape \(3, 0\)\.$"),
        (np.full((3, 2), "a"), r"got dtype <U1\.$"),
        (
            np.array([[0, 0], [0, np.nan], [np.inf, 0]]),
            r"must be a model that returns finite numbers, got NaN or infinity for 'two', distinct text 1, and",
        ),
    ],
)
def test_answers_that_are_no_vectors(tmp_path, answer, message):
    model = Model()
    model.encode = lambda texts, **options: answer
    with pytest.raises(NaysayError, match=message):
        encode_texts(model, TEXTS, folder=tmp_path)
    assert not list(tmp_path.rglob("*.npy"))


def test_a_width_that_changes(tmp_path):
    model = Model()
    model.encode = lambda texts, **options: np.ones((len(texts), 2 if "one" in texts else 3))
    with pytest.raises(NaysayError, match=r"returns \(3, 2\) numbers for 3 texts, got shape \(3, 3\)\.$"):
        encode_texts(model, TEXTS, folder=tmp_path)


def test_other_errors(tmp_path):
    with pytest.raises(NaysayError, match=r"^encode_texts: `batch_size` must be at least 1, got 0\.$"):
        encode_texts(Model(), TEXTS, folder=tmp_path, batch_size=0)
    with pytest.raises(
        NaysayError, match=r"`side` must be one of 'query', 'document', got 'querry'\. Did you mean 'query'\?"
    ):
        encode_texts(Model(), TEXTS, folder=tmp_path, side="querry")
    with pytest.raises(NaysayError, match=r"`model` must be an object with a method encode\(texts\), got int\.$"):
        encode_texts(3, TEXTS, folder=tmp_path)
    with pytest.raises(
        NaysayError, match=r"`model` must be a model, not its name, got 'MiniLM'\. Pass load_model\(name\)"
    ):
        encode_texts("MiniLM", TEXTS, folder=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(NaysayError, match=r"`folder` must be a folder that can be written, got '.* \(File exists\)"):
        encode_texts(Model(), TEXTS, folder=tmp_path / "file")
