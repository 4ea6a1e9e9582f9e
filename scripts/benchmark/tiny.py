"""A tiny model with the tokenizer of a real one, for loads that test the queue and not the arithmetic."""

from __future__ import annotations

import random
import struct
from array import array
from pathlib import Path

SHAPE = {
    "block_count": 2,
    "embedding_length": 64,
    "feed_forward_length": 128,
    "attention.head_count": 4,
    "attention.head_count_kv": 2,
}
HEAD = 16
ALIGNMENT = 32
SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
U32, STRING, ARRAY = 4, 8, 9


class Reader:
    """The metadata of a GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md)."""

    def __init__(self, path: Path) -> None:
        self.bytes = path.read_bytes()
        self.at = 8

    def number(self, code: str) -> int:
        """One little-endian integer."""
        value: int = struct.unpack_from("<" + code, self.bytes, self.at)[0]
        self.at += struct.calcsize(code)
        return value

    def string(self) -> str:
        """A length and so many bytes."""
        length = self.number("Q")
        self.at += length
        return self.bytes[self.at - length : self.at].decode()

    def skip(self, kind: int) -> None:
        """Move past a value."""
        if kind == STRING:
            self.string()
        elif kind == ARRAY:
            element, count = self.number("I"), self.number("Q")
            if element in SIZES:
                self.at += SIZES[element] * count
            else:
                for _ in range(count):
                    self.skip(element)
        else:
            self.at += SIZES[kind]

    def metadata(self) -> dict[str, tuple[int, bytes]]:
        """Key → type and raw value."""
        self.number("Q")
        found = {}
        for _ in range(self.number("Q")):
            key, kind = self.string(), self.number("I")
            start = self.at
            self.skip(kind)
            found[key] = (kind, self.bytes[start : self.at])
        return found


def tensors(vocabulary: int) -> dict[str, tuple[int, ...]]:
    """Name → rows and columns, or one length."""
    hidden, forward = SHAPE["embedding_length"], SHAPE["feed_forward_length"]
    query, key = HEAD * SHAPE["attention.head_count"], HEAD * SHAPE["attention.head_count_kv"]
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (vocabulary, hidden), "output_norm.weight": (hidden,)}
    for block in range(SHAPE["block_count"]):
        parts: dict[str, tuple[int, ...]] = {
            "attn_norm": (hidden,),
            "attn_q": (query, hidden),
            "attn_k": (key, hidden),
            "attn_v": (key, hidden),
            "attn_output": (hidden, query),
            "ffn_norm": (hidden,),
            "ffn_gate": (forward, hidden),
            "ffn_up": (forward, hidden),
            "ffn_down": (hidden, forward),
        }
        found |= {f"blk.{block}.{part}.weight": shape for part, shape in parts.items()}
    return found


def text(value: str) -> bytes:
    """A length and so many bytes."""
    return struct.pack("<Q", len(value)) + value.encode()


def write(model: Path, path: Path) -> Path:
    """Seeded weights and the text side of `model`."""
    metadata = Reader(model).metadata()
    vocabulary = struct.unpack_from("<IQ", metadata["tokenizer.ggml.tokens"][1])[1]
    for key, value in (SHAPE | {"rope.dimension_count": HEAD}).items():
        metadata[f"llama.{key}"] = (U32, struct.pack("<I", value))
    chance = random.Random(1)
    infos, data = bytearray(), bytearray()
    shapes = tensors(vocabulary)
    for name, shape in shapes.items():
        infos += text(name) + struct.pack("<I", len(shape))
        infos += b"".join(struct.pack("<Q", size) for size in reversed(shape)) + struct.pack("<IQ", 0, len(data))
        count, scale = 1, 3.0 if name == "token_embd.weight" else 2.0
        for size in shape:
            count *= size
        deviation = scale / shape[-1] ** 0.5
        values = [1.0] * count if len(shape) == 1 else [deviation * (2 * chance.random() - 1) for _ in range(count)]
        data += array("f", values).tobytes()
        data += bytes(-len(data) % ALIGNMENT)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(shapes), len(metadata))
    head += b"".join(text(key) + struct.pack("<I", kind) + value for key, (kind, value) in metadata.items()) + infos
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + bytes(-len(head) % ALIGNMENT) + data)
    return path
