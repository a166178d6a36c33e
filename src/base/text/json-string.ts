// Finds the end of a JSON string in byte text, as strictly as JSON.parse and a UTF-8 decoder.

export const quote = 0x22;
export const backslash = 0x5c;
export const firstPrintable = 0x20;
export const firstNonAscii = 0x80;

/** Bytes of the string's escapes beyond the UTF-8 of the characters that they stand for. */
export interface Escapes {
  bytes: number;
}

/**
 * Returns the offset of the closing quote of the JSON string whose first byte is at `start`. Returns -1 if the string
 * has no end, or has control characters, invalid UTF-8 or invalid escapes. Adds to `escapes`.
 */
export function stringEnd(text: string, start: number, escapes: Escapes): number {
  let i = start;
  while (i < text.length) {
    const code = text.charCodeAt(i);
    if (code === quote) return i;
    if (code < firstPrintable) return -1;
    if (code === backslash) {
      const length = escapeLength(text, i, escapes);
      if (length === 0) return -1;
      i += length;
    } else if (code < firstNonAscii) {
      i++;
    } else {
      const length = sequenceLength(text, i, code);
      if (length === 0) return -1;
      i += length;
    }
  }
  return -1;
}

/** Returns the length of the UTF-8 sequence at `i` that `first` begins (Unicode, table 3-7), or 0 if it is invalid. */
function sequenceLength(text: string, i: number, first: number): number {
  const second = text.charCodeAt(i + 1);
  if (first < 0xc2 || first > 0xf4) return 0;
  if (first < 0xe0) return isContinuation(second) ? 2 : 0;
  const lowest = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const highest = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (!(second >= lowest && second <= highest) || !isContinuation(text.charCodeAt(i + 2))) return 0;
  if (first < 0xf0) return 3;
  return isContinuation(text.charCodeAt(i + 3)) ? 4 : 0;
}

function isContinuation(code: number): boolean {
  return code >= 0x80 && code <= 0xbf;
}

/**
 * Returns the length of the escape at `i`, where a surrogate pair counts as one escape, or 0 if it is invalid. Adds to
 * `escapes`.
 */
function escapeLength(text: string, i: number, escapes: Escapes): number {
  const kind = text.charCodeAt(i + 1);
  if (kind !== 0x75) {
    if (!simpleEscapes.has(kind)) return 0;
    escapes.bytes += 1;
    return 2;
  }
  const unit = hexUnit(text, i + 2);
  if (unit < 0) return 0;
  if (unit >= 0xd800 && unit < 0xdc00 && text.charCodeAt(i + 6) === backslash && text.charCodeAt(i + 7) === 0x75) {
    const low = hexUnit(text, i + 8);
    if (low >= 0xdc00 && low < 0xe000) {
      escapes.bytes += 12 - 4;
      return 12;
    }
  }
  // A lone surrogate counts as the U+FFFD that it becomes.
  escapes.bytes += 6 - (unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3);
  return 6;
}

/** `"`, `\`, `/`, b, f, n, r, t (RFC 8259, 7). */
const simpleEscapes: ReadonlySet<number> = new Set([0x22, 0x5c, 0x2f, 0x62, 0x66, 0x6e, 0x72, 0x74]);

/** Returns the value of the four hexadecimal digits at `i`, or -1 if one of them is no digit. */
function hexUnit(text: string, i: number): number {
  let unit = 0;
  for (let at = i; at < i + 4; at++) {
    const digit = hexDigit(text.charCodeAt(at));
    if (digit < 0) return -1;
    unit = unit * 16 + digit;
  }
  return unit;
}

function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x61 + 10 : -1;
}
