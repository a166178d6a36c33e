// Runs npm in a child process, and explains its failures so that a user can act on them.
import { SetupError } from "./setup-error.ts";

export type Env = Readonly<Record<string, string | undefined>>;

export interface Npm {
  path: string;
  env: Env;
}

// Limits on retries. By default npm waits minutes for a missing network.
const patience = ["--fetch-retries=2", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
const quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--loglevel=error"];

const offlineCodes =
  /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT|FETCH_ERROR)\b/;

/** Finds the npm of this machine. Throws a SetupError if there is none. */
export function findNpm(env: Env): Npm {
  const path = Bun.which("npm", { PATH: env["PATH"] ?? "" });
  if (path === null) {
    throw new SetupError("npm was not found on PATH. It comes with Node.js (version 20 or later): install that first.");
  }
  return { path, env };
}

/** Runs npm and returns its standard output. Rejects with a SetupError, or with the reason of `signal`. */
export async function runNpm(
  npm: Npm,
  directory: string,
  args: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  signal.throwIfAborted();
  // `--prefix` keeps npm in that directory, even if Headrace itself was started by npm.
  const child = Bun.spawn([npm.path, "--prefix", directory, ...patience, ...quiet, ...args], {
    cwd: directory,
    env: npm.env,
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    signal,
    // npm does not end on SIGINT or SIGTERM while it waits for the network. Its output is discarded anyway.
    killSignal: "SIGKILL",
  });
  const [output, complaint, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  signal.throwIfAborted();
  if (code === 0) return output;
  throw npmFailure(`${complaint}\n${output}`);
}

function npmFailure(text: string): SetupError {
  const offline = offlineCodes.exec(text)?.[1];
  if (offline !== undefined) {
    return new SetupError(`npm cannot reach its registry (${offline}). Are you offline, or is a proxy missing?`, {
      kind: "network",
    });
  }
  if (/\bENOSPC\b/.test(text)) return new SetupError("The disk is full. Free some space and run the command again.");
  if (/\bEBADPLATFORM\b/.test(text)) {
    return new SetupError(
      "npm says that the binaries are not for this system. They need glibc: Alpine and other musl systems cannot run them.",
    );
  }
  const missing = /\b(?:E404|ETARGET)\b/.test(text) ? /(?:@[\w.-]+\/)?[\w-]+@\d[\w.-]*\w/.exec(text)?.[0] : undefined;
  if (missing !== undefined) return new SetupError(`npm's registry has no ${missing}. Does a mirror lack it?`);
  const lines = text.split("\n").map((line) => line.replace(/^npm (error|ERR!) ?/, "").trim());
  const telling = lines.filter((line) => line !== "" && !line.startsWith("A complete log"));
  return new SetupError(`npm failed: ${telling.slice(0, 4).join(" ") || "it gave no reason"}`);
}
