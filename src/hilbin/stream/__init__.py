"""Stream: where samples come from, block by block, and how sums over them are folded."""

from hilbin.stream.chunks import Chunk, Chunks
from hilbin.stream.errors import CheckpointError, ChunkError, LeftOutWarning
from hilbin.stream.folding import fold
from hilbin.stream.images import ImageChunks
from hilbin.stream.opening import as_chunks

__all__ = [
    "CheckpointError",
    "Chunk",
    "ChunkError",
    "Chunks",
    "ImageChunks",
    "LeftOutWarning",
    "as_chunks",
    "fold",
]
