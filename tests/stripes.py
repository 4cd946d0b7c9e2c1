"""Pictures of three kinds of stripes with noise, in the format of MNIST, for the tests of studies of images."""

import gzip

import numpy as np


def write_idx(path, array):
    head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
    path.write_bytes(gzip.compress(head + array.astype(np.uint8).tobytes()))


def write_stripes(folder, counts, names=(0, 1, 2)):
    """Write the parts of `counts`: stripes along, across and aslant, whose classes are `names`."""
    rng = np.random.default_rng(0)
    row, column = np.mgrid[:28, :28]
    kinds = [np.sin(along / 2) > 0 for along in (row, column, row + column)]
    for part, count in counts.items():
        chosen = rng.integers(0, 3, count)
        images = np.stack([kinds[kind] for kind in chosen]) * 180 + rng.integers(0, 76, (count, 28, 28))
        write_idx(folder / f"{part}-images-idx3-ubyte.gz", images)
        write_idx(folder / f"{part}-labels-idx1-ubyte.gz", np.array(names)[chosen])
    return folder
