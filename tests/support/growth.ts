// How the cost of work grows with the length of its input, told by processor time, of which other programs take nothing.

/** The least of so many is compared, as collecting garbage and compiling only add. */
const maxRounds = 12;
/** What takes less is not worth a look. */
const minMs = 2;

/** Processor time that this process spends on it. */
async function cpuMsOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/**
 * What one long input costs as a multiple of as many short ones as are together as long: 1 where the cost grows with the
 * length, `times` where with its square. Looks no further once that is below `enough`.
 */
export async function growth(
  { short, long, times }: { short: () => unknown; long: () => unknown; times: number },
  enough: number,
): Promise<number> {
  let [shortMs, longMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < maxRounds; round++) {
    // What the rounds before left behind is not to be collected within the next.
    if (round > 0) Bun.gc(true);
    const shorts = async () => {
      for (let count = 0; count < times; count++) await short();
    };
    shortMs = Math.min(shortMs, await cpuMsOf(shorts));
    longMs = Math.min(longMs, await cpuMsOf(long));
    if (longMs < minMs || longMs < enough * shortMs) break;
  }
  return longMs < minMs ? 1 : longMs / shortMs;
}
