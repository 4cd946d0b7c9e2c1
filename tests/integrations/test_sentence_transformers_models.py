"""Real models of sentence-transformers, made here and small, where that package is installed."""

import warnings

import numpy as np
import pytest

from naysay.encode.model import load_model, weights_hash
from naysay.encode.texts import encode_texts
from naysay.integrations.sentence_transformers import mine_hard_negatives

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import datasets
    import tokenizers
    import torch
    import transformers
    from sentence_transformers.util import mine_hard_negatives as theirs

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(40)), "q:", "cat", "dog"]
QUERIES, DOCUMENTS = [f"w{i}" for i in range(20)], [f"w{i} w{i + 20}" for i in range(20)]
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")


def bert(folder, seed):
    """A BERT of one layer with random weights, loaded from a local folder; its name is None, as for any checkpoint."""
    torch.manual_seed(seed)  # noqa: TID251  (transformers draws weights from it)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    named = {
        "unk_token": "[UNK]",
        "pad_token": "[PAD]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, **named).save_pretrained(folder)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=32, initializer_range=0.5, **sizes)
    transformers.BertModel(config).save_pretrained(folder)
    return load_model(folder, device="cpu")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return [bert(folder / str(seed), seed) for seed in (1, 2)]


def pairs():
    return datasets.Dataset.from_dict({"query": QUERIES, "answer": DOCUMENTS})


def test_0_their_cache_answers_for_another_model_and_ours_does_not(models, tmp_path):
    options = {"num_negatives": 3, "verbose": False}
    for mine, wrong in ((theirs, True), (mine_hard_negatives, False)):
        folder = str(tmp_path / mine.__module__)
        mine(pairs(), models[0], cache_folder=folder, **options)
        fresh = list(mine(pairs(), models[1], **options)["negative"])
        cached = list(mine(pairs(), models[1], cache_folder=folder, **options)["negative"])
        assert (cached != fresh) is wrong


@pytest.mark.parametrize("form", ["triplet", "n-tuple", "labeled-pair", "labeled-list"])
def test_the_same_negatives(models, form):
    options = {"num_negatives": 3, "relative_margin": 0.05, "verbose": False, "output_format": form}
    one, other = (mine(pairs(), models[0], **options) for mine in (theirs, mine_hard_negatives))
    assert one.features == other.features
    assert one.to_dict() == other.to_dict()


def test_a_model_that_was_saved_and_loaded_is_the_same(models, tmp_path):
    models[0].save(str(tmp_path / "model"))
    again = load_model(tmp_path / "model", device="cpu")
    assert weights_hash(again) == weights_hash(models[0])
    first = encode_texts(models[0], DOCUMENTS, folder=tmp_path)
    assert encode_texts(again, DOCUMENTS, folder=tmp_path) == first
    with torch.no_grad():
        next(again.parameters()).view(-1)[0] += 1
    assert weights_hash(again) != weights_hash(models[0])
    assert encode_texts(again, DOCUMENTS, folder=tmp_path) != first


def test_prompts_by_name_and_by_side(models, tmp_path):
    model = models[0]
    model.prompts["query"] = "q: "
    try:
        by_side = np.load(encode_texts(model, QUERIES, folder=tmp_path, side="query"))
        by_name = np.load(encode_texts(model, QUERIES, folder=tmp_path, prompt_name="query"))
        assert np.allclose(by_side, by_name, atol=1e-6)
        assert np.allclose(by_side, model.encode_query(QUERIES), atol=1e-5)
        options = {"num_negatives": 2, "verbose": False, "query_prompt_name": "query"}
        one, other = (mine(pairs(), model, **options) for mine in (theirs, mine_hard_negatives))
        assert one.to_dict() == other.to_dict()
    finally:
        del model.prompts["query"]
