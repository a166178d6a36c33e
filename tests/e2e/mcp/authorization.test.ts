// The protocol's conformance suite against Headrace as an authorization server, with a person who signs in and allows it.
import { afterAll, expect, test } from "bun:test";
import { setUp } from "../../support/browser.ts";
import { operator, pagesOf } from "../../support/browser-world.ts";
import { leaveBrowser, openVisitor } from "../../support/chromium.ts";
import { startHeadrace } from "../../support/headrace.ts";
import { runConformance } from "../../support/mcp/conformance.ts";
import { freePort } from "../../support/nginx-site.ts";
import { registerApp } from "../../support/oauth-apps.ts";

afterAll(leaveBrowser);

test.each([undefined, "/mcp", "/mcp/notes"])(
  "passes the MCP authorization suite with resource %p",
  async (resource) => {
    await using server = await startHeadrace();
    await setUp(server, { person: operator });
    const port = await freePort();
    const redirect = `http://127.0.0.1:${port}/callback`;
    const app = await registerApp(server, {
      ...{ type: "public", name: "Suite", redirect_uris: [redirect] },
      scopes: ["models:read", "tools:use"],
    });
    await using visitor = await openVisitor({ at: pagesOf(server), others: [`127.0.0.1:${port}`] });
    let visit: Promise<void> | undefined;
    const allow = async (url: string) => {
      await visitor.go(url.replace("127.0.0.1", "localhost"));
      await visitor.fill({ "E-mail address": operator.email, Password: operator.password });
      await visitor.press("Sign in");
      await visitor.press("Allow");
    };
    const asked = resource === undefined ? [] : ["--resource", server.url + resource];
    const { checks, failed, exitCode } = await runConformance(
      ["authorization", "--url", server.url, "--client-id", app.id, "--port", String(port), ...asked],
      {
        onOutput(text) {
          const url = /^http\S+\/authorize\?\S+$/m.exec(text)?.[0];
          if (url !== undefined) visit ??= allow(url);
        },
      },
    );
    await visit;
    expect({ failed, exitCode }).toEqual({ failed: [], exitCode: 0 });
    const passed = checks.filter(({ status }) => status === "SUCCESS").map(({ scenario }) => scenario);
    expect(passed).toContain("authorization-server-metadata-endpoint");
    expect(passed).toContain("authorization-code-grant");
  },
);
