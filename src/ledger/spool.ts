// The spool: append-only segment files, whose written frames survive the death of the process.
import { chmodSync, closeSync, fdatasync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { listSegments, numberBeforeFirst, segmentPath } from "./spool-reader.ts";

/** One file. It may be deleted when nothing in it is needed any more: `pins` is 0. */
export interface Segment {
  readonly number: number;
  readonly path: string;
  readonly openedMs: number;
  /** When the next segment replaced it. Undefined while it is written. */
  sealedMs: number | undefined;
  bytes: number;
  /** Bytes that only repeat an older segment. */
  carriedBytes: number;
  /** Requests that are recorded only in this file. */
  pins: number;
  /** Settled requests among them that are not in memory. */
  unread: number;
}

/** Writes bytes from `from` on at the file's offset `at`, and returns their number. Throws as `writeSync`. */
export type WriteToDisk = (fd: number, bytes: Uint8Array, from: number, length: number, at: number) => number;

interface OpenSegment extends Segment {
  readonly write: WriteToDisk;
  fd: number | undefined;
  unsynced: boolean;
  /** Allocated bytes: those after `bytes` are zeros on disk. */
  allocated: number;
  /** True if bytes of a failed write could not be removed: nothing may follow them. */
  broken: boolean;
}

export interface SpoolOptions {
  directory: string;
  clock: Clock;
  /** Size at which a new segment is begun. */
  segmentBytes: number;
  /** Number of the writing process of this server, by default 0; each has its own segments. */
  writer?: number;
  /** Default: writes to disk at once. */
  write?: WriteToDisk;
  /** Makes writes to an open file survive a power cut. Default: `fdatasync`. */
  sync?: (fd: number) => Promise<void>;
}

/** Bytes allocated at once. */
const zeros = new Uint8Array(16 * 1024);
/**
 * A full disk is not tried for each request, because a refusal takes up to some milliseconds and blocks all requests.
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
  /** Why no room could be allocated, and until when neither allocation nor a new segment is tried again. */
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

  /** True if the last sync succeeded. */
  get keeps(): boolean {
    return this.#keeps;
  }

  /**
   * Returns the segment of the next `append`. A full one is followed by a new one; if that fails (no descriptor left,
   * disk full), the old one grows on. `ahead`: reserved bytes that must not be lost.
   */
  ready(ahead: number): Segment {
    if (this.#current.bytes >= this.#options.segmentBytes || this.#current.broken) this.rotate(ahead);
    return this.#current;
  }

  /**
   * Reserves bytes in the current segment by writing zeros, so that they can be written on a full disk. Throws if the
   * disk has no room, or had none a moment ago. Usually costs one comparison.
   */
  reserve(bytes: number): void {
    const segment = this.#current;
    if (segment.allocated - segment.bytes < bytes) this.#allocate(segment, segment.bytes + bytes);
  }

  /** Notes that there is room again, so that allocation is retried. */
  roomFound(): void {
    this.#noRoom = undefined;
    this.#noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** Returns false if no new segment with this much reserved room can be made, or could not a moment ago. */
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

  /** Writes a frame to the current segment. Throws, without leaving a part of it, if it cannot be written whole. */
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

  /** The current segment is not removed. */
  remove(segment: Segment): void {
    const found = this.#segments.find((one) => one === segment);
    if (!found || found === this.#current) return;
    // An operator may have deleted the file already.
    rmSync(found.path, { force: true });
    this.#segments.splice(this.#segments.indexOf(found), 1);
    // A descriptor in use by `sync` must not be closed. The caller of `sync` gets its failure.
    void this.#syncing.finally(() => closeSegment(found)).catch(() => {});
  }

  /** Closes the spool; `append` throws afterwards. Deletes segments without pins. */
  async close(): Promise<void> {
    // The caller of `sync` gets its failure. Files deleted here are in the database.
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
        // Lines that are written meanwhile belong to the next sync.
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

/** Adds the written bytes to `bytes`, even if it throws in the middle. */
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
    // The file is not truncated, because the room is reserved for others.
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

/** Truncates unneeded reserved room. */
function release(segment: OpenSegment): void {
  try {
    ftruncateSync(segment.fd ?? -1, segment.bytes);
    segment.allocated = segment.bytes;
  } catch {
    // Readers ignore the zeros.
  }
}

function closeSegment(segment: OpenSegment): void {
  if (segment.fd !== undefined) closeSync(segment.fd);
  segment.fd = undefined;
  segment.unsynced = false;
}

/** Moves a pin to another segment. */
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
