// Limits on the resources of one client: bytes and times until its request is complete and its answer received.

import { readFileSync } from "node:fs";
import { longLived } from "../../base/long-lived.ts";

export interface Http1Limits {
  /** The most bytes of a request's head, including its empty line; beyond, the answer is 431. */
  headBytes: number;
  /** The most bytes of a request's first line; beyond, the answer is 414. */
  requestLineBytes: number;
  /**
   * The most received bytes of a body or of later requests that were not asked for yet. Beyond this, reading pauses.
   */
  windowBytes: number;
  /** The time for a complete head, from its first byte on. */
  headMs: number;
  /** The longest silence between requests, and before the first. */
  idleMs: number;
  /** The longest silence of an awaited body. The whole body may take this long and a second more for every 8 KiB. */
  bodyIdleMs: number;
  /** The time for the whole of an awaited body, whatever its rate. */
  bodyMs: number;
  /**
   * The longest time without the client taking a byte of the answer. The client may be behind for this long and a
   * second more for every 500 bytes that it takes.
   */
  unsentMs: number;
  /** The time from the end of the last answer until the connection is cut, if the client still sends. */
  lingerMs: number;
  /** The most bytes read and discarded in that time. */
  lingerBytes: number;
  /**
   * The most bytes discarded for all connections in a quarter of a second, because discarded bytes take memory until
   * they are collected.
   */
  allLingerBytes: number;
  /** The most open connections; further ones are answered 503. */
  connections: number;
}

/** The slowest rate at which a client may receive an answer; slower clients would waste a connection. */
export const slowestBytesPerSecond = 500;
/**
 * The slowest rate of an awaited body: its bytes are in memory until it is complete, so a slower body wastes memory.
 */
export const slowestBodyBytesPerSecond = 8 * 1024;
/** The slowest rate of a body that is not buffered in memory; at this rate it may exceed `bodyMs`. */
export const slowestFlowBytesPerSecond = 128 * 1024;

export function defaultLimits(): Http1Limits {
  return {
    headBytes: 32 * 1024,
    requestLineBytes: 16 * 1024,
    windowBytes: 64 * 1024,
    headMs: 12_000,
    // Longer than the idle timeout of load balancers, usually 60 s: the side that closes first must not get the next
    // request.
    idleMs: longLived.httpConnection.idleMs,
    bodyIdleMs: 30_000,
    bodyMs: 10 * 60_000,
    unsentMs: longLived.request.idleMs,
    // Long enough for clients that send the whole body before they read, up to these bytes.
    lingerMs: 2_000,
    lingerBytes: 16 * 1024 * 1024,
    allLingerBytes: 16 * 1024 * 1024,
    connections: connectionsFor(descriptorLimit()),
  };
}

/**
 * Returns at most half of the file descriptors, because every request may need another one to its model server. A
 * process without free descriptors neither accepts nor refuses in Bun, and uses all of its CPU until one is free.
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

/** Used if the limit is unknown: Bun raises the limit to at least this on its systems. */
const defaultDescriptors = 8_192;
