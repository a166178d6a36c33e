// GGUF headers for tests, made of what they are to say.

type Value = string | number | boolean | readonly string[] | readonly number[];

function length64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function text(value: string): Buffer {
  return Buffer.concat([length64(Buffer.byteLength(value)), Buffer.from(value)]);
}

function typed(value: Value): Buffer[] {
  if (typeof value === "string") return [number32(8), text(value)];
  if (typeof value === "boolean") return [number32(7), Buffer.from([value ? 1 : 0])];
  if (typeof value === "number") return [number32(4), number32(value)];
  const [first] = value;
  const items = value.map((item) => (typeof item === "string" ? text(item) : number32(item)));
  return [number32(9), number32(typeof first === "string" ? 8 : 4), length64(value.length), ...items];
}

/** Metadata by name, whole numbers as u32, and tensors by their dimensions. */
export function ggufHeader(
  metadata: Readonly<Record<string, Value>>,
  tensors: readonly (readonly number[])[] = [],
): Buffer {
  const entries = Object.entries(metadata);
  return Buffer.concat([
    ...[Buffer.from("GGUF"), number32(3), length64(tensors.length), length64(entries.length)],
    ...entries.flatMap(([name, value]) => [text(name), ...typed(value)]),
    ...tensors.flatMap((dimensions, index) => [
      ...[text(`t${index}`), number32(dimensions.length), ...dimensions.map(length64)],
      ...[number32(0), length64(0)],
    ]),
  ]);
}

/** A model of 32 layers with 8 heads of 128 numbers, of which nothing but the header is there. */
export const llama8b = {
  "general.architecture": "llama",
  "general.file_type": 15,
  "llama.context_length": 131_072,
  "llama.block_count": 32,
  "llama.embedding_length": 4096,
  "llama.attention.head_count": 32,
  "llama.attention.head_count_kv": 8,
  "tokenizer.ggml.tokens": Array.from({ length: 100 }, (_, index) => `token${index}`),
} as const;
