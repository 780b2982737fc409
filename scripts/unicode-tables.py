#!/usr/bin/env python3
"""Writes src/tokenizer/unicode/table.rs from the Unicode Character Database.

The database comes in the PyPI package unicodedata2, which carries one fixed Unicode version:
    pip install unicodedata2==15.1.0 && scripts/unicode-tables.py
The version is the one of llama.cpp's tables, so that text is split at the same places.
"""

import pathlib
import unicodedata2 as ucd

VERSION = "15.1.0"
OUT = pathlib.Path(__file__).resolve().parent.parent / "src/tokenizer/unicode/table.rs"
# The order of `Class` in src/tokenizer/unicode/mod.rs.
CLASSES = {"N": 1, "L": 2, "M": 3, "P": 4, "S": 5, "Z": 6, "C": 7}
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
HANGUL = range(0xAC00, 0xD7A4)


def class_of(cp):
    category = ucd.category(chr(cp))
    if cp in WHITE_SPACE:
        return 6
    if category == "Cn":
        return 0
    assert category[0] != "Z", hex(cp)
    return CLASSES[category[0]]


def class_ranges():
    previous = None
    for cp in range(0x110000):
        current = class_of(cp)
        if current != previous:
            yield cp << 3 | current
        previous = current


def decompositions():
    """(code point, first code point of its canonical decomposition); Hangul is computed, not listed."""
    for cp in range(0x110000):
        if 0xD800 <= cp < 0xE000 or cp in HANGUL:
            continue
        first = ord(ucd.normalize("NFD", chr(cp))[0])
        if first != cp:
            yield cp, first


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return out


def packed_decompositions():
    """For each pair: the step to the code point, then the zigzag difference of its base to the last base."""
    out, last_cp, last_first = bytearray(), 0, 0
    for cp, first in decompositions():
        step = first - last_first
        out += varint(cp - last_cp) + varint(step * 2 if step >= 0 else -step * 2 - 1)
        last_cp, last_first = cp, first
    return out


def lines(items, width=118):
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > width:
            yield line
            line = "   "
        line += f" {item},"
    yield line


def main():
    assert ucd.unidata_version == VERSION, f"needs unicodedata2=={VERSION}"
    ranges = list(class_ranges())
    packed = packed_decompositions()
    text = [
        f"//! Tables of Unicode {VERSION}, written by scripts/unicode-tables.py. Do not edit.",
        "",
        "/// `start << 3 | class`: every range of one class, in order; it ends where the next begins.",
        "#[rustfmt::skip]",
        f"pub(super) static CLASS_RANGES: [u32; {len(ranges)}] = [",
        *lines(f"{value:#x}" for value in ranges),
        "];",
        "",
        "/// Code points that decompose, and the first code point of what they decompose to (varints, see the script).",
        "#[rustfmt::skip]",
        f"pub(super) static DECOMPOSITIONS: [u8; {len(packed)}] = [",
        *lines(str(value) for value in packed),
        "];",
        "",
    ]
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text("\n".join(text))
    print(f"{OUT.name}: {len(ranges)} ranges, {len(packed)} bytes of decompositions")


if __name__ == "__main__":
    main()
