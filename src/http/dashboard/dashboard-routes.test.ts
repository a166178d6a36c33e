// Tests the answers at the dashboard's paths: to browsers that sign in, and to programs that left out `/v1`.
import { expect, test } from "bun:test";
import { exchangeFor, incoming, responseOf } from "../../../tests/support/exchange.ts";
import { RouteTable } from "../exchange/route-table.ts";
import { dashboardRoutes } from "./dashboard-routes.ts";

const nobody = { sessions: { find: async () => undefined } };
const table = new RouteTable(dashboardRoutes(nobody));

function get(target: string, headers: Record<string, string> = {}): Promise<Response> {
  const found = table.find("GET", target.split("?")[0] ?? "");
  if (found?.route.access !== "page") throw new Error(`There is no page at ${target}.`);
  const { route, params } = found;
  return responseOf(() => route.handle(exchangeFor(incoming({ target, headers }), { params })));
}

test.each([
  [{}],
  // A proxy in front of the gateway may ask for Basic authentication.
  [{ authorization: "Basic YTpi" }],
])("redirects a browser without a session to sign in, and back afterwards (%p)", async (headers) => {
  for (const target of ["/", "/usage?group=key", "/requests/req_1", "/settings/keys", "/admin/upstreams"]) {
    const answer = await get(target, headers);
    expect([answer.status, answer.headers.get("location")]).toEqual([
      303,
      `/sign-in?next=${encodeURIComponent(target)}`,
    ]);
  }
});

test.each([[{ authorization: "Bearer sk_dev_hr_x" }], [{ "x-api-key": "sk_dev_hr_x" }]])(
  "answers an API client that forgot /v1 with a hint instead of a page (%p)",
  async (headers) => {
    for (const target of ["/", "/usage?group_by=key", "/requests", `/chats/${"x".repeat(1_000)}`]) {
      const answer = await get(target, headers);
      expect([answer.status, answer.headers.get("content-type")]).toEqual([404, "application/json"]);
      const { error } = (await answer.json()) as { error: { code: string; message: string } };
      expect(error.code).toBe("not_found");
      expect(error.message).toEndWith("is a page for browsers, not an endpoint. The base URL of the API ends in /v1.");
      expect(error.message.length).toBeLessThan(250);
    }
  },
);
