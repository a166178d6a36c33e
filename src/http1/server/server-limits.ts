// Limits on the bytes and the time that one client can take.

import { readFileSync } from "node:fs";
import { longLived } from "../../base/long-lived.ts";

export interface Http1Limits {
  /** Maximum bytes of a request's headers. A longer request gets status 431. */
  headBytes: number;
  /** Maximum bytes of a request line. A longer request line gets status 414. */
  requestLineBytes: number;
  /** Maximum received bytes that no code has requested yet. Above this, reading from the client pauses. */
  windowBytes: number;
  /** The longest time from the first byte of a request until its headers are complete. */
  headMs: number;
  /** The longest time without a request on a connection. */
  idleMs: number;
  /**
   * Maximum milliseconds without data while a body is read. A minimum speed applies too: in total, a body may take this
   * time plus one second for every 8 KiB received.
   */
  bodyIdleMs: number;
  /** Maximum milliseconds for a whole body, at any speed. */
  bodyMs: number;
  /**
   * Maximum milliseconds without progress while an answer is sent. A minimum speed applies too: in total, output may
   * wait for the client this time plus one second for every 500 bytes sent.
   */
  unsentMs: number;
  /** Milliseconds after the last answer until the connection is cut, if the client is still sending. */
  lingerMs: number;
  /** Maximum bytes that a connection discards after the last answer. */
  lingerBytes: number;
  /**
   * Maximum bytes that all connections together discard in a quarter of a second. Discarded bytes use memory until
   * garbage collection.
   */
  allLingerBytes: number;
  /** Maximum open connections. Further connections get status 503. */
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
    // Longer than the idle timeout of load balancers (usually 60 s), which should close the connection first. Otherwise
    // this server could close a connection while a request is on its way.
    idleMs: longLived.httpConnection.idleMs,
    bodyIdleMs: 30_000,
    bodyMs: 10 * 60_000,
    unsentMs: longLived.request.idleMs,
    // Long enough for clients that send the whole body before they begin to read the answer.
    lingerMs: 2_000,
    lingerBytes: 16 * 1024 * 1024,
    allLingerBytes: 16 * 1024 * 1024,
    connections: connectionsFor(descriptorLimit()),
  };
}

/**
 * Returns the maximum number of connections: at most half of the file descriptors, because each request may need
 * another one for its model server. Without free descriptors, Bun neither accepts nor refuses connections and uses a
 * whole CPU.
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

/** The number of file descriptors if the limit is unknown. Bun raises the limit to at least this number. */
const defaultDescriptors = 8_192;
