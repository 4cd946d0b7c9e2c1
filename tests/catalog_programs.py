"""Runs the programs of the catalogue."""

import ast
import functools
import re

import torch


def run(code, name="example"):
    """The names that a program leaves behind. Its functions that are written for NumPy also take and return tensors."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and not re.search(r"torch|ns\.losses", ast.unparse(node)):
            node.decorator_list.append(ast.Name("also_for_tensors", ast.Load()))
    names = {"also_for_tensors": also_for_tensors, "__name__": name}
    exec(compile(ast.fix_missing_locations(tree), name, "exec"), names)
    return names


def also_for_tensors(function):
    @functools.wraps(function)
    def call(*arguments, **named):
        if not any(isinstance(argument, torch.Tensor) for argument in arguments):
            return function(*arguments, **named)
        arrays = [argument.numpy() if isinstance(argument, torch.Tensor) else argument for argument in arguments]
        return torch.from_numpy(function(*arrays, **named))

    return call
