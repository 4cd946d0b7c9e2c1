"""The scripts in examples/ that need a package of this environment."""

import logging

import pytest

from tests import test_examples


@pytest.fixture(autouse=True)
def logging_as_before():
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", test_examples.OWN_ENVIRONMENT, ids=lambda path: path.stem)
def test_an_example_prints_what_it_promises(path, capsys):
    test_examples.test_it_prints_what_it_promises(path, capsys)
