// Checks that compressed bytes are complete zstd frames (RFC 8878), because the decoder accepts a truncated body.

const frameMagic = 0xfd2fb528;
/** Upper 28 bits of the magic number of skippable frames. The last four bits may have any value. */
const skippableMagic = 0x184d2a5;
const dictionaryIdBytes = [0, 1, 2, 4] as const;
const contentSizeBytes = [0, 2, 4, 8] as const;
const blockHeaderBytes = 3;
/** The type of a block that repeats one byte. Its size field is the decompressed length. */
const runBlock = 1;
const checksumBytes = 4;
const magicAndDescriptorBytes = 5;

/** Reports whether the bytes are one or more complete frames and nothing else. The blocks' content is not checked. */
export function areWholeZstdFrames(bytes: Buffer): boolean {
  const frames = new ZstdFrames();
  frames.push(bytes);
  return frames.areWhole;
}

type Part = "magic" | "skippable size" | "descriptor" | "block header";
const partBytes: Readonly<Record<Part, number>> = {
  magic: 4,
  "skippable size": 4,
  descriptor: 1,
  "block header": blockHeaderBytes,
};

/** Checks the frames of a body that arrives in pieces. */
export class ZstdFrames {
  /** The part of the frame that is read next, after `#skip` bytes. */
  #part: Part = "magic";
  /** The bytes read of this part so far, as a little-endian number. `#length` is their count. */
  #value = 0;
  #length = 0;
  #skip = 0;
  #hasChecksum = false;
  #hasBegun = false;
  #isBroken = false;

  /** Reports whether the bytes so far are one or more complete frames. */
  get areWhole(): boolean {
    const isBetween = this.#part === "magic" && this.#length === 0 && this.#skip === 0;
    return this.#hasBegun && isBetween && !this.#isBroken;
  }

  push(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#hasBegun = true;
    for (let at = 0; at < bytes.length && !this.#isBroken; ) {
      const skipped = Math.min(this.#skip, bytes.length - at);
      this.#skip -= skipped;
      at += skipped;
      if (at === bytes.length) return;
      this.#value += (bytes[at++] as number) * 256 ** this.#length++;
      if (this.#length === partBytes[this.#part]) this.#take(this.#value);
    }
  }

  #take(value: number): void {
    const part = this.#part;
    this.#value = this.#length = 0;
    if (part === "magic") {
      if (value === frameMagic) this.#part = "descriptor";
      else if (value >>> 4 === skippableMagic) this.#part = "skippable size";
      else this.#isBroken = true;
    } else if (part === "skippable size") {
      this.#skip = value;
      this.#part = "magic";
    } else if (part === "descriptor") {
      this.#hasChecksum = (value & 4) !== 0;
      this.#skip = headerBytes(value) - magicAndDescriptorBytes;
      this.#part = "block header";
    } else {
      this.#skip = (value & 6) === runBlock << 1 ? 1 : value >>> 3;
      if ((value & 1) === 0) return;
      if (this.#hasChecksum) this.#skip += checksumBytes;
      this.#part = "magic";
    }
  }
}

/** Returns the length of a frame's header, including the magic number (RFC 8878, 3.1.1.1). */
function headerBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 32) !== 0;
  const contentSize = contentSizeBytes[(descriptor >> 6) as 0 | 1 | 2 | 3];
  const sizeBytes = contentSize === 0 && isSingleSegment ? 1 : contentSize;
  return 5 + (isSingleSegment ? 0 : 1) + dictionaryIdBytes[(descriptor & 3) as 0 | 1 | 2 | 3] + sizeBytes;
}
