// Constants of RFC 6455 (opcodes and close codes), and the format in which a frame begins.

export const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** Maximum size in bytes of a control frame's payload (RFC 6455, 5.5). */
export const maxControlBytes = 125;
/** Maximum size in bytes of a frame's head: two bytes, up to eight more for the length, and four for the mask. */
export const maxHeaderBytes = 14;

/** Close codes that the protocol itself defines (RFC 6455, 7.4.1). */
export const closeCodes = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  /** This code is never sent. It means that the other end sent a close frame without a code. */
  noStatus: 1005,
  /** This code is never sent. It means that a connection broke off without a close frame. */
  abnormal: 1006,
  invalidText: 1007,
  policyViolation: 1008,
  tooBig: 1009,
  tryAgainLater: 1013,
} as const;

/** Reports whether a close frame may contain this code (RFC 6455, 7.4.2, and the IANA registry). */
export function mayBeSent(code: number): boolean {
  if (code >= 3000) return code <= 4999;
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014);
}

/** An error of the other end after which the connection must fail. `message` is for the logs of both ends. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly closeCode: number;

  constructor(closeCode: number, message: string) {
    super(message);
    this.closeCode = closeCode;
  }
}

/** Writes the head of a final frame at `at`, but not its mask. Returns the offset after the head. */
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
  // The upper half of the length stays zero, because no message here is long enough to need it.
  target.fill(0, at + 2, at + 6);
  target[at + 6] = length >>> 24;
  target[at + 7] = length >>> 16;
  target[at + 8] = length >>> 8;
  target[at + 9] = length;
  return at + 10;
}

const keyBytes = new Uint8Array(4);
const keyWord = new Int32Array(keyBytes.buffer);

/**
 * Masks or unmasks `bytes` from `start` to `end`, in place. The key consists of the four bytes of `keys` that begin at
 * `keyAt`.
 */
export function applyMask(bytes: Uint8Array, start: number, end: number, keys: Uint8Array, keyAt: number): void {
  // Words begin at multiples of four in the underlying memory. The key is rotated to match these positions.
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

/** Masks whole words. Masking four words at a time takes half the time of masking one at a time. */
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
