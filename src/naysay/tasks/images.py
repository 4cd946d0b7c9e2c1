"""Images with their classes, if there are any, in three parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from naysay.arrays import to_numpy
from naysay.checks import as_array, check_all, public, raise_invalid, whole_numbers
from naysay.files import as_path, check_file, raise_unreadable
from naysay.tasks._parts import PARTS, Ids, checksum

_IMAGES, _LABELS = ("images", "x_train", "train_images", "X"), ("labels", "y_train", "train_labels", "y")
_TEST_IMAGES, _TEST_LABELS = ("test_images", "x_test"), ("test_labels", "y_test")
_FEWEST = 30  # images


@final
@public
@dataclass(frozen=True, eq=False)
class Images:
    """Images of one size to train on, to validate with and to test on.

    Args:
        images: (n, h, w) or (n, h, w, c) with 1 or 3 colours: whole numbers from 0 to 255, or numbers from 0 to 1.
        labels: (n,) the class of each image, for the measures. Training does not see them. None: there are none.
        parts: (n,) which images are trained on (0), validated (1) and tested on (2). By default eight, one and one
            tenth, at random.
        seed: Of the choice of parts.

    Raises:
        NaysayError: If shapes or values are wrong, or there are fewer than 30 images.

    Examples:
        >>> Images(np.zeros((40, 8, 8)), np.arange(40) % 2)
        Images(40 of 8 x 8 x 1, 2 classes, train 32, validation 4, test 4)
    """

    images: Any
    labels: Any = None
    parts: Any = None
    seed: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        given = as_array("images", to_numpy(self.images))
        given = given[..., None] if given.ndim == 3 else given
        if given.ndim != 4 or given.shape[3] not in (1, 3) or min(given.shape[1:3]) < 4:
            rule = "of shape (n, h, w) or (n, h, w, c), at least 4 x 4 with 1 or 3 colours"
            raise_invalid("images", rule, f"shape {np.shape(self.images)}")
        if len(given) < _FEWEST:
            raise_invalid("images", f"at least {_FEWEST}", len(given))
        if given.dtype != np.uint8:
            if given.dtype.kind not in "fiub":
                raise_invalid("images", "numbers", f"dtype {given.dtype}")
            most = 1 if given.dtype.kind in "fb" else 255
            rows = given.reshape(len(given), -1)
            check_all("images", rows, (rows >= 0) & (rows <= most), f"from 0 to {most}")
            given = np.round(np.asarray(given, np.float32) * (255 // most)).astype(np.uint8)
        object.__setattr__(self, "images", np.ascontiguousarray(given.transpose(0, 3, 1, 2)))
        parts = self._parts(len(given))
        object.__setattr__(self, "parts", parts)
        if self.labels is not None:
            labels = whole_numbers("labels", to_numpy(self.labels)).astype(np.int64)
            if len(labels) != len(given):
                raise_invalid("labels", f"of length {len(given)}, one for each image", len(labels))
            if len(np.unique(labels[parts == 0])) < 2:
                raise_invalid("labels", "of at least two classes among the images to train on", "one")
            object.__setattr__(self, "labels", labels)

    def _parts(self, size: int) -> Ids:
        """The part of each image."""
        if self.parts is None:
            tenth = np.random.default_rng(self.seed).permutation(size) * 10 // size
            return np.searchsorted([8, 9], tenth, side="right")
        parts = whole_numbers("parts", to_numpy(self.parts)).astype(np.int64)
        if len(parts) != size:
            raise_invalid("parts", f"of length {size}, one for each image", len(parts))
        for part, name in enumerate(PARTS):
            if not (parts == part).any():
                raise_invalid("parts", f"{part} for at least one image, the {name} part", "none")
        return parts

    def fingerprint(self) -> str:
        """A checksum of all images, classes and parts, 16 digits."""
        return checksum(
            f"{self.images.shape}", self.images, self.parts, *([] if self.labels is None else [self.labels])
        )

    def __repr__(self) -> str:
        size = " x ".join(map(str, (*self.images.shape[2:], self.images.shape[1])))
        classes = "no classes" if self.labels is None else f"{len(np.unique(self.labels))} classes"
        parts = ", ".join(f"{name} {int((self.parts == part).sum()):,}" for part, name in enumerate(PARTS))
        return f"Images({len(self.images):,} of {size}, {classes}, {parts})"


@public
def read_images(path: str | Path, *, seed: int = 0) -> Images:
    """Read images of an .npz file.

    Args:
        path: A file with `images` (or x_train), and if there are any `labels` (or y_train), `test_images` (or x_test)
            and `test_labels` (or y_test). Without test images, a tenth of the images is the test; another tenth is for
            validation.
        seed: Of the split.

    Raises:
        NaysayError: If the file is missing, not such a file, or has classes of one part only.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(Path(folder) / "own.npz", images=np.zeros((40, 8, 8)))
        ...     read_images(Path(folder) / "own.npz")
        Images(40 of 8 x 8 x 1, no classes, train 32, validation 4, test 4)
    """
    file = as_path("path", path)
    if file.suffix.lower() != ".npz":
        raise_invalid("path", "a file that ends in .npz", repr(str(file)))
    check_file("path", file)
    try:
        with np.load(file, allow_pickle=False) as stored:
            held = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise_unreadable("path", "an .npz file of arrays", file, error)
    kinds = (_IMAGES, _LABELS, _TEST_IMAGES, _TEST_LABELS)
    images, labels, test, test_labels = (next((held[one] for one in names if one in held), None) for names in kinds)
    if images is None:
        raise_invalid("path", "an .npz file with images", ", ".join(held) or "nothing")
    if test is None:
        return Images(images, labels, seed=seed)
    if (labels is None) != (test_labels is None):
        raise_invalid("path", "an .npz file with classes of both parts, or of none", "those of one")
    if test.shape[1:] != images.shape[1:]:
        raise_invalid("path", f"test images of shape {images.shape[1:]}, like the others", f"{test.shape[1:]}")
    held_out = np.random.default_rng(seed).permutation(len(images)) * 10 // max(1, len(images)) == 0
    parts = np.concatenate([held_out.astype(np.int64), np.full(len(test), 2)])
    classes = None if labels is None or test_labels is None else np.concatenate([labels.ravel(), test_labels.ravel()])
    return Images(np.concatenate([images, test]), classes, parts)
