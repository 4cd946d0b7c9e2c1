"""Docs: tables of the documentation, made from results and from the catalogue."""
