// Two independent OAuth libraries, and a client that has read nothing but the specification, against a running server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createRemoteJWKSet, jwtVerify } from "jose";
import * as oauth from "oauth4webapi";
import * as openid from "openid-client";
import { allow, Browser, decideDevice, setUp, signIn } from "../support/browser.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { type RegisteredApp, redirectUri, registerApp } from "../support/oauth-apps.ts";

const scope = "chat:write models:read";
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";
const insecure = { [oauth.allowInsecureRequests]: true };
const clock = shiftedClock();

let server: TestServer;
let olga: Browser;
let olgaId: string;
/** A program on Olga's computer: what it hears at its loopback address, on a port that nobody registered. */
let listener: Bun.Server<undefined>;
const heard: URL[] = [];
let web: RegisteredApp;
let native: RegisteredApp;

beforeAll(async () => {
  listener = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      heard.push(new URL(request.url));
      return new Response("You can close this page.");
    },
  });
  server = await startHeadrace({ clock });
  olga = await setUp(server, { more: [listener.url.origin] });
  const session = (await (await olga.request("/v1/session")).json()) as { person: { id: string } };
  olgaId = session.person.id;
  web = await registerApp(server, { name: "Notes" });
  native = await registerApp(server, {
    name: "Pocket",
    type: "public",
    redirect_uris: ["http://127.0.0.1:1/callback"],
  });
});

afterAll(async () => {
  await listener.stop(true);
  await server[Symbol.asyncDispose]();
});

/** Status of an API request with the token. */
async function modelsWith(token: string): Promise<number> {
  return (await fetch(`${server.baseUrl}/models`, { headers: { authorization: `Bearer ${token}` } })).status;
}

/** Where the browser comes back to the app with the answer to `request`. */
async function answered(request: URL): Promise<URL> {
  const isNative = request.searchParams.get("client_id") === native.id;
  if (!isNative) return allow(olga, request);
  await olga.open(request);
  const page = await olga.press("Allow");
  expect(page.text).toBe("You can close this page.");
  expect(page.url.href).toBe(heard.at(-1)?.href ?? "");
  return page.url;
}

interface Client {
  what: string;
  app(): RegisteredApp;
  redirect(): string;
}

const webClient = { app: () => web, redirect: () => redirectUri };
const nativeClient = { app: () => native, redirect: () => `${listener.url.origin}/callback` };

/** All that a client of the API has to be told is its base URL: the rest begins at its first 401 (RFC 9728, 5.1). */
async function resourceServer(): Promise<oauth.ResourceServer> {
  const refused = await oauth
    .protectedResourceRequest("nonsense", "GET", new URL(`${server.baseUrl}/models`), undefined, undefined, insecure)
    .catch((error: unknown) => error);
  if (!(refused instanceof oauth.WWWAuthenticateChallengeError)) throw new Error("There was no challenge.");
  expect(refused.status).toBe(401);
  const [challenge] = refused.cause;
  expect(challenge).toMatchObject({ scheme: "bearer", parameters: { error: "invalid_token" } });
  const metadata = await fetch(challenge?.parameters["resource_metadata"] ?? "");
  return oauth.processResourceDiscoveryResponse(new URL(server.baseUrl), metadata);
}

async function issuerOfResource(): Promise<URL> {
  const { authorization_servers: servers, ...resource } = await resourceServer();
  expect(servers).toEqual([server.url]);
  expect(resource).toMatchObject({ resource: server.baseUrl, bearer_methods_supported: ["header"] });
  return new URL(servers?.[0] ?? "");
}

