// Limits on how much, and for how long, one client may keep the server busy before its request is complete or its
// answer taken.

import { readFileSync } from "node:fs";
import { longLived } from "../../base/long-lived.ts";

export interface Http1Limits {
  /** Bytes of a request's head, its empty line included; more is 431. */
  headBytes: number;
  /** Bytes of its first line; more is 414. */
  requestLineBytes: number;
  /** Received and not asked for, of a body or of requests behind the one at work: with more than that, reading stops. */
  windowBytes: number;
  /** Time for a complete head, from its first byte on. */
  headMs: number;
  /** Time without a byte, between requests and before the first. */
  idleMs: number;
  /**
   * Time without a byte of a body that is waited for. All of it may take this long and a second more for every 8 KiB.
   */
  bodyIdleMs: number;
  /** Time for all of a body that is waited for, however it comes. */
  bodyMs: number;
  /**
   * Time without the client taking a byte of what was sent to it. It may be behind for this long and a second more for
   * every 500 bytes that it takes meanwhile.
   */
  unsentMs: number;
  /** Time from the end of the last answer until the connection is cut, if the client goes on sending. */
  lingerMs: number;
  /** Read and thrown away in that time. */
  lingerBytes: number;
  /** Likewise, of all connections in a quarter of a second: what is thrown away is memory until it is collected. */
  allLingerBytes: number;
  /** Open at once; those beyond it are answered 503. */
  connections: number;
}

/** A client that takes an answer more slowly than this keeps its place for nothing. */
export const slowestBytesPerSecond = 500;
/**
 * The slowest body that is waited for: what came of it is held until the rest is here, so that a slower one keeps
 * memory for nothing.
 */
export const slowestBodyBytesPerSecond = 8 * 1024;
/** Likewise, of one that is not held in memory: at this pace it may go on beyond `bodyMs`. */
export const slowestFlowBytesPerSecond = 128 * 1024;

export function defaultLimits(): Http1Limits {
  return {
    headBytes: 32 * 1024,
    requestLineBytes: 16 * 1024,
    windowBytes: 64 * 1024,
    headMs: 12_000,
    // Longer than load balancers keep theirs, mostly 60 s: who closes first must not be the one who is asked next.
    idleMs: longLived.httpConnection.idleMs,
    bodyIdleMs: 30_000,
    bodyMs: 10 * 60_000,
    unsentMs: longLived.request.idleMs,
    // Long enough for clients that send all of a body before they read, where it is no more than these bytes.
    lingerMs: 2_000,
    lingerBytes: 16 * 1024 * 1024,
    allLingerBytes: 16 * 1024 * 1024,
    connections: connectionsFor(descriptorLimit()),
  };
}

/**
 * At most half of the descriptors, as every request may need another one to its model server: when a process has none
 * left, Bun neither accepts nor refuses and uses all of its CPU until one is free.
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

/** Descriptors where the system does not say: what Bun raises its limit to at least, on the systems it runs on. */
const defaultDescriptors = 8_192;
