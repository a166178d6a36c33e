// Identifies the app that sends a request: a confidential app by its secret, a public app only by its id.
import type { Environment } from "../../domain/api-key.ts";
import type { App, AppStore, PublishedApp } from "../../domain/people/app.ts";
import type { Origin } from "../../policy/records/audit.ts";
import type { RefusalLog } from "../../policy/records/refusal-log.ts";
import { findClient } from "../first-party.ts";
import { OAuthError } from "../oauth-error.ts";
import type { ClientThrottle } from "./client-throttle.ts";
import { presentedClient } from "./presented-client.ts";

export interface ClientAuthenticationDeps {
  apps: Pick<AppStore, "findApp">;
  /** Reports whether `secret` is one of the app's valid secrets, compared in constant time. */
  matchesSecret(app: App, secret: string): boolean;
  clientThrottle: ClientThrottle;
  refusals: Pick<RefusalLog, "record">;
  /** The environment in which the command line tool acts. */
  environment: Environment;
}

export type RequestOrigin = Origin & { clientAddress: string; requestId: string };

/** Identifies the client. Throws `invalid_client`, `invalid_request`, or `rate_limit_exceeded`. */
export async function authenticateClient(
  authorization: string | null,
  parameters: ReadonlyMap<string, string>,
  origin: RequestOrigin,
  deps: ClientAuthenticationDeps,
): Promise<PublishedApp> {
  const { clientAddress, requestId } = origin;
  const { id, secret } = presentedClient(authorization, parameters);
  const app = await findClient(id, deps.apps, deps.environment);
  await deps.clientThrottle.requireFewFailures(app, clientAddress);
  const fault = app ? faultOf(app, secret, deps) : "unknown";
  if (app && fault === undefined) {
    await deps.clientThrottle.requireClient(app, clientAddress);
    return app;
  }
  await deps.clientThrottle.failed(app, clientAddress);
  const reason = `oauth_client_${fault}`;
  const whose = { keyId: app?.id ?? null, accountId: app?.accountId || null };
  deps.refusals.record({ reason, ...whose, clientAddress, requestId });
  throw new OAuthError("invalid_client", "Client authentication failed: check client_id and secret.", reason);
}

function faultOf(app: App, secret: string | undefined, deps: ClientAuthenticationDeps): string | undefined {
  // A public client that sends a secret is misconfigured, so the request is refused.
  if (app.type === "public") return secret === undefined ? undefined : "public_with_secret";
  if (secret === undefined) return "secret_missing";
  return deps.matchesSecret(app, secret) ? undefined : "secret";
}
