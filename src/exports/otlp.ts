// Posts OTLP over HTTP with JSON, and makes the log records of audit events and requests.
import type { ExportedRecord } from "../domain/exports.ts";
import { ExportFault, type ExportSink } from "./exporter.ts";

export interface OtlpTarget {
  /** The URL of the signal, such as `https://collector.example.com/v1/logs`. */
  url: string;
  /** HTTP headers of each post. They may contain credentials. */
  headers: Readonly<Record<string, string>>;
}

/** Names the sending process or installation in OpenTelemetry's attributes. */
export interface OtlpResource {
  serviceName: string;
  version: string;
  instanceId: string;
}

/** The receiver, or a proxy in front of it, takes no message of this size. */
class TooLarge extends ExportFault {}

const maxAnswerBytes = 65_536;

/**
 * Posts a message and returns the answer. Rejects with an `ExportFault`, whose text contains nothing of the message or
 * the answer.
 */
export async function postOtlp({ url, headers }: OtlpTarget, message: unknown, signal: AbortSignal): Promise<unknown> {
  let response: Response;
  try {
    response = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify(message),
      redirect: "manual",
      signal,
    });
  } catch (error) {
    const { code, name } = error as { code?: unknown; name?: unknown };
    throw new ExportFault(`no connection (${String(code ?? name)})`);
  }
  // The protocol demands 200. Loki answers 204, others 202.
  if (!response.ok) {
    await response.body?.cancel();
    if (response.status === 413) throw new TooLarge("HTTP 413: the message is larger than the receiver takes");
    throw new ExportFault(`HTTP ${response.status}`, Number(response.headers.get("retry-after") ?? 0) || 0);
  }
  return jsonIn(response);
}

/** Returns the JSON of an answer. Rejects an answer that is neither empty nor a JSON object, such as a proxy's page. */
async function jsonIn({ body }: Response): Promise<unknown> {
  const bytes: Uint8Array[] = [];
  let length = 0;
  for await (const piece of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += piece.byteLength;
    if (length > maxAnswerBytes) throw notOtlp();
    bytes.push(piece);
  }
  if (length === 0) return {};
  try {
    const answer: unknown = JSON.parse(Buffer.concat(bytes).toString("utf8"));
    if (typeof answer === "object" && answer !== null) return answer;
  } catch {
    throw notOtlp();
  }
  throw notOtlp();
}

function notOtlp(): ExportFault {
  return new ExportFault("the answer is not OTLP");
}

export function resourceOf({ serviceName, version, instanceId }: OtlpResource) {
  const attributes = { "service.name": serviceName, "service.version": version, "service.instance.id": instanceId };
  return { attributes: attributesOf(attributes) };
}

export function attributesOf(values: Readonly<Record<string, string>>) {
  return Object.entries(values).map(([key, value]) => ({ key, value: { stringValue: value } }));
}

/** Batches are small, because serializing one delays all requests. */
const maxRecords = 250;
/** Characters of the records in one message. With escapes and attributes, the message stays below 1 MB as a rule. */
const firstMaxLength = 500_000;

/** Returns the receiver of log records. `lineOf` returns the JSON of a record. */
export function otlpLogSink(
  target: OtlpTarget,
  resource: OtlpResource,
  lineOf: (record: ExportedRecord) => string,
): ExportSink {
  // Maximum characters of the records in one message. If the receiver refuses a message as too large, the maximum is
  // halved. A message with a single record is sent at any length.
  let maxLength = firstMaxLength;

  /** Posts records whose lines are known. Resolves with the number that the receiver refused for good. */
  async function post(records: readonly ExportedRecord[], lines: readonly string[], signal: AbortSignal) {
    const logRecords = records.map((record, nth) => logRecordOf(record, lines[nth] ?? ""));
    const scopeLogs = [{ scope: { name: "headrace", version: resource.version }, logRecords }];
    const answer = await postOtlp(target, { resourceLogs: [{ resource: resourceOf(resource), scopeLogs }] }, signal);
    // The protocol forbids to repeat records that a partial success rejects.
    const { partialSuccess } = (answer ?? {}) as { partialSuccess?: { rejectedLogRecords?: unknown } };
    return Math.min(records.length, Number(partialSuccess?.rejectedLogRecords ?? 0) || 0);
  }

  return {
    name: "otlp",
    limit: maxRecords,
    waitSeconds: 0,
    async send(records, signal) {
      const lines = records.map(lineOf);
      let rejected = 0;
      for (let start = 0; start < records.length; ) {
        const end = endOfMessage(lines, start, maxLength);
        const some = lines.slice(start, end);
        try {
          rejected += await post(records.slice(start, end), some, signal);
          start = end;
        } catch (error) {
          if (!(error instanceof TooLarge) || some.length === 1) throw error;
          maxLength = Math.floor(lengthOf(some) / 2);
        }
      }
      return rejected;
    },
  };
}

/**
 * Returns the index after the last line of a message that begins with line `start`. A message has at least one line.
 */
function endOfMessage(lines: readonly string[], start: number, maxLength: number): number {
  let [end, length] = [start, 0];
  do length += lines[end++]?.length ?? 0;
  while (end < lines.length && length + (lines[end]?.length ?? 0) <= maxLength);
  return end;
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length, 0);
}

function logRecordOf({ seq, id, kind, record }: ExportedRecord, line: string) {
  return {
    timeUnixNano: `${record?.at ?? 0}000000000`,
    severityNumber: 9,
    severityText: "INFO",
    eventName: kind === "audit" ? "headrace.audit" : "headrace.request",
    body: { stringValue: line },
    attributes: [
      ...attributesOf({ "log.record.uid": id }),
      { key: "headrace.export.sequence", value: { intValue: String(seq) } },
    ],
  };
}
