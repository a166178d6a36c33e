// `headrace login`: signs a person in with a browser on any device (OAuth 2.0 device authorization, RFC 8628).
import { z } from "zod";
import { commandLineAppId } from "../../domain/people/app.ts";
import { accountScopes } from "../../domain/scope.ts";
import { command, type OptionValues } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import {
  CliError,
  formatDuration,
  Interrupted,
  interruptible,
  printable,
  type Terminal,
} from "../terminal/terminal.ts";
import { parseJson, understood } from "./api-request.ts";
import { findServer } from "./client.ts";
import { LoginStore, type StoredLogin } from "./login-store.ts";
import { revoke } from "./logout.ts";
import {
  type AuthorizationServer,
  discover,
  type IssuedTokens,
  isOfOrigin,
  OAuthRefusal,
  postForm,
  requestTokens,
} from "./oauth-request.ts";
import { namedPerson, readSession } from "./whoami.ts";

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";
/** The polling intervals of RFC 8628, 3.2 and 3.5. */
const defaultIntervalSeconds = 5;
const slowDownSeconds = 5;
const maxIntervalSeconds = 60;
const frameMs = 120;
/** Time limit for revoking tokens, which is only a cleanup before the command ends. */
const farewellMs = 5_000;

const loginOptions = {
  baseUrl: [
    "--base-url <url>",
    "base URL of the server (default: HEADRACE_BASE_URL, else that of the last login, else the local one)",
  ],
  account: [
    "--account <name>",
    "account to sign in to, by id or name; you choose it in the browser, and it is checked here",
  ],
  open: ["--open", "open the page in a browser of this machine"],
  dataDir: ["--data-dir <path>", "sign in to the local server with this data directory"],
} as const;
type LoginOptions = OptionValues<typeof loginOptions>;

export const loginCommand = command({
  name: "login",
  summary: "sign in as a person",
  description: "Sign in to a Headrace with a browser, here or on any other device.",
  options: loginOptions,
  examples: [
    "headrace login",
    "headrace login --base-url https://ai.example.com/v1 --open",
    `headrace login --account "Web shop"`,
  ],
  help: [
    ({ configFolder }) => `\
The login is stored for you only, one for each server, in ${new LoginStore(configFolder).path}
Commands use the last one until headrace logout. It ends after 30 days without use.`,
  ],
  run: ({ context, options }) => login(context, options),
});

async function login(context: CliContext, options: LoginOptions): Promise<void> {
  const { terminal, configFolder, env } = context;
  const root = (await findServer(context, options)).replace(/\/v1$/, "");
  const store = new LoginStore(configFolder);
  // Reads the file before the person goes to a browser, to report an unreadable file early.
  await store.read();
  const made = await interruptible((signal) => signIn(context, root, options, signal)).catch((error: unknown) => {
    throw error instanceof Interrupted ? error.with("Interrupted. You are not signed in.") : error;
  });
  const { person, account } = made;
  terminal.print(`Signed in to ${made.base_url} as ${namedPerson(person)}, account "${printable(account.name)}".`);
  const first = ["HEADRACE_API_KEY", "HEADRACE_BASE_URL"].filter((name) => env[name]?.trim());
  if (first.length > 0)
    terminal.note(`Commands look at ${first.join(" and ")} first: unset what you do not want used.`);
  terminal.note(terminal.err.dim(`Kept in ${store.path}; headrace logout ends it.`));
}

async function signIn(
  context: CliContext,
  root: string,
  { account, open }: LoginOptions,
  signal: AbortSignal,
): Promise<StoredLogin> {
  const server = await discover(root, signal);
  const device = await authorizeDevice(server, signal);
  show(context, device, account);
  if (open && !context.openPage(device.verification_uri_complete ?? device.verification_uri)) {
    context.terminal.note("No browser could be started here: open the page yourself.");
  }
  const tokens = await whileWaiting(context, device, () => awaitApproval(context, server, device, signal));
  const base_url = `${root}/v1`;
  let replaced: StoredLogin | undefined;
  let made: StoredLogin;
  try {
    made = await identified(base_url, tokens, context.nowMs(), signal);
    requireAccount(made, account);
    replaced = await keep(context, made, signal);
  } catch (error) {
    // Tokens that are not stored are revoked, also after Ctrl-C: the login must not remain at the server.
    await revoke({ base_url, refresh_token: tokens.refresh_token }, AbortSignal.timeout(farewellMs)).catch(() => {});
    throw error;
  }
  // An earlier login is revoked. If the server does not answer, the new login still succeeds.
  if (replaced) await revoke(replaced, AbortSignal.timeout(farewellMs)).catch(() => {});
  return made;
}

const deviceAuthorization = z.object({
  device_code: z.string().min(1),
  user_code: z.string().min(1),
  verification_uri: z.string(),
  verification_uri_complete: z.string().optional(),
  expires_in: z.number().positive(),
  interval: z.number().positive().default(defaultIntervalSeconds),
});

type DeviceAuthorization = z.infer<typeof deviceAuthorization>;

/**
 * Requests a device code. Rejects with a CliError also if the verification page is not on the same server, because the
 * person would type the code there.
 */
