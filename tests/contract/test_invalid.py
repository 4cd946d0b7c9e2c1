"""Invalid calls: each raises NaysayError with the parameter's name, in one sentence, before any work."""

import inspect
import re

import numpy as np
import pytest
import torch

import naysay as ns
from tests.contract import names
from tests.contract.world import KNOWN, N_ITEMS, NEGATIVES, POOL, QUERY, SCORES, VECTORS, of_pairs, score

RNG = ns.rng_for(0)
GRAPH = ns.Positives.from_edges([0, 1, 2], [1, 2, 3], 5)
TRIPLES = np.array([[0, 0, 1], [1, 0, 2]])
MEMORY = ns.pools.Memory(4)
NEAREST = ns.pools.Nearest(VECTORS, 4)
STATIC = ns.samplers.Static(POOL)
DYNAMIC = ns.samplers.Dynamic(POOL, score, 8)
Z, P, S = torch.eye(4), torch.zeros(4), torch.zeros(4, 3)
PAIR = {"positive": P, "negatives": S}
PARTNER = np.array([1, 0, 3, 2])
LABELS = np.zeros(4, int)
WORDS = {"query_texts": ["a", "b"], "corpus_texts": ["c", "d", "e"]}
SET = {"ids": np.array([[1], [0]]), "positives": ns.Positives.from_pairs([0, 1], [0, 1], 2, 3)}
MINE = {"queries": VECTORS[:8], "corpus": VECTORS, "positives": np.arange(8), "k": 3}
MINED = ns.mine(**MINE, judge=None)
POSTERIOR_LISTS = -np.sort(-np.random.default_rng(0).normal(size=(30, 25)), axis=1)


def nan_score(anchors, ids):
    return np.full(ids.shape, np.nan)


def nobody(anchors, ids):
    return np.zeros(ids.shape, bool)


