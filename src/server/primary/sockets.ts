// The port and the directory of sockets that this process shares with its workers.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, resolve } from "node:path";
import { wallMs } from "../../base/clock.ts";

const socketsName = "headrace-workers-";
/** Many systems delete temporary files that are some days old, macOS after three. */
const touchMs = 3_600_000;

/** Creates a private directory for the sockets of this process and its workers. The data directory records its path. */
export function socketDirectory(dataDir: string, everyMs = touchMs): { path: string; close(): void } {
  const path = mkdtempSync(join(tmpdir(), socketsName));
  writeFileSync(ownerOf(path), resolve(dataDir));
  writeFileSync(noteOf(dataDir), path, { mode: 0o600 });
  const timer = setInterval(() => touchFiles(path), everyMs);
  timer.unref();
  return {
    path,
    close() {
      clearInterval(timer);
      removeLeftSockets(dataDir);
    },
  };
}

/** Makes the files look new. A worker that replaces a dead one needs them, however long the server has run. */
function touchFiles(directory: string): void {
  const now = wallMs() / 1000;
  try {
    for (const name of readdirSync(directory)) utimesSync(join(directory, name), now, now);
  } catch {
    // The files were deleted. The workers that run do not need them.
  }
}

/** Removes the socket directory that a killed process left. The caller must hold the data directory's lock. */
export function removeLeftSockets(dataDir: string): void {
  const note = noteOf(dataDir);
  if (!existsSync(note)) return;
  const path = readFileSync(note, "utf8");
  // A copy of a running server's data directory refers to that server's sockets.
  const owner = existsSync(ownerOf(path)) ? readFileSync(ownerOf(path), "utf8") : undefined;
  if (owner === resolve(dataDir) && basename(path).startsWith(socketsName)) rmSync(path, { recursive: true });
  rmSync(note, { force: true });
}

function ownerOf(path: string): string {
  return join(path, "data-directory");
}

function noteOf(dataDir: string): string {
  return join(dataDir, "worker-sockets");
}

/** Returns the path of the socket at which the primary process answers handed-over requests. */
export function innerSocket(directory: string): string {
  return join(directory, "inner.sock");
}

/**
 * Finds a port without a listener, because other programs could join a shared port too. Throws the system's error if
 * the port is in use. `port` 0: any free port.
 */
export function freePort(hostname: string, port: number): number {
  const listener = Bun.listen({ hostname, port, exclusive: true, socket: { data() {} } });
  const { port: free } = listener;
  listener.stop(true);
  return free;
}
