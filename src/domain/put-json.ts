// Puts texts and numbers into a buffer as JSON has them, byte by byte: cheaper than a string that is encoded then.

const [quote, backslash, zero, point] = [0x22, 0x5c, 0x30, 0x2e];
/** The first and the last of the characters that JSON leaves as they are, and that are one byte; but for two. */
const [firstPlain, lastPlain] = [0x20, 0x7e];
/** Beyond it the bits of a division by ten would be lost. */
const mostByDigits = 0x7fffffff;
/** At most: a unit of UTF-16 as `\uXXXX`. */
const bytesOfUnit = 6;

/** Bytes that any number takes at most. */
export const mostOfNumber = 32;

/** Bytes that a text takes at most, with its quotes. */
export function mostOfText(text: string): number {
  return text.length * bytesOfUnit + 2;
}

/** As `JSON.stringify(text)`. Returns where it ends; there must be room for the most that it takes. */
export function putJsonText(bytes: Buffer, text: string, start: number): number {
  const { length } = text;
  let at = start;
  bytes[at++] = quote;
  for (let i = 0; i < length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < firstPlain || unit > lastPlain || unit === quote || unit === backslash) {
      return start + bytes.write(JSON.stringify(text), start);
    }
    bytes[at++] = unit;
  }
  bytes[at++] = quote;
  return at;
}

/** As `JSON.stringify(value)`, and so `null` for what is no number. Likewise. */
export function putJsonNumber(bytes: Buffer, value: number, start: number): number {
  if (value >= 0 && value <= mostByDigits) {
    const whole = value | 0;
    if (whole === value) return putDigits(bytes, whole, start);
    // Durations have one decimal.
    const tenths = Math.round(value * 10);
    if (tenths / 10 === value && tenths <= mostByDigits) {
      const at = putDigits(bytes, whole, start);
      bytes[at] = point;
      bytes[at + 1] = zero + tenths - whole * 10;
      return at + 2;
    }
  }
  return start + bytes.write(JSON.stringify(value), start, "latin1");
}

/** `value`: whole, not negative, and of 31 bits. Likewise. */
export function putDigits(bytes: Buffer, value: number, start: number): number {
  let end = start + 1;
  for (let limit = 10; value >= limit; limit *= 10) end++;
  let rest = value | 0;
  let at = end;
  do {
    const tenth = (rest / 10) | 0;
    bytes[--at] = zero + rest - tenth * 10;
    rest = tenth;
  } while (rest > 0);
  return end;
}
