"""Runs the programs of the catalogue on its small world."""

import importlib
import re

from naysay import catalog, samplers
from naysay.catalog import torch_world, world

CHANGED_BY_USE = re.compile(r"\b(memory|\w*generator|network|\w*optimizer|encoder|user_table|item_table|refresh)\b")


def run(method):
    """The names that the program of a method leaves behind. Parts of the world that change by use are made anew."""
    if CHANGED_BY_USE.search(method.program):
        importlib.reload(world)
        importlib.reload(torch_world)
    names = {}
    exec(compile(method.program, method.name, "exec"), names)
    return names


def known_of(method):
    """What a sampler of this row must never return."""
    known = {"query": "positives", "node_query": "graph", "triple_query": "known_triples", "image_query": "views"}
    return getattr(world, known[method.query])


def maker_of(method):
    """How the checks make queries for a sampler of this row: with vectors, which some need."""
    return {"query": query_of, "node_query": node_query_of}.get(method.query)


def query_of(anchors):
    return world.query_of(anchors, step=400)


def node_query_of(nodes):
    graph = world.graph
    neighbours = graph.indices[graph.indptr[nodes]]
    return type(world.node_query)(nodes, positives=neighbours, vectors=world.item_vectors[nodes], step=400)


def one_of_each_sampler():
    """{class: a sampler}, by the first row of the catalogue whose parts are one of that class."""
    found = {}
    for method in catalog.methods("where") + catalog.methods("which"):
        name = method.parts.strip().partition("(")[0]
        if name not in found and hasattr(getattr(samplers, name, None), "sample"):
            found[name] = run(method)["sampler"]
    return found