describe("oauth4webapi", () => {
  async function discovered(): Promise<oauth.AuthorizationServer> {
    const issuer = await issuerOfResource();
    const response = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
    return oauth.processDiscoveryResponse(issuer, response);
  }

  async function signedIn(as: oauth.AuthorizationServer, given: Client, authentication: oauth.ClientAuth) {
    const client: oauth.Client = { client_id: given.app().id };
    const [verifier, state] = [oauth.generateRandomCodeVerifier(), oauth.generateRandomState()];
    const request = new URL(as.authorization_endpoint ?? "");
    request.search = new URLSearchParams({
      ...{ response_type: "code", client_id: client.client_id, redirect_uri: given.redirect(), scope, state },
      ...{ code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256" },
    }).toString();
    const callback = await answered(request);
    expect(callback.href).toStartWith(`${given.redirect()}?`);
    const parameters = oauth.validateAuthResponse(as, client, callback, state);
    const { authorizationCodeGrantRequest: redeem } = oauth;
    const response = await redeem(as, client, authentication, parameters, given.redirect(), verifier, insecure);
    return { client, callback, tokens: await oauth.processAuthorizationCodeResponse(as, client, response) };
  }

  const ways: (Client & { authentication: () => oauth.ClientAuth })[] = [
    { what: "client_secret_basic", ...webClient, authentication: () => oauth.ClientSecretBasic(web.secret) },
    { what: "client_secret_post", ...webClient, authentication: () => oauth.ClientSecretPost(web.secret) },
    { what: "no secret, at a loopback port of the moment", ...nativeClient, authentication: oauth.None },
  ];

  test.each(ways)(
    "signs a person in with oauth4webapi by code and PKCE with $what, refreshes, and revokes",
    async ({ authentication, ...given }) => {
      const as = await discovered();
      const { client, tokens: first } = await signedIn(as, given, authentication());
      expect(first).toMatchObject({ token_type: "bearer", expires_in: 3600, scope });
      expect(await modelsWith(first.access_token)).toBe(200);

      const refresh = async (token: string) => {
        const response = await oauth.refreshTokenGrantRequest(as, client, authentication(), token, insecure);
        return oauth.processRefreshTokenResponse(as, client, response);
      };
      const second = await refresh(first.refresh_token ?? "");
      expect(second.refresh_token).not.toBe(first.refresh_token);
      expect(await modelsWith(second.access_token)).toBe(200);

      const ending = second.refresh_token ?? "";
      const revoked = await oauth.revocationRequest(as, client, authentication(), ending, insecure);
      await oauth.processRevocationResponse(revoked);
      expect(await modelsWith(first.access_token)).toBe(401);
      expect(await modelsWith(second.access_token)).toBe(401);
      await expect(refresh(second.refresh_token ?? "")).rejects.toMatchObject({ error: "invalid_grant", status: 400 });
    },
  );

  test("lets oauth4webapi accept an answer only for its sign-in at this server", async () => {
    const as = await discovered();
    expect(as.authorization_response_iss_parameter_supported).toBe(true);
    const { client, callback } = await signedIn(as, { what: "", ...webClient }, oauth.ClientSecretBasic(web.secret));
    expect(callback.searchParams.get("iss")).toBe(server.url);
    const state = callback.searchParams.get("state") ?? "";
    const judged = (issuer: string, wanted: string, url = callback) =>
      oauth.validateAuthResponse({ ...as, issuer }, client, url, wanted);
    expect(judged(server.url, state).get("code")).not.toBeEmpty();
    expect(() => judged("https://other.example", state)).toThrow('unexpected "iss"');
    expect(() => judged(server.url, "another")).toThrow('unexpected "state"');
    const unsigned = new URL(callback);
    unsigned.searchParams.delete("iss");
    expect(() => judged(server.url, state, unsigned)).toThrow('"iss" (issuer) missing');
  });

  test("returns a person's refusal to the app with state and iss", async () => {
    const as = await discovered();
    const client = { client_id: native.id };
    const request = new URL(as.authorization_endpoint ?? "");
    request.search = new URLSearchParams({
      ...{ response_type: "code", client_id: native.id, redirect_uri: nativeClient.redirect(), state: "s-1" },
      ...{ code_challenge: await oauth.calculatePKCECodeChallenge("v".repeat(43)), code_challenge_method: "S256" },
    }).toString();
    await olga.open(request);
    const { url } = await olga.press("Deny");
    expect(() => oauth.validateAuthResponse(as, client, url, "s-1")).toThrow(oauth.AuthorizationResponseError);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      error: "access_denied",
      state: "s-1",
      iss: server.url,
    });
  });

  test("lets oauth4webapi introspect its own tokens only", async () => {
    const as = await discovered();
    const authentication = oauth.ClientSecretBasic(web.secret);
    const { client, tokens } = await signedIn(as, { what: "", ...webClient }, authentication);
    const reported = async (token: string) => {
      const response = await oauth.introspectionRequest(as, client, authentication, token, insecure);
      return oauth.processIntrospectionResponse(as, client, response);
    };
    const about = { active: true, client_id: web.id, sub: olgaId, scope, iss: server.url };
    expect(await reported(tokens.access_token)).toMatchObject({ ...about, aud: server.baseUrl, token_type: "Bearer" });
    expect(await reported(tokens.refresh_token ?? "")).toMatchObject(about);
    const { tokens: foreign } = await signedIn(as, { what: "", ...nativeClient }, oauth.None());
    expect(await reported(foreign.access_token)).toEqual({ active: false });
    await oauth.revocationRequest(as, client, authentication, tokens.access_token, insecure);
    expect(await reported(tokens.access_token)).toEqual({ active: false });
    expect(await reported(tokens.refresh_token ?? "")).toEqual({ active: false });
  });

  // hardening: A10
  test("issues access tokens by RFC 9068 that jose verifies with the published keys", async () => {
    const as = await discovered();
    const { tokens } = await signedIn(as, { what: "", ...webClient }, oauth.ClientSecretPost(web.secret));
    const request = new Request(`${server.baseUrl}/models`, {
      headers: { authorization: `Bearer ${tokens.access_token}` },
    });
    const claims = await oauth.validateJwtAccessToken(as, request, server.baseUrl, insecure);
    expect(claims).toMatchObject({ iss: server.url, sub: olgaId, client_id: web.id, scope });
    expect(claims.exp - claims.iat).toBe(3600);
    const keys = createRemoteJWKSet(new URL(as.jwks_uri ?? ""));
    const wanted = { issuer: server.url, audience: server.baseUrl, typ: "at+jwt" };
    const { payload, protectedHeader } = await jwtVerify(tokens.access_token, keys, wanted);
    expect(payload).toEqual({ ...claims });
    expect(["ES256", "EdDSA"]).toContain(protectedHeader.alg);
    await expect(oauth.validateJwtAccessToken(as, request, "https://other.example/v1", insecure)).rejects.toThrow();
  });

  test.each([
    { what: "public", app: () => native, authentication: oauth.None },
    { what: "confidential", app: () => web, authentication: () => oauth.ClientSecretBasic(web.secret) },
  ])("authorizes a device of a $what app after waiting and slowing down", async ({ app, authentication }) => {
    const as = await discovered();
    const client = { client_id: app().id };
    const asked = await oauth.deviceAuthorizationRequest(as, client, authentication(), { scope }, insecure);
    const device = await oauth.processDeviceAuthorizationResponse(as, client, asked);
    expect(device).toMatchObject({ verification_uri: `${server.url}/device`, interval: 5 });
    const poll = async () => {
      const { device_code } = device;
      const response = await oauth.deviceCodeGrantRequest(as, client, authentication(), device_code, insecure);
      return oauth.processDeviceCodeResponse(as, client, response);
    };
    expect(await oauthError(poll())).toBe("authorization_pending");
    expect(await oauthError(poll())).toBe("slow_down");
    await decideDevice(olga, device.user_code);
    clock.shift(10);
    const tokens = await poll();
    expect(tokens.scope).toBe(scope);
    expect(await modelsWith(tokens.access_token)).toBe(200);
    expect(await oauthError(poll())).toBe("invalid_grant");
  });
});

