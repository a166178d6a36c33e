// Endpoints without credentials: health, readiness and the OpenAPI document.
import { z } from "zod";
import { StaticDocument } from "../content/static-document.ts";
import { pageHeaders } from "../exchange/browser-headers.ts";
import type { PublicRoute, Route } from "../exchange/route.ts";

export const checkState = z
  .enum(["ok", "degraded", "starting", "failed", "draining"])
  .describe("`degraded`: the component works with restrictions.");
export type CheckState = z.infer<typeof checkState>;

export interface ServiceRouteDeps {
  version: string;
  /** Checks within about a second everything that requests need, and returns the names of the parts that failed. */
  readiness(): Promise<Readiness>;
}

const health = z.object({ status: z.literal("ok") }).meta({ id: "Health" });
const readinessShape = z
  .object({
    status: z
      .enum(["ready", "degraded", "not_ready"])
      .describe(
        "`degraded`: the server accepts requests, but a component fails that it can do without for a while: Redis, or for at most five minutes the database.",
      ),
    checks: z.record(z.string(), checkState),
  })
  .meta({ id: "Readiness" });
export type Readiness = z.infer<typeof readinessShape>;

/** `all` returns all routes for the OpenAPI document, so it must only be called after all routes exist. */
export function serviceRoutes(deps: ServiceRouteDeps, all: () => Promise<readonly Route[]>): PublicRoute[] {
  let document: Promise<StaticDocument> | undefined;
  let page: Promise<ReferenceAnswer> | undefined;
  return [
    healthRoute("/healthz", "health", "Check whether the process is alive"),
    healthRoute("/health", "healthAsVllm", "Liveness at the path of vLLM, llama-server and TGI"),
    healthRoute("/v1/health", "healthBelowBaseUrl", "Liveness at llama-server's path below the base URL"),
    healthRoute("/ping", "ping", "Liveness at the path of vLLM and TGI for SageMaker"),
    {
      method: "GET",
      path: "/readyz",
      access: "public",
      throttle: "monitor",
      doc: {
        operationId: "readiness",
        summary: "Check whether the server accepts requests",
        tag: "Service",
        response: { description: "It does.", json: readinessShape },
        otherResponses: {
          503: { description: "The server does not accept requests. `checks` has the reason.", json: readinessShape },
        },
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
        summary: "Read this API description as OpenAPI 3.1",
        tag: "Service",
        response: { description: "The document.", contentTypes: ["application/json"] },
      },
      async handle({ req }) {
        document ??= all().then((routes) => descriptionOf(routes, deps.version));
        return (await document).answer(req.headers);
      },
    },
    {
      method: "GET",
      path: "/docs/api",
      access: "public",
      throttle: "file",
      doc: {
        operationId: "reference",
        summary: "Read this API description as a page",
        tag: "Service",
        response: { description: "The page.", contentTypes: ["text/html"] },
      },
      async handle({ req }) {
        page ??= all().then((routes) => referenceOf(routes, deps.version));
        const { file, ...own } = await page;
        const { headers, ...answer } = await file.answer(req.headers);
        return { ...answer, headers: { ...headers, ...own.headers } };
      },
    },
  ];
}

function healthRoute(path: string, operationId: string, summary: string): PublicRoute {
  return {
    method: "GET",
    path,
    access: "public",
    throttle: "monitor",
    doc: { operationId, summary, tag: "Service", response: { description: "It is.", json: health } },
    handle: () => Response.json({ status: "ok" }),
  };
}

async function descriptionOf(routes: readonly Route[], version: string): Promise<StaticDocument> {
  const { openApiDocument } = await import("../reference/openapi.ts");
  return new StaticDocument(JSON.stringify(openApiDocument(routes, version)), "application/json");
}

interface ReferenceAnswer {
  file: StaticDocument;
  headers: Readonly<Record<string, string>>;
}

async function referenceOf(routes: readonly Route[], version: string): Promise<ReferenceAnswer> {
  const { openApiDocument } = await import("../reference/openapi.ts");
  const { referencePage, referenceScriptSource, referenceStyleSource } = await import("../reference/reference-page.ts");
  return {
    file: new StaticDocument(referencePage(openApiDocument(routes, version)), "text/html; charset=utf-8"),
    headers: {
      ...pageHeaders,
      "content-security-policy": `default-src 'none'; style-src ${referenceStyleSource}; script-src ${referenceScriptSource}; form-action 'none'; frame-ancestors 'none'; base-uri 'none'`,
      "cross-origin-opener-policy": "same-origin",
    },
  };
}
