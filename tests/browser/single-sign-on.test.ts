// In a real browser: the way to the identity provider and back.
import { afterAll, expect, test } from "bun:test";
import { pagesOf } from "../support/browser-world.ts";
import { leaveBrowser, openVisitor, phone } from "../support/chromium.ts";
import { startHeadrace } from "../support/headrace.ts";
import { clientId, clientSecret, startLyingProvider } from "../support/identity-provider.ts";
import { look } from "../support/page-checks.ts";

afterAll(leaveBrowser);

test("signs in and admits a person of the identity provider, and refuses an address outside the company", async () => {
  await using provider = await startLyingProvider();
  provider.lies.answers = { "/authorize": async ({ url }) => Response.redirect((await provider.visit(url)).href, 303) };
  const yaml = JSON.stringify({
    sso: {
      ...{ name: "Example Works", issuer: provider.issuer, client_id: clientId, client_secret: clientSecret },
      allowed_domains: ["example.test"],
    },
  });
  await using server = await startHeadrace({ yaml });
  await using visitor = await openVisitor({
    at: pagesOf(server),
    size: phone,
    others: [new URL(provider.issuer).host],
  });

  provider.person = { sub: "1", email: "eve@elsewhere.test", email_verified: true, name: "Eve" };
  await visitor.go("/sign-in");
  await look(visitor, "sso-sign-in");
  await visitor.page.getByRole("link", { name: "Continue with Example Works" }).click();
  await visitor.page.getByRole("heading", { name: "You are not signed in" }).waitFor();
  await look(visitor, "sso-refused", { status: 403 });

  provider.person = { sub: "2", email: "joan@example.test", email_verified: true, name: "Joan Clarke" };
  await visitor.page.getByRole("link", { name: "Back to sign in" }).click();
  await visitor.page.getByRole("link", { name: "Continue with Example Works" }).click();
  await visitor.page.waitForURL("**/");
  await visitor.go("/settings");
  expect(await visitor.page.getByLabel("Your name").inputValue()).toBe("Joan Clarke");
  expect(visitor.trouble).toEqual([]);
});
