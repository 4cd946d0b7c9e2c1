"""encode_texts with a real SentenceTransformer, made here: nothing is encoded twice."""

import pytest

from naysay.encode import texts
from naysay.encode.model import load_model, settings_of
from naysay.errors import NaysayError

tokenizers = pytest.importorskip("tokenizers", reason="sentence-transformers is not installed")
transformers = pytest.importorskip("transformers", reason="sentence-transformers is not installed")
package = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
torch = pytest.importorskip("torch")

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{row}" for row in range(40))]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")

QUERIES, DOCUMENTS = [f"w{row}" for row in range(20)], [f"w{row} w{row + 20} w3" for row in range(20)]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a BERT of one layer with random weights."""
    folder = str(tmp_path_factory.mktemp("model"))
    torch.manual_seed(0)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: row for row, word in enumerate(WORDS)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    named = {f"{name}_token": f"[{name.upper()}]" for name in ("unk", "pad", "cls", "sep", "mask")}
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **named).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def encoded(saved, folder, failing_after=None):
    """Load the model and encode in blocks of 8: how many texts the model was given, and the names of the files."""
    model, seen = load_model(saved, device="cpu"), []
    own = model.encode

    def encode(block, **options):
        if len(seen) == failing_after:
            raise KeyboardInterrupt
        seen.append(len(block))
        return own(block, **options)

    model.encode = encode
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(texts, "BLOCK", 8)
        made = [texts.encode_texts(model, QUERIES, folder=folder, prompt="w1 ")]
        made.append(texts.encode_texts(model, DOCUMENTS, folder=folder))
    return [sum(seen), [path.name for path in made]]


def test_nothing_is_encoded_twice(saved, tmp_path):
    """Neither by a model that was loaded again, nor after a run that ended early."""
    whole, ended = tmp_path / "whole", tmp_path / "ended"
    count, names = encoded(saved, whole)
    assert count == 40
    assert encoded(saved, whole) == [0, names]
    with pytest.raises(KeyboardInterrupt):
        encoded(saved, ended, failing_after=4)  # 20 queries and 8 documents are done
    assert encoded(saved, ended) == [12, names]
    for name in names:
        assert (ended / name).read_bytes() == (whole / name).read_bytes()


def test_what_decides_the_vectors_decides_the_key(saved):
    model = load_model(saved, device="cpu")
    before = settings_of(model)
    model.encode(["w1 w2 w3", "w1"], batch_size=1)
    assert settings_of(model) == before
    found = {before}
    backend = model.tokenizer.backend_tokenizer
    backend.normalizer = tokenizers.normalizers.Lowercase()
    found.add(settings_of(model))
    model.tokenizer.add_tokens(["w99"])
    found.add(settings_of(model))
    for name, value in (("max_seq_length", 7), ("prompts", {"query": "w1 "}), ("truncate_dim", 4)):
        setattr(model, name, value)
        found.add(settings_of(model))
    words, pooling = model
    found.add(settings_of(package.SentenceTransformer(modules=[words, type(pooling)(16, "cls")], device="cpu")))
    assert len(found) == 7


def test_a_wrong_device_and_a_damaged_model_are_one_sentence(saved, tmp_path):
    with pytest.raises(
        NaysayError, match=r"^load_model: `device` must be one that torch can use here, got 'nodevice'\. "
    ):
        load_model(saved, device="nodevice")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(NaysayError, match=r"^load_model: `name` must be a model that sentence-transformers can load, "):
        load_model(tmp_path)
