"""DISTRUST: detectors of false negatives, policies that act on them, and measures of both."""

from naysay.detectors.absolute import Absolute
from naysay.detectors.acceptance import LinearAcceptance, StepAcceptance
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated, one_per_anchor
from naysay.detectors.combined import Combined, Judgement
from naysay.detectors.cut import Cut, cut
from naysay.detectors.duplicates import Duplicates
from naysay.detectors.ecdf import Ecdf
from naysay.detectors.evaluate import Evaluation, Reliability, Scoreboard, evaluate
from naysay.detectors.guide import Guide
from naysay.detectors.hidden import Split, hidden_positives, split_known
from naysay.detectors.incremental import Incremental
from naysay.detectors.labelled import Labelled
from naysay.detectors.learned_quantile import LearnedQuantile
from naysay.detectors.margin import Margin, ShareOfPositive
from naysay.detectors.mixture import Mixture
from naysay.detectors.policy import attract, compact, drop, ignore, reweight
from naysay.detectors.positive_scores import lowest_scores
from naysay.detectors.posterior import Posterior
from naysay.detectors.posterior_summary import LabelCheck, PosteriorSummary
from naysay.detectors.rank_window import RankWindow
from naysay.detectors.rate import false_negative_rate, unlabelled_share
from naysay.detectors.score_sketch import ScoreSketch
from naysay.detectors.share import Share
from naysay.detectors.soft_clusters import SoftClusters
from naysay.detectors.spot_check import PairLabels, judge_some, spot_check
from naysay.detectors.support_views import SupportViews
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.detectors.truth import DetectionRates, detection_rates, normalised_mutual_information
from naysay.detectors.two_component_mixture import TwoComponentMixture

__all__ = [
    "Absolute",
    "Bands",
    "Calibrated",
    "Combined",
    "Cut",
    "DetectionRates",
    "Duplicates",
    "Ecdf",
    "Evaluation",
    "Guide",
    "Incremental",
    "Judgement",
    "LabelCheck",
    "Labelled",
    "LearnedQuantile",
    "LinearAcceptance",
    "Margin",
    "Mixture",
    "PairLabels",
    "Posterior",
    "PosteriorSummary",
    "RankWindow",
    "Reliability",
    "ScoreSketch",
    "Scoreboard",
    "Share",
    "ShareOfPositive",
    "SoftClusters",
    "Split",
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
    "normalised_mutual_information",
    "one_per_anchor",
    "reweight",
    "split_known",
    "spot_check",
    "unlabelled_share",
]
