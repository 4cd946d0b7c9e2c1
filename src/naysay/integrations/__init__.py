"""INTEGRATIONS: other people's frameworks, one module for each; import the one you use.

naysay.integrations.sentence_transformers    mine_hard_negatives, with the arguments of the package's own
"""