# (call, its keywords, the parameter that the error names; several where two do not fit each other)
INVALID = [
    # Words of the library
    (ns.Query, {"anchors": np.zeros((2, 2), int)}, "anchors"),
    (ns.Query, {"anchors": [0, 1], "positives": [0]}, "positives"),
    (ns.Query, {"anchors": [0, 1], "vectors": np.zeros((3, 2))}, "vectors"),
    (ns.Query, {"anchors": [0], "step": -1}, "step"),
    (ns.Negatives, {"ids": [[1]]}, "ids"),
    (ns.Negatives, {"ids": np.array([1])}, "ids"),
    (ns.Negatives, {"ids": np.array([[1]]), "scores": np.zeros((1, 2))}, "scores"),
    (ns.rng_for, {"seed": -1}, "seed"),
    (ns.rng_for, {"seed": 0, "rank": -2}, "rank"),
    (ns.set_threads, {"count": 0}, "count"),
    (ns.Vocabulary, {"names": ["a", "a"]}, "names"),
    (ns.Vocabulary(["a"]).ids, {"names": ["b"]}, "names"),
    (ns.Positives.from_pairs, {"anchors": [0, 1], "items": [0]}, ("anchors", "items")),
    (ns.Positives.from_pairs, {"anchors": [0], "items": [-2]}, "items"),
    (ns.Positives.from_pairs, {"anchors": [0], "items": [5], "n_items": 3}, "items"),
    (ns.Positives.from_csr, {"indptr": [0, 3], "indices": [1]}, "indptr"),
    (ns.Positives.from_scipy, {"matrix": "x"}, "matrix"),
    (ns.Positives.from_edges, {"sources": [0], "targets": [-1]}, "targets"),
    (ns.Positives.from_parquet, {"path": "absent.parquet"}, "path"),
    (ns.Positives.load, {"path": "absent"}, "path"),
    (KNOWN.contains, {"anchors": [99], "items": [0]}, "anchors"),
    (KNOWN.contains, {"anchors": [0], "items": [0], "relation": "maybe"}, "relation"),
    (KNOWN.count, {"anchors": [99]}, "anchors"),
    (KNOWN.union, {"other": "x"}, "other"),
    (KNOWN.with_ignored, {"anchors": [0], "items": [99]}, "items"),
    (ns.Triples, {"triples": [[0, 1]]}, "triples"),
    (ns.Triples, {"triples": [[0, 0, 5]], "n_entities": 3}, "triples"),
    # Pools
    (ns.pools.Everything, {"positives": "x"}, "positives"),
    (ns.pools.Everything, {"positives": KNOWN, "weights": [1.0]}, "weights"),
    (ns.pools.Everything, {"positives": KNOWN, "weights": -np.ones(N_ITEMS)}, "weights"),
    (ns.pools.Everything, {"positives": KNOWN, "on_short": "wait"}, "on_short"),
    (POOL.draw, {"query": [0], "n": 2, "rng": RNG}, "query"),
    (POOL.draw, {"query": QUERY, "n": -1, "rng": RNG}, "n"),
    (POOL.draw, {"query": QUERY, "n": 2, "rng": 0}, "rng"),
    (POOL.draw, {"query": ns.Query([99]), "n": 2, "rng": RNG}, "anchors"),
    (ns.pools.Local, {"lists": [[0]], "positives": KNOWN}, "lists"),
    (ns.pools.Local, {"lists": [[0], [1]], "on_short": "wait"}, "on_short"),
    (ns.pools.InBatch, {"positives": "x"}, "positives"),
    (ns.pools.InBatch().draw, {"query": ns.Query([0]), "n": 1, "rng": RNG}, "query.positives"),
    (ns.pools.Memory, {"size": 0}, "size"),
    (MEMORY.push, {"ids": [1, 2], "owners": [0]}, ("ids", "owners")),
    (ns.pools.Nearest, {"vectors": VECTORS, "depth": 0}, "depth"),
    (ns.pools.Nearest, {"vectors": VECTORS[0], "depth": 2}, "vectors"),
    (ns.pools.Nearest, {"vectors": VECTORS, "depth": 2, "metric": "hamming"}, "metric"),
    (NEAREST.update, {"vectors": np.full_like(VECTORS, np.nan)}, "vectors"),
    (ns.pools.Refresh, {"pool": POOL, "snapshot": dict, "encode": list, "every": 5}, "pool"),
    (ns.pools.Refresh, {"pool": NEAREST, "snapshot": dict, "encode": list, "every": 0}, "every"),
    (ns.pools.Corruption, {"triples": TRIPLES, "sides": ("middle",)}, "sides"),
    (ns.pools.Corruption, {"triples": TRIPLES, "choice": "coin"}, "choice"),
    (ns.pools.KHop, {"graph": KNOWN}, "graph"),
    (ns.pools.KHop, {"graph": GRAPH, "hops": 0}, "hops"),
    (ns.pools.Walks, {"graph": "x"}, "graph"),
    (ns.pools.Walks, {"graph": GRAPH, "length": 0}, "length"),
    (ns.pools.PageRank, {"graph": GRAPH, "ranks": (3, 1)}, "ranks"),
    (ns.pools.PageRank, {"graph": GRAPH, "ranks": (0, 2), "restart": 2.0}, "restart"),
    (ns.pools.StreamingFrequency, {"size": 0}, "size"),
    (ns.pools.popularity, {"counts": [-1.0]}, "counts"),
    (ns.pools.log_uniform, {"n_items": 0}, "n_items"),
    # Samplers
    (ns.samplers.Static, {"pool": "x"}, "pool"),
    (ns.samplers.Dynamic, {"pool": "x", "score": score, "candidates": 4}, "pool"),
    (ns.samplers.Dynamic, {"pool": POOL, "score": 3, "candidates": 4}, "score"),
    (ns.samplers.Dynamic, {"pool": POOL, "score": score, "candidates": 0}, "candidates"),
    (ns.samplers.Dynamic, {"pool": POOL, "score": score, "candidates": 4, "temperature": -1.0}, "temperature"),
    (DYNAMIC.sample, {"query": QUERY, "k": -1, "rng": RNG}, "k"),
    (DYNAMIC.sample, {"query": QUERY, "k": [1], "rng": RNG}, "k"),
    (ns.samplers.Dynamic(POOL, nan_score, 4).sample, {"query": QUERY, "k": 1, "rng": RNG}, "score"),
    (ns.samplers.SemiHard, {"pool": POOL, "score": score, "candidates": 4, "margin": -1.0}, "margin"),
    (ns.samplers.SemiHard, {"pool": POOL, "score": score, "candidates": 4, "margin": 1.0, "choose": "x"}, "choose"),
    (ns.samplers.Warp, {"pool": POOL, "score": score, "trials": 0}, "trials"),
    (ns.samplers.NearPositive, {"pool": POOL, "score": score, "candidates": 0}, "candidates"),
    (ns.samplers.NearTarget, {"pool": POOL, "score": score, "candidates": 4, "target": 0.5}, "target"),
    (names.PercentileRange, {"pool": POOL, "score": score, "candidates": 4, "keep": (0.9, 0.1)}, "keep"),
    (ns.samplers.DistanceWeighted, {"pool": POOL, "score": score, "candidates": 4, "dim": 1}, "dim"),
    (ns.samplers.SoftmaxWeights, {"pool": POOL, "score": 3, "temperature": 1.0}, "score"),
    (ns.samplers.Mixed, {"parts": {}, "shares": ()}, "parts"),
    (ns.samplers.Mixed, {"parts": {"a": STATIC}, "shares": (-1.0,)}, "shares"),
    (ns.samplers.Judged, {"sampler": "x", "detector": names.MaxScore(0.5)}, "sampler"),
    (ns.samplers.Judged, {"sampler": STATIC, "detector": "x"}, "detector"),
    (ns.samplers.Judged, {"sampler": STATIC, "detector": names.MaxScore(0.5), "policy": "hide"}, "policy"),
    (names.MultiFeedback, {"levels": {}, "weights": (), "unobserved": POOL}, "levels"),
    (ns.samplers.Cached, {"pool": POOL, "score": score, "size": 0, "fresh": 4}, "size"),
    (ns.samplers.Cached, {"pool": POOL, "score": score, "size": 4, "fresh": 4, "keep": "x"}, "keep"),
    (ns.samplers.Bank, {"pool": POOL, "n_items": 0}, "n_items"),
    (ns.samplers.MoCHi, {"pool": MEMORY, "embed": None, "n_hard": 0}, "n_hard"),
    (ns.samplers.MixGCF, {"pool": POOL, "embed": 3, "candidates": 4}, "embed"),
    (ns.samplers.MixKG, {"pool": POOL, "score": None, "embed": list, "candidates": 4, "n_hard": 2}, "score"),
    (ns.samplers.MarkovChain, {"positives": "x", "score": score}, "positives"),
    (
        ns.samplers.AdaptiveOversampling,
        {"positives": KNOWN, "item_factors": VECTORS[:3], "embed": list, "scale": 1.0},
        "item_factors",
    ),
    (ns.samplers.in_blocks, {"score": score, "candidates": 0}, "candidates"),
    (
        ns.samplers.momentum_update,
        {"online": torch.nn.Linear(1, 1), "target": torch.nn.Linear(1, 1), "momentum": 2.0},
        "momentum",
    ),
    # Losses
    (ns.losses.check_values, {"enabled": "yes"}, "enabled"),
    (ns.losses.info_nce, {"positive": S, "negatives": S}, "positive"),
    (ns.losses.info_nce, {"positive": P, "negatives": torch.zeros(3, 2)}, "negatives"),
    (ns.losses.info_nce, {**PAIR, "temperature": 0.0}, "temperature"),
    (ns.losses.info_nce, {**PAIR, "mask": np.ones((1, 1), bool)}, "mask"),
    (ns.losses.info_nce, {**PAIR, "weights": -np.ones((4, 3))}, "weights"),
    (ns.losses.info_nce, {**PAIR, "log_q": np.zeros((1, 1))}, "log_q"),
    (ns.losses.bpr, {**PAIR, "mask": np.ones((1, 1), bool)}, "mask"),
    (ns.losses.hinge, {**PAIR, "margin": float("nan")}, "margin"),
    (ns.losses.bounded_margin, {**PAIR, "low": 0.5, "high": 0.1}, ("low", "high")),
    (ns.losses.sampled_bce, {"positive": P, "negatives": P}, "negatives"),
    (ns.losses.gbce, {**PAIR, "n_items": 1}, "n_items"),
    (ns.losses.decoupled, {**PAIR, "temperature": -1.0}, "temperature"),
    (ns.losses.debiased, {**PAIR, "prior": 1.0}, "prior"),
    (names.hard_negative_nce, {**PAIR, "beta": -1.0}, "beta"),
    (ns.losses.self_adversarial, {**PAIR, "alpha": -1.0}, "alpha"),
    (ns.losses.normalised_hardness, {**PAIR, "scale": -1.0}, "scale"),
    (ns.losses.margin_mse, {**PAIR, "teacher_positive": P, "teacher_negatives": P}, "teacher_negatives"),
    (ns.losses.sampled_softmax, {**PAIR, "log_q": S, "form": "new"}, "form"),
    (names.gist, {**PAIR, "guide_positive": S, "guide_negatives": S}, "guide_positive"),
    (ns.losses.distinct_log_q, {"log_q": np.ones((1, 1))}, "log_q"),
    (ns.losses.mixture_log_q, {"log_qs": [S], "shares": [0.5, 0.5]}, "shares"),
    (ns.losses.keep_hardest, {"values": P, "keep": 0.0}, "keep"),
    (ns.losses.eliminate, {"z": P, "partner": PARTNER, "labels": LABELS, "temperature": 0.5}, "z"),
    (ns.losses.eliminate, {"z": Z, "partner": PARTNER[:2], "labels": LABELS, "temperature": 0.5}, "partner"),
    (ns.losses.eliminate, {"z": Z, "partner": PARTNER, "labels": LABELS[:2], "temperature": 0.5}, "labels"),
    (ns.losses.attract, {"z": Z, "partner": PARTNER, "labels": LABELS, "temperature": 0.0}, "temperature"),
    (ns.losses.sup_con, {"z": Z, "labels": LABELS, "denominator": "some"}, "denominator"),
    (ns.losses.in_batch, {"anchors": Z, "keys": Z[:, :2]}, "keys"),
    (ns.losses.in_batch, {"anchors": Z, "keys": Z, "form": "new"}, "form"),
    (ns.losses.in_batch_hinge, {"anchors": Z, "keys": Z, "margin": -1.0}, "margin"),
    (names.invariant_spreading, {"z": Z, "partner": PARTNER[:1]}, "partner"),
    (names.proto_nce, {"z": Z, "centroids": Z[:, :2], "labels": LABELS, "temperatures": 0.1}, "centroids"),
    (ns.losses.concentrations, {"vectors": Z, "centroids": Z, "labels": LABELS, "temperature": 0.0}, "temperature"),
    (names.all_items, {"anchors": Z, "items": Z, "positives": "x"}, "positives"),
    (ns.losses.cached_step, {"encode": Z.add, "inputs": Z, "loss": torch.sum, "chunk": 0}, "chunk"),
    # Detectors
    (names.MaxScore, {"high": "x"}, "high"),
    (ns.detectors.Bands, {"low": 0.5, "high": 0.1}, ("low", "high")),
    (ns.detectors.Margin, {"margin": float("nan")}, "margin"),
    (ns.detectors.ShareOfPositive, {"share": -1.0}, "share"),
    (ns.detectors.RankWindow, {"skip": -1}, "skip"),
    (ns.detectors.Calibrated, {"alpha": 0.0}, "alpha"),
    (ns.detectors.Calibrated(0.05).fit, {"positive_scores": np.linspace(0, 1, 9)}, "positive_scores"),
    (ns.detectors.choose_thresholds, {"scores": []}, "scores"),
    (ns.detectors.choose_thresholds, {"scores": [0.1, np.nan]}, "scores"),
    (ns.detectors.choose_thresholds, {"scores": [0.1, 0.2], "false_share": 2.0}, "false_share"),
    (ns.detectors.choose_thresholds, {"scores": [0.1, 0.2], "hard_share": -1.0}, "hard_share"),
    (ns.detectors.choose_thresholds, {"scores": [0.1, 0.2], "n_positives": -1}, "n_positives"),
    (ns.detectors.Incremental, {"n_samples": 10, "clusters": 0}, "clusters"),
    (ns.detectors.Incremental, {"n_samples": 10, "clusters": 2, "temperature": 0.0}, "temperature"),
    (ns.detectors.Incremental(30, 2).update, {"features": VECTORS[:3], "progress": 0.5}, "features"),
    (ns.detectors.Incremental(30, 2).update, {"features": VECTORS, "progress": 2.0}, "progress"),
    (ns.detectors.LinearAcceptance, {"final": 2.0}, "final"),
    (ns.detectors.StepAcceptance, {"start": 2.0}, "start"),
    (ns.detectors.Posterior, {"k": 0}, "k"),
    (ns.detectors.Posterior, {"false_share": 1.5}, "false_share"),
    (ns.detectors.Posterior().fit, {"scores": np.zeros(3), "positive_scores": np.zeros(3)}, "scores"),
    (ns.detectors.Posterior().fit, {"scores": POSTERIOR_LISTS, "positive_scores": np.zeros(3)}, "positive_scores"),
    (ns.detectors.Mixture, {"family": "gamma"}, "family"),
    (ns.detectors.Duplicates, {"item_texts": ["a"], "jaccard": 2.0}, "jaccard"),
    (ns.detectors.Labelled, {"l2": -1.0}, "l2"),
    (ns.detectors.LearnedQuantile, {"n_anchors": 0}, "n_anchors"),
    (ns.detectors.SoftClusters, {"n_clusters": 0}, "n_clusters"),
    (ns.detectors.SupportViews, {"views": list, "aggregate": "median"}, "aggregate"),
    (ns.detectors.Combined, {"detectors": {}}, "detectors"),
    (ns.detectors.Combined, {"detectors": {"a": names.MaxScore(0.5)}, "rule": "vote"}, "rule"),
    (names.ByReviewer, {"reviewer": 3}, "reviewer"),
    (ns.detectors.CrossEncoder, {"path": "./no such folder"}, "path"),
    (ns.detectors.Encoder, {"path": "./no such folder"}, "path"),
    (ns.detectors.LLM, {"model": "m", "base_url": "localhost"}, "base_url"),
    (ns.detectors.People, {"path": "review.txt"}, "path"),
    (ns.detectors.AnswerFile, {"path": 3}, "path"),
    (ns.detectors.drop, {"negatives": NEGATIVES, "suspicion": np.zeros((1, 1))}, "suspicion"),
    (ns.detectors.drop, {"negatives": NEGATIVES, "suspicion": np.zeros((8, 6)), "threshold": "x"}, "threshold"),
    (ns.detectors.reweight, {"negatives": NEGATIVES, "suspicion": np.full((8, 6), 2.0)}, "suspicion"),
    (ns.detectors.attract, {"negatives": "x", "suspicion": np.zeros((8, 6))}, "negatives"),
    (ns.detectors.ignore, {"negatives": "x", "suspicion": np.zeros((8, 6))}, "negatives"),
    (ns.detectors.compact, {"negatives": "x"}, "negatives"),
    (
        ns.detectors.evaluate,
        {"detector": "x", "query": QUERY, "negatives": NEGATIVES, "truth": nobody},
        "detector",
    ),
    (ns.detectors.detection_rates, {"labels": [0, 1], "classes": [0]}, "classes"),
    (
        ns.detectors.spot_check,
        {"query": QUERY, "negatives": NEGATIVES, "judge": of_pairs, "m": 0, "rng": RNG},
        "m",
    ),
    (
        ns.detectors.judge_some,
        {"query": QUERY, "negatives": NEGATIVES, "judge": 3, "rng": RNG},
        "judge",
    ),
    (
        ns.detectors.hidden_positives,
        {"detector": names.MaxScore(0.5), "query": QUERY, "hidden": "x", "rng": RNG, "score": score},
        "hidden",
    ),
    (ns.detectors.one_per_anchor, {"anchors": [0], "rng": 3}, "rng"),
    (ns.detectors.lowest_scores, {"anchors": [0], "scores": [0.1, 0.2]}, ("anchors", "scores")),
    (
        ns.detectors.false_negative_rate,
        {"candidates": SCORES, "positives": SCORES[:, 0], "kept": 0.5, "confidence": 2.0},
        "confidence",
    ),
    (
        ns.detectors.unlabelled_share,
        {"candidates": SCORES, "positives": SCORES[:, 0], "confidence": 0.0},
        "confidence",
    ),
    (ns.detectors.cut, {"posterior": np.full((8, 6), 0.1), "k": 0, "false_share": 0.1}, "k"),
    # How many, how hard
    (ns.quantity.separation, {"auc": 1.5}, "auc"),
    (ns.quantity.auc, {"separation": float("nan")}, "separation"),
    (ns.quantity.estimate, {"train_auc": 1.5, "val_auc": [0.6]}, "train_auc"),
    (ns.quantity.estimate, {"train_auc": 0.75, "val_auc": []}, "val_auc"),
    (ns.quantity.estimate, {"train_auc": 0.75, "val_auc": [0.6], "weight": 2.0}, "weight"),
    (ns.quantity.estimate, {"train_auc": 0.75, "val_auc": [0.6], "k_max": 0}, "k_max"),
    (ns.quantity.adaptive, {"peak": 0.5, "steps": 100}, "peak"),
    (ns.quantity.adaptive, {"peak": 5, "steps": 0}, "steps"),
    (ns.quantity.adaptive, {"peak": 5, "steps": 10, "turning": 2.0}, "turning"),
    (ns.quantity.realise, {"k": -1.0, "size": 3, "rng": RNG}, "k"),
    (ns.quantity.realise, {"k": 1.5, "size": -1, "rng": RNG}, "size"),
    (ns.quantity.Linear, {"start": 1, "stop": 2, "steps": 0}, "steps"),
    (ns.quantity.Online, {"steps": 0}, "steps"),
    (ns.difficulty.percentiles, {"scores": np.zeros(3)}, "scores"),
    (ns.difficulty.bands, {"scores": SCORES, "hard": 2.0}, "hard"),
    (ns.difficulty.gradient_mass, {"scores": SCORES, "temperature": 0.0}, "temperature"),
    (
        ns.difficulty.same_class_share,
        {"scores": SCORES, "labels": [0], "negative_labels": np.zeros(N_ITEMS, int)},
        "labels",
    ),
    (ns.difficulty.consistency, {"scores": SCORES, "hard": 0.0}, "hard"),
    (ns.difficulty.study, {"anchors": VECTORS, "negatives": VECTORS[:, :2]}, "negatives"),
    (ns.difficulty.Monitor, {"every": 0}, "every"),
    # Batches, loaders, processes
    (ns.batches.Shuffled, {"n": 10, "size": 0}, "size"),
    (ns.batches.Grouped, {"groups": [0, 1], "size": 0}, "size"),
    (ns.batches.ByLoss, {"n": 0, "size": 2}, "n"),
    (names.RandomWalkBatches, {"n": 10, "size": 0}, "size"),
    (ns.batches.BatchSampler, {"batches": "x"}, "batches"),
    (ns.data.loader, {"positives": "x", "sampler": STATIC, "batch_size": 4}, "positives"),
    (ns.data.loader, {"positives": KNOWN, "sampler": STATIC, "batch_size": 0}, "batch_size"),
    (ns.data.loader, {"positives": KNOWN, "sampler": STATIC, "batch_size": 4, "rank": 3, "ranks": 2}, "rank"),
    (ns.distributed.WholeBatch, {"sampler": "x"}, "sampler"),
    (ns.distributed.in_shares, {"score": 3}, "score"),
    # Mining
    (ns.mine, {**MINE, "queries": np.zeros(3)}, "queries"),
    (ns.mine, {**MINE, "queries": np.full((8, 4), np.nan)}, "queries"),
    (ns.mine, {**MINE, "queries": np.zeros((8, 4))}, "queries"),
    (ns.mine, {**MINE, "corpus": VECTORS[:, :2]}, ("queries", "corpus")),
    (ns.mine, {**MINE, "positives": [99] * 8}, "positives"),
    (ns.mine, {**MINE, "k": -1}, "k"),
    (ns.mine, {**MINE, "metric": "hamming"}, "metric"),
    (ns.mine, {**MINE, "judge": "oracle"}, "judge"),
    (ns.mine, {**MINE, "false_share": 0.0}, "false_share"),
    (ns.mine, {**MINE, "seed": -1}, "seed"),
    (ns.mine, {**MINE, "depth": 0}, "depth"),
    (ns.mine, {**MINE, "rank_range": (5, 2)}, "rank_range"),
    (ns.mine, {**MINE, "select": "worst"}, "select"),
    (ns.mine, {**MINE, "on_short": "wait"}, "on_short"),
    (ns.mine, {**MINE, "approximate": "tree"}, "approximate"),
    (ns.mine, {**MINE, "threads": 0}, "threads"),
    (MINED.explain, {"anchor": 99}, "anchor"),
    (MINED.write, {"path": "x.jsonl", "format": "tripple"}, "format"),
    (MINED.report, {"path": "x.txt"}, "path"),
    (names.search, {"queries": VECTORS, "corpus": VECTORS, "depth": 0}, "depth"),
    (names.search, {"queries": VECTORS, "corpus": VECTORS, "depth": 2, "metric": "hamming"}, "metric"),
    (ns.search.open_vectors, {"vectors": "absent.npy"}, "vectors"),
    (ns.mining.bm25, {"query_texts": ["a"], "corpus_texts": ["a"], "depth": 0}, "depth"),
    (ns.encode.encode_texts, {"model": 3, "texts": ["a"], "folder": "absent"}, "model"),
    (ns.formats.write_negatives, {"path": "x.jsonl", "format": "tripple", **SET}, "format"),
    (ns.formats.write_negatives, {"path": "x.docx", "format": "triplet", **SET, **WORDS}, "path"),
    (ns.formats.write_negatives, {"path": "x.jsonl", "format": "ids", **SET, "scores": np.zeros((1, 1))}, "scores"),
    (ns.formats.read_negatives, {"path": "absent.jsonl"}, "path"),
    (ns.formats.read_run, {"path": "absent.trec", "query_ids": ["a"], "corpus_ids": ["b"]}, "path"),
    (ns.formats.read_beir, {"folder": "absent"}, "folder"),
    (ns.audit, {"negatives": 3}, "negatives"),
    (ns.audit, {"negatives": "absent.jsonl"}, "negatives"),
    (ns.compare, {"data": "absent.csv", "task": "recommendation"}, "data"),
    (ns.audit, {"negatives": MINED, "temperature": 0.0}, "temperature"),
    (ns.audit, {"negatives": MINED, "alpha": 2.0}, "alpha"),
    (ns.compare, {"data": "absent.csv", "task": "chess"}, "task"),
    (ns.compare, {"data": "absent.csv", "seeds": 0}, "seeds"),
    # Checks for one's own parts
    (ns.check_pool, {"pool": POOL, "positives": KNOWN, "n": 0}, "n"),
    (ns.check_sampler, {"sampler": STATIC, "positives": KNOWN, "k": 0}, "k"),
    (ns.check_loss, {"loss": ns.losses.bpr, "without": ("speed",)}, "without"),
    (ns.planted_world, {"n_anchors": 0}, "n_anchors"),
    (ns.planted_world, {"known_share": 2.0}, "known_share"),
]


