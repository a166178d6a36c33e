// Finds the server that a command talks to, and the key for it.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { trimSlashes } from "../../base/text/http-url.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, exitCodes } from "../terminal/terminal.ts";
import { parseJson } from "./api-request.ts";
import type { Connection } from "./connection.ts";
import { LoginStore, type StoredLogin } from "./login-store.ts";
import { LoginTokens } from "./token-connection.ts";

export interface ConnectionOptions {
  baseUrl?: string;
  apiKeyStdin?: boolean;
  dataDir?: string;
}

const localBaseUrl = "http://127.0.0.1:7545/v1";
const startCommand = "headrace serve";

/** The help text about the connection, for every command that connects to a server. */
export const connectionHelp = `\
The server and the key each come from the first of these that has one: --base-url and
--api-key-stdin; HEADRACE_BASE_URL and HEADRACE_API_KEY; your headrace login, at the named
server or else the last one; credentials.json, which headrace serve writes to the data
directory. With --data-dir, its credentials.json is used and not a login.`;

/** There is no option for the key, because every user of the machine can read the arguments of a process. */
export const connectionOptions = {
  baseUrl: ["--base-url <url>", "base URL of the server, including /v1"],
  apiKeyStdin: ["--api-key-stdin", "read the API key from standard input"],
  dataDir: ["--data-dir <path>", "data directory with credentials.json (default: as headrace serve)"],
} as const;

/**
 * Finds the server of a command, and the credential for it. Rejects with a CliError that says what to set if no server
 * or key is known.
 */
export async function findConnection(context: CliContext, options: ConnectionOptions): Promise<Connection> {
  const given = givenBaseUrl(options, context.env);
  const key = await givenKey(context, options);
  if (key !== undefined) {
    const baseUrl = given ?? (await localCredentials(context, options)).stored?.baseUrl ?? localBaseUrl;
    return { baseUrl, apiKey: checkedKey(key.text, key.source), keySource: key.source };
  }
  // With `--data-dir`, the caller wants the key stored in that directory and not the login.
  const login = options.dataDir === undefined ? await findLogin(context, given) : undefined;
  if (login) return loginConnection(context, login, given);
  const { dataDir, path, stored } = await localCredentials(context, options);
  const baseUrl = given ?? stored?.baseUrl;
  if (baseUrl === undefined) {
    throw new CliError(
      `No server is configured. Start one with ${startCommand}, which writes ${path}, sign in to one with headrace login --base-url https://…/v1, or set HEADRACE_BASE_URL and HEADRACE_API_KEY.`,
    );
  }
  // A key is sent only to the server that it is stored for.
  if (stored === undefined || new URL(stored.baseUrl).origin !== new URL(baseUrl).origin) {
    throw new CliError(
      `No API key is known for ${baseUrl}. Sign in with headrace login --base-url ${baseUrl}, set HEADRACE_API_KEY, or pipe a key in with --api-key-stdin.`,
    );
  }
  return { baseUrl, apiKey: checkedKey(stored.apiKey, path), keySource: path, storedIn: dataDir };
}

/** Returns the address for commands that need no key: the given address, the last login's, or the local server's. */
export async function findServer(context: CliContext, options: ConnectionOptions): Promise<string> {
  const given = givenBaseUrl(options, context.env);
  if (given !== undefined) return given;
  const login = options.dataDir === undefined ? await findLogin(context, undefined) : undefined;
  return login?.base_url ?? (await localCredentials(context, options)).stored?.baseUrl ?? localBaseUrl;
}

/** Returns the login at this address; without an address, the newest login. */
export async function findLogin(context: CliContext, baseUrl: string | undefined): Promise<StoredLogin | undefined> {
  const logins = await new LoginStore(context.configFolder).read();
  return baseUrl === undefined ? [...logins.values()].at(-1) : logins.get(new URL(baseUrl).origin);
}

function loginConnection(context: CliContext, login: StoredLogin, given: string | undefined): Connection {
  const store = new LoginStore(context.configFolder);
  return {
    baseUrl: given ?? login.base_url,
    apiKey: login.access_token,
    keySource: `your login at ${login.base_url}`,
    login: new LoginTokens({ store, login, nowMs: context.nowMs }),
  };
}

/** Returns the key from standard input or the environment; undefined if neither has a key. */
async function givenKey(
  { input, env }: CliContext,
  { apiKeyStdin }: ConnectionOptions,
): Promise<{ text: string; source: string } | undefined> {
  if (!apiKeyStdin) {
    const text = env["HEADRACE_API_KEY"]?.trim() ?? "";
    return text === "" ? undefined : { text, source: "HEADRACE_API_KEY" };
  }
  const text = (await input.readLine()).trim();
  if (text !== "") return { text, source: "standard input" };
  throw new CliError(
    "--api-key-stdin: standard input has no key. Pipe it in: headrace … --api-key-stdin < key.txt",
    exitCodes.usage,
  );
}

async function localCredentials(context: CliContext, options: ConnectionOptions) {
  const dataDir = await context.dataDir(options.dataDir);
  const path = join(dataDir, "credentials.json");
  return { dataDir, path, stored: await readCredentials(path) };
}

/** Reads --base-url or HEADRACE_BASE_URL; undefined if neither is given. Throws a CliError for an invalid address. */
export function givenBaseUrl(options: { baseUrl?: string | undefined }, env: CliContext["env"]): string | undefined {
  if (options.baseUrl !== undefined) return checkedBaseUrl(options.baseUrl, "--base-url", exitCodes.usage);
  const fromEnv = env["HEADRACE_BASE_URL"]?.trim();
  return fromEnv ? checkedBaseUrl(fromEnv, "HEADRACE_BASE_URL") : undefined;
}

function checkedBaseUrl(text: string, source: string, exitCode: number = exitCodes.failure): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const plain = url?.username === "" && url.password === "" && url.search === "" && url.hash === "";
  if (url === undefined || !plain || !["http:", "https:"].includes(url.protocol)) {
    throw new CliError(
      `${source} must be an http or https address without user name, query or fragment, such as ${localBaseUrl}.`,
      exitCode,
    );
  }
  return trimSlashes(url.href);
}

/** Refuses an invalid key. Otherwise `fetch` would refuse the header and print the key in its error message. */
function checkedKey(key: string, source: string): string {
  if (/^[!-~]+$/.test(key)) return key;
  throw new CliError(`The API key from ${source} has blanks or characters that no key has. Copy it again.`);
}

const credentials = z.object({ base_url: z.string(), api_key: z.string().min(1) });

/** Returns the address and key in a credentials file; undefined if there is no file. */
async function readCredentials(path: string): Promise<{ baseUrl: string; apiKey: string } | undefined> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new CliError(`${path} cannot be read (${code}). It belongs to the user who started headrace serve.`);
  }
  const parsed = credentials.safeParse(parseJson(text));
  if (!parsed.success) {
    throw new CliError(`${path} is damaged. Delete it and start ${startCommand} again, or set HEADRACE_API_KEY.`);
  }
  return { baseUrl: checkedBaseUrl(parsed.data.base_url, path), apiKey: parsed.data.api_key };
}
