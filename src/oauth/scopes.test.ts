import { describe, expect, test } from "bun:test";
import type { Scope } from "../domain/scope.ts";
import { requestedScopes } from "./scopes.ts";

const app: { scopes: Scope[] } = { scopes: ["usage:read", "chat:write", "chat:read"] };

describe("the scopes that an app requests", () => {
  test("returns requested scopes in their usual order, each once", () => {
    expect(requestedScopes("chat:write chat:read chat:write", app)).toEqual(["chat:read", "chat:write"]);
  });

  test.each([[undefined], [""]])("returns all of an app's scopes for the request %p", (text) => {
    expect(requestedScopes(text, app)).toEqual(["chat:read", "chat:write", "usage:read"]);
  });

  test.each([
    ["models:read", "one that the app was not registered with"],
    ["chat:read keys:manage", "one that no app has"],
    ["admin:manage", "the operator's"],
    ["Chat:read", "another case"],
    ["chat:read  chat:write", "two blanks"],
    [" chat:read", "a blank in front"],
    ["chat:read\tchat:write", "a tab"],
    ["chat:read,chat:write", "a comma"],
    ["constructor", "a name that every object has"],
  ])("refuses the scopes %p: %s", (text) => {
    expect(requestedScopes(text, app)).toHaveProperty("fault");
  });

  test.each(['"><script>', "\\", "ü", "a\r\nb", "x".repeat(5_000)])(
    "does not repeat the scope %j in its error",
    (name) => {
      const refused = requestedScopes(name, app) as { fault: string };
      expect(refused.fault).toMatch(/^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
      expect(refused.fault).not.toContain(name);
      expect(refused.fault.length).toBeLessThan(300);
    },
  );
});
