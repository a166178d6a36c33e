// Stores audit events and requests as JSON lines in an object store.
import { createHash } from "node:crypto";
import { type ExportedRecord, exportedKinds } from "../domain/exports.ts";
import { ExportFault, type ExportSink } from "./exporter.ts";

/** Records of one object. All of them are in memory while they are sent. */
const maxRecords = 2_000;

/** Number of records that are serialized at a time, because serializing delays requests. */
const linesAtOnce = 100;

export interface ObjectSinkOptions {
  /** Stores an object. Replaces an existing object of the same name. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Returns the JSON of a record. */
  lineOf(record: ExportedRecord): string;
  waitSeconds: number;
}

/** Returns the receiver. A repeated batch replaces its objects with the same bytes. */
export function objectSink({ put, lineOf, waitSeconds }: ObjectSinkOptions): ExportSink {
  return {
    name: "s3",
    limit: maxRecords,
    waitSeconds,
    async send(records, signal) {
      for (const kind of exportedKinds) {
        const some = records.filter((one) => one.kind === kind);
        if (some.length === 0) continue;
        const lines: string[] = [];
        for (const [nth, one] of some.entries()) {
          lines.push(`${lineOf(one)}\n`);
          // Lets waiting requests run before the next lines.
          if (nth % linesAtOnce === linesAtOnce - 1) await new Promise(setImmediate);
        }
        signal.throwIfAborted();
        await put(objectName(kind, some), Buffer.from(lines.join(""))).catch((error) => {
          throw new ExportFault(`the store refuses the object (${codeOf(error)})`);
        });
      }
      return 0;
    },
  };
}

/**
 * Returns the object's name, which contains the kind of the records, the hour of the first one, their sequence numbers,
 * and a digest of their ids. Sequence numbers repeat after a backup was restored. The digest then distinguishes objects
 * with different records.
 */
function objectName(kind: string, records: readonly ExportedRecord[]): string {
  const [first, last] = [records[0], records.at(-1)];
  const hour = new Date((first?.record?.at ?? 0) * 1000).toISOString();
  const digest = createHash("sha256").update(records.map(({ id }) => id).join(" "));
  const range = [first, last].map((one) => String(one?.seq).padStart(12, "0")).join("-");
  return `${kind}/dt=${hour.slice(0, 10)}/hh=${hour.slice(11, 13)}/${range}-${digest.digest("hex").slice(0, 8)}.jsonl`;
}

function codeOf(error: unknown): string {
  const { detail, code, name } = (error ?? {}) as { detail?: unknown; code?: unknown; name?: unknown };
  return String(detail ?? code ?? name).replace(/^files: s3 /, "");
}