async function authorizeDevice(
  { issuer, deviceEndpoint }: AuthorizationServer,
  signal: AbortSignal,
): Promise<DeviceAuthorization> {
  const form = { client_id: commandLineAppId, scope: accountScopes.join(" ") };
  const json = parseJson(await postForm(deviceEndpoint, form, signal));
  const device = understood(deviceAuthorization, json, { baseUrl: issuer }, "device authorization");
  const pages = [device.verification_uri, device.verification_uri_complete ?? device.verification_uri];
  if (pages.every((page) => isOfOrigin(page, issuer))) return device;
  throw new CliError(`The server at ${issuer} names a page that is not its own. Do not type a code there.`);
}

function show({ terminal }: CliContext, device: DeviceAuthorization, account: string | undefined): void {
  const { bold, dim } = terminal.err;
  const choice = account === undefined ? "" : `, and choose the account "${printable(account)}" there`;
  terminal.note(`
  Open this page on any device${choice}:

      ${bold(printable(device.verification_uri))}

  and enter this code:

      ${bold(printable(device.user_code))}
`);
  const { verification_uri_complete: complete } = device;
  if (complete !== undefined) terminal.note(dim(`  With the code in it: ${printable(complete)}\n`));
}

/** Polls as fast as the server allows, until the person has decided or the code has expired. */
async function awaitApproval(
  context: CliContext,
  server: AuthorizationServer,
  { device_code, expires_in, interval }: DeviceAuthorization,
  signal: AbortSignal,
): Promise<IssuedTokens> {
  const form = { grant_type: deviceGrant, device_code, client_id: commandLineAppId };
  const endMs = context.nowMs() + expires_in * 1000;
  let seconds = interval;
  for (;;) {
    await context.pause(Math.max(0, Math.min(seconds * 1000, endMs - context.nowMs())), signal);
    if (context.nowMs() >= endMs) throw new CliError("The code has expired. For another one: headrace login");
    try {
      return await requestTokens(server, form, signal);
    } catch (error) {
      seconds = nextInterval(error, seconds);
    }
  }
}

/** Returns the seconds until the next poll. Throws if there is nothing more to wait for. */
function nextInterval(error: unknown, seconds: number): number {
  if (error instanceof OAuthRefusal) {
    const { code, status } = error;
    if (code === "authorization_pending") return seconds;
    if (code === "slow_down") return seconds + slowDownSeconds;
    if (code === "access_denied") throw new CliError("The sign-in was denied in the browser.");
    if (code === "expired_token") throw new CliError("The code has expired. For another one: headrace login");
    if (status < 500 && status !== 429) throw error;
  } else if (!(error instanceof CliError) || error instanceof Interrupted) {
    throw error;
  }
  // RFC 8628, 3.5: an unreachable server is polled less often, and the person need not start again.
  return Math.max(seconds, Math.min(seconds * 2, maxIntervalSeconds));
}

/** Shows until when the command waits. In a log, this is a single line. */
async function whileWaiting<Result>(
  { terminal, nowMs }: CliContext,
  { expires_in }: DeviceAuthorization,
  work: () => Promise<Result>,
): Promise<Result> {
  const endMs = nowMs() + expires_in * 1000;
  if (!terminal.interactive) {
    terminal.note(`Waiting; the code is good for ${formatDuration(expires_in)}.`);
    return work();
  }
  let frame = 0;
  const draw = () => {
    const remaining = formatDuration((endMs - nowMs()) / 1000);
    terminal.stderr.write(`\r\x1b[2K  ${spinner(terminal, frame++)} Waiting; the code is good for ${remaining}`);
  };
  draw();
  const timer = setInterval(draw, frameMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    terminal.stderr.write("\r\x1b[2K");
  }
}

function spinner({ unicode }: Terminal, frame: number): string {
  const frames = unicode ? "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" : "|/-\\";
  return frames[frame % frames.length] ?? "";
}

async function identified(
  base_url: string,
  { access_token, refresh_token, expires_in }: IssuedTokens,
  nowMs: number,
  signal: AbortSignal,
): Promise<StoredLogin> {
  const connection = { baseUrl: base_url, apiKey: access_token, keySource: "this sign-in" };
  const { person, account } = await readSession(connection, signal);
  const { id, email, name } = person;
  const expires_at = Math.floor(nowMs / 1000 + expires_in);
  return { base_url, access_token, expires_at, refresh_token, person: { id, email, name }, account };
}

function requireAccount({ account }: StoredLogin, wanted: string | undefined): void {
  if (wanted === undefined || wanted === account.id || wanted === account.name) return;
  throw new CliError(
    `You chose the account "${account.name}" (${account.id}) in the browser, not "${wanted}". You are not signed in; try again: headrace login`,
  );
}

/** Stores a login. Returns the earlier login at the same server that it replaced, if any. */
function keep({ configFolder }: CliContext, made: StoredLogin, signal: AbortSignal): Promise<StoredLogin | undefined> {
  const { origin } = new URL(made.base_url);
  return new LoginStore(configFolder).change(signal, async (logins) => {
    const replaced = logins.get(origin);
    // The login is deleted and inserted again, so that it becomes the last: without a named server, the last login is
    // used.
    logins.delete(origin);
    logins.set(origin, made);
    return replaced;
  });
}
