// The logins of this machine's user, one per server, in the operating system's configuration folder.
import { chmod, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { makeDirectory, replaceFile } from "../../storage/files/durable-file.ts";
import { tryLockFile } from "../../storage/files/file-lock.ts";
import { CliError } from "../terminal/terminal.ts";
import { parseJson } from "./api-request.ts";

const login = z.object({
  base_url: z.url({ protocol: /^https?$/ }),
  access_token: z.string().min(1),
  expires_at: z.number(),
  refresh_token: z.string().min(1),
  person: z.object({ id: z.string(), email: z.string(), name: z.string() }),
  account: z.object({ id: z.string(), name: z.string() }),
});

export type StoredLogin = z.infer<typeof login>;

/** Logins by the server's origin. The newest login is the last. */
export type Logins = Map<string, StoredLogin>;

const file = z.object({ logins: z.record(z.string(), login) });

const lockWaitMs = 50;
/** The longest wait for the lock. It exceeds the longest token renewal, during which a command holds the lock. */
const maxLockWaitMs = 30_000;

export class LoginStore {
  readonly #folder: string;
  readonly path: string;

  constructor(folder: string) {
    this.#folder = folder;
    this.path = join(folder, "login.json");
  }

  /** Returns the stored logins. Rejects with a CliError if the file cannot be read or parsed. */
  async read(): Promise<Logins> {
    let text: string;
    try {
      text = await readFile(this.path, "utf8");
    } catch (error) {
      const code = errorCode(error);
      if (code === "ENOENT" || code === "ENOTDIR") return new Map();
      throw new CliError(`${this.path} cannot be read (${code}). It has your logins, and belongs to you alone.`);
    }
    const parsed = file.safeParse(parseJson(text));
    if (parsed.success) return new Map(Object.entries(parsed.data.logins));
    throw new CliError(`${this.path} is damaged. Delete it and sign in again: headrace login`);
  }

  /**
   * Lets `work` change the logins, then writes them. A lock is held meanwhile, so that no two processes renew the same
   * login. If `work` rejects, `signal` is aborted or the folder cannot be written, rejects and writes nothing.
   */
  async change<Result>(signal: AbortSignal, work: (logins: Logins) => Promise<Result>): Promise<Result> {
    const release = await this.#lock(signal);
    try {
      const logins = await this.read();
      const before = asText(logins);
      const result = await work(logins);
      if (asText(logins) !== before) await this.#write(asText(logins));
      return result;
    } finally {
      release();
    }
  }

  async #lock(signal: AbortSignal): Promise<() => void> {
    const lockFile = join(this.#folder, "login.lock");
    const endMs = performance.now() + maxLockWaitMs;
    await this.#writing(async () => {
      makeDirectory(this.#folder);
      await (await open(lockFile, "a", 0o600)).close();
    });
    for (;;) {
      const release = tryLockFile(lockFile);
      if (release) return release;
      if (performance.now() > endMs) {
        throw new CliError(`Another headrace command has held ${lockFile} for ${maxLockWaitMs / 1000} s. End it.`);
      }
      await Bun.sleep(lockWaitMs);
      signal.throwIfAborted();
    }
  }

  /**
   * Writes the file atomically and flushes it to disk. If the new refresh token were lost, the login would be lost too,
   * because the old token no longer works.
   */
  async #write(text: string): Promise<void> {
    await this.#writing(async () => {
      replaceFile(this.path, text);
      await chmod(this.#folder, 0o700);
    });
  }

  async #writing(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      throw new CliError(
        `Logins cannot be stored in ${this.#folder} (${errorCode(error)}): the folder must be writable.`,
      );
    }
  }
}

function asText(logins: Logins): string {
  return `${JSON.stringify({ logins: Object.fromEntries(logins) }, undefined, 2)}\n`;
}

function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
