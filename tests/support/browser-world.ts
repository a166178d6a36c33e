// What tests in a real browser begin with: the operator, an app with its callback, a device.
import { createHash, randomBytes } from "node:crypto";
import { commandLineAppId } from "../../src/domain/people/app.ts";
import type { CreateAppRequest } from "../../src/wire/people/apps.ts";
import type { Person } from "./browser.ts";
import { certificate } from "./chromium.ts";
import type { TestServer } from "./headrace.ts";
import { askAsApp, codeFields, type RegisteredApp, registerApp } from "./oauth-apps.ts";

export const operator: Person = { email: "ada@example.test", name: "Ada Lovelace", password: "correct horse battery" };

/** `localhost`, as passkeys need a name. */
export function pagesOf(server: Pick<TestServer, "url">): string {
  return server.url.replace("127.0.0.1", "localhost");
}

/** An app elsewhere, by https and, as programs on people's own machines have it, by http: it notes what browsers bring it. */
export function startCallback() {
  const seen: URL[] = [];
  const fetch = (request: Request) => {
    const url = new URL(request.url);
    if (url.pathname === "/callback") seen.push(url);
    const html = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>App</title><h1>Back at the app</h1></html>`;
    return new Response(html, { headers: { "content-type": "text/html" } });
  };
  const { key, cert } = certificate;
  const site = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: { key, cert }, fetch });
  const program = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  return {
    seen,
    hosts: [`127.0.0.1:${site.port}`, `127.0.0.1:${program.port}`],
    redirectUri: `https://127.0.0.1:${site.port}/callback`,
    loopbackUri: `http://127.0.0.1:${program.port}/callback`,
    stop: () => Promise.all([site.stop(true), program.stop(true)]),
  };
}

export interface TestApp extends RegisteredApp {
  /** Path of an authorization request, with changes. */
  authorize(changes?: Readonly<Record<string, string>>): string;
  /** What the token endpoint gives for a code. */
  redeem(code: string): Promise<Record<string, unknown>>;
}

/** An app that is registered, as `registerApp` does it, and uses one verifier for all its requests. */
export async function testApp(server: TestServer, settings: Partial<CreateAppRequest>): Promise<TestApp> {
  const app = await registerApp(server, settings);
  const verifier = randomBytes(32).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  return {
    ...app,
    authorize(changes = {}) {
      const asked = {
        ...{ response_type: "code", client_id: app.id, redirect_uri: app.redirectUri, state: "s-1" },
        ...{ scope: "chat:write models:read", code_challenge: challenge, code_challenge_method: "S256" },
        ...changes,
      };
      return `/oauth/authorize?${new URLSearchParams(asked)}`;
    },
    redeem: async (code) => (await askAsApp(server.url, "token", app, codeFields({ code, verifier }, app))).body,
  };
}

export interface Device {
  deviceCode: string;
  userCode: string;
  /** Path and query of the address that holds the code already. */
  complete: string;
}

type TestClient = Pick<RegisteredApp, "id" | "secret">;

const commandLine = { id: commandLineAppId, secret: "" };

/** A device that asks for the way in; `headrace login` unless said otherwise. */
export async function startDevice(server: Pick<TestServer, "url">, app: TestClient = commandLine): Promise<Device> {
  const { body } = await askAsApp(server.url, "device_authorization", app, {});
  const { pathname, search } = new URL(String(body["verification_uri_complete"]));
  return { deviceCode: String(body["device_code"]), userCode: String(body["user_code"]), complete: pathname + search };
}

/** What the device gets once the person has decided. */
export async function deviceAnswer(
  server: Pick<TestServer, "url">,
  { deviceCode }: Device,
  app: TestClient = commandLine,
): Promise<Record<string, unknown>> {
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  return (await askAsApp(server.url, "token", app, { grant_type, device_code: deviceCode })).body;
}
