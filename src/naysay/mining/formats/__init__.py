"""Training files of all libraries, runs and BEIR: the table of formats, readers and writers."""

from naysay.mining.formats.table import FORMATS as FORMATS
