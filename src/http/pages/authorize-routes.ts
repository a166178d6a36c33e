// GET and POST /oauth/authorize: a person decides whether an app may act on the person's behalf, and returns to the app
// (RFC 6749, 4.1).

import { Attempts } from "../../accounts/attempts.ts";
import type { Clock } from "../../base/clock.ts";
import { type GatewayError, invalidRequest } from "../../base/errors.ts";
import type { Keys } from "../../domain/key-ring.ts";
import type { LimitStore } from "../../domain/limits/limits.ts";
import type { AppStore } from "../../domain/people/app.ts";
import type { Authorization, OAuthStore } from "../../domain/people/oauth.ts";
import type { OutsideClientStore } from "../../domain/people/outside-client.ts";
import type { OwnMembership } from "../../domain/people/person.ts";
import type { SignedIn } from "../../domain/people/session.ts";
import type { KeyStore } from "../../domain/principal.ts";
import type { McpServers } from "../../domain/tools/mcp-server.ts";
import { answerLocation } from "../../oauth/authorize/answer.ts";
import type { ClientRequest, Fault } from "../../oauth/authorize/check.ts";
import { askingWanted } from "../../oauth/authorize/checks.ts";
import { newCode } from "../../oauth/authorize/code.ts";
import { allowedAlready, hasCredential, toolsBefore, usableMemberships } from "../../oauth/authorize/consent.ts";
import { clientRequest, type ValidRequest, validRequest } from "../../oauth/authorize/flow.ts";
import { maxQueryLength, Parameters } from "../../oauth/authorize/parameters.ts";
import type { ClientDocuments } from "../../oauth/client/client-documents.ts";
import { isDocumentUrl } from "../../oauth/client/document-url.ts";
import { actingOf } from "../../policy/records/audit.ts";
import type { Exchange, PageRoute, PlainAnswer } from "../exchange/route.ts";
import { type ChoiceFault, chosenMembership, preferredMembership } from "./consent/app-parts.ts";
import { type ConsentPageParts, consentPage, noAccountPage } from "./consent/authorize-page.ts";
import { chosenCap } from "./consent/spending-cap.ts";
import { chosenTools, type ToolChoice, toolChoice } from "./consent/tool-choice.ts";
import { formTicket, requireTicket, type TicketSubject } from "./form-ticket.ts";
import { signInPath } from "./local-path.ts";
import { formAt, type PageDeps, pageAnswer, pageAt, readForm, redirectTo, signedInAt } from "./page.ts";

export interface AuthorizeDeps extends PageDeps {
  apps: Pick<AppStore, "findApp">;
  /** Undefined if client ID metadata documents are not supported. */
  clientDocuments?: Pick<ClientDocuments, "find"> | undefined;
  outsideClients: Pick<OutsideClientStore, "allowed">;
  mcpServers: Pick<McpServers, "all">;
  oauth: Pick<OAuthStore, "insertCode" | "allowedBefore">;
  keys: Pick<KeyStore, "findChainById">;
  limits: Pick<LimitStore, "admit">;
  /** Returns the public URL of the server, without `/v1`. */
  issuer(): string;
  /** The 32-byte keys that sign form tickets. These may be the same keys as for CSRF tokens. */
  formKey: Keys;
  clock: Clock;
}

interface Parts extends AuthorizeDeps {
  attempts: Attempts;
}

const path = "/oauth/authorize";
/** Maximum authorization codes per person and minute, because each code is a row in the database. */
const codesPerMinute = 60;

export function authorizeRoutes(deps: AuthorizeDeps): PageRoute[] {
  const parts = { ...deps, attempts: new Attempts(deps.limits) };
  return [pageAt(path, (exchange) => asked(exchange, parts)), formAt(path, (exchange) => decided(exchange, parts))];
}

async function asked(exchange: Exchange, deps: Parts): Promise<PlainAnswer> {
  const query = queryOf(exchange.req.target);
  const signedIn = await signedInAt(exchange, deps);
  // The metadata document of a client is fetched only if a person is signed in.
  if (!signedIn && isDocumentUrl(new Parameters(query).get("client_id") ?? "")) {
    return redirectTo(signInPath(`${path}?${query}`));
  }
  const client = await readClient(query, exchange, deps);
  if (!signedIn) return redirectTo(signInPath(`${path}?${query}`));
  const request = validRequest(client);
  if ("error" in request) return toApp(client, request, deps);

  const { clock, oauth } = deps;
  const memberships = usableMemberships(signedIn);
  const asking = askingWanted(client.parameters);
  const mayAnswer = asking !== "always" && exchange.req.method === "GET";
  const already = mayAnswer ? await allowedAlready(request, memberships, oauth, clock.nowSeconds()) : undefined;
  if (already && memberships[0]) {
    const answer = await allow({ ...request, tools: already.tools, quotas: null }, memberships[0], signedIn, deps);
    if (answer) return answer;
  }
  if (asking === "never") return toApp(client, cannotAsk(memberships), deps);
  return ask({ request, query, signedIn, memberships }, deps);
}

/**
 * Handles the person's decision. The request is validated again, because the app may have changed since the page
 * was shown.
 */
