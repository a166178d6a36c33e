// `credentials.json` in the data directory: the command line tool reads the local server's base URL and first key
// there.
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Environment, parseApiKey } from "../../domain/api-key.ts";
import { replaceFile, syncDirectory } from "./durable-file.ts";

export interface Credentials {
  /** Base URL of the local server, with `/v1`. */
  base_url: string;
  api_key: string;
}

export function credentialsPath(dataDir: string): string {
  return join(dataDir, "credentials.json");
}

/** Reads the file. Returns undefined if it is missing or invalid. */
export function readCredentials(dataDir: string): Credentials | undefined {
  const file = credentialsPath(dataDir);
  if (!existsSync(file)) return undefined;
  try {
    const value: unknown = JSON.parse(readFileSync(file, "utf8"));
    if (typeof value !== "object" || value === null) return undefined;
    const { base_url, api_key } = value as Partial<Credentials>;
    return typeof base_url === "string" && typeof api_key === "string" ? { base_url, api_key } : undefined;
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically and durably, because it has the only copy of the key. */
export function writeCredentials(dataDir: string, credentials: Credentials): void {
  replaceFile(credentialsPath(dataDir), `${JSON.stringify(credentials, null, 2)}\n`);
}

export function removeCredentials(dataDir: string): void {
  rmSync(credentialsPath(dataDir), { force: true });
}

/**
 * Development and production may alternate in one data directory. Renames credentials of the other environment to
 * `credentials-<environment>.json`, and restores those of this environment.
 */
export function useCredentialsOf(dataDir: string, environment: Environment): void {
  const current = credentialsPath(dataDir);
  const aside = (name: Environment) => join(dataDir, `credentials-${name}.json`);
  const key = readCredentials(dataDir)?.api_key;
  const found = key === undefined ? undefined : parseApiKey(key);
  if (found === environment) return;
  if (found !== undefined) renameSync(current, aside(found));
  if (existsSync(aside(environment))) renameSync(aside(environment), current);
  syncDirectory(dataDir);
}
