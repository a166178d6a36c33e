// The spool: append-only files (segments) on disk. Written frames survive the death of the process.
import { chmodSync, closeSync, fdatasync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { listSegments, numberBeforeFirst, segmentPath } from "./spool-reader.ts";

/** A file of the spool. It may be deleted when `pins` is 0. */
export interface Segment {
  readonly number: number;
  readonly path: string;
  readonly openedMs: number;
  /** Monotonic milliseconds when the next segment replaced this one; undefined while it is the current one. */
  sealedMs: number | undefined;
  bytes: number;
  /** Number of bytes that were copied from an older segment. */
  carriedBytes: number;
  /** Number of requests whose only record is in this file. */
  pins: number;
  /** Number of settled requests that are in this file and not in memory. */
  unread: number;
}

/**
 * Writes bytes to a file at offset `at`, beginning with byte `from`. Returns the number of written bytes. Throws on
 * failure.
 */
export type WriteToDisk = (fd: number, bytes: Uint8Array, from: number, length: number, at: number) => number;

interface OpenSegment extends Segment {
  readonly write: WriteToDisk;
  fd: number | undefined;
  unsynced: boolean;
  /** Number of allocated bytes of the file. Bytes after `bytes` are zeros that reserve disk space. */
  allocated: number;
  /** True if a failed write could not be removed. No frame may be written after it. */
  broken: boolean;
}

export interface SpoolOptions {
  directory: string;
  clock: Clock;
  /** Size in bytes at which a new segment begins. */
  segmentBytes: number;
  /** Number of this process among the writers of the spool; each has its own segments. Default: 0. */
  writer?: number;
  /** Writes bytes to the file. Tests may replace it. */
  write?: WriteToDisk;
  /** Syncs a file to the disk, against power cuts. Default: `fdatasync`. */
  sync?: (fd: number) => Promise<void>;
}

/** The number of bytes allocated at a time. */
const zeros = new Uint8Array(16 * 1024);
/**
 * Milliseconds between attempts to allocate space on a full disk. Each attempt blocks all requests for up to some
 * milliseconds.
 */
const askAgainMs = 1_000;
const syncData = promisify(fdatasync);

export class Spool {
  readonly #options: SpoolOptions;
  /** Segments by number; the last one is being written. */
  readonly #segments: OpenSegment[] = [];
  #current: OpenSegment;
  #number: number;
  #newFile = true;
  /**
   * The reason why no space could be allocated, and when to try again. `#noSegmentUntilMs`: when to try a new segment
   * again.
   */
  #noRoom: { cause: unknown; untilMs: number } | undefined;
  #noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  #syncing: Promise<void> = Promise.resolve();
  #keeps = true;

  /** Begins a new segment after the existing ones. Throws if that fails. */
  constructor(options: SpoolOptions) {
    this.#options = options;
    const { directory, writer = 0 } = options;
    this.#number = listSegments(directory, writer).at(-1)?.number ?? numberBeforeFirst(writer);
    this.#current = this.#begin();
  }

  get directory(): string {
    return this.#options.directory;
  }

  get current(): Segment {
    return this.#current;
  }

  get segments(): readonly Segment[] {
    return this.#segments;
  }

  get unsynced(): boolean {
    return this.#segments.some((segment) => segment.unsynced);
  }

  /** Reports whether the last sync succeeded. */
  get keeps(): boolean {
    return this.#keeps;
  }

  /**
   * Returns the segment for the next `append`. If the current one is full, a new one begins; if that fails, the old one
   * grows. `ahead` is the number of bytes to reserve in a new segment.
   */
  ready(ahead: number): Segment {
    if (this.#current.bytes >= this.#options.segmentBytes || this.#current.broken) this.rotate(ahead);
    return this.#current;
  }

  /**
   * Reserves bytes in the current segment by writing zeros, so that they can be written even when the disk is full.
   * Throws if the disk has no space or had none a moment ago. Usually costs one comparison.
   */
  reserve(bytes: number): void {
    const segment = this.#current;
    if (segment.allocated - segment.bytes < bytes) this.#allocate(segment, segment.bytes + bytes);
  }

  /** Allows the next write to allocate again, because the caller found that the disk may have space. */
  roomFound(): void {
    this.#noRoom = undefined;
    this.#noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Begins a new segment and reserves `ahead` bytes in it. Returns false if that fails or failed a moment ago. */
  rotate(ahead: number): boolean {
    const { clock } = this.#options;
    if (this.#noSegmentUntilMs > clock.monotonicMs()) return false;
    const before = this.#current;
    let next: OpenSegment | undefined;
    try {
      next = this.#begin();
      allocate(next, ahead);
    } catch {
      this.#noSegmentUntilMs = clock.monotonicMs() + askAgainMs;
      if (next !== undefined) this.remove(next);
      return false;
    }
    this.#current = next;
    before.sealedMs = clock.monotonicMs();
    release(before);
    return true;
  }

  #allocate(segment: OpenSegment, until: number): void {
    const { clock } = this.#options;
    if (this.#noRoom && this.#noRoom.untilMs > clock.monotonicMs()) throw this.#noRoom.cause;
    try {
      allocate(segment, until);
      this.#noRoom = undefined;
    } catch (cause) {
      this.#noRoom = { cause, untilMs: clock.monotonicMs() + askAgainMs };
      throw cause;
    }
  }

  /** Appends a frame to the current segment. If the write fails, throws and removes the incomplete frame. */
  append(frame: Uint8Array): void {
    const segment = this.#current;
    if (segment.fd === undefined) throw new Error("The spool is closed.");
    if (segment.broken) throw new Error("The spool's file is damaged, and no other can be made.");
    const before = segment.bytes;
    try {
      writeBehind(segment, frame);
    } catch (error) {
      const written = segment.bytes - before;
      segment.bytes = before;
      if (written > 0) takeBack(segment, written);
      throw error;
    }
  }

  /** Syncs earlier writes to the disk in the background. */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.then(
      () => this.#sync(),
      () => this.#sync(),
    );
    return this.#syncing;
  }

  /** Deletes a segment unless it is the current one. */
  remove(segment: Segment): void {
    const found = this.#segments.find((one) => one === segment);
    if (!found || found === this.#current) return;
    // An operator may have deleted the file.
    rmSync(found.path, { force: true });
    this.#segments.splice(this.#segments.indexOf(found), 1);
    // Close the file only after a running sync. The caller of `sync` gets its error.
    void this.#syncing.finally(() => closeSegment(found)).catch(() => {});
  }

  /** Closes the spool; later calls of `append` throw. Deletes segments that are no longer needed. */
  async close(): Promise<void> {
    // The caller of `sync` gets the error. The files deleted below need no sync, because the database has their
    // records.
    await this.#syncing.catch(() => {});
    for (const segment of this.#segments) {
      if (segment.fd !== undefined) release(segment);
      closeSegment(segment);
      if (segment.pins === 0) rmSync(segment.path, { force: true });
    }
    this.#segments.length = 0;
  }

  #begin(): OpenSegment {
    const path = segmentPath(this.#options.directory, this.#number + 1);
    const fd = openSync(path, "wx", 0o600);
    this.#number++;
    const segment: OpenSegment = {
      number: this.#number,
      path,
      write: this.#options.write ?? writeSync,
      fd,
      openedMs: this.#options.clock.monotonicMs(),
      sealedMs: undefined,
      bytes: 0,
      carriedBytes: 0,
      pins: 0,
      unread: 0,
      unsynced: false,
      allocated: 0,
      broken: false,
    };
    this.#segments.push(segment);
    this.#newFile = true;
    return segment;
  }

  async #sync(): Promise<void> {
    try {
      await this.#syncAll();
      this.#keeps = true;
    } catch (error) {
      this.#keeps = false;
      throw error;
    }
  }

  async #syncAll(): Promise<void> {
    if (this.#newFile) {
      this.#newFile = false;
      try {
        // The name of a new file is durable only after its directory was synced.
        const directory = await open(this.#options.directory);
        await directory.sync().finally(() => directory.close());
      } catch (error) {
        this.#newFile = true;
        throw error;
      }
    }
    for (const segment of [...this.#segments]) {
      if (segment.fd === undefined) continue;
      const sealed = segment !== this.#current;
      if (segment.unsynced) {
        // Lines written during the sync need another sync.
        segment.unsynced = false;
        try {
          await (this.#options.sync ?? syncData)(segment.fd);
        } catch (error) {
          segment.unsynced = true;
          throw error;
        }
      }
      if (sealed) closeSegment(segment);
    }
  }
}

/** Writes bytes and returns their number, at least one. A write of zero bytes counts as a full disk. */
function put({ fd = -1, write }: OpenSegment, bytes: Uint8Array, at: number): number {
  const count = write(fd, bytes, 0, bytes.length, at);
  if (count === 0) throw new Error("The disk took only a part of what was written.");
  return count;
}

/** Appends bytes to the segment. Updates `bytes` even if a write fails in between. */
function writeBehind(segment: OpenSegment, bytes: Uint8Array): void {
  // After an incomplete write, the rest is written too. If the disk is full, that second write throws the error.
  for (let written = 0; written < bytes.length; ) {
    const count = put(segment, written === 0 ? bytes : bytes.subarray(written), segment.bytes);
    written += count;
    segment.bytes += count;
    segment.unsynced = true;
  }
  segment.allocated = Math.max(segment.allocated, segment.bytes);
}

/** Overwrites a failed write with zeros. */
function takeBack(segment: OpenSegment, written: number): void {
  segment.allocated = Math.max(segment.allocated, segment.bytes + written);
  try {
    // Do not truncate the file, because its space is reserved for other requests.
    for (let done = 0; done < written; ) {
      const length = Math.min(zeros.length, written - done);
      done += put(segment, zeros.subarray(0, length), segment.bytes + done);
    }
  } catch {
    segment.bytes += written;
    segment.broken = true;
  }
}

function allocate(segment: OpenSegment, until: number): void {
  while (segment.allocated < until) {
    segment.allocated += put(segment, zeros, segment.allocated);
  }
}

/** Truncates the file to release reserved space. */
function release(segment: OpenSegment): void {
  try {
    ftruncateSync(segment.fd ?? -1, segment.bytes);
    segment.allocated = segment.bytes;
  } catch {
    // Ignore the error: readers skip zeros.
  }
}

function closeSegment(segment: OpenSegment): void {
  if (segment.fd !== undefined) closeSync(segment.fd);
  segment.fd = undefined;
  segment.unsynced = false;
}

/** Moves the pin of a request or record to another segment, so that the old one can be deleted. */
export function repin(held: { segment: Segment }, segment: Segment): void {
  if (held.segment === segment) return;
  held.segment.pins--;
  segment.pins++;
  held.segment = segment;
}

/** Makes the directory readable only by its owner, because it shows who used what. */
export function prepareSpoolDirectory(directory: string): void {
  makeDirectory(directory);
  chmodSync(directory, 0o700);
}
