"""Random command lines and damaged files: no traceback, no wait, one sentence, nothing touched.

Six times as many as a law has examples: 150 of each, or 3,000 with `--hypothesis-profile=thorough`.
"""

import sys

from hypothesis import settings

from tests.fuzz.rules import command_runs, file_runs, world_in

RUNS = 6 * settings().max_examples


def test_random_command_lines(tmp_path):
    with world_in(tmp_path / "world") as world:
        broken = [(done.words, done.err, found) for done, found in command_runs(world, RUNS, 0) if found]
    assert not broken


def test_damaged_files(tmp_path):
    with world_in(tmp_path / "world") as world:
        broken = [(done.words, done.err, found) for done, found in file_runs(world, RUNS, 0) if found]
    assert not broken


def test_the_rules_find_what_they_are_for(tmp_path, monkeypatch):
    """Each rule is broken on purpose once."""
    from tests.fuzz import rules

    def planted(action, code=2):
        def main(_):
            action()
            raise SystemExit(code)

        monkeypatch.setattr(rules, "main", main)
        return rules.check(["methods"], world)[1]

    def crash():
        raise ZeroDivisionError

    with world_in(tmp_path / "world") as world:
        assert planted(crash) == ["exit code ZeroDivisionError: "]
        assert planted(lambda: None, 1) == ["exit code 1"]
        assert planted(lambda: None) == ["0 lines of error"]
        assert planted(lambda: print("naysay: f: call g()", file=sys.stderr)) == ["an error that names Python"]
        assert planted((world / "q.npy").unlink, 0) == ["files outside of the output changed: ['q.npy']"]
        assert (world / "q.npy").is_file()
        assert planted((world / "out" / ".x.0123").touch, 0) == ["left behind: ['.x.0123']"]
