/** XXH32 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) over bytes that come in pieces: fast without 64-bit numbers. */

/** The checksum of bytes given in order. Every piece but the last has a multiple of 16 bytes and starts at a multiple of 4 of its buffer. */
export class Checksum {
  #a = (P1 + P2) | 0;
  #b = P2;
  #c = 0;
  #d = -P1 | 0;
  #length = 0;
  #rest = new Uint8Array(0);

  /** Takes the next piece. */
  update(bytes: Uint8Array): void {
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, (bytes.byteLength >> 4) << 2);
    // One by one: of numbers out of an array V8 does not know that they are whole, and is three times as slow.
    let a = this.#a;
    let b = this.#b;
    let c = this.#c;
    let d = this.#d;
    for (let i = 0; i < words.length; i += 4) {
      a = (a + Math.imul(words[i] as number, P2)) | 0; // i is below length
      a = Math.imul((a << 13) | (a >>> 19), P1);
      b = (b + Math.imul(words[i + 1] as number, P2)) | 0;
      b = Math.imul((b << 13) | (b >>> 19), P1);
      c = (c + Math.imul(words[i + 2] as number, P2)) | 0;
      c = Math.imul((c << 13) | (c >>> 19), P1);
      d = (d + Math.imul(words[i + 3] as number, P2)) | 0;
      d = Math.imul((d << 13) | (d >>> 19), P1);
    }
    [this.#a, this.#b, this.#c, this.#d] = [a, b, c, d];
    this.#length += bytes.byteLength;
    this.#rest = bytes.slice(words.byteLength);
  }

  /** The checksum of all that was given, 0 to 2^32-1. */
  value(): number {
    let hash = P5;
    if (this.#length >= 16) hash = rotate(this.#a, 1) + rotate(this.#b, 7) + rotate(this.#c, 12) + rotate(this.#d, 18);
    hash = (hash + this.#length) | 0;
    const rest = new DataView(this.#rest.buffer, this.#rest.byteOffset, this.#rest.byteLength);
    let at = 0;
    for (; at + 4 <= rest.byteLength; at += 4) {
      hash = Math.imul(rotate(hash + Math.imul(rest.getInt32(at, true), P3), 17), P4);
    }
    for (; at < rest.byteLength; at += 1) hash = Math.imul(rotate(hash + Math.imul(rest.getUint8(at), P5), 11), P1);
    hash = Math.imul(hash ^ (hash >>> 15), P2);
    hash = Math.imul(hash ^ (hash >>> 13), P3);
    return (hash ^ (hash >>> 16)) >>> 0;
  }
}

function rotate(x: number, by: number): number {
  return (x << by) | (x >>> (32 - by));
}

const P1 = 0x9e3779b1 | 0;
const P2 = 0x85ebca77 | 0;
const P3 = 0xc2b2ae3d | 0;
const P4 = 0x27d4eb2f;
const P5 = 0x165667b1;
