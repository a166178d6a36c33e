// Writes a whole number into a buffer byte by byte, which is cheaper than encoding a string.

const zero = 0x30;

/** Greatest value. Above it, a division by ten with 32-bit integers would lose bits. */
export const maxByDigits = 0x7fffffff;

/**
 * `value` must be whole, from 0 to `maxByDigits`, and the buffer needs room for its ten digits. Returns the end offset.
 */
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
