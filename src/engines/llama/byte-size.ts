// Formats sizes for people, in decimal units as the model hub and disk makers do.

const units = ["B", "kB", "MB", "GB", "TB"] as const;

/** Returns a size with three significant digits: `512 B`, `4.64 MB`, `12.3 GB`. */
export function formatBytes(bytes: number): string {
  let value = Math.max(0, bytes);
  let index = 0;
  // A value of 999.5 or more would round to four digits, so it takes the next unit.
  while (value >= 999.5 && index < units.length - 1) {
    value /= 1000;
    index++;
  }
  const digits = index === 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  return `${value.toFixed(digits)} ${units[index]}`;
}
