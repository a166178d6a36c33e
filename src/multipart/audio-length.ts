// Returns the duration of an audio file from its first bytes, or an estimate from its size.

/** Bytes at the start of a file that are examined. The chunks before the samples of a WAV file are far shorter. */
export const audioStartBytes = 4_096;
/** Compressed audio mostly has 128 kbit/s or less, so the estimate is rather too short than too long. */
const defaultBytesPerSecond = 16_000;
/** WAV formats with a fixed size of each sample: PCM, floating point, A-law, mu-law, and their multichannel form. */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe]);
/** Samples are at least this share of a WAV file. The rest, behind the samples, is metadata. */
const minSamples = 0.9;
/**
 * Byte rate of two channels of 48,000 samples of 32 bits. If a header states more, it may be invented while decoders go
 * by the frames. The recording is then charged at this rate.
 */
const maxBytesPerSecond = 48_000 * 2 * 4;

/** Returns seconds. `start` is the first bytes of the file, and `bytes` the size of the whole file. */
export function audioSeconds(start: Buffer, bytes: number): number {
  const declared = wavSeconds(start, bytes) ?? flacSeconds(start, bytes);
  if (declared === undefined || !Number.isFinite(declared)) return bytes / defaultBytesPerSecond;
  return Math.max(declared, bytes / maxBytesPerSecond);
}

/**
 * Reads RIFF WAVE: the chunk `fmt ` describes the samples, and the chunk `data` holds them. The byte rate that the
 * header states is ignored for fixed-size samples, as decoders ignore it too.
 */
function wavSeconds(start: Buffer, bytes: number): number | undefined {
  if (start.toString("latin1", 0, 4) !== "RIFF" || start.toString("latin1", 8, 12) !== "WAVE") return undefined;
  let rate = 0;
  for (let at = 12; at + 8 <= start.length; ) {
    const [name, size] = [start.toString("latin1", at, at + 4), start.readUInt32LE(at + 4)];
    if (name === "fmt " && at + 24 <= start.length) rate = bytesPerSecond(start, at + 8);
    if (name === "data") {
      const rest = bytes - at - 8;
      // Recorders that write while recording leave no size, or one that is too large. The rest of the file then counts
      // as samples.
      const samples = size < rest && size >= rest * minSamples ? size : rest;
      return rate > 0 ? samples / rate : undefined;
    }
    // Chunks begin at even offsets.
    at += 8 + size + (size % 2);
  }
  return undefined;
}

/** Reads the chunk `fmt `, which begins at `at` (Microsoft, WAVEFORMATEX). */
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
 * Reads FLAC (RFC 9639, 8.2). The first block has the sample rate in 20 bits and the total samples in 36. Between them
 * are the channels and the bits of a sample, each less one. Packed audio is hardly ever longer than unpacked.
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
