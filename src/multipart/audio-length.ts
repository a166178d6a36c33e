// How long a sound is, as far as the beginning of its file tells; else an estimate from its bytes.

/** Bytes of a file that are looked at: the chunks before the samples of a WAV file fit by far. */
export const audioStartBytes = 4_096;
/** Compressed sound is mostly of 128 kbit/s or less: the estimate is rather too short than too long. */
const defaultBytesPerSecond = 16_000;
/** PCM, floating point, A-law, mu-law, and those of them with more channels: each sample has bytes of its own. */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe]);
/** The part of a WAV file that its samples are at least: behind them are names and places. */
const minSamples = 0.9;
/**
 * Two channels of 48,000 samples of 32 bits. A header that says more may be made up, and what listens goes by the frames behind
 * it: then the recording is charged as if it had so many.
 */
const maxBytesPerSecond = 48_000 * 2 * 4;

/** Seconds. `start`: the first bytes of it; `bytes`: of all of it. */
export function audioSeconds(start: Buffer, bytes: number): number {
  const told = wavSeconds(start, bytes) ?? flacSeconds(start, bytes);
  if (told === undefined || !Number.isFinite(told)) return bytes / defaultBytesPerSecond;
  return Math.max(told, bytes / maxBytesPerSecond);
}

/**
 * RIFF WAVE: a chunk `fmt ` with what the samples are, and one `data` with them. The bytes of a second that it names beside
 * are taken from nobody who is charged by them: decoders go by the samples as well.
 */
function wavSeconds(start: Buffer, bytes: number): number | undefined {
  if (start.toString("latin1", 0, 4) !== "RIFF" || start.toString("latin1", 8, 12) !== "WAVE") return undefined;
  let rate = 0;
  for (let at = 12; at + 8 <= start.length; ) {
    const [name, size] = [start.toString("latin1", at, at + 4), start.readUInt32LE(at + 4)];
    if (name === "fmt " && at + 24 <= start.length) rate = bytesPerSecond(start, at + 8);
    if (name === "data") {
      const rest = bytes - at - 8;
      // One that was written as it was recorded says nothing, or too much, of its length; and more than notes behind it are samples.
      const samples = size < rest && size >= rest * minSamples ? size : rest;
      return rate > 0 ? samples / rate : undefined;
    }
    // Chunks begin at even places.
    at += 8 + size + (size % 2);
  }
  return undefined;
}

/** By the chunk `fmt `, which begins at `at` (Microsoft, WAVEFORMATEX). */
function bytesPerSecond(start: Buffer, at: number): number {
  const [channels, samples, named] = [
    start.readUInt16LE(at + 2),
    start.readUInt32LE(at + 4),
    start.readUInt32LE(at + 8),
  ];
  const isPlain = plainFormats.has(start.readUInt16LE(at));
  return isPlain ? (channels * samples * start.readUInt16LE(at + 14)) / 8 : Math.min(named, defaultBytesPerSecond);
}

/**
 * FLAC (RFC 9639, 8.2): the first block has the samples of a second, in 20 bits, and of all, in 36; between them, less one,
 * the channels and the bits of a sample. All but none of it is longer packed than it was before.
 */
function flacSeconds(start: Buffer, bytes: number): number | undefined {
  if (start.length < 26 || start.toString("latin1", 0, 4) !== "fLaC") return undefined;
  const rate = start.readUIntBE(18, 3) >> 4;
  const samples = ((start[21] as number) & 0x0f) * 2 ** 32 + start.readUInt32BE(22);
  if (rate === 0 || samples === 0) return undefined;
  const layout = start.readUInt16BE(20);
  const [channels, bits] = [((layout >> 9) & 0x07) + 1, ((layout >> 4) & 0x1f) + 1];
  return Math.max(samples / rate, bytes / ((rate * channels * bits) / 8));
}
