// The spool: segment files that grow at their end, whose written frames survive the death of the process.
import { chmodSync, closeSync, fdatasync, ftruncateSync, openSync, rmSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import type { Clock } from "../base/clock.ts";
import { makeDirectory } from "../storage/files/durable-file.ts";
import { listSegments, numberBeforeFirst, segmentPath } from "./spool-reader.ts";

/** One file. It may be deleted when nothing that it says is needed any more: `pins` is 0. */
export interface Segment {
  readonly number: number;
  readonly path: string;
  readonly openedMs: number;
  /** When the next segment took its place; undefined while it is written. */
  sealedMs: number | undefined;
  bytes: number;
  /** The part of them that only repeats an older segment. */
  carriedBytes: number;
  /** Requests whose only account of themselves is in this file. */
  pins: number;
  /** Those of them that were settled and are held in no other place. */
  unread: number;
}

/** Returns how many bytes the disk took of those from `from` on, for the file's bytes from `at` on. Throws as `writeSync`. */
export type WriteToDisk = (fd: number, bytes: Uint8Array, from: number, length: number, at: number) => number;

interface OpenSegment extends Segment {
  readonly write: WriteToDisk;
  fd: number | undefined;
  unsynced: boolean;
  /** Bytes of the file that are allocated: those behind `bytes` are zeros, for which the disk has room already. */
  allocated: number;
  /** Something stands behind `bytes` that was refused and could not be taken back: nothing may follow it. */
  broken: boolean;
}

export interface SpoolOptions {
  directory: string;
  clock: Clock;
  /** A segment that has grown to this size is followed by a new one. */
  segmentBytes: number;
  /** Which of the processes of this server writes it, 0 unless said otherwise; each has segments of its own. */
  writer?: number;
  /** Default: to the disk, at once. */
  write?: WriteToDisk;
  /** Makes what was written to an open file survive a power cut. Default: `fdatasync`. */
  sync?: (fd: number) => Promise<void>;
}

/** Bytes that are allocated at a time. */
const zeros = new Uint8Array(16 * 1024);
/** A full disk is not asked for more by each request: to say no takes it up to some milliseconds, in which everybody waits. */
const askAgainMs = 1_000;
const syncData = promisify(fdatasync);

export class Spool {
  readonly #options: SpoolOptions;
  /** Segments in the order of their numbers; the last is written. */
  readonly #segments: OpenSegment[] = [];
  #current: OpenSegment;
  #number: number;
  #newFile = true;
  /** Why the disk had no room ahead, and until when it is not asked again; then until when no new segment is tried. */
  #noRoom: { cause: unknown; untilMs: number } | undefined;
  #noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  #syncing: Promise<void> = Promise.resolve();
  #keeps = true;

  /** Begins a segment behind those that are there. Throws where it cannot be made. */
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

  /** True if the disk kept the last sync. */
  get keeps(): boolean {
    return this.#keeps;
  }

  /**
   * The segment that the next `append` goes to. A full one is followed by a new one; where that cannot be made (no
   * descriptor left, disk full) the old one grows on. `ahead`: bytes, as in `reserve`, that must not be lost with it.
   */
  ready(ahead: number): Segment {
    if (this.#current.bytes >= this.#options.segmentBytes || this.#current.broken) this.rotate(ahead);
    return this.#current;
  }

  /**
   * Makes sure that so many bytes can be written to the current segment even where the disk is full: they are written
   * as zeros ahead. Throws where the disk has no room for them, or had none a moment ago. What is allocated already
   * costs a comparison.
   */
  reserve(bytes: number): void {
    const segment = this.#current;
    if (segment.allocated - segment.bytes < bytes) this.#allocate(segment, segment.bytes + bytes);
  }

  /** Somebody has found room: what was refused a moment ago is tried again. */
  roomFound(): void {
    this.#noRoom = undefined;
    this.#noSegmentUntilMs = Number.NEGATIVE_INFINITY;
  }

  /** False where no new segment can be made with so much room ahead, or could not a moment ago. */
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

  /** Writes a frame to the current segment. Throws where it could not be written whole; then nothing of it counts. */
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

  /** Makes what was written so far survive a power cut, outside of the thread that serves requests. */
  sync(): Promise<void> {
    this.#syncing = this.#syncing.then(
      () => this.#sync(),
      () => this.#sync(),
    );
    return this.#syncing;
  }

  /** The current segment stays. */
  remove(segment: Segment): void {
    const found = this.#segments.find((one) => one === segment);
    if (!found || found === this.#current) return;
    // The operator may have deleted the file already.
    rmSync(found.path, { force: true });
    this.#segments.splice(this.#segments.indexOf(found), 1);
    // A descriptor that is in use by `sync` must not be closed under it. Whoever called `sync` hears that it failed.
    void this.#syncing.finally(() => closeSegment(found)).catch(() => {});
  }

  /** Closes the spool; `append` throws afterwards. Segments that nothing pins are deleted. */
  async close(): Promise<void> {
    // The caller of `sync` hears that it failed; files that are deleted here are in the database.
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
        // The name of a new file survives only where its directory was synced too.
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

/** Bytes that were written, at least one: a disk that takes nothing and does not say why is refused as a full one. */
function put({ fd = -1, write }: OpenSegment, bytes: Uint8Array, at: number): number {
  const count = write(fd, bytes, 0, bytes.length, at);
  if (count === 0) throw new Error("The disk took only a part of what was written.");
  return count;
}

/** Counts in `bytes` what was written, also where it throws in the middle. */
function writeBehind(segment: OpenSegment, bytes: Uint8Array): void {
  // The rest of a short write is tried for the sake of its error: the disk is full.
  for (let written = 0; written < bytes.length; ) {
    const count = put(segment, written === 0 ? bytes : bytes.subarray(written), segment.bytes);
    written += count;
    segment.bytes += count;
    segment.unsynced = true;
  }
  segment.allocated = Math.max(segment.allocated, segment.bytes);
}

/** Overwrites a write that was refused as a whole: it must not be found in parts. */
function takeBack(segment: OpenSegment, written: number): void {
  segment.allocated = Math.max(segment.allocated, segment.bytes + written);
  try {
    // The file is not cut off: the room was promised to others.
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

/** Room ahead that nobody needs any more. */
function release(segment: OpenSegment): void {
  try {
    ftruncateSync(segment.fd ?? -1, segment.bytes);
    segment.allocated = segment.bytes;
  } catch {
    // The zeros say nothing to who reads them.
  }
}

function closeSegment(segment: OpenSegment): void {
  if (segment.fd !== undefined) closeSync(segment.fd);
  segment.fd = undefined;
  segment.unsynced = false;
}

/** Moves what keeps a segment from being deleted to another one. */
export function repin(held: { segment: Segment }, segment: Segment): void {
  if (held.segment === segment) return;
  held.segment.pins--;
  segment.pins++;
  held.segment = segment;
}

/** Makes the directory for its owner only: who used what is in it. */
export function prepareSpoolDirectory(directory: string): void {
  makeDirectory(directory);
  chmodSync(directory, 0o700);
}
