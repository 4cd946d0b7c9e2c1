"""Training files of other libraries, TREC runs and BEIR, read and written."""

from naysay.formats._formats import FORMATS
from naysay.formats.beir import Beir, read_beir
from naysay.formats.read_negatives import TrainingFile, read_negatives
from naysay.formats.runs import Run, read_run, write_run
from naysay.formats.write_negatives import Written, write_negatives

__all__ = [
    "FORMATS",
    "Beir",
    "Run",
    "TrainingFile",
    "Written",
    "read_beir",
    "read_negatives",
    "read_run",
    "write_negatives",
    "write_run",
]
