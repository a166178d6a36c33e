// Serves the dashboard: its HTML page for every view, and its built files.

import type { BrowserSessions } from "../../accounts/browser-sessions.ts";
import { GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import { dashboardDirectory } from "../../installation/paths.ts";
import { hasApiKey } from "../exchange/api-key-header.ts";
import { errorAnswer } from "../exchange/errors.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { pathOf } from "../exchange/route-table.ts";
import { signInPath } from "../pages/local-path.ts";
import { redirectTo, signedInAt } from "../pages/page.ts";
import { DashboardFiles } from "./dashboard-files.ts";
import { dashboardPage } from "./dashboard-page.ts";

/**
 * First path segments of the dashboard's views, as in web/shell/navigation.ts. `models` is missing, because a request
 * for `/models` usually comes from a client whose base URL lacks `/v1`. The error of such a request says so.
 */
const pages = [
  "playground",
  "catalog",
  "prices",
  "usage",
  "statements",
  "tools",
  "requests",
  "chats",
  "batches",
  "apps",
  "settings/*",
  "admin/*",
];
const forever = "public, max-age=31536000, immutable";

export interface DashboardDeps {
  sessions: Pick<BrowserSessions, "find">;
}

export function dashboardRoutes(deps: DashboardDeps): PageRoute[] {
  const files = new DashboardFiles(dashboardDirectory);
  const paths = pages.flatMap((page) => (page.endsWith("*") ? [`/${page}`] : [`/${page}`, `/${page}/*`]));
  return [
    ...["/", ...paths].map((path): PageRoute => {
      return {
        method: "GET",
        path,
        access: "page",
        throttle: "page",
        handle: (exchange) => view(exchange, deps, files),
      };
    }),
    {
      method: "GET",
      path: "/assets/app/:name",
      access: "page",
      throttle: "file",
      handle: (exchange) => file(exchange, files),
    },
  ];
}

async function view(exchange: Exchange, deps: DashboardDeps, files: DashboardFiles): Promise<PlainAnswer> {
  if (!(await signedInAt(exchange, deps))) {
    const { headers, target } = exchange.req;
    if (isProgram(headers)) return noEndpoint(pathOf(target));
    return redirectTo(signInPath(target));
  }
  const entries = await files.entries();
  if (entries) return dashboardPage(entries);
  throw new GatewayError(
    "not_found",
    "The dashboard was not built. `npm start` builds it; beside a server that runs, `npm run build` does.",
  );
}

/** Reports whether the request has an API key or bearer token, which browsers never send when they load a page. */
function isProgram(headers: Exchange["req"]["headers"]): boolean {
  return hasApiKey(headers) || /^bearer /i.test(headers.get("authorization") ?? "");
}

/** Returns an error for a program that requested a page. Otherwise it would take the sign-in page for an API answer. */
function noEndpoint(path: string): PlainAnswer {
  return errorAnswer(
    new GatewayError(
      "not_found",
      `${shown(path)} is a page for browsers, not an endpoint. The base URL of the API ends in /v1.`,
    ),
  );
}

async function file({ req, params }: Exchange, files: DashboardFiles): Promise<PlainAnswer> {
  const found = await files.find(params["name"] ?? "", req.headers.get("accept-encoding"));
  if (!found) throw new GatewayError("not_found", "File not found. Reload the page.");
  const { type, encoding, bytes } = found;
  return {
    status: 200,
    headers: {
      "content-type": type,
      "cache-control": forever,
      vary: "accept-encoding",
      ...(encoding === undefined ? {} : { "content-encoding": encoding }),
    },
    body: bytes,
  };
}
