// Whether a target holds what it promises for one input: no fault, the same result however the bytes are cut, and its own check.
import { isDeepStrictEqual } from "node:util";
import type { Target } from "./targets.ts";

/**
 * Milliseconds of processor time. An input has a few kilobytes: a target that takes this long, twice, does not grow with the
 * length alone. A busy machine changes nothing.
 */
const maxMs = 500;

/** Throws what is wrong. `random`: where it is cut. */
export async function examine(target: Target, bytes: Buffer, random: () => number): Promise<void> {
  const whole = await timed(target, bytes);
  if (!target.whole) {
    for (const pieces of [byteByByte(bytes), cutAtRandom(bytes, random)]) {
      const result = await target.read(pieces);
      if (isDeepStrictEqual(result, whole)) continue;
      const lengths = pieces.map(({ length }) => length).join(" ");
      throw new Error(`cut into ${lengths}: ${JSON.stringify(result)} instead of ${JSON.stringify(whole)}`);
    }
  }
  target.check?.(Buffer.from(bytes));
}

async function timed(target: Target, bytes: Buffer): Promise<unknown> {
  for (let again = false; ; again = true) {
    const before = process.cpuUsage();
    const result = await target.read(bytes.length === 0 ? [] : [Buffer.from(bytes)]);
    const { user, system } = process.cpuUsage(before);
    const tookMs = (user + system) / 1000;
    if (tookMs < maxMs) return result;
    if (again) throw new Error(`${bytes.length} bytes took ${Math.round(tookMs)} ms of processor time`);
  }
}

export function byteByByte(bytes: Buffer): Buffer[] {
  return inPieces(bytes, 1);
}

/** Pieces of a copy. */
export function inPieces(bytes: Buffer, size: number): Buffer[] {
  const own = Buffer.from(bytes);
  return Array.from({ length: Math.ceil(own.length / size) }, (_, index) =>
    own.subarray(index * size, (index + 1) * size),
  );
}

function cutAtRandom(bytes: Buffer, random: () => number): Buffer[] {
  const places = Array.from({ length: 1 + Math.floor(random() * 4) }, () => Math.floor(random() * bytes.length));
  places.sort((a, b) => a - b);
  const pieces = [0, ...places].map((place, index) =>
    Buffer.from(bytes.subarray(place, places[index] ?? bytes.length)),
  );
  return pieces.filter(({ length }) => length > 0);
}
