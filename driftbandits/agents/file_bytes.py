"""Contents as bytes: a line that says what they are, with a checksum, then arrays.

driftbandits agent 4 SHA256
NumPy's npz, without pickle: `about` is JSON
"""

import hashlib
import json
import re
import zipfile

import numpy as np

from driftbandits import check
from driftbandits.agents.array_file import read_arrays, write_arrays
from driftbandits.agents.file_changes import Contents
from driftbandits.error_text import first_line

VERSION = 5
# What reading wrong contents may raise.
WRONG = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, EOFError,
    NotImplementedError, zipfile.BadZipFile,
)  # fmt: skip
FIRST_LINE = re.compile(rb"driftbandits agent ([1-9]\d*) ([0-9a-f]{64})\n")


def packed(contents: Contents) -> bytes:
    about = json.dumps(contents.about, default=plain).encode()
    body = write_arrays({"about": np.frombuffer(about, np.uint8), **contents.arrays})
    return b"driftbandits agent %d %s\n" % (VERSION, digest_of(body, VERSION)) + body


def digest_of(body: bytes, version: int) -> bytes:
    """The checksum; since version 3 it includes the version, so that damage there is noticed."""
    digest = hashlib.sha256(b"" if version < 3 else b"%d\n" % version)
    digest.update(body)
    return digest.hexdigest().encode()


def plain(number: np.generic) -> object:
    """A setting as a plain number, if it was one of NumPy's."""
    return number.item()


def is_intact(content: bytes) -> bool:
    """Whether its checksum is right."""
    found = FIRST_LINE.match(content[:128])
    if not found:
        return False
    return digest_of(content[found.end() :], int(found[1])) == found[2]


def unpacked(content: bytes, name: str) -> tuple[int, Contents]:
    """Reads the version of a file and its contents."""
    found = FIRST_LINE.match(content[:128])
    if not found:
        check.fail(name, "a file that Agent.save wrote", content[:20])
    if int(found[1]) > VERSION:
        rule = f"of version {VERSION} or older (install a newer driftbandits to read it)"
        check.fail(name, rule, f"version {int(found[1])}")
    if not is_intact(content):
        message = f"{name} is damaged (its checksum does not match); use an older copy"
        raise check.InputError(message)
    try:
        arrays = read_arrays(content[found.end() :])
        return int(found[1]), Contents(json.loads(arrays.pop("about").tobytes()), arrays)
    except WRONG as error:
        raise unusable(name, error) from None


def unusable(name: str, error: Exception) -> check.InputError:
    return check.InputError(
        f"{name} does not hold an agent ({first_line(error)}); use an older copy"
    )
