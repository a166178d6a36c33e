// Allows one server for each data directory, because two would overwrite each other's counters, keys and credentials.
import { join } from "node:path";
import { StartError } from "../../base/errors.ts";
import { readCredentials } from "./credentials-file.ts";
import { tryLockFile } from "./file-lock.ts";
import { lockNames, lockState } from "./lock-holder.ts";

export class DataDirectoryInUse extends StartError {
  override readonly name = "DataDirectoryInUse";
}

/**
 * Holds an exclusive lock until the returned function is called, or the process dies. Throws DataDirectoryInUse if
 * another server holds it.
 */
export function lockDataDirectory(dataDir: string): () => void {
  const release = tryLockAll(dataDir, lockNames);
  if (release) return release;
  const { pid } = { pid: undefined, ...lockState(dataDir) };
  const url = addressIn(dataDir);
  const facts = [
    ...(pid === undefined ? [] : [`it runs as process ${pid}`]),
    ...(url === undefined ? [] : [`its address is ${url}`]),
  ];
  const stop = pid === undefined ? "Stop that one" : `Stop that one (Ctrl-C in its terminal, or kill ${pid})`;
  throw new DataDirectoryInUse(
    `Another Headrace uses the data directory ${dataDir}${facts.length > 0 ? `: ${facts.join(", ")}` : ""}. ` +
      `${stop}, use it as it is (headrace status shows its state, headrace --help lists the commands), or give this one a directory and a port of its own: --data-dir and --port.`,
  );
}

/**
 * Holds the locks of these names until the returned function is called. Undefined if another process holds one of them.
 */
export function tryLockAll(dataDir: string, names: readonly string[]): (() => void) | undefined {
  const releases: (() => void)[] = [];
  const releaseAll = () => {
    for (const release of releases.splice(0)) release();
  };
  try {
    for (const name of names) {
      const release = tryLockFile(join(dataDir, name));
      if (release === undefined) {
        releaseAll();
        return undefined;
      }
      releases.push(release);
    }
  } catch (error) {
    releaseAll();
    throw error;
  }
  return releaseAll;
}

function addressIn(dataDir: string): string | undefined {
  try {
    return readCredentials(dataDir)?.base_url;
  } catch {
    return undefined;
  }
}