async function oauthError(answer: Promise<unknown>): Promise<string> {
  try {
    await answer;
  } catch (error) {
    if (error instanceof Error && "error" in error) return String(error.error);
    throw error;
  }
  return "none";
}

describe("openid-client", () => {
  const secretPost = () => openid.ClientSecretPost(web.secret);
  const secretBasic = () => openid.ClientSecretBasic(web.secret);

  async function discovered(given: Pick<Client, "app">, authentication: openid.ClientAuth) {
    return openid.discovery(await issuerOfResource(), given.app().id, undefined, authentication, {
      ...{ algorithm: "oauth2", execute: [openid.allowInsecureRequests] },
    });
  }

  async function signedIn(config: openid.Configuration, given: Client) {
    const [pkceCodeVerifier, expectedState] = [openid.randomPKCECodeVerifier(), openid.randomState()];
    const request = openid.buildAuthorizationUrl(config, {
      ...{ redirect_uri: given.redirect(), scope, state: expectedState, code_challenge_method: "S256" },
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    });
    return openid.authorizationCodeGrant(config, await answered(request), { pkceCodeVerifier, expectedState });
  }

  const ways: (Client & { authentication: () => openid.ClientAuth })[] = [
    { what: "client_secret_basic", ...webClient, authentication: secretBasic },
    { what: "client_secret_post", ...webClient, authentication: secretPost },
    { what: "no secret, at a loopback port of the moment", ...nativeClient, authentication: openid.None },
  ];

  test.each(ways)(
    "signs a person in with openid-client by code and PKCE with $what, refreshes, introspects and revokes",
    async ({ authentication, ...given }) => {
      const config = await discovered(given, authentication());
      const first = await signedIn(config, given);
      expect(first).toMatchObject({ token_type: "bearer", scope });
      expect(first.expiresIn()).toBeWithin(3590, 3601);
      const second = await openid.refreshTokenGrant(config, first.refresh_token ?? "");
      expect(second.refresh_token).not.toBe(first.refresh_token);
      expect(await modelsWith(second.access_token)).toBe(200);

      const reported = () => openid.tokenIntrospection(config, second.access_token);
      if (given.app() === web) expect(await reported()).toMatchObject({ active: true, client_id: web.id, sub: olgaId });
      // RFC 7662, 2.1: not for whoever cannot prove who asks.
      else await expect(reported()).rejects.toMatchObject({ status: 401 });

      await openid.tokenRevocation(config, second.access_token);
      expect(await modelsWith(second.access_token)).toBe(401);
      expect(await oauthError(openid.refreshTokenGrant(config, second.refresh_token ?? ""))).toBe("invalid_grant");
      if (given.app() === web) expect(await reported()).toEqual({ active: false });
    },
  );

  test("refuses a code with another verifier, redirect URI or state", async () => {
    const config = await discovered(webClient, secretBasic());
    const pkceCodeVerifier = openid.randomPKCECodeVerifier();
    const request = openid.buildAuthorizationUrl(config, {
      ...{ redirect_uri: redirectUri, scope, state: "s-1", code_challenge_method: "S256" },
      code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
    });
    const redeem = (callback: URL, verifier: string, expectedState = "s-1") =>
      openid.authorizationCodeGrant(config, callback, { pkceCodeVerifier: verifier, expectedState });
    const callback = await allow(olga, request);
    expect(await oauthError(redeem(callback, openid.randomPKCECodeVerifier()))).toBe("invalid_grant");
    const elsewhere = new URL(`https://notes.example/other${callback.search}`);
    expect(await oauthError(redeem(elsewhere, pkceCodeVerifier))).toBe("invalid_grant");
    await expect(redeem(callback, pkceCodeVerifier, "s-2")).rejects.toThrow();
    expect((await redeem(callback, pkceCodeVerifier)).scope).toBe(scope);
  });

  test("lets a device poll with openid-client until the person allows or denies it", async () => {
    const config = await discovered(nativeClient, openid.None());
    const answers: (number | string)[] = [];
    let decide: () => Promise<unknown> = async () => {};
    // The time between two polls passes on the server's clock alone.
    config[openid.customFetch] = async (url, options) => {
      clock.shift(5);
      const response = await fetch(url, options as RequestInit);
      const { error = "tokens" } = (await response.clone().json()) as { error?: string };
      answers.push(error);
      if (answers.length === 2) await decide();
      return response;
    };
    const polled = async (decision: (userCode: string) => Promise<unknown>) => {
      const device = await openid.initiateDeviceAuthorization(config, { scope });
      answers.length = 0;
      decide = () => decision(device.user_code);
      return openid.pollDeviceAuthorizationGrant(config, { ...device, interval: 0 });
    };
    const tokens = await polled((userCode) => decideDevice(olga, userCode));
    expect(answers).toEqual(["authorization_pending", "authorization_pending", "tokens"]);
    expect(await modelsWith(tokens.access_token)).toBe(200);
    const denied = polled(async (userCode) => {
      await olga.open(`/device?user_code=${userCode}`);
      await olga.press("Continue");
      await olga.press("Deny");
    });
    expect(await oauthError(denied)).toBe("access_denied");
    expect(answers).toEqual(["authorization_pending", "authorization_pending", "access_denied"]);
  });

  test("slows down a device that polls too fast", async () => {
    const config = await discovered(webClient, secretPost());
    const { device_code } = await openid.initiateDeviceAuthorization(config, { scope });
    const poll = () => openid.genericGrantRequest(config, deviceGrant, { device_code });
    expect(await oauthError(poll())).toBe("authorization_pending");
    clock.shift(3);
    expect(await oauthError(poll())).toBe("slow_down");
    clock.shift(6);
    expect(await oauthError(poll())).toBe("slow_down");
    clock.shift(15);
    expect(await oauthError(poll())).toBe("authorization_pending");
  });
});

