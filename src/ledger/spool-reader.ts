// Reads the spool: segment files and their lines.
import { closeSync, fstatSync, openSync, readdirSync, readSync } from "node:fs";
import { join } from "node:path";
import {
  checksum,
  decodeLine,
  decodeOldLine,
  frameHeaderLength,
  readFrameHeader,
  requestIdOf,
  type SpoolLine,
} from "./spool-format.ts";

const namePattern = /^(\d{1,15})\.spool$/;
const chunkBytes = 256 * 1024;
const newline = 0x0a;
const frameMark = 0x23;

export function segmentPath(directory: string, number: number): string {
  return join(directory, `${String(number).padStart(8, "0")}.spool`);
}

/** The size of each process's range of segment numbers, more than it can ever use. */
const numbersEach = 1e12;

/** Returns segments in the order of writing; with `writer`, only of that process. */
export function listSegments(directory: string, writer?: number): { number: number; path: string }[] {
  return readdirSync(directory)
    .flatMap((name) => {
      const match = namePattern.exec(name);
      return match ? [{ number: Number(match[1]), path: join(directory, name) }] : [];
    })
    .filter(({ number }) => writer === undefined || Math.floor(number / numbersEach) === writer)
    .sort((a, b) => a.number - b.number);
}

/** Returns the number after which a process without segments begins. `writer` is below 1,000. */
export function numberBeforeFirst(writer: number): number {
  return writer * numbersEach;
}

export interface SpoolChunk {
  lines: SpoolLine[];
  /** Number of torn or damaged lines. */
  damaged: number;
  /** The request ids of intact lines that cannot be parsed, as of a newer version; '' without a readable id. */
  unknown: string[];
}

/** Yields the lines of a segment in chunks of some thousand. */
export function* readSegment(path: string): Generator<SpoolChunk> {
  const fd = openSync(path, "r");
  try {
    const chunk = Buffer.allocUnsafe(chunkBytes);
    let rest = Buffer.alloc(0);
    let skipping = false;
    for (let offset = 0; ; ) {
      const length = readSync(fd, chunk, 0, chunkBytes, offset);
      offset += length;
      const text = Buffer.concat([rest, chunk.subarray(0, length)]);
      const piece = readPiece(text, Math.max(0, fstatSync(fd).size - offset), skipping);
      rest = text.subarray(piece.used);
      if (piece.used > 0) skipping = false;
      // Headrace writes no line this long, so the rest is skipped to the next newline.
      if (rest.length > chunkBytes && !piece.needsMore) {
        rest = Buffer.alloc(0);
        skipping = true;
      }
      yield piece;
      if (length === 0) break;
    }
    if (rest.length > 0 || skipping) yield { lines: [], damaged: 1, unknown: [] };
  } finally {
    closeSync(fd);
  }
}

interface SpoolPiece extends SpoolChunk {
  /** The number of bytes read so far. */
  used: number;
  /** True if the end of the next frame is not in the buffer yet. */
  needsMore: boolean;
}

/**
 * Reads lines. `unread` is the number of the file's bytes after `text`. Each line of a torn or damaged frame counts as
 * damaged.
 */
function readPiece(text: Buffer, unread: number, skipFirst: boolean): SpoolPiece {
  const piece: SpoolPiece = { lines: [], damaged: 0, unknown: [], used: 0, needsMore: false };
  while (piece.used < text.length) {
    const start = piece.used;
    // A zero is reserved space, or remains of a line that was not synced before a power cut.
    if (text[start] === 0) {
      piece.used = endOfZeros(text, start);
      continue;
    }
    if (text[start] === frameMark && !(skipFirst && start === 0)) {
      const frame = frameAt(text, start, unread);
      if (frame === "more") {
        piece.needsMore = true;
        break;
      }
      if (frame) {
        for (let from = frame.from; from < frame.until; ) {
          const end = text.indexOf(newline, from);
          const bytes = text.subarray(from, end);
          const line = decodeLine(bytes);
          if (line) piece.lines.push(line);
          else piece.unknown.push(requestIdOf(bytes));
          from = end + 1;
        }
        piece.used = frame.until;
        continue;
      }
    }
    const end = text.indexOf(newline, start);
    if (end === -1) break;
    const line = skipFirst && start === 0 ? undefined : decodeOldLine(text.subarray(start, end));
    if (line) piece.lines.push(line);
    else piece.damaged++;
    piece.used = end + 1;
  }
  return piece;
}

function endOfZeros(text: Buffer, start: number): number {
  let end = start + 1;
  while (text[end] === 0) end++;
  return end;
}

/** Returns the range of the lines in the frame that begins at `start`; undefined if incomplete. */
function frameAt(text: Buffer, start: number, unread: number): { from: number; until: number } | "more" | undefined {
  const from = start + frameHeaderLength;
  if (text.length < from) return unread > 0 ? "more" : undefined;
  const header = readFrameHeader(text.subarray(start, from));
  if (!header) return undefined;
  const until = from + header.length;
  if (text.length < until) return text.length + unread < until ? undefined : "more";
  const lines = text.subarray(from, until);
  return lines[lines.length - 1] === newline && checksum(lines) === header.checksum ? { from, until } : undefined;
}
