// Requests of the command line tool, as an OAuth client, to a server's authorization endpoints.
import { z } from "zod";
import { CliError, printable } from "../terminal/terminal.ts";
import { bodyText, parseJson, send, understood } from "./api-request.ts";

/** The endpoints of a server, which all have the server's origin. */
export interface AuthorizationServer {
  /** The server's address without `/v1`. */
  issuer: string;
  tokenEndpoint: string;
  deviceEndpoint: string;
  revocationEndpoint: string;
}

/** An OAuth error response (RFC 6749, 5.2), or an error response that cannot be parsed. */
export class OAuthRefusal extends CliError {
  readonly status: number;
  /** The OAuth error code, such as `invalid_grant`. Undefined if the response has another format. */
  readonly code: string | undefined;

  constructor(message: string, status: number, code: string | undefined) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

const metadata = z.object({
  issuer: z.string(),
  token_endpoint: z.string(),
  device_authorization_endpoint: z.string(),
  revocation_endpoint: z.string(),
});

/**
 * Reads the metadata of an authorization server (RFC 8414). `root` is the address without `/v1`. Rejects with a
 * CliError if the metadata names another issuer or another server's endpoints (RFC 8414, 3.3): an impostor could
 * otherwise get the other server's tokens.
 */
export async function discover(root: string, signal: AbortSignal): Promise<AuthorizationServer> {
  const response = await send({ baseUrl: root }, "/.well-known/oauth-authorization-server", signal);
  const text = await bodyText(response, root, signal);
  if (!response.ok) {
    throw new CliError(
      `${root} offers no sign-in (${response.status}). Is it the address of a Headrace of this version?`,
    );
  }
  const found = understood(metadata, parseJson(text), { baseUrl: root }, "description of a sign-in");
  if (found.issuer !== root) {
    const issuer = printable(found.issuer);
    throw new CliError(`The server at ${root} is known as ${issuer}. Sign in there: --base-url ${issuer}/v1`);
  }
  const own = (name: "token_endpoint" | "device_authorization_endpoint" | "revocation_endpoint") => {
    if (isOfOrigin(found[name], root)) return found[name];
    throw new CliError(`The server at ${root} names a ${name} that is not its own. Nothing was sent there.`);
  };
  return {
    issuer: root,
    tokenEndpoint: own("token_endpoint"),
    deviceEndpoint: own("device_authorization_endpoint"),
    revocationEndpoint: own("revocation_endpoint"),
  };
}

/** Reports whether `address` is http or https and has the same origin as `root`. */
export function isOfOrigin(address: string, root: string): boolean {
  return URL.canParse(address) && new URL(address).origin === new URL(root).origin;
}

/**
 * Returns the text of a successful response. Rejects with an OAuthRefusal for any other status, and with a CliError if
 * no response arrives.
 */
export async function postForm(
  endpoint: string,
  form: Readonly<Record<string, string>>,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<string> {
  const { origin, pathname, search } = new URL(endpoint);
  const request = { method: "POST", form, ...(timeoutMs === undefined ? {} : { timeoutMs }) } as const;
  const response = await send({ baseUrl: origin }, pathname + search, signal, request);
  const text = await bodyText(response, origin, signal);
  if (response.ok) return text;
  const refused = refusal.safeParse(parseJson(text)).data;
  const reason = refused?.error_description ?? refused?.error ?? "with something that is no answer of a sign-in";
  throw new OAuthRefusal(`${origin}: ${printable(reason)} (${response.status})`, response.status, refused?.error);
}

const refusal = z.object({ error: z.string(), error_description: z.string().optional().catch(undefined) });

const tokens = z.object({
  access_token: z.string().regex(/^[!-~]+$/),
  expires_in: z.number().positive(),
  refresh_token: z.string().min(1),
});

export type IssuedTokens = z.infer<typeof tokens>;

/** Requests tokens (RFC 6749, 5.1). Rejects with an OAuthRefusal if the server refuses. */
export async function requestTokens(
  { issuer, tokenEndpoint }: Pick<AuthorizationServer, "issuer" | "tokenEndpoint">,
  form: Readonly<Record<string, string>>,
  signal: AbortSignal,
  timeoutMs?: number,
): Promise<IssuedTokens> {
  const json = parseJson(await postForm(tokenEndpoint, form, signal, timeoutMs));
  return understood(tokens, json, { baseUrl: issuer }, "token answer");
}
