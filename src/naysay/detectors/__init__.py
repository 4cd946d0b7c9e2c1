"""DISTRUST: which negatives may be unlabelled positives, how sure that is, and what to do about it."""

from naysay.detectors.absolute import Absolute
from naysay.detectors.bands import Bands
from naysay.detectors.calibrated import Calibrated
from naysay.detectors.clustering.acceptance import LinearAcceptance, StepAcceptance
from naysay.detectors.combined import Combined, Judgement
from naysay.detectors.ecdf import Ecdf
from naysay.detectors.guide import Guide
from naysay.detectors.incremental import Incremental
from naysay.detectors.judged import Judged
from naysay.detectors.labelled import Labelled
from naysay.detectors.learned_quantile import LearnedQuantile
from naysay.detectors.margin import Margin, ShareOfPositive
from naysay.detectors.mixture import Mixture
from naysay.detectors.policy import attract, compact, drop, ignore, reweight
from naysay.detectors.positive_scores import lowest_scores
from naysay.detectors.quality.evaluate import Evaluation, Scoreboard, evaluate
from naysay.detectors.quality.hidden import hidden_positives
from naysay.detectors.quality.hold_out import one_per_anchor
from naysay.detectors.quality.rate import false_negative_rate, unlabelled_share
from naysay.detectors.quality.reliability import Reliability
from naysay.detectors.quality.share import Share
from naysay.detectors.quality.split_known import Split, split_known
from naysay.detectors.quality.spot_check import spot_check
from naysay.detectors.quality.truth import DetectionRates, detection_rates, normalised_mutual_information
from naysay.detectors.quality.verdicts import Verdicts, judge_some
from naysay.detectors.rank_window import RankWindow
from naysay.detectors.scores.sketch import ScoreSketch
from naysay.detectors.soft_clusters import SoftClusters
from naysay.detectors.support_views import SupportViews
from naysay.detectors.thresholds import Thresholds, choose_thresholds
from naysay.detectors.twins import Twins
from naysay.detectors.two_kinds import TwoKinds

__all__ = [
    "Absolute",
    "Bands",
    "Calibrated",
    "Combined",
    "DetectionRates",
    "Ecdf",
    "Evaluation",
    "Guide",
    "Incremental",
    "Judged",
    "Judgement",
    "Labelled",
    "LearnedQuantile",
    "LinearAcceptance",
    "Margin",
    "Mixture",
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
    "Twins",
    "TwoKinds",
    "Verdicts",
    "attract",
    "choose_thresholds",
    "compact",
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
