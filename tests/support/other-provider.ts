// An authorization server by others, `oidc-provider`, in this process: to compare its verdicts with ours.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export interface OtherClient {
  id: string;
  secret?: string;
  redirectUris: readonly string[];
  scopes: readonly string[];
  native?: boolean;
}

export interface OtherProvider {
  url: string;
  decideDevice(userCode: string, decision: "allow" | "deny"): Promise<void>;
  close(): void;
}

const accountId = "usr_1";
const deviceGrantType = "urn:ietf:params:oauth:grant-type:device_code";

/** Sets it up as ours is: PKCE for public clients alone, rotating refresh tokens, a code for 60 s, a device code for 10 minutes. */
export async function startOtherProvider(
  clients: readonly OtherClient[],
  scopes: readonly string[],
): Promise<OtherProvider> {
  // The address is known once it listens, and is part of its configuration.
  const server = createServer((req, res) => handle(req, res));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = quietly(() => new Provider(url, configuration(clients, scopes)));
  const callback = provider.callback();
  const handle = (req: IncomingMessage, res: ServerResponse) => {
    if (!req.url?.startsWith("/interaction/")) return callback(req, res);
    void interact(provider, req, res);
  };
  return {
    url,
    async decideDevice(userCode, decision) {
      const code = await provider.DeviceCode.findByUserCode(userCode.replaceAll("-", ""));
      if (!code) throw new Error(`${userCode} is not waiting.`);
      if (decision === "deny") Object.assign(code, { error: "access_denied", errorDescription: "denied" });
      else {
        const scope = code.params.scope ?? "";
        Object.assign(code, { accountId, scope, grantId: await newGrant(provider, code.clientId, scope) });
      }
      await code.save();
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function configuration(clients: readonly OtherClient[], scopes: readonly string[]): object {
  return {
    clients: clients.map(({ id, secret, redirectUris, scopes: allowed, native = false }) => ({
      client_id: id,
      ...(secret === undefined ? {} : { client_secret: secret }),
      token_endpoint_auth_method: secret === undefined ? "none" : "client_secret_basic",
      application_type: native ? "native" : "web",
      redirect_uris: redirectUris,
      response_types: ["code"],
      grant_types: ["authorization_code", "refresh_token", deviceGrantType],
      scope: allowed.join(" "),
    })),
    scopes,
    findAccount: (_ctx: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    expiresWithSession: () => false,
    allowOmittingSingleRegisteredRedirectUri: true,
    features: {
      devInteractions: { enabled: false },
      deviceFlow: { enabled: true },
      introspection: { enabled: true },
      revocation: { enabled: true },
    },
    ttl: {
      ...{ AuthorizationCode: 60, AccessToken: 3_600, RefreshToken: 30 * 86_400, DeviceCode: 600 },
      ...{ Interaction: 3_600, Session: 90 * 86_400, Grant: 90 * 86_400 },
    },
    cookies: { keys: ["a key of this test alone"] },
  };
}

/** Signs in whoever comes, and lets them allow, or with `?decision=deny` deny, what they are asked. */
async function interact(provider: Provider, req: IncomingMessage, res: ServerResponse): Promise<void> {
  const { prompt, params } = await provider.interactionDetails(req, res);
  const isDenied = req.url?.includes("decision=deny") ?? false;
  if (prompt.name === "login") return provider.interactionFinished(req, res, { login: { accountId } });
  if (isDenied) return provider.interactionFinished(req, res, { error: "access_denied" });
  const grantId = await newGrant(provider, params.client_id, params.scope ?? "");
  return provider.interactionFinished(req, res, { consent: { grantId } });
}

async function newGrant(provider: Provider, clientId: string, scope: string): Promise<string> {
  const grant = new provider.Grant({ accountId, clientId });
  grant.addOIDCScope(scope);
  return grant.save();
}

/** It warns that it is set up for development, which it is. */
function quietly<Result>(work: () => Result): Result {
  const { warn, info } = console;
  console.warn = console.info = () => {};
  try {
    return work();
  } finally {
    Object.assign(console, { warn, info });
  }
}
