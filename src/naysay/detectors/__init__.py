"""DISTRUST: detectors of false negatives, policies that act on them, and measures of both."""

from naysay.detectors._posterior_model import LabelCheck
from naysay.detectors.bands import Bands
from naysay.detectors.by_reviewer import ByReviewer
from naysay.detectors.by_threshold import Margin, MaxScore, RankWindow, ShareOfPositive, lowest_scores
from naysay.detectors.by_vectors import SoftClusters, SupportViews
from naysay.detectors.calibrated import Calibrated, one_per_anchor
from naysay.detectors.combined import Combined, Judgement
from naysay.detectors.duplicates import Duplicates
from naysay.detectors.evaluate import DetectionRates, Evaluation, Reliability, detection_rates, evaluate
from naysay.detectors.incremental import Incremental, LinearAcceptance, StepAcceptance
from naysay.detectors.labelled import Labelled
from naysay.detectors.learned_quantile import LearnedQuantile
from naysay.detectors.llm import LLM, Usage
from naysay.detectors.mixture import Mixture, TwoComponentMixture
from naysay.detectors.policy import attract, compact, drop, ignore, reweight
from naysay.detectors.posterior import Cut, Posterior, PosteriorSummary, cut
from naysay.detectors.rate import (
    PairLabels,
    RateEstimate,
    false_negative_rate,
    hidden_positives,
    judge_some,
    spot_check,
    unlabelled_share,
)
from naysay.detectors.reviewer import AnswerFile, CrossEncoder, Encoder, Pairs, People, Reviewer
from naysay.detectors.thresholds import Thresholds, choose_thresholds

__all__ = [
    "LLM",
    "AnswerFile",
    "Bands",
    "ByReviewer",
    "Calibrated",
    "Combined",
    "CrossEncoder",
    "Cut",
    "DetectionRates",
    "Duplicates",
    "Encoder",
    "Evaluation",
    "Incremental",
    "Judgement",
    "LabelCheck",
    "Labelled",
    "LearnedQuantile",
    "LinearAcceptance",
    "Margin",
    "MaxScore",
    "Mixture",
    "PairLabels",
    "Pairs",
    "People",
    "Posterior",
    "PosteriorSummary",
    "RankWindow",
    "RateEstimate",
    "Reliability",
    "Reviewer",
    "ShareOfPositive",
    "SoftClusters",
    "StepAcceptance",
    "SupportViews",
    "Thresholds",
    "TwoComponentMixture",
    "Usage",
    "attract",
    "choose_thresholds",
    "compact",
    "cut",
    "detection_rates",
    "drop",
    "evaluate",
    "false_negative_rate",
    "hidden_positives",
    "ignore",
    "judge_some",
    "lowest_scores",
    "one_per_anchor",
    "reweight",
    "spot_check",
    "unlabelled_share",
]
