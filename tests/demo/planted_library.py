"""A small library that was never written: names whose docstrings use other words, and overrides that share them."""

from naysay.demo.library import Library, words

# Sentences differ in three words or more, so that no two of them are near duplicates.
VERBS = {
    "get": "Hand back at once",
    "put": "Lay away for later",
    "drop": "Throw out and forget",
    "find": "Look everywhere until seen",
    "open": "Turn the key of",
    "count": "Say how many are",
}
NOUNS = (
    "apple",
    "boat",
    "candle",
    "door",
    "engine",
    "fence",
    "garden",
    "harbour",
    "island",
    "jacket",
    "kettle",
    "lamp",
)
PLACES = {
    "attic": "under the roof",
    "barn": "behind tall trees",
    "cellar": "below all stairs",
    "depot": "near old rails",
    "estate": "past both gates",
}


def planted_library():
    """6 verbs x 12 nouns x 5 places; in the first place each method is overridden once, with the same docstring."""
    names, documents = [], []
    for place, where in PLACES.items():
        for owner in ("Base", "Derived") if place == "attic" else ("Base",):
            for verb, said in VERBS.items():
                for noun in NOUNS:
                    names.append(f"{place}.{owner}.{verb}_{noun}")
                    documents.append(f"{said} the {noun} {where}.")
    return Library(tuple(names), tuple(map(words, names)), tuple(documents))
