// Rewrites metadata in the header of a GGUF file (ggml's docs/gguf.md), to test models that differ only in what they say.

import { ggufAligned, ggufString, ggufText, ggufTypes } from "./gguf-file.ts";

/** By the number of the type, in bytes. */
const scalarSizes = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8];

/** A copy of the file with some string values set; keys that it lacks are added. */
export function withMetadata(file: Uint8Array, values: Readonly<Record<string, string>>): Uint8Array {
  const reader = new Reader(file);
  const head = reader.take(8);
  const tensorCount = reader.integer64();
  const keyCount = reader.integer64();
  const entries: Uint8Array[] = [];
  for (let index = 0; index < keyCount; index++) {
    const start = reader.position;
    const key = reader.string();
    reader.skipValue(reader.integer32());
    if (!Object.hasOwn(values, key)) entries.push(file.subarray(start, reader.position));
  }
  for (const [key, value] of Object.entries(values)) entries.push(Buffer.concat([ggufText(key), ggufString(value)]));
  const tensors = reader.tensorInfos(tensorCount);
  const data = file.subarray(ggufAligned(reader.position));
  const counts = new Uint8Array(16);
  const view = new DataView(counts.buffer);
  view.setBigUint64(0, BigInt(tensorCount), true);
  view.setBigUint64(8, BigInt(entries.length), true);
  const header = Buffer.concat([head, counts, ...entries, tensors]);
  return Buffer.concat([header, Buffer.alloc(ggufAligned(header.length) - header.length), data]);
}

class Reader {
  position = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  take(length: number): Uint8Array {
    this.position += length;
    return this.#bytes.subarray(this.position - length, this.position);
  }

  integer32(): number {
    this.position += 4;
    return this.#view.getUint32(this.position - 4, true);
  }

  integer64(): number {
    this.position += 8;
    return Number(this.#view.getBigUint64(this.position - 8, true));
  }

  string(): string {
    return new TextDecoder().decode(this.take(this.integer64()));
  }

  skipValue(type: number): void {
    if (type === ggufTypes.string) this.take(this.integer64());
    else if (type === ggufTypes.array) {
      const elementType = this.integer32();
      const count = this.integer64();
      for (let index = 0; index < count; index++) this.skipValue(elementType);
    } else this.take(scalarSizes[type] ?? 0);
  }

  tensorInfos(count: number): Uint8Array {
    const start = this.position;
    for (let index = 0; index < count; index++) {
      this.take(this.integer64());
      const dimensions = this.integer32();
      this.take(dimensions * 8 + 4 + 8);
    }
    return this.#bytes.subarray(start, this.position);
  }
}
