"""DEMO: four ways to mine negatives on a corpus that every Python has, its own standard library."""

from naysay.demo.library import Library, read_library
from naysay.demo.run import Demonstration, run

__all__ = ["Demonstration", "Library", "read_library", "run"]
