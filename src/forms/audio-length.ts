// How long a sound is, as far as the beginning of its file tells; else an estimate from its bytes.

/** Bytes of a file that are looked at: the chunks before the samples of a WAV file fit by far. */
export const audioStartBytes = 4_096;
/** Compressed sound is mostly of 128 kbit/s or less: the estimate is rather too short than too long. */
const usualBytesPerSecond = 16_000;
/** Eight channels of 192,000 samples of 32 bits: a header that says more is no header. */
const mostBytesPerSecond = 192_000 * 8 * 4;

/** Seconds. `start`: the first bytes of it; `bytes`: of all of it. */
export function audioSeconds(start: Buffer, bytes: number): number {
  const told = wavSeconds(start, bytes) ?? flacSeconds(start);
  if (told === undefined || !Number.isFinite(told)) return bytes / usualBytesPerSecond;
  return Math.max(told, bytes / mostBytesPerSecond);
}

/** RIFF WAVE: a chunk `fmt ` with the bytes of a second, and one `data` with the samples. */
function wavSeconds(start: Buffer, bytes: number): number | undefined {
  if (start.toString("latin1", 0, 4) !== "RIFF" || start.toString("latin1", 8, 12) !== "WAVE") return undefined;
  let rate = 0;
  for (let at = 12; at + 8 <= start.length; ) {
    const [name, size] = [start.toString("latin1", at, at + 4), start.readUInt32LE(at + 4)];
    if (name === "fmt " && at + 20 <= start.length) rate = start.readUInt32LE(at + 16);
    if (name === "data") {
      // One that was written as it was recorded says nothing, or too much, of its length.
      const samples = Math.min(size === 0 ? bytes : size, bytes - at - 8);
      return rate > 0 ? samples / rate : undefined;
    }
    // Chunks begin at even places.
    at += 8 + size + (size % 2);
  }
  return undefined;
}

/** FLAC (RFC 9639, 8.2): the first block has the samples of a second, in 20 bits, and of all, in 36. */
function flacSeconds(start: Buffer): number | undefined {
  if (start.length < 26 || start.toString("latin1", 0, 4) !== "fLaC") return undefined;
  const rate = start.readUIntBE(18, 3) >> 4;
  const samples = ((start[21] as number) & 0x0f) * 2 ** 32 + start.readUInt32BE(22);
  return rate > 0 && samples > 0 ? samples / rate : undefined;
}
