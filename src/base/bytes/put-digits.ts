// Puts a whole number into a buffer, byte by byte: cheaper than a string that is encoded then.

const zero = 0x30;

/** Beyond it the bits of a division by ten would be lost. */
export const maxByDigits = 0x7fffffff;

/** `value`: whole, not negative, and `maxByDigits` at most; there must be room for its ten digits. Returns where it ends. */
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
