// Writes GGUF files (ggml's docs/gguf.md), for models that tests make themselves.

export type GgufValue = string | boolean | Whole | Fraction | readonly string[] | readonly Whole[];

/** Written as an integer of 32 bits: unsigned by itself, signed in an array, as llama.cpp reads them. */
export interface Whole {
  whole: number;
}

/** Written as a float of 32 bits. */
export interface Fraction {
  fraction: number;
}

/** A tensor of 32-bit floats. */
export interface GgufTensor {
  name: string;
  /** The innermost dimension first, as GGUF has them. */
  dimensions: readonly number[];
  data: Float32Array;
}

/** Value types by number. */
export const ggufTypes = { whole: 4, integer: 5, fraction: 6, boolean: 7, string: 8, array: 9 };
const floatTensor = 0;
const version = 3;
const alignment = 32;

export function ggufFile(metadata: Readonly<Record<string, GgufValue>>, tensors: readonly GgufTensor[]): Uint8Array {
  const entries = Object.entries(metadata).map(([key, value]) => Buffer.concat([ggufText(key), typed(value)]));
  let offset = 0;
  const infos: Uint8Array[] = [];
  const contents: Uint8Array[] = [];
  for (const { name, dimensions, data } of tensors) {
    const sizes = dimensions.map(whole64);
    infos.push(ggufText(name), whole32(dimensions.length), ...sizes, whole32(floatTensor), whole64(offset));
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    contents.push(bytes, new Uint8Array(ggufAligned(bytes.length) - bytes.length));
    offset += ggufAligned(bytes.length);
  }
  const counts = [whole32(version), whole64(tensors.length), whole64(entries.length)];
  const header = Buffer.concat([Buffer.from("GGUF"), ...counts, ...entries, ...infos]);
  return Buffer.concat([header, new Uint8Array(ggufAligned(header.length) - header.length), ...contents]);
}

export function ggufAligned(position: number): number {
  return Math.ceil(position / alignment) * alignment;
}

/** A text behind its length. */
export function ggufText(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  return Buffer.concat([whole64(bytes.length), bytes]);
}

/** A string as the value of a key, behind its type. */
export function ggufString(text: string): Uint8Array {
  return Buffer.concat([whole32(ggufTypes.string), ggufText(text)]);
}

function typed(value: GgufValue): Uint8Array {
  if (Array.isArray(value)) {
    const type = typeof value[0] === "object" ? ggufTypes.integer : ggufTypes.string;
    return Buffer.concat([whole32(ggufTypes.array), whole32(type), whole64(value.length), ...value.map(scalar)]);
  }
  const single = value as Exclude<GgufValue, readonly unknown[]>;
  return Buffer.concat([whole32(typeOf(single)), scalar(single)]);
}

function typeOf(value: Exclude<GgufValue, readonly unknown[]>): number {
  if (typeof value === "string") return ggufTypes.string;
  if (typeof value === "boolean") return ggufTypes.boolean;
  return "whole" in value ? ggufTypes.whole : ggufTypes.fraction;
}

function scalar(value: Exclude<GgufValue, readonly unknown[]>): Uint8Array {
  if (typeof value === "string") return ggufText(value);
  if (typeof value === "boolean") return Uint8Array.of(value ? 1 : 0);
  return "whole" in value ? whole32(value.whole) : new Uint8Array(Float32Array.of(value.fraction).buffer);
}

function whole32(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

function whole64(value: number): Uint8Array {
  return new Uint8Array(BigUint64Array.of(BigInt(value)).buffer);
}
