// Tests that whole zstd frames are distinguished from parts of frames, for any encoder settings. A decoder confirms
// each result.
import { expect, test } from "bun:test";
import { constants, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { areWholeZstdFrames } from "./zstd-frames.ts";

const skippable = (length: number) => {
  const frame = Buffer.alloc(8 + length, 0xaa);
  frame.writeUInt32LE(0x184d2a5f);
  frame.writeUInt32LE(length, 4);
  return frame;
};

const text = fc.oneof(
  fc.string(),
  // Repeated texts, some longer than a block.
  fc.tuple(fc.string({ minLength: 1 }), fc.nat(3_000)).map(([unit, times]) => unit.repeat(times)),
  fc.nat(300_000).map((length) => Buffer.alloc(length, "run").toString()),
  fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
);
const frame = fc.oneof(
  fc.tuple(text, fc.boolean(), fc.boolean(), fc.integer({ min: 1, max: 9 })).map(([content, sum, size, level]) =>
    zstdCompressSync(content, {
      params: {
        [constants.ZSTD_c_checksumFlag]: sum ? 1 : 0,
        [constants.ZSTD_c_contentSizeFlag]: size ? 1 : 0,
        [constants.ZSTD_c_compressionLevel]: level,
      },
    }),
  ),
  fc.nat(20).map(skippable),
);

function decodes(bytes: Buffer): boolean {
  try {
    Bun.zstdDecompressSync(bytes);
    return true;
  } catch {
    return false;
  }
}

test("accepts whole zstd frames and refuses a cut elsewhere than between two, like a decoder", () => {
  fc.assert(
    fc.property(
      fc.array(frame, { minLength: 1, maxLength: 3 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (all, cut) => {
        const bytes = Buffer.concat(all);
        expect([areWholeZstdFrames(bytes), decodes(bytes)]).toEqual([true, true]);
        const part = bytes.subarray(0, Math.max(1, Math.floor(cut * bytes.length)));
        expect(areWholeZstdFrames(part)).toBe(decodes(part));
      },
    ),
  );
});

test("refuses bytes after a frame that are no frame", () => {
  const whole = zstdCompressSync("hello");
  for (const more of ["x", "\0\0\0\0", "garbage, and much of it", whole.subarray(0, 4), whole.subarray(0, -1)]) {
    expect(areWholeZstdFrames(Buffer.concat([whole, Buffer.from(more)]))).toBe(false);
  }
  for (const none of ["", "x", "not compressed at all"]) expect(areWholeZstdFrames(Buffer.from(none))).toBe(false);
});
