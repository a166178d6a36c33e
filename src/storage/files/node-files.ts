// Files of a node in its data directory: its identity, a secret, and the state of its connection.
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { StartError } from "../../base/errors.ts";
import { linkStatuses, type NodeIdentity, type NodeLinkReport } from "../../domain/models/node-identity.ts";
import { makeDirectory, replaceFile } from "./durable-file.ts";

const identityShape: z.ZodType<NodeIdentity> = z.object({
  gateway_url: z.string().min(1),
  gateway: z.string().min(1),
  node_id: z.string().min(1),
  name: z.string().min(1),
  private_key: z.string().min(1),
  proxy: z.string().min(1).optional(),
  joined_at: z.int(),
});

const reportShape: z.ZodType<NodeLinkReport> = z.object({
  node_id: z.string(),
  status: z.enum(linkStatuses),
  message: z.string(),
  since: z.int(),
  models: z.array(z.object({ id: z.string(), approved: z.boolean().nullable() })),
});

export function nodeIdentityPath(dataDir: string): string {
  return join(dataDir, "node.json");
}

const reportPath = (dataDir: string) => join(dataDir, "node-status.json");

/** Returns undefined if the machine has not joined. Throws a StartError if the file cannot be used. */
export function readNodeIdentity(dataDir: string): NodeIdentity | undefined {
  const file = nodeIdentityPath(dataDir);
  const text = readIfThere(file);
  if (text === undefined) return undefined;
  try {
    return identityShape.parse(JSON.parse(text));
  } catch {
    // The error shows neither the text nor the fault in it, because the file contains a private key.
    throw new StartError(`${file} is damaged. Delete it and join again: headrace node join … --token …`);
  }
}

/**
 * Prepares the data directory before a join token is used up. A machine may join before a server was started on it.
 * Throws a StartError if nothing can be stored there. Returns a function that undoes the preparation.
 */
export function prepareNodeDirectory(dataDir: string): () => void {
  const isNew = !existsSync(dataDir);
  const draft = draftOf(nodeIdentityPath(dataDir));
  try {
    makeDirectory(dataDir);
    writeFileSync(draft, "", { mode: 0o600 });
    rmSync(draft);
  } catch (error) {
    throw new StartError(`${dataDir} cannot be written (${String((error as { code?: string }).code)}).`);
  }
  return () => {
    if (isNew && readdirSync(dataDir).length === 0) rmdirSync(dataDir);
  };
}

/** Writes the identity. It is on disk when this returns, because the join token works only once. */
export function writeNodeIdentity(dataDir: string, identity: NodeIdentity): void {
  replaceFile(nodeIdentityPath(dataDir), asText(identity));
}

export function deleteNodeIdentity(dataDir: string): void {
  rmSync(nodeIdentityPath(dataDir), { force: true });
}

/** Returns a text that differs after each change of the identity file. Undefined if the file is missing. */
export function nodeIdentityMark(dataDir: string): string | undefined {
  const stats = statSync(nodeIdentityPath(dataDir), { throwIfNoEntry: false });
  return stats && `${stats.mtimeMs} ${stats.size} ${stats.ino}`;
}

/** Returns the last report of the running server about the node's connection. Undefined if there is no report. */
export function readNodeReport(dataDir: string): NodeLinkReport | undefined {
  try {
    return reportShape.parse(JSON.parse(readIfThere(reportPath(dataDir)) ?? ""));
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically but not durably: the next server writes a new report. */
export function writeNodeReport(dataDir: string, report: NodeLinkReport): void {
  const draft = draftOf(reportPath(dataDir));
  writeFileSync(draft, asText(report), { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, reportPath(dataDir));
}

export function deleteNodeReport(dataDir: string): void {
  rmSync(reportPath(dataDir), { force: true });
}

const draftOf = (file: string) => `${file}.${process.pid}`;

function readIfThere(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if ((error as { code?: string }).code === "ENOENT") return undefined;
    throw new StartError(`${file} cannot be read (${String((error as { code?: string }).code)}).`);
  }
}

const asText = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
