// What is there of the spool: its segment files, and what they say.
import { closeSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import { decodeLine, type SpoolLine } from "./spool-format.ts";

const namePattern = /^(\d{1,15})\.spool$/;
const chunkBytes = 256 * 1024;
const newline = 0x0a;

export function segmentPath(directory: string, number: number): string {
  return join(directory, `${String(number).padStart(8, "0")}.spool`);
}

/** In the order in which they were written. */
export function listSegments(directory: string): { number: number; path: string }[] {
  return readdirSync(directory)
    .flatMap((name) => {
      const match = namePattern.exec(name);
      return match ? [{ number: Number(match[1]), path: join(directory, name) }] : [];
    })
    .sort((a, b) => a.number - b.number);
}

export interface SpoolChunk {
  lines: SpoolLine[];
  /** Lines that were torn or damaged. */
  damaged: number;
}

/** What a segment says, in pieces of some thousand lines. */
export function* readSegment(path: string): Generator<SpoolChunk> {
  const fd = openSync(path, "r");
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let rest = Buffer.alloc(0);
    let tooLong = false;
    for (;;) {
      const length = readSync(fd, chunk, 0, chunkBytes, null);
      if (length === 0) break;
      const text = Buffer.concat([rest, chunk.subarray(0, length)]);
      const end = text.lastIndexOf(newline) + 1;
      rest = text.subarray(end);
      const read = splitLines(text.subarray(0, end), tooLong);
      if (end > 0) tooLong = false;
      // No line of ours is this long: what is left of it is skipped up to the next newline.
      if (rest.length > chunkBytes) {
        rest = Buffer.alloc(0);
        tooLong = true;
      }
      yield read;
    }
    if (rest.length > 0 || tooLong) yield { lines: [], damaged: 1 };
  } finally {
    closeSync(fd);
  }
}

/** `text` ends in a newline or is empty. */
function splitLines(text: Buffer, skipFirst: boolean): SpoolChunk {
  const lines: SpoolLine[] = [];
  let damaged = 0;
  for (let start = 0; start < text.length; ) {
    const end = text.indexOf(newline, start);
    const line = skipFirst && start === 0 ? undefined : decodeLine(text.subarray(start, end));
    if (line) lines.push(line);
    else damaged++;
    start = end + 1;
  }
  return { lines, damaged };
}
