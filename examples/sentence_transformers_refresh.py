"""Train with SentenceTransformerTrainer on negatives that are mined again, with the model as it is, before each epoch.

Prints:
    step 0 {'score/negatives': 0.32, 'false_share': 0.04}
    step 5 {'score/negatives': 0.42, 'false_share': 0.04} replaced: 0.8
    step 10 {'score/negatives': 0.48, 'false_share': 0.04} replaced: 0.6
"""

import tempfile

import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PrinterCallback

from naysay.integrations.sentence_transformers import RefreshNegatives, mask_false_negatives

words = Tokenizer(models.WordLevel({"?": 0} | {f"w{i}": i + 1 for i in range(60)}, unk_token="?"))
words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
table = torch.randn(61, 8, generator=torch.Generator().manual_seed(0)).numpy()
model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_weights=table)], device="cpu")
pairs = Dataset.from_dict({"question": [f"w{i}" for i in range(30)], "answer": [f"w{i + 30} w{i}" for i in range(30)]})
loss = mask_false_negatives(MultipleNegativesRankingLoss(model), "margin:-0.1")
refresh = RefreshNegatives(every="epoch", k=2)  # this line, and `callbacks`, is all that a script needs

with tempfile.TemporaryDirectory() as folder:
    quiet = {"report_to": "none", "disable_tqdm": True, "save_strategy": "no", "dataloader_pin_memory": False}
    args = SentenceTransformerTrainingArguments(folder, per_device_train_batch_size=6, learning_rate=0.1, **quiet)
    trainer = SentenceTransformerTrainer(model, args, train_dataset=pairs, loss=loss, callbacks=[refresh])
    trainer.remove_callback(PrinterCallback)
    trainer.train()
for entry in trainer.state.log_history:
    if "refresh/false_share" in entry:
        shown = {name: round(entry[f"refresh/{name}"], 2) for name in ("score/negatives", "false_share")}
        replaced = ["replaced:", round(entry["refresh/drift"], 2)] if "refresh/drift" in entry else []
        print("step", entry["step"], shown, *replaced)
