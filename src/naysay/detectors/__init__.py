"""DISTRUST: detectors of false negatives, policies that act on them, and measures of both."""

from naysay.detectors.bands import Bands
from naysay.detectors.by_threshold import Margin, MaxScore, RankWindow, ShareOfPositive, lowest_scores
from naysay.detectors.calibrated import Calibrated, one_per_anchor
from naysay.detectors.combined import Combined, Judgement
from naysay.detectors.duplicates import Duplicates
from naysay.detectors.evaluate import DetectionRates, Evaluation, Reliability, detection_rates, evaluate
from naysay.detectors.guide import Guide
from naysay.detectors.incremental import Incremental, LinearAcceptance, StepAcceptance
from naysay.detectors.labelled import Labelled
from naysay.detectors.learned_quantile import LearnedQuantile
from naysay.detectors.mixture import Mixture, TwoComponentMixture
from naysay.detectors.policy import attract, compact, drop, ignore, reweight
from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import Cut, LabelCheck, PosteriorSummary, cut
from naysay.detectors.rate import (
    PairLabels,
    RateEstimate,
    false_negative_rate,
    hidden_positives,
    judge_some,
    spot_check,
    unlabelled_share,
)
from naysay.detectors.soft_clusters import SoftClusters
from naysay.detectors.support_views import SupportViews
from naysay.detectors.thresholds import Thresholds, choose_thresholds

__all__ = [
    "Bands",
    "Calibrated",
    "Combined",
    "Cut",
    "DetectionRates",
    "Duplicates",
    "Evaluation",
    "Guide",
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
    "Posterior",
    "PosteriorSummary",
    "RankWindow",
    "RateEstimate",
    "Reliability",
    "ShareOfPositive",
    "SoftClusters",
    "StepAcceptance",
    "SupportViews",
    "Thresholds",
    "TwoComponentMixture",
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
