#!/usr/bin/env python3
"""Writes scikit-learn's handwritten digits as the two IDX files that --data idx:IMAGES,LABELS reads.

1,797 images of 8 x 8 pixels by 13 people: the test set of Alpaydin and Kaynak, "Optical recognition of handwritten digits", UCI 1998.
A fixed permutation mixes them, so that the tail that --held-out keeps is like the rest.
"""

import argparse
import pathlib
import struct
import sys

IMAGES_MAGIC, LABELS_MAGIC = 2051, 2049  # unsigned bytes in three dimensions and in one
BRIGHTEST = 16  # the set's pixels are counts 0..16
SHUFFLE_SEED = 1


def load_digits():
    try:
        import numpy
        from sklearn import datasets
    except ImportError as error:
        sys.exit(f"make_digits_idx.py: scikit-learn is missing ({error}); run: python3 -m pip install scikit-learn")
    digits = datasets.load_digits()
    order = numpy.random.RandomState(SHUFFLE_SEED).permutation(len(digits.target))
    pixels = numpy.rint(digits.images[order] * 255 / BRIGHTEST).astype(numpy.uint8)
    return pixels, digits.target[order].astype(numpy.uint8)


def write_idx(path, magic, array):
    path.write_bytes(struct.pack(f">{1 + array.ndim}I", magic, *array.shape) + array.tobytes())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path, help="where digits-images and digits-labels are written; made if missing")
    folder = parser.parse_args().folder
    pixels, labels = load_digits()
    folder.mkdir(parents=True, exist_ok=True)
    images_path, labels_path = folder / "digits-images", folder / "digits-labels"
    write_idx(images_path, IMAGES_MAGIC, pixels)
    write_idx(labels_path, LABELS_MAGIC, labels)
    print(f"--data idx:{images_path},{labels_path}")


if __name__ == "__main__":
    main()
