// Keep-alives of a stream: the comments that clients get, and the heartbeats that model servers send.

/**
 * A comment of one line. A blank line after it would end an event without data. openai-go up to 3.35 treats that as a
 * malformed event, and so does openai-python up to 2.37 once an event had an id.
 */
export const comment = ": keep-alive\n";

/** Writes the comment for a queued request: `: queued, place 3 of 12, about 4 s`. */
export function queuedComment({ place, of, expectedMs }: Queued): string {
  const wait = expectedMs === undefined ? "" : `, about ${Math.max(1, Math.round(expectedMs / 1000))} s`;
  return `: queued, place ${place} of ${of}${wait}\n`;
}

interface Queued {
  readonly place: number;
  readonly of: number;
  /** Expected wait in milliseconds; undefined if it cannot be predicted. */
  readonly expectedMs: number | undefined;
}

const heartbeatName = /^(?:ping|heart[-_]?beat|keep[-_]?alive)$/i;
/**
 * Matches an empty text, or one of these words within quotes, braces or brackets: `""`, `{}`, `null`, `: keep-alive`.
 */
const heartbeatData = /^[\s"':{}[\]]*(?:(?:ping|heart[-_ ]?beat|keep[-_ ]?alive|null)[\s"':{}[\]]*)?$/i;
const maxHeartbeatLength = 32;
/** Maximum length of a heartbeat with a type. Such a heartbeat has only a number or a time besides its type. */
const maxTypedHeartbeatLength = 256;
const typeMember = /"type"\s*:\s*"?([\w-]*)/;

/**
 * Reports whether an event of a model server only shows that the server is alive. If `knowsPing` is true, the
 * client's format has events of type `ping`, which are forwarded.
 */
export function isHeartbeat(name: string, data: string, knowsPing = false): boolean {
  const { length } = data;
  if (length <= maxHeartbeatLength && heartbeatData.test(data)) return true;
  const type = length <= maxTypedHeartbeatLength ? typeMember.exec(data)?.[1] : undefined;
  if (type !== undefined) return heartbeatName.test(type) && !(knowsPing && type === "ping");
  return name !== "" && heartbeatName.test(name) && !typeMember.test(data);
}
