// Finds the server that a command is to talk to, and the key for it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "commander";
import { z } from "zod";
import { parseJson } from "./api-request.ts";
import type { CliContext } from "./context.ts";
import { CliError, exitCodes } from "./terminal.ts";

export interface ConnectionOptions {
  baseUrl?: string;
  apiKeyStdin?: boolean;
  dataDir?: string;
}

export interface Connection {
  /** Without a slash at its end; includes `/v1`. */
  baseUrl: string;
  apiKey: string;
  /** Where the key came from, for messages. */
  keySource: string;
  /** The data directory whose credentials.json has the key, where it came from there. */
  storedIn?: string;
}

const localBaseUrl = "http://127.0.0.1:7545/v1";
const startCommand = "headrace serve";

/** Help text on the connection, the same for every command that has one. */
export const connectionHelp = `
Server and key are taken from --base-url and --api-key-stdin, else from
HEADRACE_BASE_URL and HEADRACE_API_KEY, else from credentials.json, which
headrace serve writes into the data directory.`;

/** A key is no option of its own: arguments can be read by every user of the machine. */
export function addConnectionOptions(command: Command): Command {
  return command
    .option("--base-url <url>", "base URL of the server, including /v1")
    .option("--api-key-stdin", "read the API key from standard input")
    .option("--data-dir <path>", "data directory with credentials.json (default: as headrace serve)");
}

/** Rejects with a CliError that says what to set when no server or no key is known. */
export async function findConnection(context: CliContext, options: ConnectionOptions): Promise<Connection> {
  const { env } = context;
  const dataDir = await context.dataDir(options.dataDir);
  const path = join(dataDir, "credentials.json");
  const given = givenBaseUrl(options, env);
  const givenKey = options.apiKeyStdin
    ? { key: (await context.input.readLine()).trim(), source: "standard input" }
    : { key: env["HEADRACE_API_KEY"]?.trim() ?? "", source: "HEADRACE_API_KEY" };
  if (options.apiKeyStdin && givenKey.key === "") {
    throw new CliError(
      "--api-key-stdin: standard input has no key. Pipe it in: headrace … --api-key-stdin < key.txt",
      exitCodes.usage,
    );
  }
  const stored = given !== undefined && givenKey.key !== "" ? undefined : await readCredentials(path);
  const baseUrl = given ?? stored?.baseUrl ?? (givenKey.key === "" ? undefined : localBaseUrl);
  if (baseUrl === undefined) {
    throw new CliError(
      `No server is configured. Start one with ${startCommand}, which writes ${path}, or set HEADRACE_BASE_URL and HEADRACE_API_KEY.`,
    );
  }
  if (givenKey.key !== "")
    return { baseUrl, apiKey: checkedKey(givenKey.key, givenKey.source), keySource: givenKey.source };
  // A key goes only to the server that it was written down for.
  if (stored === undefined || new URL(stored.baseUrl).origin !== new URL(baseUrl).origin) {
    throw new CliError(
      `No API key is known for ${baseUrl}. Set HEADRACE_API_KEY, or pipe the key in with --api-key-stdin.`,
    );
  }
  return { baseUrl, apiKey: checkedKey(stored.apiKey, path), keySource: path, storedIn: dataDir };
}

function givenBaseUrl(options: ConnectionOptions, env: CliContext["env"]): string | undefined {
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
  return url.href.replace(/\/+$/, "");
}

/** The header would be refused by fetch, with the key in the message. */
function checkedKey(key: string, source: string): string {
  if (/^[!-~]+$/.test(key)) return key;
  throw new CliError(`The API key from ${source} has blanks or characters that no key has. Copy it again.`);
}

const credentials = z.object({ base_url: z.string(), api_key: z.string().min(1) });

/** Undefined when there is no file. */
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