def parts_with_unusable_arguments():
    """Every sampler and pool that needs arguments, called with objects that fit none of them: new ones are found."""
    for module, verb in ((ns.samplers, "sample"), (ns.pools, "draw")):
        for part in (getattr(module, name) for name in module.__all__):
            if inspect.isclass(part) and hasattr(part, verb):
                arguments = inspect.signature(part).parameters.values()
                required = tuple(one.name for one in arguments if one.default is one.empty)
                if required:
                    yield part, dict.fromkeys(required, object()), required


INVALID += parts_with_unusable_arguments()


def name_of(call):
    owner = getattr(call, "__self__", None)
    return f"{type(owner).__name__}.{call.__name__}" if owner is not None else getattr(call, "__qualname__", str(call))


@pytest.mark.parametrize(
    ("call", "kwargs", "parameter"),
    INVALID,
    ids=[f"{name_of(c)}-{p if isinstance(p, str) else p[0]}" for c, _, p in INVALID],
)
def test_an_invalid_call_names_its_parameter_in_one_sentence(call, kwargs, parameter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ns.NaysayError) as caught:
        call(**kwargs)
    error = caught.value
    assert error.parameter in ((parameter,) if isinstance(parameter, str) else parameter)
    sentence = str(error)
    assert "\n" not in sentence
    assert re.match(r"^[\w.]+: `[\w.]+` must be .+, got .+[.?]$", sentence), sentence  # owner, parameter, rule, value
    assert f"`{error.parameter}`" in sentence
    assert len(sentence) < 600
    assert list(tmp_path.iterdir()) == []  # before work starts


