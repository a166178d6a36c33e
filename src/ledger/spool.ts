// The spool: append-only segment files, whose written frames survive the death of the process.
import { chmodSync, closeSync, fdatasync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { listSegments, numberBeforeFirst, segmentPath } from "./spool-reader.ts";

/** A file of the spool. It may be deleted when nothing in it is needed any more: `pins` is 0. */
export interface Segment {
  readonly number: number;
  readonly path: string;
  readonly openedMs: number;
  /** The time when the next segment replaced this one; undefined while in use. */
  sealedMs: number | undefined;
  bytes: number;
  /** The number of bytes that only repeat an older segment. */
  carriedBytes: number;
  /** The number of requests that are recorded only in this file. */
  pins: number;
  /** The number of those requests that are settled and not held in memory. */
  unread: number;
}

/** Writes bytes from `from` on at the file's offset `at`, and returns their number. Throws as `writeSync`. */
export type WriteToDisk = (fd: number, bytes: Uint8Array, from: number, length: number, at: number) => number;

interface OpenSegment extends Segment {
  readonly write: WriteToDisk;
  fd: number | undefined;
  unsynced: boolean;
  /** The number of allocated bytes of the file. Those after `bytes` are zeros, for which the disk has space already. */
  allocated: number;
  /** True if bytes of a failed write could not be removed. No frame may follow them. */
  broken: boolean;
}

export interface SpoolOptions {
  directory: string;
  clock: Clock;
  /** The size at which a new segment begins. */
  segmentBytes: number;
  /** The number of the writing process of this server, by default 0; each has its own segments. */
  writer?: number;
  /** Writes to the disk. Default: immediately. */
  write?: WriteToDisk;
  /** Makes writes to an open file survive a power cut. Default: `fdatasync`. */
  sync?: (fd: number) => Promise<void>;
}

/** The number of bytes allocated at a time. */
const zeros = new Uint8Array(16 * 1024);
/**
 * The pause before a full disk is asked for space again. Each refusal takes up to some milliseconds, in which all
 * requests wait.
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
   * `#noRoom` has the reason why no space could be allocated, and the time until which allocation is not tried again.
   * Until `#noSegmentUntilMs`, no new segment is tried.
   */
  #noRoom: { cause: unknown; untilMs: number } | undefined;
  #noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  #syncing: Promise<void> = Promise.resolve();
  #keeps = true;

  /** Begins a segment after the existing ones. Throws if that fails. */
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
   * Returns the segment of the next `append`. A full segment is followed by a new one; if that fails (no descriptor
   * left, disk full), the old one grows on. `ahead` is the number of bytes reserved with `reserve`, which the new
   * segment must reserve too.
   */
  ready(ahead: number): Segment {
    if (this.#current.bytes >= this.#options.segmentBytes || this.#current.broken) this.rotate(ahead);
    return this.#current;
  }

  /**
   * Reserves bytes in the current segment by writing zeros, so that they can be written on a full disk. Throws if the
   * disk has no space, or had none a moment ago. Usually costs one comparison.
   */
  reserve(bytes: number): void {
    const segment = this.#current;
    if (segment.allocated - segment.bytes < bytes) this.#allocate(segment, segment.bytes + bytes);
  }

  /** Lets the next write try again to allocate space, after the caller found that there may be some. */
  roomFound(): void {
    this.#noRoom = undefined;
    this.#noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Begins a new segment. Returns false if that is impossible with this much reserved space, or was a moment ago. */
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

  /** Writes a frame to the current segment. If it cannot be written completely, throws and leaves no part of it. */
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

  /** Makes earlier writes survive a power cut, outside of the thread that serves requests. */
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
    // An operator may have deleted the file already.
    rmSync(found.path, { force: true });
    this.#segments.splice(this.#segments.indexOf(found), 1);
    // A descriptor in use by `sync` must not be closed. The caller of `sync` gets the error.
    void this.#syncing.finally(() => closeSegment(found)).catch(() => {});
  }

  /** Closes the spool; `append` throws afterwards. Deletes segments without pins. */
  async close(): Promise<void> {
    // The caller of `sync` gets the error. Files deleted here are in the database.
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
        // A new file's name survives only after a sync of its directory.
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
        // Lines that are written during the sync belong to the next sync.
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

/** Returns the number of written bytes, at least one: a disk that writes nothing without an error counts as full. */
function put({ fd = -1, write }: OpenSegment, bytes: Uint8Array, at: number): number {
  const count = write(fd, bytes, 0, bytes.length, at);
  if (count === 0) throw new Error("The disk took only a part of what was written.");
  return count;
}

/** Writes bytes after those in the segment, and updates `bytes` even if it throws in the middle. */
function writeBehind(segment: OpenSegment, bytes: Uint8Array): void {
  // The rest of a short write is retried to get its error: the disk is full.
  for (let written = 0; written < bytes.length; ) {
    const count = put(segment, written === 0 ? bytes : bytes.subarray(written), segment.bytes);
    written += count;
    segment.bytes += count;
    segment.unsynced = true;
  }
  segment.allocated = Math.max(segment.allocated, segment.bytes);
}

/** Overwrites a failed write, so that no part of it is found. */
function takeBack(segment: OpenSegment, written: number): void {
  segment.allocated = Math.max(segment.allocated, segment.bytes + written);
  try {
    // The file is not truncated, because its space is reserved for other requests.
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

/** Truncates reserved space that is not needed. */
function release(segment: OpenSegment): void {
  try {
    ftruncateSync(segment.fd ?? -1, segment.bytes);
    segment.allocated = segment.bytes;
  } catch {
    // The error is ignored, because readers skip the zeros.
  }
}

function closeSegment(segment: OpenSegment): void {
  if (segment.fd !== undefined) closeSync(segment.fd);
  segment.fd = undefined;
  segment.unsynced = false;
}

/** Moves the pin of a request or record to another segment. */
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
