"""Declarations of studies, a family a file; `benchmarks.study` runs them."""