async function decided(exchange: Exchange, deps: Parts): Promise<PlainAnswer> {
  const signedIn = await signedInAt(exchange, deps);
  const fields = await readForm(exchange, deps, signedIn);
  const query = fields.get("request") ?? "";
  if (!signedIn) return redirectTo(signInPath(`${path}?${query}`));
  const client = await readClient(query, exchange, deps);
  const request = validRequest(client);
  if ("error" in request) return toApp(client, request, deps);
  requireTicket(deps.formKey, subjectOf(request, query, signedIn), fields.get("ticket"));

  switch (fields.get("decision")) {
    case "deny":
      return toApp(client, { error: "access_denied", description: "The person did not allow it." }, deps);
    case "allow": {
      const memberships = usableMemberships(signedIn);
      const membership = chosenMembership(memberships, fields.get("account"));
      const chosen = chosenTools(await choiceOf({ request, signedIn, memberships }, deps), fields);
      const again = (field: ChoiceFault["field"], message: string) =>
        ask({ request, query, signedIn, memberships, fault: { field, message, sent: fields } }, deps);
      if ("fault" in chosen) return again("tools", chosen.fault);
      const cap = chosenCap(request.app, request.scopes, fields);
      if ("fault" in cap) return again("cap", cap.fault);
      const answer = membership && (await allow({ ...request, ...chosen, ...cap }, membership, signedIn, deps));
      return answer ?? again("account", "Choose one of your accounts.");
    }
    default:
      throw invalidRequest("decision: must be allow or deny.");
  }
}

/** Authorizes the app. Returns undefined if the person may not act for the account. */
async function allow(
  request: ValidRequest & Pick<Authorization, "tools" | "quotas">,
  membership: OwnMembership,
  signedIn: SignedIn,
  deps: Parts,
): Promise<PlainAnswer | undefined> {
  const now = deps.clock.nowSeconds();
  if (!(await hasCredential(membership, request.app.environment, deps.keys, now))) return undefined;
  const rule = { id: `authorize:${membership.personId}`, limit: codesPerMinute, windowSeconds: 60 };
  await deps.attempts.count([rule], "You have allowed too many apps in a short time.");
  const { app } = request;
  if (app.unverified) {
    const { id, name, homepageUrl, redirectUris, unverified } = app;
    const client = { id, name, homepageUrl, redirectUris, documentUrl: unverified.documentUrl };
    await deps.outsideClients.allowed({ ...client, createdAt: now, allowedAt: now, suspendedBy: null });
  }
  const { code, record } = newCode(request, membership, now);
  const isKept = await deps.oauth.insertCode(record, actingOf(signedIn, now, membership.accountId));
  return isKept ? toApp(request, { code }, deps) : undefined;
}

async function ask(parts: Omit<ConsentPageParts, "ticket" | "toolChoice">, deps: AuthorizeDeps): Promise<PlainAnswer> {
  const ticket = formTicket(deps.formKey, subjectOf(parts.request, parts.query, parts.signedIn));
  const page =
    parts.memberships.length === 0
      ? noAccountPage({ ...parts, ticket })
      : consentPage({ ...parts, ticket, toolChoice: await choiceOf(parts, deps) });
  return pageAnswer({ ...page, opener: "kept" });
}

/** Returns the choice of tools. The tools of an earlier authorization for the current account are preselected. */
async function choiceOf(
  { request, signedIn, memberships }: Pick<ConsentPageParts, "request" | "signedIn" | "memberships">,
  deps: AuthorizeDeps,
): Promise<ToolChoice | undefined> {
  const { app, scopes, resources } = request;
  const before = await toolsBefore(
    app,
    preferredMembership(memberships, signedIn),
    deps.oauth,
    deps.clock.nowSeconds(),
  );
  return toolChoice({ app, scopes, resources, memberships, before }, deps);
}

function cannotAsk(memberships: readonly OwnMembership[]): Fault {
  return memberships.length === 0
    ? { error: "interaction_required", description: "The person is a member of no account that could be used." }
    : { error: "consent_required", description: "The person has to be asked; leave prompt=none out." };
}

function toApp(client: ClientRequest, answer: { code: string } | Fault, { issuer }: AuthorizeDeps): PlainAnswer {
  return redirectTo(answerLocation(client, answer, issuer()));
}

/**
 * Returns the facts about the request that the page shows. If one of them changes, the form's ticket becomes invalid.
 */
function subjectOf({ app, redirectUri, scopes }: ValidRequest, query: string, signedIn: SignedIn): TicketSubject {
  const { id, name, publisher, environment } = app;
  return { purpose: "consent", signedIn, about: [query, id, name, publisher, environment, redirectUri, ...scopes] };
}

async function readClient(
  query: string,
  { clientAddress }: Exchange,
  { apps, clientDocuments, issuer }: AuthorizeDeps,
): Promise<ClientRequest> {
  if (query.length > maxQueryLength) {
    throw refused(`its query has more than ${maxQueryLength} characters.`, "oauth_query_too_long");
  }
  const findDocument = clientDocuments && ((url: string) => clientDocuments.find(url, clientAddress));
  const client = await clientRequest(new Parameters(query), { apps, findDocument }, issuer());
  if ("reason" in client) throw refused(client.message, `oauth_${client.reason}`);
  return client;
}

function refused(message: string, detail: string): GatewayError {
  return invalidRequest(`The app that sent you here sent an invalid request. Its developer must fix this: ${message}`, {
    detail,
  });
}

/** Returns the query exactly as the app sent it, because it contains parameters of the app. */
function queryOf(target: string): string {
  const [sent = ""] = target.split("#", 1);
  const start = sent.indexOf("?");
  return start < 0 ? "" : sent.slice(start + 1);
}
