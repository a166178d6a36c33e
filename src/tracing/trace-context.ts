// W3C Trace Context: reads the trace that a client's request belongs to, and writes the header that is passed on.
import type { SpanContext } from "@opentelemetry/api";

export interface ClientTrace {
  traceId: string;
  /** Id of the client's own span. */
  spanId: string;
  sampled: boolean;
  tracestate: string | undefined;
}

const parentPattern = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const sampledFlag = 1;
/** Maximum characters of `tracestate` that are passed on: the minimum that Trace Context, 3.3.1.5, requires. */
const maxStateLength = 512;
const maxMembers = 32;
const memberPattern = /^[a-z0-9][a-z0-9_\-*/@]{0,255}=[ -+--<>-~]{0,255}[!-+--<>-~]$/;

/**
 * Reads the client's trace. Undefined for a missing or invalid header (3.2.2): the gateway may then begin its own
 * trace.
 */
export function readClientTrace(headers: { get(name: string): string | null }): ClientTrace | undefined {
  const parent = headers.get("traceparent");
  if (parent === null) return undefined;
  const [, version, traceId = "", spanId = "", flags = "", rest] = parentPattern.exec(parent) ?? [];
  if (version === undefined || version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const sampled = (Number.parseInt(flags, 16) & sampledFlag) !== 0;
  return { traceId, spanId, sampled, tracestate: readState(headers.get("tracestate")) };
}

/** Returns the whole trace state, or undefined if a part is malformed or the state is too long (3.3.1.1). */
function readState(text: string | null): string | undefined {
  if (text === null || text.length > maxStateLength) return undefined;
  const members = text
    .split(",")
    .map((member) => member.trim())
    .filter((member) => member !== "");
  if (members.length === 0 || members.length > maxMembers) return undefined;
  return members.every((member) => memberPattern.test(member)) ? members.join(",") : undefined;
}

/** Returns the `traceparent` header for a request that is a child of this span. */
export function traceparentOf({ traceId, spanId, traceFlags }: SpanContext): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}
