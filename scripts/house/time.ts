// Where the time is read: elsewhere it is asked of a clock that is handed in, so that a test can set it.
import { isTest, lineAt, type SourceFile } from "./imports.ts";

const reading = /\b(?:performance\.now\(\)|Date\.now\(\)|new Date\(\))/g;

/** One line for each reading in a file that is in none of `rooms`, files or folders, and not in `owing`. */
export function checkTime(files: readonly SourceFile[], rooms: readonly string[], owing: readonly string[]): string[] {
  return files.flatMap((file) => {
    const found = [...file.text.matchAll(reading)];
    const mayRead =
      isTest(file) || [...rooms, ...owing].some((room) => file.path === room || file.path.startsWith(`${room}/`));
    if (found.length === 0 && owing.includes(file.path)) {
      return `${file.path}: reads no time any more: its line in scripts/house/owed.ts goes.`;
    }
    if (mayRead) return [];
    return found.map(
      ({ 0: read, index }) =>
        `${file.path}:${lineAt(file.text, index)}: ${read} is read by a clock alone: take a Clock, or monotonicMs and wallMs of src/base/clock.ts.`,
    );
  });
}
