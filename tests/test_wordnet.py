"""read_wordnet: both files, what is shared by two classes, several hypernyms, and errors."""

import pytest

import naysay as ns
from benchmarks.wordnet import read_wordnet

# entity - object - animal - fish - (tench, goldfish); object - artefact - laptop, which is also directly an entity
NAMES = {"entity": 1, "object": 2, "animal": 3, "fish": 4, "tench": 5, "goldfish": 6, "artefact": 7, "laptop": 8}
EDGES = [("object", "entity"), ("animal", "object"), ("fish", "animal"), ("tench", "fish"), ("goldfish", "fish")]
EDGES += [("artefact", "object"), ("laptop", "artefact"), ("laptop", "entity")]


def synset(name):
    return f"n{NAMES[name]:08d}"


def as_data_noun():
    """Lines as in WordNet 3.0: words in hexadecimal, then pointers, then a gloss that may hold anything."""
    lines = ["  1 This software and database is being provided ..."]
    for name, number in NAMES.items():
        up = [higher for lower, higher in EDGES if lower == name]
        pointers = [f"{'@i' if name == 'laptop' else '@'} {NAMES[higher]:08d} n 0000" for higher in up]
        pointers += ["~ 00000099 n 0000", "+ 00000098 v 0101"]
        words = " ".join(f"{name}_{i} 0" for i in range(11))
        lines.append(
            f'{number:08d} 03 n 0b {words} {len(pointers):03d} {" ".join(pointers)} | a gloss; "@ 00000001 n"  '
        )
    return "\n".join(lines)


def as_pairs():
    return "\n".join(f"{synset(higher)} {synset(lower)}" for lower, higher in EDGES)


@pytest.mark.parametrize("text", [as_data_noun(), as_pairs()], ids=["data.noun", "is_a"])
def test_two_fish_meet_at_fish_and_a_laptop_further_up(tmp_path, text):
    (tmp_path / "file").write_text(text)
    names = [synset(name) for name in ("tench", "goldfish", "laptop")]
    tree = read_wordnet(tmp_path / "file", names)
    assert tree.synsets[:3] == tuple(names)
    depth = ns.difficulty.common_depth(tree.hierarchy, [0, 1, 2], [0, 1, 2])
    assert depth.tolist() == [[4, 3, 1], [3, 4, 1], [1, 1, 3]]  # fish is 3 below entity, object 1
    assert (tree.hierarchy == -1).sum() == 1
    assert tree.synsets[int((tree.hierarchy == -1).argmax())] == synset("entity")
    short = read_wordnet(tmp_path / "file", names, nearest_to_root=True)
    assert ns.difficulty.common_depth(short.hierarchy, [0], [2]).tolist() == [[0]]  # the laptop is an entity at once


def test_a_class_may_be_above_another(tmp_path):
    (tmp_path / "file").write_text(as_pairs())
    tree = read_wordnet(tmp_path / "file", [synset("fish"), synset("tench")])
    assert tree.hierarchy[1] == 0
    assert len(tree.synsets) == 5


@pytest.mark.parametrize(
    ("text", "synsets"),
    [
        (as_pairs(), ["n00000009", "x"]),
        (as_pairs(), [synset("fish")] * 2),
        ("n00000001 n00000002\nnonsense", ["n00000001"]),
        ("n00000001 n00000002\nn00000002 n00000001", ["n00000001"]),
        ("n00000001 n00000003\nn00000002 n00000004", ["n00000003", "n00000004"]),
    ],
    ids=["unknown", "twice", "not a line", "a cycle", "two roots"],
)
def test_what_is_not_one_tree_raises(tmp_path, text, synsets):
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match=r"."):
        read_wordnet(tmp_path / "file", synsets)
