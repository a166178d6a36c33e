// Returns the duration of an audio file. It is read from the header, or estimated from the size of the file.

/**
 * Number of bytes at the start of a file that are examined. In a WAV file, the part before the samples is far shorter.
 */
export const audioStartBytes = 4_096;
/**
 * Assumed bytes per second of compressed audio (128 kbit/s). Most audio has fewer, so the estimate is usually too
 * short.
 */
const defaultBytesPerSecond = 16_000;
/**
 * Numbers of the WAV formats with samples of fixed size: PCM, floating point, A-law, mu-law, and
 * WAVE_FORMAT_EXTENSIBLE.
 */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe]);
/** Minimum fraction of a WAV file's remaining bytes that samples take. The others are metadata behind the samples. */
const minSamples = 0.9;
/**
 * Maximum plausible bytes per second: two channels of 48,000 samples of 32 bits. If a header states more, which
 * decoders ignore, this rate is used.
 */
const maxBytesPerSecond = 48_000 * 2 * 4;

/**
 * Returns the duration in seconds. `start` contains the first bytes of the file, and `bytes` is the size of the file.
 */
export function audioSeconds(start: Buffer, bytes: number): number {
  const declared = wavSeconds(start, bytes) ?? flacSeconds(start, bytes);
  if (declared === undefined || !Number.isFinite(declared)) return bytes / defaultBytesPerSecond;
  return Math.max(declared, bytes / maxBytesPerSecond);
}

/**
 * Reads the header of a WAV file. The `fmt ` chunk describes the samples, which are in the `data` chunk. If samples
 * have a fixed size, the stated byte rate is ignored, because decoders ignore it too.
 */
function wavSeconds(start: Buffer, bytes: number): number | undefined {
  if (start.toString("latin1", 0, 4) !== "RIFF" || start.toString("latin1", 8, 12) !== "WAVE") return undefined;
  let rate = 0;
  for (let at = 12; at + 8 <= start.length; ) {
    const [name, size] = [start.toString("latin1", at, at + 4), start.readUInt32LE(at + 4)];
    if (name === "fmt " && at + 24 <= start.length) rate = bytesPerSecond(start, at + 8);
    if (name === "data") {
      const rest = bytes - at - 8;
      // A program that writes a file while recording may state no size, or too large a size. The whole rest of the file
      // then counts as samples.
      const samples = size < rest && size >= rest * minSamples ? size : rest;
      return rate > 0 ? samples / rate : undefined;
    }
    // Chunks begin at even offsets.
    at += 8 + size + (size % 2);
  }
  return undefined;
}

/** Reads the byte rate from the `fmt ` chunk that begins at `at` (Microsoft, WAVEFORMATEX). */
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
 * Reads the header of a FLAC file (RFC 9639, 8.2): the sample rate in 20 bits, the numbers of channels and of bits per
 * sample (each less one), and the number of samples in 36 bits. A compressed file is hardly ever larger than its
 * samples.
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
