"""The corpus: what is in it, in which order, and that it is what `help()` says."""

import ast
import importlib
import inspect
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from naysay import NaysayError
from naysay.demo.library import SKIPPED, Library, read_library

FILES = {
    "zoo.py": '''
raise SystemExit("nobody runs this")

def feed(animal):
    """Give food to an animal.

    A second paragraph.
    """

async def call_vet():
    """Ask the vet
    to come."""

def _secret():
    """Nobody is to see this."""

def short():
    """Too short."""

def bare():
    pass

class Animal:
    """A living thing in the zoo."""

    def eat(self):
        """Take what is given."""

    def sleep(self):
        """Close the eyes until morning."""

    @property
    def name(self):
        """What it is called here."""

    @name.setter
    def name(self, value):
        """Call it something else."""

    class Cage:
        """Where the animal is kept."""

class _Hidden:
    def seen(self):
        """A method of a hidden class."""
''',
    "farm/__init__.py": '''
import zoo

class Cow(zoo.Animal):
    def eat(self):
        pass
    def sleep(self):
        """Dream of green grass tonight."""
    def milk(self):
        pass

class Calf(Cow):
    def eat(self):
        pass
    def sleep(self):
        pass
''',
    "farm/stable.py": '''
class Cow(Cow):
    def eat(self):
        pass

class Twice:
    def run(self):
        """Go round the yard."""
''',
    "farm/yard.py": '''
class Twice:
    def run(self):
        """Stand in the yard."""

class Horse(Twice):
    def run(self):
        pass
''',
    "road.py": """
class Car(Twice):
    def run(self):
        pass
""",
    "farm/test/test_cow.py": 'def test_cow():\n    """A test of the cow."""\n',
    "site-packages/other.py": 'def other():\n    """Somebody else wrote this."""\n',
    "old.py": "print 'this is Python 2'\n",
}
EXPECTED = {
    "farm.Cow.eat": "Take what is given.",
    "farm.Cow.sleep": "Dream of green grass tonight.",
    "farm.Calf.eat": "Take what is given.",
    "farm.Calf.sleep": "Dream of green grass tonight.",
    "farm.stable.Twice.run": "Go round the yard.",
    "farm.yard.Twice.run": "Stand in the yard.",
    "farm.yard.Horse.run": "Stand in the yard.",
    "zoo.feed": "Give food to an animal. A second paragraph.",
    "zoo.call_vet": "Ask the vet to come.",
    "zoo.Animal": "A living thing in the zoo.",
    "zoo.Animal.eat": "Take what is given.",
    "zoo.Animal.sleep": "Close the eyes until morning.",
    "zoo.Animal.name": "What it is called here.",
    "zoo.Animal.Cage": "Where the animal is kept.",
}


def written(folder, names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(FILES[name])
    return folder


@pytest.fixture(scope="module")
def library():
    return read_library()


def test_what_is_read_and_in_which_order(tmp_path):
    found = read_library(written(tmp_path, FILES))
    assert dict(zip(found.names, found.documents, strict=True)) == EXPECTED
    assert list(found.names) == list(EXPECTED)
    assert found.skipped == 1


def test_the_order_in_which_files_were_made_says_nothing(tmp_path):
    one = read_library(written(tmp_path / "one", FILES))
    other = read_library(written(tmp_path / "other", reversed(FILES)))
    assert one == other
    assert one.fingerprint == other.fingerprint


def test_a_changed_docstring_changes_the_fingerprint(tmp_path):
    before = read_library(written(tmp_path, FILES)).fingerprint
    (tmp_path / "zoo.py").write_text(FILES["zoo.py"].replace("Give food", "Give water"))
    assert read_library(tmp_path).fingerprint != before


def test_a_file_that_warns_is_read_like_others(tmp_path):
    """Warnings are errors here, and must not change the corpus."""
    (tmp_path / "warns.py").write_text('def split():\n    """Cut at each \\d of it."""\n')
    assert read_library(tmp_path).names == ("warns.split",)


def test_twins_are_equal_documents(tmp_path):
    found = read_library(written(tmp_path, FILES))
    for row, document in enumerate(found.documents):
        for other, text in enumerate(found.documents):
            assert (found.text_of[row] == found.text_of[other]) == (document == text)
    assert found.with_duplicate == 3 + 2 + 2  # eat, sleep of the cow, run in the yard


def test_take_keeps_the_order_that_is_asked_for():
    found = Library(("a", "b", "c"), ("one", "two", "two"), skipped=4)
    part = found.take(np.array([2, 0]))
    assert part == Library(("c", "a"), ("two", "one"), skipped=4)
    assert (found.with_duplicate, part.with_duplicate, len(part)) == (2, 0, 2)


def test_the_library_of_this_python(library):
    assert len(library) > 4000
    assert library.with_duplicate > len(library) / 10
    assert len(set(library.names)) == len(library)
    assert not {name.split(".")[0] for name in library.names} & SKIPPED
    assert all(len(text.split()) >= 3 and text == " ".join(text.split()) for text in library.documents)


@pytest.mark.parametrize(
    "module", ["mailbox", "logging.handlers", "unittest.case", "configparser", "codecs", "xml.sax.saxutils"]
)
def test_it_says_what_help_says(library, module):
    """The oracle: import the module, and ask `inspect`, which follows the real bases."""
    seen = 0
    for name, text in zip(library.names, library.documents, strict=True):
        if name.startswith(f"{module}.") and name.removeprefix(f"{module}.")[0].isupper():
            value = importlib.import_module(module)
            for part in name.removeprefix(f"{module}.").split("."):
                value = getattr(value, part)
            seen += 1
            assert " ".join(inspect.getdoc(value).split()) == text, name
    assert seen > 4


def test_nothing_of_the_library_is_imported(library):
    """turtle opens a window's worth of modules, antigravity a browser; reading them must do neither."""
    tree = ast.parse(Path(importlib.import_module("naysay.demo.library").__file__).read_text())
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"exec", "eval", "compile", "__import__"}
    assert any(name.startswith("turtle.") for name in library.names)


def test_a_library_without_source_is_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "only.pyc").write_bytes(b"")
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    sentence = (
        r"read_library: `root` must be a folder of Python source with docstrings, got none in '.*'\. This Python has"
    )
    with pytest.raises(NaysayError, match=sentence):
        read_library()
