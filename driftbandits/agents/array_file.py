"""NumPy's npz, without compression and without pickle, read with no more memory than it has bytes.

`np.load` believes the sizes that a file declares: a few bytes may ask for all memory.
"""

import io
import math
import zipfile

import numpy as np
from numpy.lib import format as npy

HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


def write_arrays(arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def read_arrays(content: bytes) -> dict[str, np.ndarray]:
    """Reads copies of the arrays, by name; ValueError or BadZipFile if they are not intact."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = archive.infolist()
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in entries):
            raise ValueError("a compressed array")
        if sum(entry.file_size for entry in entries) > len(content):
            raise ValueError("arrays that are larger than the file")
        named = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        if len(named) < len(entries):
            raise ValueError("two arrays of one name")
        return {name: as_array(archive.read(entry)) for name, entry in named.items()}


def as_array(content: bytes) -> np.ndarray:
    stream = io.BytesIO(content)
    version = npy.read_magic(stream)
    if version not in HEADERS:
        raise ValueError("an array of another version")
    shape, by_columns, dtype = HEADERS[version](stream)
    first = stream.tell()
    if dtype.kind not in "fiub" or any(length < 0 for length in shape):
        raise ValueError("an array of another kind")
    if math.prod(shape) * dtype.itemsize != len(content) - first:
        raise ValueError("an array whose length is not that of its data")
    flat = (
        np.frombuffer(content, dtype, offset=first) if first < len(content) else np.zeros(0, dtype)
    )
    return flat.reshape(shape, order="F" if by_columns else "C").copy()
