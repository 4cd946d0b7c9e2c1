"""Rows for what earlier batches left behind: queues of them, and a bank of all items."""

from naysay.catalog.rows import Alias, Method

QUEUE = """\
import numpy as np
import naysay as ns

images = np.arange({n})
known = ns.Positives.from_pairs(images, images)               # the other view of an image is its positive
rng = np.random.default_rng({seed})
keys = rng.standard_normal(({n}, 16)).astype(np.float32)       # what the slow encoder makes of them
keys /= np.linalg.norm(keys, axis=1, keepdims=True)
memory = ns.pools.Memory({size}, known)
{fill}
sampler = {sampler}
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # {last}
"""
BATCHES = """\
for batch in np.split(images[64:], 4):                        # earlier steps
    memory.push(batch, vectors=keys[batch])"""
_MOCO_FILL = """\
for batch in np.split(rng.permutation(images), 4):            # once a step, after the loss
    memory.observe(ns.Query(batch, positives=batch), None, vectors=keys[batch])
# fast and slow being two torch modules: ns.samplers.momentum_update(fast, slow, momentum=0.999)"""
_STATIC = "ns.samplers.Static(memory)"
_MEMORY = QUEUE.format(n=320, seed=0, size=256, fill=BATCHES, sampler=_STATIC, last="with negatives.vectors")
_MOCO = QUEUE.format(n=256, seed=1, size=192, fill=_MOCO_FILL, sampler=_STATIC, last="never the image itself")
_SENTENCES = QUEUE.format(n=192, seed=2, size=160, fill=BATCHES, sampler=_STATIC, last="sentences of earlier batches")
_GRAPHS = QUEUE.format(n=448, seed=3, size=384, fill=BATCHES, sampler=_STATIC, last="subgraphs of earlier batches")
_MOCO_V2 = QUEUE.format(n=288, seed=5, size=224, fill=_MOCO_FILL, sampler=_STATIC, last="as in MoCo")
_MOCOSE = QUEUE.format(n=256, seed=6, size=128, fill=_MOCO_FILL, sampler=_STATIC, last="a short queue of sentences")
_CERT = QUEUE.format(
    n=224, seed=7, size=192, fill=_MOCO_FILL, sampler=_STATIC, last="sentences, translated there and back"
)
_BANKED = """\
import numpy as np
import naysay as ns

images = np.arange({n})
known = ns.Positives.from_pairs(images, images)               # each image is a class of its own
features = np.random.default_rng({seed}).standard_normal(({n}, 16)).astype(np.float32)
sampler = ns.samplers.Bank(ns.pools.Everything(known), n_items={n}{options})
for batch in np.split(images, 4):                             # once a step, after the loss
    sampler.observe(ns.Query(batch, positives=batch), None, vectors=features[batch])
query = ns.Query(images[:64], positives=images[:64])
negatives = sampler.sample(query, 8, rng=ns.rng_for(seed=0))  # with negatives.vectors
"""
_BANK = _BANKED.format(n=200, seed=0, options="")
_CMC = _BANKED.format(n=280, seed=2, options=", momentum=0.5").replace(
    "# with negatives.vectors", "# of this view; a bank for each view"
)
_PIRL = _BANKED.format(n=320, seed=3, options=", momentum=0.5")
_INSTANCES = _BANKED.format(n=240, seed=1, options=", momentum=0.5")

ROWS = (
    Method(
        name="memory-queue",
        kind="auxiliary",
        pool="memory",
        summary="Items of earlier batches, first in, first out, with the vectors that they had.",
        formula="uniform over the entries that are neither the anchor's own nor known of it",
        parts="Static(Memory(65_536, positives))",
        paper="He et al. Momentum Contrast for Unsupervised Visual Representation Learning. CVPR 2020.",
        cost="O(1) a draw and the copy of its vector; 16 bytes an entry and its vector.",
        example=_MEMORY,
        aliases=(
            Alias("MoCo", "He et al. CVPR 2020.", "Keys of a slow encoder: momentum_update.", _MOCO),
            Alias("ESimCSE", "Wu et al. ESimCSE. COLING 2022.", "A queue of sentences.", _SENTENCES),
            Alias(
                "MoCo v2",
                "Chen et al. Improved Baselines with Momentum Contrastive Learning. 2020.",
                "The same queue; what is new is in the encoder.",
                _MOCO_V2,
            ),
            Alias(
                "MoCoSE",
                "Cao et al. Exploring the Impact of Negative Samples of Contrastive Learning. Findings of ACL 2022.",
                "A short queue of sentences, of a slow encoder.",
                _MOCOSE,
            ),
            Alias(
                "CERT",
                "Fang et al. CERT: Contrastive Self-supervised Learning for Language Understanding. 2020.",
                "MoCo, where the other view is a translation there and back.",
                _CERT,
            ),
            Alias("GCC", "Qiu et al. GCC. KDD 2020.", "A queue of subgraphs.", _GRAPHS),
        ),
    ),
    Method(
        name="memory-bank",
        kind="auxiliary",
        pool="memory",
        summary="Any other item, with the vector that it had when it was last seen.",
        formula="i as the pool draws; v_i <- unit(m v_i + (1 - m) f_i) when i is seen",
        parts="Bank(Everything(positives), n_items)",
        paper="Wu et al. Unsupervised Feature Learning via Non-Parametric Instance Discrimination. CVPR 2018.",
        cost="As the pool, and the copy of the vectors; n_items x d numbers.",
        example=_BANK,
        aliases=(
            Alias("CMC", "Tian et al. Contrastive Multiview Coding. ECCV 2020.", "A bank for each view.", _CMC),
            Alias(
                "PIRL",
                "Misra and van der Maaten. Self-Supervised Learning of Pretext-Invariant Representations. CVPR 2020.",
                "Images of the bank, against the transformed image and the image itself.",
                _PIRL,
            ),
            Alias("instance discrimination", "Wu et al. CVPR 2018.", "Each image is a class of its own.", _INSTANCES),
        ),
    ),
)
