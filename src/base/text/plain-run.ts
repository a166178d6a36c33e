// Skips the plain bytes of a JSON string sixteen at a time, with a few WebAssembly SIMD instructions that JavaScript
// lacks.

/** The longest text, in bytes. */
export const textBytes = 2 * 1024 * 1024;
/**
 * Memory pages of 64 KiB: one more than the longest text needs, because the search reads sixteen bytes at a time and
 * may read past the end.
 */
const pages = textBytes / (64 * 1024) + 1;

/** Memory into which callers copy the text. */
export const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });

const [i32, v128] = [0x7f, 0x7b];
/**
 * Instructions (WebAssembly core specification, 5.4). The local variables: 0 is `at`, 1 is sixteen bytes, 2 is bits.
 */
const at = [0x20, 0];
const take = [0xfd, 0x00, 0, 0, 0x22, 1];
const taken = [0x20, 1];
const equal = [0xfd, 0x23];
const below = [0xfd, 0x26];
const or = [0xfd, 0x50];
const [setBits, bits] = [
  [0xfd, 0x64, 0x22, 2],
  [0x20, 2],
];
const [add, isZero, countTrailingZeros] = [0x6a, 0x45, 0x68];
const [loop, ifSo, again, end] = [[0x03, 0x40], [0x04, 0x40], [0x0c, 1], 0x0b];
/** Encodes a signed number of seven bits. */
const number = (value: number) => [0x41, ...(value < 64 ? [value] : [value | 0x80, 0])];
const sixteenTimes = (value: number) => [...number(value), 0xfd, 0x0f];

/** Code that finds the next quote, backslash or control character from `at` on. */
const code = [
  ...[2, 1, v128, 1, i32],
  ...loop,
  ...[...at, ...take, ...sixteenTimes(0x22), ...equal],
  ...[...taken, ...sixteenTimes(0x5c), ...equal, ...or],
  ...[...taken, ...sixteenTimes(0x20), ...below, ...or],
  ...[...setBits, isZero, ...ifSo],
  ...[...at, ...number(16), add, 0x21, 0, ...again],
  ...[end, end],
  ...[...at, ...bits, countTrailingZeros, add, end],
];

/** Encodes a WebAssembly vector of up to 127 bytes: its length, then the bytes. */
const sized = (content: readonly number[]) => [content.length, ...content];
const named = (text: string) => sized([...Buffer.from(text)]);
const section = (id: number, content: readonly number[]) => [id, ...sized(content)];
const binary = [
  ...[0, ...Buffer.from("asm"), 1, 0, 0, 0],
  ...section(1, [1, 0x60, 1, i32, 1, i32]),
  ...section(2, [1, ...named("text"), ...named("memory"), 2, 1, pages, pages]),
  ...section(3, [1, 0]),
  ...section(7, [1, ...named("afterPlain"), 0, 0]),
  ...section(10, [1, ...sized(code)]),
];

type Skip = (at: number) => number;
/**
 * The compiled function. `null` if it is not compiled yet, because compiling takes a millisecond and some megabytes.
 * `undefined` if the processor lacks these instructions.
 */
let skip: Skip | undefined | null = null;

/**
 * Skips plain bytes from `at` on, and returns an offset up to which all bytes are plain. Returns `at` if there is a
 * quote, a backslash or a control character at `at`.
 */
export function afterPlain(at: number): number {
  if (skip === null) skip = compiled();
  return skip === undefined ? at : skip(at);
}

function compiled(): Skip | undefined {
  try {
    const module = new WebAssembly.Module(new Uint8Array(binary));
    const { exports } = new WebAssembly.Instance(module, { text: { memory } });
    return exports["afterPlain"] as Skip;
  } catch {
    return undefined;
  }
}
