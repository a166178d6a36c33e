// The numbers of RFC 6455: opcodes, close codes, and how a frame begins.

export const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** Maximum bytes of a control frame's payload (RFC 6455, 5.5). */
export const maxControlBytes = 125;
/** Maximum bytes of a frame's head: two bytes, up to eight more for the length, four for the mask. */
export const maxHeaderBytes = 14;

/** Close codes of the protocol itself (RFC 6455, 7.4.1). */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  /** Never sent; stands for a close frame without a code from the other end. */
  noStatus: 1005,
  /** Never sent; stands for a connection that broke off without a close frame. */
  abnormal: 1006,
  invalidText: 1007,
  policyViolation: 1008,
  tooBig: 1009,
  tryAgainLater: 1013,
} as const;

/** Reports whether a close frame may contain the code (RFC 6455, 7.4.2, and the IANA registry). */
export function mayBeSent(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

/** An error of the peer after which the connection must fail. `message` is for the logs of both ends. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly closeCode: number;

  constructor(closeCode: number, message: string) {
    super(message);
    this.closeCode = closeCode;
  }
}

/** Writes the head of a final frame at `at`, without its mask. Returns the offset after it. */
export function putFrameHead(target: Uint8Array, at: number, opcode: number, length: number, masked: boolean): number {
  const mask = masked ? 0x80 : 0;
  target[at] = 0x80 | opcode;
  if (length < 126) {
    target[at + 1] = mask | length;
    return at + 2;
  }
  if (length < 0x10000) {
    target[at + 1] = mask | 126;
    target[at + 2] = length >>> 8;
    target[at + 3] = length;
    return at + 4;
  }
  target[at + 1] = mask | 127;
  // No message here is long enough to need the upper half.
  target.fill(0, at + 2, at + 6);
  target[at + 6] = length >>> 24;
  target[at + 7] = length >>> 16;
  target[at + 8] = length >>> 8;
  target[at + 9] = length;
  return at + 10;
}

const keyBytes = new Uint8Array(4);
const keyWord = new Int32Array(keyBytes.buffer);

/** Masks or unmasks `bytes` from `start` to `end` in place. The four bytes of the key begin at `keyAt` of `keys`. */
export function applyMask(bytes: Uint8Array, start: number, end: number, keys: Uint8Array, keyAt: number): void {
  // Words are at multiples of four in the underlying memory, so the key is rotated to match.
  const lead = Math.min(end - start, -(bytes.byteOffset + start) & 3);
  let at = start;
  for (; at < start + lead; at++) bytes[at] = (bytes[at] as number) ^ (keys[keyAt + ((at - start) & 3)] as number);
  const words = (end - at) >>> 2;
  if (words > 0) {
    for (let index = 0; index < 4; index++) keyBytes[index] = keys[keyAt + ((lead + index) & 3)] as number;
    maskWords(new Int32Array(bytes.buffer, bytes.byteOffset + at, words), keyWord[0] as number);
    at += words * 4;
  }
  for (; at < end; at++) bytes[at] = (bytes[at] as number) ^ (keys[keyAt + ((at - start) & 3)] as number);
}

/** Masks whole words. Four at a time take half the time of one at a time. */
function maskWords(words: Int32Array, key: number): void {
  const { length } = words;
  const fours = length & ~3;
  let at = 0;
  for (; at < fours; at += 4) {
    words[at] = (words[at] as number) ^ key;
    words[at + 1] = (words[at + 1] as number) ^ key;
    words[at + 2] = (words[at + 2] as number) ^ key;
    words[at + 3] = (words[at + 3] as number) ^ key;
  }
  for (; at < length; at++) words[at] = (words[at] as number) ^ key;
}
