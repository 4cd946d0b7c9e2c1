"""Texts to vectors: models from a local folder, and files of vectors that are kept and resumed."""
