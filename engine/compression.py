"""Compression: the bytes of an object, compressed with the bytes of a similar object as the dictionary.

Pods of one clique differ in a few names and times, so little more than these is left of each.
"""

import zlib
from collections import OrderedDict
from collections.abc import Hashable

from msgspec import Struct

POOR = 8
"""An object that takes more than this fraction of its size becomes the dictionary of those that follow."""
USES = 32
"""How often a dictionary is used at least. What cannot be compressed is stored as a dictionary, uncompressed, this seldom."""
MAX_DICTIONARIES = 256
"""How many dictionaries are used at a time, the last used ones; a replaced one exists as long as objects that were compressed with it."""


class Compressed(Struct, frozen=True, eq=False):
    """Compressed bytes, with the dictionary that they were compressed with."""

    data: bytes
    dictionary: bytes

    def decompress(self) -> bytes:
        """The bytes as they were."""
        return zlib.decompressobj(-zlib.MAX_WBITS, self.dictionary).decompress(self.data)


def compressed(content: bytes, dictionary: bytes) -> Compressed:
    """The bytes, compressed; the more they have in common with the dictionary, the better."""
    compressor = zlib.compressobj(zlib.Z_BEST_SPEED, wbits=-zlib.MAX_WBITS, zdict=dictionary)
    return Compressed(compressor.compress(content) + compressor.flush(), dictionary)


class _Dictionary(Struct):
    content: bytes
    uses: int = 0


class Compressor:
    """Compresses objects, each with an earlier object of the same group as the dictionary."""

    def __init__(self) -> None:
        self._dictionaries = OrderedDict[Hashable, _Dictionary]()

    def compress(self, group: Hashable, content: bytes) -> bytes | Compressed:
        """The bytes, compressed; or as they are, if they are to be the dictionary of those that follow in their group."""
        dictionary = self._dictionaries.get(group)
        if dictionary is not None:
            dictionary.uses += 1
            self._dictionaries.move_to_end(group)
            result = compressed(content, dictionary.content)
            if len(result.data) * POOR <= len(content) or dictionary.uses < USES:
                return result
        elif len(self._dictionaries) >= MAX_DICTIONARIES:
            self._dictionaries.popitem(last=False)
        exact = bytes(memoryview(content))  # Encoders return bytes whose memory is several times their length.
        self._dictionaries[group] = _Dictionary(exact)
        return exact