test("signs a person in and refreshes for a confidential app that sends only what the specification requires", async () => {
  const parameters = { client_id: web.id, redirect_uri: redirectUri, response_type: "code", scope };
  const callback = await allow(olga, `${server.url}/oauth/authorize?${new URLSearchParams(parameters)}`);
  expect([...callback.searchParams.keys()].sort()).toEqual(["code", "iss"]);
  const post = async (form: Record<string, string>) => {
    const body = new URLSearchParams({ ...form, client_id: web.id, client_secret: web.secret });
    const response = await fetch(`${server.url}/oauth/token`, { method: "POST", body });
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    return (await response.json()) as { access_token: string; refresh_token: string };
  };
  const code = callback.searchParams.get("code") ?? "";
  const first = await post({ grant_type: "authorization_code", code, redirect_uri: redirectUri });
  expect(await modelsWith(first.access_token)).toBe(200);
  const second = await post({ grant_type: "refresh_token", refresh_token: first.refresh_token });
  expect(await modelsWith(second.access_token)).toBe(200);
});

test("returns to the app's authorization after the person signs in", async () => {
  const parameters = { client_id: web.id, redirect_uri: redirectUri, response_type: "code", prompt: "consent" };
  const stranger = new Browser(server.url);
  const page = await stranger.open(`/oauth/authorize?${new URLSearchParams(parameters)}`);
  expect(page.url.pathname).toBe("/sign-in");
  await signIn(stranger);
  expect(stranger.page.text).toContain("Allow <bdi>Notes</bdi> to act on your behalf?");
  const { leftFor } = await stranger.press("Allow");
  expect(leftFor?.href).toStartWith(`${redirectUri}?code=`);
});
