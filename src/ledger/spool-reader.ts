// Reads the segment files of the spool.
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

/** Each process numbers its segments within a range of this size, which is more than a process ever uses. */
const numbersEach = 1e12;

/** Returns the segments in the order in which they were written. If `writer` is set, only those of that process. */
export function listSegments(directory: string, writer?: number): { number: number; path: string }[] {
  return readdirSync(directory)
    .flatMap((name) => {
      const match = namePattern.exec(name);
      return match ? [{ number: Number(match[1]), path: join(directory, name) }] : [];
    })
    .filter(({ number }) => writer === undefined || Math.floor(number / numbersEach) === writer)
    .sort((a, b) => a.number - b.number);
}

/** Returns the number just below the first segment number of a process. `writer` must be below 1,000. */
export function numberBeforeFirst(writer: number): number {
  return writer * numbersEach;
}

export interface SpoolChunk {
  lines: SpoolLine[];
  /** Number of incomplete or damaged lines. */
  damaged: number;
  /** Request ids of intact lines in an unknown format, as of a newer version; '' if the id is unreadable. */
  unknown: string[];
}

/** Yields the lines of a segment, in chunks of a few thousand. */
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
      // No valid line is this long, so skip to the next newline.
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
  /** The number of bytes of the buffer that were read. */
  used: number;
  /** True if the next frame continues after the buffer. */
  needsMore: boolean;
}

/**
 * Reads the lines in `text`. `unread` is the number of bytes of the file after `text`. If a frame is damaged, all of
 * its lines count as damaged.
 */
function readPiece(text: Buffer, unread: number, skipFirst: boolean): SpoolPiece {
  const piece: SpoolPiece = { lines: [], damaged: 0, unknown: [], used: 0, needsMore: false };
  while (piece.used < text.length) {
    const start = piece.used;
    // Zero bytes are reserved space, or lines that were lost in a power cut.
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

/** Returns the range of lines in the frame at `start`; undefined if the frame is incomplete. */
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
