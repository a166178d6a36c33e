// Comments that keep a client's stream alive, and heartbeats that model servers send.

/**
 * A comment of one line. No blank line may follow, because it would end an event without data. The client library
 * openai-go up to version 3.35 treats such an event as malformed. So does openai-python up to version 2.37, once an
 * event had an id.
 */
export const comment = ": keep-alive\n";

/** Writes the comment for a request that waits in the queue: `: queued, place 3 of 12, about 4 s`. */
export function queuedComment({ place, of, expectedMs }: Queued): string {
  const wait = expectedMs === undefined ? "" : `, about ${Math.max(1, Math.round(expectedMs / 1000))} s`;
  return `: queued, place ${place} of ${of}${wait}\n`;
}

interface Queued {
  readonly place: number;
  readonly of: number;
  /** Expected wait in milliseconds. Undefined if the wait cannot be predicted. */
  readonly expectedMs: number | undefined;
}

const heartbeatName = /^(?:ping|heart[-_]?beat|keep[-_]?alive)$/i;
/**
 * Matches an empty text, or one of these words, optionally within quotes, braces or brackets: `""`, `{}`, `null`, `:
 * keep-alive`.
 */
const heartbeatData = /^[\s"':{}[\]]*(?:(?:ping|heart[-_ ]?beat|keep[-_ ]?alive|null)[\s"':{}[\]]*)?$/i;
const maxHeartbeatLength = 32;
/** Maximum length of a heartbeat with a type. Besides its type, such a heartbeat has only a number or a time. */
const maxTypedHeartbeatLength = 256;
const typeMember = /"type"\s*:\s*"?([\w-]*)/;

/**
 * Reports whether an event of a model server only shows that the server is alive. If `knowsPing` is true, the client's
 * format has events of type `ping`, so these are forwarded.
 */
export function isHeartbeat(name: string, data: string, knowsPing = false): boolean {
  const { length } = data;
  if (length <= maxHeartbeatLength && heartbeatData.test(data)) return true;
  const type = length <= maxTypedHeartbeatLength ? typeMember.exec(data)?.[1] : undefined;
  if (type !== undefined) return heartbeatName.test(type) && !(knowsPing && type === "ping");
  return name !== "" && heartbeatName.test(name) && !typeMember.test(data);
}
