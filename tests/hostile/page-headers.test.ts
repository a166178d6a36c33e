// No page of ours, shown or refused, can be framed, read or learnt about by another site: for every page there is.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { openServerPeople, type SignedInMember } from "../support/server-people.ts";
import { unlimited } from "./any-credential.ts";
import { formType, pageOperations } from "./operations.ts";

const friend = "https://friend.example";
let server: TestServer;
let owner: SignedInMember;

beforeAll(async () => {
  server = await startHeadrace({
    yaml: `cors:\n  origins: [${friend}]\n`,
    addressLimits: unlimited,
    flags: { mode: "production", publicUrl: "https://ai.example.com" },
  });
  const people = openServerPeople(server);
  owner = await people.addMember("owner", { isOperator: true });
  await people.close();
});

afterAll(() => server[Symbol.asyncDispose]());

/** There is one of each kind at least, so that a table that has lost some is noticed. */
const kinds = ["/sign-in", "/oauth/authorize", "/device", "/device/decision", "/settings", "/", "/invitations/{token}"];

// hardening: A5
test("refuses frames, referrers and other origins on every page and error page, with or without CORS", async () => {
  const pages = pageOperations();
  expect(pages.map(({ path }) => path)).toEqual(expect.arrayContaining(kinds));
  const shown = new Set<number>();
  for (const { method, path } of pages) {
    for (const headers of [{}, owner.reading, { ...owner.reading, origin: friend }]) {
      const response = await fetch(server.url + path.replaceAll(/\{\w+\}/g, "some-id"), {
        method,
        redirect: "manual",
        headers: { origin: friend, ...headers, ...(method === "POST" ? { "content-type": formType } : {}) },
        ...(method === "POST" ? { body: "csrf=x&user_code=x" } : {}),
      });
      await response.text();
      shown.add(response.status);
      const get = (name: string) => response.headers.get(name);
      const what = [method, path, response.status];
      expect([...what, get("access-control-allow-origin")]).toEqual([...what, null]);
      // RFC 9700, 4.12: a 307 would send the form on.
      expect(response.status).not.toBe(307);
      if (get("content-type")?.startsWith("text/html")) {
        expect([...what, get("content-security-policy")?.includes("frame-ancestors 'none'")]).toEqual([...what, true]);
        expect([...what, get("x-frame-options")]).toEqual([...what, "DENY"]);
        // The guides are the same for everybody: kept, and asked about each time.
        const cached = path.startsWith("/docs/") ? "no-cache" : "no-store";
        expect([...what, get("cache-control")]).toEqual([...what, cached]);
      }
      if (!path.startsWith("/assets/")) {
        expect([...what, get("referrer-policy")]).toEqual([...what, "no-referrer"]);
      }
    }
  }
  expect([...shown]).toEqual(expect.arrayContaining([200, 303, 403, 404]));
});

// hardening: A5
test("answers no preflight on pages", async () => {
  for (const { path } of pageOperations()) {
    const response = await fetch(server.url + path.replaceAll(/\{\w+\}/g, "some-id"), {
      method: "OPTIONS",
      headers: { origin: friend, "access-control-request-method": "POST" },
    });
    expect([path, response.status, response.headers.get("access-control-allow-methods")]).toEqual([path, 405, null]);
  }
});