# What is never called with values of the user's: results, and parts of options.
RESULTS = {
    *("Cut", "DetectionRates", "Evaluation", "Judgement", "LabelCheck", "PairLabels", "PosteriorSummary"),
    *("Reliability", "Split", "Thresholds", "TwoComponentMixture", "Estimate", "OnlineEstimate", "Shares"),
    *("TurningSweep", "Batch", "Loader", "LoaderOptions", "Found", "Index", "Recall", "Vectors", "Adaptive"),
    *("Beir", "Run", "TrainingFile", "Written", "FORMATS", "RateEstimate", "World", "Pairs", "Reviewer", "Usage"),
}
# What 0.2 does not have, or has in another form.
LEAVING = {
    *("Cache", "Fading", "TieWalks", "WeightedWalks", "consumption_ties", "item_oriented"),
    *("AdversarialBank", "Decomposed", "Factors", "Generated", "GraphPolicy", "Learned", "Perceptron", "Perturbed"),
    *("StoredVectors", "TorchModule", "Transformed", "TripleFactors", "UserOriented"),
    *("ascend", "jigsaw", "noise", "shuffled", "Ecdf", "ScoreSketch", "Scoreboard", "normalised_mutual_information"),
    *("effectiveness", "mean_effectiveness", "reliability", "shares", "simulated", "turning_sweep", "split_known"),
    *("check_recall", "search_below", "load_model", "weights_hash", "write_run", "gather_rows"),
    *("observe_all", "update_on_first"),
}


@pytest.mark.parametrize("folder", ["pools", "samplers", "losses", "detectors", "quantity", "batches", "data"])
def test_every_public_name_has_an_invalid_call(folder):
    module = getattr(ns, folder)
    tried = set()
    for call, _, _ in INVALID:
        owner = getattr(call, "__self__", None)
        tried |= {call, type(owner) if owner is not None and not inspect.isclass(owner) else owner}
    missing = {
        name
        for name in module.__all__
        if name not in RESULTS | LEAVING and callable(getattr(module, name)) and getattr(module, name) not in tried
    }
    assert not missing
