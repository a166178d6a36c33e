// `headrace logout`: ends a login, at the server and on this machine.
import { commandLineAppId } from "../../domain/people/app.ts";
import { command } from "../command.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, interruptible } from "../terminal/terminal.ts";
import { findLogin, givenBaseUrl } from "./client.ts";
import { LoginStore, type StoredLogin } from "./login-store.ts";
import { discover, postForm } from "./oauth-request.ts";
import { namedPerson } from "./whoami.ts";

export const logoutCommand = command({
  name: "logout",
  summary: "end the login of this machine",
  description: "End a login that headrace login made: at the server, and here.",
  options: {
    baseUrl: ["--base-url <url>", "base URL of the server (default: HEADRACE_BASE_URL, else that of the last login)"],
    local: ["--local", "only delete it here; at the server it stays until it expires or is revoked"],
  },
  examples: ["headrace logout", "headrace logout --base-url https://ai.example.com/v1", "headrace logout --local"],
  help: ["Keys are not touched, those made while signed in included: headrace keys revoke."],
  async run({ context, options, terminal }) {
    const login = await findLogin(context, givenBaseUrl(options, context.env));
    if (login === undefined) return terminal.note(await notSignedIn(context));
    const failure = await interruptible((signal) => end(context, login, options.local === true, signal));
    if (failure !== undefined) {
      throw new CliError(
        `The login at ${login.base_url} is deleted here, but the server could not be reached (${failure.replace(/\.$/, "")}). It stays valid there for up to 30 days: revoke the command line tool at ${settingsOf(login)}.`,
      );
    }
    terminal.print(`${namedPerson(login.person)} is signed out of ${login.base_url}.`);
    if (options.local) terminal.note(`At the server the login stays valid: revoke it at ${settingsOf(login)}.`);
    const next = await findLogin(context, undefined);
    if (next) terminal.note(`Commands use your login at ${next.base_url} from now on.`);
  },
});

/**
 * Ends a login under the lock, so that no command renews the login meanwhile. Returns a text if the tokens could not be
 * revoked at the server.
 */
function end(
  { configFolder }: CliContext,
  login: StoredLogin,
  local: boolean,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { origin } = new URL(login.base_url);
  return new LoginStore(configFolder).change(signal, async (logins) => {
    const failure = local ? undefined : await revoke(logins.get(origin) ?? login, signal);
    logins.delete(origin);
    return failure;
  });
}

/**
 * Revokes tokens (RFC 7009). Returns a text about the failure, or undefined if the login has ended. Rejects with the
 * reason of `signal`.
 */
export async function revoke(
  { base_url, refresh_token }: Pick<StoredLogin, "base_url" | "refresh_token">,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const { revocationEndpoint } = await discover(base_url.replace(/\/v1$/, ""), signal);
    const form = { token: refresh_token, token_type_hint: "refresh_token", client_id: commandLineAppId };
    await postForm(revocationEndpoint, form, signal);
    return undefined;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CliError) return error.message;
    throw error;
  }
}

function settingsOf({ base_url }: StoredLogin): string {
  return `${base_url.replace(/\/v1$/, "")}/settings`;
}

async function notSignedIn({ configFolder, env }: CliContext): Promise<string> {
  const others = [...(await new LoginStore(configFolder).read()).values()].map(({ base_url }) => base_url);
  if (others.length > 0) return `You are not signed in there, but at ${others.join(", ")}.`;
  return env["HEADRACE_API_KEY"] ? "You are not signed in; commands use HEADRACE_API_KEY." : "You are not signed in.";
}
