"""The characters of plots on a terminal, at their old address."""

from naysay.plots import BLOCK as BLOCK
from naysay.plots import PLAIN as PLAIN
from naysay.plots import Marks as Marks
