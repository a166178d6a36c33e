// Limits on how much, and for how long, one client may use the server before its request is complete or its answer
// taken.

import { readFileSync } from "node:fs";
import { longLived } from "../../base/long-lived.ts";

export interface Http1Limits {
  /** Bytes of a request's head, including its empty line. More is 431. */
  headBytes: number;
  /** Bytes of its first line. More is 414. */
  requestLineBytes: number;
  /** Received bytes that are not requested yet, of a body or of later requests. Beyond this, reading stops. */
  windowBytes: number;
  /** Time for a complete head, from its first byte on. */
  headMs: number;
  /** Time without a byte, between requests and before the first. */
  idleMs: number;
  /** Time without a byte of an awaited body. The whole body may take this long and a second more for every 8 KiB. */
  bodyIdleMs: number;
  /** Time for the whole of an awaited body, however it arrives. */
  bodyMs: number;
  /**
   * Time without the client taking a byte of what was sent. It may be behind for this long and a second more for every
   * 500 bytes that it takes.
   */
  unsentMs: number;
  /** Time from the end of the last answer until the connection is cut, if the client goes on sending. */
  lingerMs: number;
  /** Bytes read and discarded in that time. */
  lingerBytes: number;
  /** The same for all connections in a quarter of a second: discarded bytes take memory until they are collected. */
  allLingerBytes: number;
  /** Open at once. Further ones are answered 503. */
  connections: number;
}

/** A client that takes an answer more slowly than this wastes its place. */
export const slowestBytesPerSecond = 500;
/** The slowest awaited body: its bytes are held until it is complete, so a slower one wastes memory. */
export const slowestBodyBytesPerSecond = 8 * 1024;
/** The same for a body that is not held in memory: at this pace it may exceed `bodyMs`. */
export const slowestFlowBytesPerSecond = 128 * 1024;

export function defaultLimits(): Http1Limits {
  return {
    headBytes: 32 * 1024,
    requestLineBytes: 16 * 1024,
    windowBytes: 64 * 1024,
    headMs: 12_000,
    // Longer than load balancers keep connections, usually 60 s: the side that closes first must not get the next
    // request.
    idleMs: longLived.httpConnection.idleMs,
    bodyIdleMs: 30_000,
    bodyMs: 10 * 60_000,
    unsentMs: longLived.request.idleMs,
    // Long enough for clients that send the whole body before they read, if it has no more than these bytes.
    lingerMs: 2_000,
    lingerBytes: 16 * 1024 * 1024,
    allLingerBytes: 16 * 1024 * 1024,
    connections: connectionsFor(descriptorLimit()),
  };
}

/**
 * At most half of the descriptors, as every request may need another one to its model server. A process without free
 * ones neither accepts nor refuses in Bun, and uses all of its CPU until one is free.
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

/** Used if the system does not tell its limit: Bun raises it to at least this on its systems. */
const defaultDescriptors = 8_192;
