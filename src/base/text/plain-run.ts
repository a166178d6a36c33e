// Skips the plain bytes of a JSON string sixteen at a time: a few instructions of WebAssembly, as JavaScript has none for that.

/** The longest text. */
export const textBytes = 2 * 1024 * 1024;
/** One more than that takes, as what is behind a text is read with its end. */
const pages = textBytes / (64 * 1024) + 1;

/** The text has to be here. */
export const memory = new WebAssembly.Memory({ initial: pages, maximum: pages });

const [i32, v128] = [0x7f, 0x7b];
/** Instructions (WebAssembly core specification, 5.4); the local variables are 0: `at`, 1: sixteen bytes, 2: bits. */
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
/** A number of seven bits with its sign. */
const number = (value: number) => [0x41, ...(value < 64 ? [value] : [value | 0x80, 0])];
const sixteenTimes = (value: number) => [...number(value), 0xfd, 0x0f];

/** Where the next quote, backslash or control character is, from `at` on. */
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

/** A WebAssembly vector of up to 127 bytes, its length before it. */
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
 * The compiled function. `null`: not made yet, as that takes a millisecond and some megabytes; `undefined`: the
 * processor has no such instructions.
 */
let skip: Skip | undefined | null = null;

/**
 * The end of the run of plain bytes that `at` stands in, or of some of it: a quote, a backslash or a control character,
 * or `at` itself.
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
