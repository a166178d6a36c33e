// What a monitor or a newcomer asks without credentials: health, readiness, the API description.
import { z } from "zod";
import { pageHeaders } from "./browser-headers.ts";
import { openApiDocument } from "./openapi.ts";
import { referencePage, referenceStyleSource } from "./reference-page.ts";
import type { PublicRoute, Route } from "./route.ts";

export const checkState = z
  .enum(["ok", "degraded", "starting", "failed", "draining"])
  .describe("`degraded`: it works, though not as it should.");
export type CheckState = z.infer<typeof checkState>;

export interface ServiceRouteDeps {
  version: string;
  /** Checks of what requests need, within a second or so; names the parts that fail. */
  readiness(): Promise<Readiness>;
  /** All routes, these included. */
  routes(): readonly Route[];
}

const health = z.object({ status: z.literal("ok") }).meta({ id: "Health" });
const readinessShape = z
  .object({
    status: z
      .enum(["ready", "degraded", "not_ready"])
      .describe(
        "`degraded`: it takes requests, and something that it can do without for a while fails: Redis, or for at most five minutes the database.",
      ),
    checks: z.record(z.string(), checkState),
  })
  .meta({ id: "Readiness" });
export type Readiness = z.infer<typeof readinessShape>;

export function serviceRoutes(deps: ServiceRouteDeps): PublicRoute[] {
  let document: string | undefined;
  let page: string | undefined;
  const describe = () => openApiDocument(deps.routes(), deps.version);
  return [
    {
      method: "GET",
      path: "/healthz",
      access: "public",
      throttle: "monitor",
      doc: {
        operationId: "health",
        summary: "Whether the process is alive",
        tag: "Service",
        response: { description: "It is.", json: health },
      },
      handle: () => Response.json({ status: "ok" }),
    },
    {
      method: "GET",
      path: "/readyz",
      access: "public",
      throttle: "monitor",
      doc: {
        operationId: "readiness",
        summary: "Whether it takes requests",
        tag: "Service",
        response: { description: "It does.", json: readinessShape },
        otherResponses: { 503: { description: "It does not; `checks` says why.", json: readinessShape } },
      },
      async handle() {
        const readiness = await deps.readiness();
        const status = readiness.status === "not_ready" ? 503 : 200;
        return Response.json(readiness, { status });
      },
    },
    {
      method: "GET",
      path: "/openapi.json",
      access: "public",
      throttle: "file",
      doc: {
        operationId: "openapi",
        summary: "This description, as OpenAPI 3.1",
        tag: "Service",
        response: { description: "The document.", contentType: "application/json" },
      },
      handle() {
        document ??= JSON.stringify(describe());
        return new Response(document, {
          headers: { "content-type": "application/json", "cache-control": "no-cache" },
        });
      },
    },
    {
      method: "GET",
      path: "/docs",
      access: "public",
      throttle: "file",
      doc: {
        operationId: "reference",
        summary: "This description, as a page to read",
        tag: "Service",
        response: { description: "The page.", contentType: "text/html" },
      },
      handle() {
        page ??= referencePage(describe());
        return new Response(page, {
          headers: {
            ...pageHeaders,
            "content-type": "text/html; charset=utf-8",
            "cache-control": "no-cache",
            "content-security-policy": `default-src 'none'; style-src ${referenceStyleSource}; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
            "cross-origin-opener-policy": "same-origin",
          },
        });
      },
    },
  ];
}
