// The OAuth callback endpoint, called after a person connected their account at an MCP server.
import type { BrowserSessions } from "../../../accounts/browser-sessions.ts";
import type { Clock } from "../../../base/clock.ts";
import { GatewayError } from "../../../base/errors.ts";
import { type ConnectFlow, callbackPath, sharedCallbackPath } from "../../../mcp/connections/connect-flow.ts";
import { errorTable } from "../../../wire/errors.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../../exchange/route.ts";
import { referenceLine } from "../../pages/error-page.ts";
import { html } from "../../pages/html.ts";
import { pageAnswer, pageAt, signedInAt } from "../../pages/page.ts";
import { originOf } from "../changes.ts";

export interface ToolCallbackDeps {
  sessions: Pick<BrowserSessions, "find">;
  connectFlow: Pick<ConnectFlow, "complete">;
  clock: Clock;
}

/** The dashboard page that lists a person's connected accounts. */
const accountsPage = "/tools";

export function toolCallbackRoutes(deps: ToolCallbackDeps): PageRoute[] {
  return [sharedCallbackPath, callbackPath].map((path) => pageAt(path, (exchange) => callback(exchange, deps)));
}

async function callback(exchange: Exchange, deps: ToolCallbackDeps): Promise<PlainAnswer> {
  const signedIn = await signedInAt(exchange, deps);
  const { target } = exchange.req;
  const queryAt = target.indexOf("?");
  const path = queryAt < 0 ? target : target.slice(0, queryAt);
  const query = new URLSearchParams(queryAt < 0 ? "" : target.slice(queryAt));
  try {
    const { server } = await deps.connectFlow.complete({ path, query }, signedIn, originOf(exchange, deps));
    const body = html`<h1>Your account is connected</h1>
<p role="status">Tools of <strong>${server}</strong> now use your own account there, and only for you.</p>
<p><a class="button" href="${accountsPage}">Back to the tools</a></p>`;
    return pageAnswer({ title: "Account connected", body, signedIn });
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const { code, message, detail } = error;
    exchange.line["code"] = code;
    exchange.line["detail"] = detail;
    const body = html`<h1>Your account is not connected</h1><p role="alert">${message}</p>
<p><a class="button second" href="${accountsPage}">Back to the tools</a></p>
${referenceLine(exchange.requestId)}`;
    return pageAnswer({ title: "Account not connected", status: errorTable[code].status, body, signedIn });
  }
}
