// Reads the header of a GGUF file from its first bytes. Everything has limits, because the file may be hostile.
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

/** The error for a header that is longer than the given bytes. Read more of the file and try again. */
export class GgufIncomplete extends Error {
  override readonly name = "GgufIncomplete";
}

/** The error for an invalid GGUF file. The message is a clause that says why, such as "it is not a GGUF file". */
export class GgufRefused extends Error {
  override readonly name = "GgufRefused";
}

export type GgufValue = number | boolean | string | readonly number[];

export interface GgufHeader {
  /**
   * The metadata: texts up to `maxTextLength`, lists of up to `maxListLength` numbers, and single values. Longer texts
   * and lists are left out.
   */
  metadata: ReadonlyMap<string, GgufValue>;
  /** The number of entries of each list, also of those that `metadata` leaves out. */
  lengths: ReadonlyMap<string, number>;
  /** The total number of parameters in the tensors of this file. */
  parameters: number;
  /** The length of the header in bytes. */
  bytes: number;
}

/** The most metadata entries and the most tensors, far above any real model. */
const maxEntries = 65_536;
/** The longest text that `metadata` keeps. Longer texts, such as chat templates, are skipped. */
const maxTextLength = 256;
const maxKeyLength = 65_535;
/** The longest list that `metadata` keeps. Values that differ by layer are lists. */
const maxListLength = 1024;
/** The most numbers that all lists in `metadata` have together. */
const maxNumbers = 65_536;
/**
 * The most texts in lists. Even the largest vocabularies have fewer than a million tokens, and each text must be
 * skipped separately.
 */
const maxTexts = 2_000_000;
const maxDimensions = 4;

const text = 8;
const list = 9;
/**
 * The bytes of a value by GGUF type: u8, i8, u16, i16, u32, i32, f32, bool, text, list, u64, i64, f64. Text and
 * list vary.
 */
const widths = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8] as const;

/** Reads a header. Throws a GgufIncomplete if the header is longer than `bytes`, and a GgufRefused if it is invalid. */
export function readGgufHeader(bytes: Buffer): GgufHeader {
  const cursor = new Cursor(bytes);
  if (cursor.text(4) !== "GGUF") throw new GgufRefused("it is not a GGUF file");
  const version = cursor.single(4);
  if (version !== 2 && version !== 3) throw new GgufRefused(`its version of GGUF is ${version}, and 2 and 3 are read`);
  const tensors = cursor.count("tensors", maxEntries);
  const entries = cursor.count("entries of metadata", maxEntries);
  const metadata = new Map<string, GgufValue>();
  const lengths = new Map<string, number>();
  for (let entry = 0; entry < entries; entry++) {
    const key = cursor.text(cursor.count("bytes of a key", maxKeyLength));
    const type = cursor.single(4);
    const value = type === list ? readList(cursor, (length) => lengths.set(key, length)) : readSingle(cursor, type);
    if (value !== undefined) metadata.set(key, value);
  }
  let parameters = 0;
  for (let tensor = 0; tensor < tensors; tensor++) parameters += readTensor(cursor);
  return { metadata, lengths, parameters, bytes: cursor.position };
}

function readSingle(cursor: Cursor, type: number): GgufValue | undefined {
  if (type === text) {
    const length = cursor.count("bytes of a text");
    if (length <= maxTextLength) return cursor.text(length);
    cursor.skip(length);
    return undefined;
  }
  widthOf(type);
  return type === 7 ? cursor.single(0) !== 0 : cursor.single(type);
}

function readList(cursor: Cursor, counted: (length: number) => void): readonly number[] | undefined {
  const type = cursor.single(4);
  const length = cursor.count("entries of a list");
  counted(length);
  if (type === text) {
    cursor.texts += length;
    if (cursor.texts > maxTexts) throw new GgufRefused(`it says to have ${cursor.texts} texts in its lists`);
    for (let entry = 0; entry < length; entry++) cursor.skip(cursor.count("bytes of a text"));
    return undefined;
  }
  const width = widthOf(type);
  if (length > maxListLength || cursor.numbers + length > maxNumbers) {
    cursor.skip(length * width);
    return undefined;
  }
  cursor.numbers += length;
  return Array.from({ length }, () => cursor.single(type));
}

/** Reads the header entry of a tensor, and returns the tensor's number of parameters. */
function readTensor(cursor: Cursor): number {
  cursor.skip(cursor.count("bytes of a tensor's name", maxKeyLength));
  const dimensions = cursor.single(4);
  if (dimensions > maxDimensions) throw new GgufRefused(`a tensor has ${dimensions} dimensions`);
  let parameters = 1;
  for (let dimension = 0; dimension < dimensions; dimension++) parameters *= cursor.count("places of a dimension");
  if (!Number.isSafeInteger(parameters)) throw new GgufRefused("a tensor is larger than any file");
  // Skips the tensor's type and its offset in the file.
  cursor.skip(4 + 8);
  return parameters;
}

function widthOf(type: number): number {
  const width = widths[type];
  if (width === undefined) throw new GgufRefused(`a value has the type ${type}, which there is not`);
  return width;
}

/** A read position in the bytes. Throws a GgufIncomplete when a read passes their end. */
class Cursor {
  readonly #bytes: Buffer;
  position = 0;
  /** Number of texts read from lists so far. `numbers` counts the numbers that were stored from lists. */
  texts = 0;
  numbers = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  skip(length: number): number {
    const start = this.position;
    if (length > this.#bytes.length - start) throw new GgufIncomplete("the header goes on");
    this.position = start + length;
    return start;
  }

  text(length: number): string {
    const start = this.skip(length);
    return this.#bytes.toString("utf8", start, start + length);
  }

  /** Reads a number of the given GGUF type. A boolean is read as a byte. */
  single(type: number): number {
    const start = this.skip(widthOf(type));
    const bytes = this.#bytes;
    if (type === 1) return bytes.readInt8(start);
    if (type === 2) return bytes.readUInt16LE(start);
    if (type === 3) return bytes.readInt16LE(start);
    if (type === 4) return bytes.readUInt32LE(start);
    if (type === 5) return bytes.readInt32LE(start);
    if (type === 6) return bytes.readFloatLE(start);
    if (type === 10) return Number(bytes.readBigUInt64LE(start));
    if (type === 11) return Number(bytes.readBigInt64LE(start));
    if (type === 12) return bytes.readDoubleLE(start);
    return bytes.readUInt8(start);
  }

  /**
   * Reads a 64-bit length. Throws a GgufRefused if the length exceeds `most`. `of` is the noun for the message, such as
   * "tensors".
   */
  count(of: string, most = Number.MAX_SAFE_INTEGER): number {
    const start = this.skip(8);
    const value = this.#bytes.readUInt32LE(start) + this.#bytes.readUInt32LE(start + 4) * 2 ** 32;
    if (value <= most) return value;
    throw new GgufRefused(`it says to have ${value} ${of}`);
  }
}
