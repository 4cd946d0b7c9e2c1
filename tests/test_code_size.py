"""benchmarks.code.size counts what it says."""

import json
import sys

from benchmarks.code import size

LONG = "def long(a, b, *, c=1, **rest):\n    '''Doc.'''\n" + "    a += 1\n" * 71
WIDE = "class C:\n    def wide(self, a, b, c, d, e, f, g, h, i):\n        pass\n"


def tree(folder):
    (folder / "kernels").mkdir()
    (folder / "one.py").write_text("x = 1\n")
    (folder / "two.py").write_text(LONG + WIDE)
    (folder / "kernels" / "three.py").write_text(LONG + "x = 1\n" * 300)
    return folder


def test_lines_files_bodies_and_parameters_are_counted(tmp_path):
    sizes = size.measure(tree(tmp_path))
    assert (sizes["lines"], sizes["files"], sizes["median_lines"]) == (1 + 76 + 373, 3, 76)
    assert sizes["files_over_300_lines"] == [("kernels/three.py", 373)]
    assert sizes["bodies_over_70_lines"] == [("two.py:1 long", 71)]
    assert sizes["functions_over_8_parameters"] == [("two.py:75 wide", 9)]


def test_it_prints_text_and_json(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["size", str(tree(tmp_path))])
    size.main()
    assert "median lines: 76\n" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["size", str(tmp_path), "--json"])
    size.main()
    assert json.loads(capsys.readouterr().out)["files"] == 3
