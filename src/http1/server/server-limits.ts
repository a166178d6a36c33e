// Limits on the bytes and the time that one client can take.

import { readFileSync } from "node:fs";
import { longLived } from "../../base/long-lived.ts";

export interface Http1Limits {
  /** The most bytes of a request's headers. A longer request gets a 431. */
  headBytes: number;
  /** The most bytes of a request line. A longer one gets a 414. */
  requestLineBytes: number;
  /** The most received bytes that no code has requested yet. Beyond that, reading pauses. */
  windowBytes: number;
  /** The longest time from the first byte of a request until its headers are complete. */
  headMs: number;
  /** The longest time without a request on a connection. */
  idleMs: number;
  /**
   * The longest time without data while a body is read. Also the base of a minimum speed: one more second for
   * every 8 KiB.
   */
  bodyIdleMs: number;
  /** The longest time for a whole body, whatever its speed. */
  bodyMs: number;
  /**
   * The longest time without progress in sending an answer. Also the base of a minimum speed: one more second
   * for every 500 bytes.
   */
  unsentMs: number;
  /** After the last answer, the time until the connection is cut if the client is still sending. */
  lingerMs: number;
  /** The most bytes that are discarded during that time. */
  lingerBytes: number;
  /**
   * The most bytes that all connections discard in a quarter of a second, because discarded bytes use memory
   * until garbage collection.
   */
  allLingerBytes: number;
  /** The most open connections. Further ones get a 503. */
  connections: number;
}

/** The minimum speed at which a client must receive an answer. */
export const slowestBytesPerSecond = 500;
/** The minimum speed of a body that is buffered, because it uses memory until it is complete. */
export const slowestBodyBytesPerSecond = 8 * 1024;
/** The minimum speed of a body that is not buffered. A long body at this speed may take longer than `bodyMs`. */
export const slowestFlowBytesPerSecond = 128 * 1024;

export function defaultLimits(): Http1Limits {
  return {
    headBytes: 32 * 1024,
    requestLineBytes: 16 * 1024,
    windowBytes: 64 * 1024,
    headMs: 12_000,
    // Longer than the idle timeout of load balancers (usually 60 s), which should close first: a connection must
    // not close while a request is on its way.
    idleMs: longLived.httpConnection.idleMs,
    bodyIdleMs: 30_000,
    bodyMs: 10 * 60_000,
    unsentMs: longLived.request.idleMs,
    // Long enough for clients that send the whole body before they read the answer.
    lingerMs: 2_000,
    lingerBytes: 16 * 1024 * 1024,
    allLingerBytes: 16 * 1024 * 1024,
    connections: connectionsFor(descriptorLimit()),
  };
}

/**
 * Returns at most half of the file descriptors, because each request may need another one for its model server.
 * Without free descriptors, Bun neither accepts nor refuses connections and uses a whole CPU.
 */
function connectionsFor(descriptors: number): number {
  return Math.max(16, Math.floor(descriptors / 2) - 64);
}

function descriptorLimit(): number {
  try {
    const soft = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return soft === undefined || soft === "unlimited" ? defaultDescriptors : Number(soft);
  } catch {
    return defaultDescriptors;
  }
}

/** Used if the limit is unknown. Bun raises the limit to at least this number. */
const defaultDescriptors = 8_192;
