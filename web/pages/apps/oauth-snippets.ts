// Code examples for an app: the authorize URL, a sign-in from a shell, and the device flow.
import type { App } from "../../api/types.ts";
import { shellWord } from "../../parts/secrets/snippet-text.ts";

interface OAuthSnippet {
  name: string;
  code: string;
}

export const authorizeUrlName = "Authorize URL";

type Described = Pick<App, "client_id" | "type" | "redirect_uris" | "scopes">;

/** Returns examples for an app. `issuer` is the server's address without a path; `secret` defaults to a placeholder. */
export function oauthSnippetsOf(app: Described, issuer: string, secret = "hrs_…"): OAuthSnippet[] {
  const [redirectUri] = app.redirect_uris;
  const device = { name: "Device", code: deviceFlow(app, issuer, secret) };
  if (redirectUri === undefined) return [device];
  return [
    {
      name: authorizeUrlName,
      code: authorizeUrl(app, issuer, redirectUri, { state: "STATE", challenge: "CHALLENGE" }),
    },
    { name: "Shell", code: shell(app, issuer, redirectUri, secret) },
    ...(app.type === "public" ? [device] : []),
  ];
}

interface Proof {
  state: string;
  challenge: string;
}

function authorizeUrl(app: Described, issuer: string, redirectUri: string, { state, challenge }: Proof): string {
  const asked = [
    "response_type=code",
    `client_id=${app.client_id}`,
    `redirect_uri=${encodeURIComponent(redirectUri)}`,
    `scope=${encodeURIComponent(app.scopes.join(" "))}`,
    `state=${state}`,
    `code_challenge=${challenge}`,
    "code_challenge_method=S256",
  ];
  return `${issuer}/oauth/authorize?${asked.join("&")}`;
}

function shell(app: Described, issuer: string, redirectUri: string, secret: string): string {
  const url = authorizeUrl(app, issuer, redirectUri, { state: "$STATE", challenge: "$CHALLENGE" });
  return [
    "# New values for each sign-in",
    "VERIFIER=$(openssl rand -base64 48 | tr '+/' '-_' | tr -d '=\\n')",
    "CHALLENGE=$(printf %s \"$VERIFIER\" | openssl dgst -sha256 -binary | openssl base64 | tr '+/' '-_' | tr -d '=\\n')",
    "STATE=$(openssl rand -hex 16)",
    "",
    "# Open this in the person's browser",
    `echo "${url}"`,
    "",
    "# The browser returns with a code. Exchange the code within 60 seconds.",
    "CODE='the code'",
    `curl '${issuer}/oauth/token' ${clientOf(app, secret)} \\`,
    '  -d grant_type=authorization_code -d code="$CODE" -d code_verifier="$VERIFIER" \\',
    `  --data-urlencode ${shellWord(`redirect_uri=${redirectUri}`)}`,
  ].join("\n");
}

function deviceFlow(app: Described, issuer: string, secret: string): string {
  return [
    "# Show the person the address and the code from the answer",
    `curl '${issuer}/oauth/device_authorization' ${clientOf(app, secret)} \\`,
    `  --data-urlencode ${shellWord(`scope=${app.scopes.join(" ")}`)}`,
    "",
    "# Then poll every 5 seconds",
    "DEVICE_CODE='device_code from the answer'",
    `curl '${issuer}/oauth/token' ${clientOf(app, secret)} -d device_code="$DEVICE_CODE" \\`,
    "  -d grant_type=urn:ietf:params:oauth:grant-type:device_code",
  ].join("\n");
}

function clientOf({ type, client_id: id }: Described, secret: string): string {
  return type === "public" ? `-d client_id=${id}` : `-u '${id}:${secret}'`;
}
