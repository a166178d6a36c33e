// Whether compressed bytes are whole zstd frames (RFC 8878): the decoder takes for the end whatever comes last.

const frameMagic = 0xfd2fb528;
/** The last half byte of it is the user's. */
const skippableMagic = 0x184d2a5;
const dictionaryIdBytes = [0, 1, 2, 4] as const;
const contentSizeBytes = [0, 2, 4, 8] as const;
const blockHeaderBytes = 3;
/** A run of one byte, of which the block's size is the length once unpacked. */
const runBlock = 1;
const checksumBytes = 4;

/** One frame or several, and nothing behind them. What is in the blocks is for the decoder to judge. */
export function areWholeZstdFrames(bytes: Buffer): boolean {
  let position = 0;
  while (position < bytes.length) {
    const end = frameEnd(bytes, position);
    if (end === undefined || end > bytes.length) return false;
    position = end;
  }
  return bytes.length > 0;
}

/** Where the frame from `start` on ends, which may be behind all that is here; undefined where there is none. */
function frameEnd(bytes: Buffer, start: number): number | undefined {
  if (start + 8 > bytes.length) return undefined;
  const magic = bytes.readUInt32LE(start);
  if (magic >>> 4 === skippableMagic) return start + 8 + bytes.readUInt32LE(start + 4);
  if (magic !== frameMagic) return undefined;
  const descriptor = bytes.readUInt8(start + 4);
  let position = start + headerBytes(descriptor);
  for (let isLast = false; !isLast; ) {
    if (position + blockHeaderBytes > bytes.length) return undefined;
    const low = bytes[position] as number;
    isLast = (low & 1) === 1;
    position += blockHeaderBytes;
    if ((low & 6) === runBlock << 1) position++;
    else position += (low >> 3) | ((bytes[position - 2] as number) << 5) | ((bytes[position - 1] as number) << 13);
  }
  return (descriptor & 4) === 0 ? position : position + checksumBytes;
}

/** Bytes of a frame's header, the magic number included (RFC 8878, 3.1.1.1). */
function headerBytes(descriptor: number): number {
  const isSingleSegment = (descriptor & 32) !== 0;
  const contentSize = contentSizeBytes[(descriptor >> 6) as 0 | 1 | 2 | 3];
  const sizeBytes = contentSize === 0 && isSingleSegment ? 1 : contentSize;
  return 5 + (isSingleSegment ? 0 : 1) + dictionaryIdBytes[(descriptor & 3) as 0 | 1 | 2 | 3] + sizeBytes;
}
