"""Fuzz: random command lines and damaged files."""
