// The spool: append-only segment files, whose written frames survive the death of the process.
import { chmodSync, closeSync, fdatasync, ftruncateSync, mkdirSync, openSync, unlinkSync, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import type { Clock } from "../domain/clock.ts";
import { listSegments, segmentPath } from "./spool-reader.ts";

/** One file. It may be deleted when nothing that it says is needed any more: `pins` is 0. */
export interface Segment {
  readonly number: number;
  readonly path: string;
  readonly openedMs: number;
  /** When the next segment took its place; undefined while it is written. */
  sealedMs: number | undefined;
  bytes: number;
  /** Of them, what only repeats an older segment. */
  carriedBytes: number;
  /** Requests whose only account of themselves is in this file. */
  pins: number;
  /** Those of them that were settled and are held in no other place. */
  unread: number;
}

interface OpenSegment extends Segment {
  fd: number | undefined;
  unsynced: boolean;
}

export interface SpoolOptions {
  directory: string;
  clock: Clock;
  /** A segment that has grown to this size is followed by a new one. */
  segmentBytes: number;
}

/** Ends what is left of a frame that was not written whole, so that the next one begins in a line of its own. */
const tornMark = Buffer.from("!\n");
const syncData = promisify(fdatasync);

export class Spool {
  readonly #options: SpoolOptions;
  /** In the order of their numbers; the last is written. */
  readonly #segments: OpenSegment[] = [];
  #current: OpenSegment;
  #number: number;
  #torn = false;
  #newFile = true;
  #syncing: Promise<void> = Promise.resolve();

  /** Begins a segment behind those that are there. Throws where it cannot be made. */
  constructor(options: SpoolOptions) {
    this.#options = options;
    this.#number = listSegments(options.directory).at(-1)?.number ?? 0;
    this.#current = this.#begin();
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

  /**
   * The segment that the next `append` goes to. A full one is followed by a new one; where that cannot be made (no
   * descriptor left, disk full) the old one grows on.
   */
  ready(): Segment {
    if (this.#current.bytes >= this.#options.segmentBytes) this.rotate();
    return this.#current;
  }

  /** False where no new segment can be made. */
  rotate(): boolean {
    const before = this.#current;
    try {
      this.#current = this.#begin();
    } catch {
      return false;
    }
    before.sealedMs = this.#options.clock.monotonicMs();
    this.#torn = false;
    return true;
  }

  /** Writes a frame to the current segment. Throws where it could not be written whole; then nothing of it counts. */
  append(frame: Uint8Array): void {
    const segment = this.#current;
    if (segment.fd === undefined) throw new Error("The spool is closed.");
    const bytes = this.#torn ? Buffer.concat([tornMark, frame]) : frame;
    let written = 0;
    try {
      written = writeSync(segment.fd, bytes);
      // The rest of a short write is tried for the sake of its error: the disk is full.
      if (written < bytes.length) written += writeSync(segment.fd, bytes.subarray(written));
      if (written < bytes.length) throw new Error("The disk took only a part of what was written.");
      segment.bytes += written;
      segment.unsynced = true;
      this.#torn = false;
    } catch (error) {
      if (written > 0) this.#takeBack(segment, segment.fd, written);
      throw error;
    }
  }

  /** What was refused as a whole must not be found in parts. */
  #takeBack(segment: OpenSegment, fd: number, written: number): void {
    try {
      ftruncateSync(fd, segment.bytes);
    } catch {
      // Of such a disk nothing can be hoped but that the torn line does not spoil the next one.
      segment.bytes += written;
      segment.unsynced = true;
      this.#torn = true;
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
    unlinkSync(found.path);
    this.#segments.splice(this.#segments.indexOf(found), 1);
    // A descriptor that is in use by `sync` must not be closed under it.
    void this.#syncing.finally(() => closeSegment(found)).catch(() => {});
  }

  /** After it `append` throws. Segments that nothing pins are deleted. */
  async close(): Promise<void> {
    await this.#syncing.catch(() => {});
    for (const segment of this.#segments) {
      closeSegment(segment);
      if (segment.pins === 0) unlinkSync(segment.path);
    }
    this.#segments.length = 0;
  }

  #begin(): OpenSegment {
    const path = segmentPath(this.#options.directory, this.#number + 1);
    const fd = openSync(path, "ax", 0o600);
    this.#number++;
    const segment: OpenSegment = {
      number: this.#number,
      path,
      fd,
      openedMs: this.#options.clock.monotonicMs(),
      sealedMs: undefined,
      bytes: 0,
      carriedBytes: 0,
      pins: 0,
      unread: 0,
      unsynced: false,
    };
    this.#segments.push(segment);
    this.#newFile = true;
    return segment;
  }

  async #sync(): Promise<void> {
    if (this.#newFile) {
      this.#newFile = false;
      // The name of a new file survives only where its directory was synced too.
      const directory = await open(this.#options.directory);
      await directory.sync().finally(() => directory.close());
    }
    for (const segment of [...this.#segments]) {
      if (segment.fd === undefined) continue;
      const sealed = segment !== this.#current;
      if (segment.unsynced) {
        segment.unsynced = false;
        await syncData(segment.fd);
      }
      if (sealed) closeSegment(segment);
    }
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

/** For its owner only: who used what is in it. */
export function prepareSpoolDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  chmodSync(directory, 0o700);
}
