// Returns the duration of an audio file, from its header or estimated from its size.

/** Number of bytes at the start of a file that are examined. What precedes the samples of a WAV file is far shorter. */
export const audioStartBytes = 4_096;
/**
 * Assumed bytes per second of compressed audio (128 kbit/s). Most audio has less, so the estimate is rather too short.
 */
const defaultBytesPerSecond = 16_000;
/** WAV formats with samples of fixed size: PCM, floating point, A-law, mu-law, and WAVE_FORMAT_EXTENSIBLE. */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7, 0xfffe]);
/** Minimum fraction of a WAV file that is samples; metadata may follow. */
const minSamples = 0.9;
/**
 * Maximum plausible byte rate: two channels of 48,000 samples of 32 bits. A header may state a higher one that decoders
 * ignore; this rate then counts.
 */
const maxBytesPerSecond = 48_000 * 2 * 4;

/** Returns the duration in seconds. `start` has the first bytes of the file, `bytes` is its size. */
export function audioSeconds(start: Buffer, bytes: number): number {
  const declared = wavSeconds(start, bytes) ?? flacSeconds(start, bytes);
  if (declared === undefined || !Number.isFinite(declared)) return bytes / defaultBytesPerSecond;
  return Math.max(declared, bytes / maxBytesPerSecond);
}

/**
 * Reads the header of a WAV file: the `fmt ` chunk describes the samples, which are in the `data` chunk. For samples of
 * fixed size, the stated byte rate is ignored, as decoders do.
 */
function wavSeconds(start: Buffer, bytes: number): number | undefined {
  if (start.toString("latin1", 0, 4) !== "RIFF" || start.toString("latin1", 8, 12) !== "WAVE") return undefined;
  let rate = 0;
  for (let at = 12; at + 8 <= start.length; ) {
    const [name, size] = [start.toString("latin1", at, at + 4), start.readUInt32LE(at + 4)];
    if (name === "fmt " && at + 24 <= start.length) rate = bytesPerSecond(start, at + 8);
    if (name === "data") {
      const rest = bytes - at - 8;
      // A program that writes while it records may state no size or one that is too large. Then the rest of the file
      // counts as samples.
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
 * Reads the header of a FLAC file (RFC 9639, 8.2): a sample rate of 20 bits, channels and bits per sample (each less
 * one), and a sample count of 36 bits. A compressed file is hardly ever larger than its samples.
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
