// The operators' endpoints for usage, requests and refusals of all accounts. They return figures and attempts, never
// the content of requests.
import { z } from "zod";
import { GatewayError, invalidRequest } from "../../../base/errors.ts";
import { environments } from "../../../domain/api-key.ts";
import type { AuditLog } from "../../../domain/audit.ts";
import { mayNameModel } from "../../../domain/models/model-patterns.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { UsageParties } from "../../../domain/usage/statement.ts";
import { operatorBuckets, operatorGroups, type UsageQuery, usageOutcomes } from "../../../domain/usage/usage.ts";
import { requireOperator } from "../../../policy/manage/operator.ts";
import { auditEvent } from "../../../policy/records/audit.ts";
import type { PastRequest, RequestHistory } from "../../../policy/records/request-history.ts";
import { readQuery } from "../../content/query.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { listInTurn } from "../list-turns.ts";
import {
  hoursOf,
  maxRows as maxRefusals,
  type RefusalRouteDeps,
  refusalQuery,
  refusalShape,
  toWire as refusalToWire,
} from "../usage/refusal-routes.ts";
import { matching, requestParameters } from "../usage/request-query.ts";
import { allWrittenSoon, type RequestRouteDeps, requestListShape, requestPage } from "../usage/request-routes.ts";
import { detailsToWire, isRefused, oneRequest, requestShape, toWire, trailToWire } from "../usage/request-wire.ts";
import { accountUsageParameters, groupList, usageQuery } from "../usage/usage-query.ts";
import { allUsageReport, answerReport, type UsageRouteDeps, usageDoc } from "../usage/usage-routes.ts";
import { writtenSoon } from "../usage/written-soon.ts";
import { adminEndpoints } from "./admin-endpoint.ts";
import { publicTrail } from "./public-trail.ts";

export interface AllAccountsDeps
  extends EndpointDeps,
    Pick<UsageRouteDeps, "reports" | "ledger" | "retention">,
    Pick<RequestRouteDeps, "refusedRequests">,
    Pick<RefusalRouteDeps, "refusalStore" | "refusalCounts"> {
  requestHistory: Pick<RequestHistory, "list" | "find">;
  parties: Pick<UsageParties, "names">;
  audit: Pick<AuditLog, "append">;
}

const id = (description: string) => z.string().min(1).max(256).optional().meta({ description });

const ownerQuery = {
  environment: z
    .enum(environments)
    .optional()
    .meta({ description: `one of ${environments.join(", ")}; by default that of the credential` }),
  account: id("the id of an account, `acct_…`; by default all accounts"),
  person: id("the id of a person, `usr_…`; only what they did, signed in, with their own keys or by an app"),
};
const serverQuery = {
  upstream: id("the name of a model server"),
  deployment: id("a model server and a model, as `upstream/model`"),
};

const usageParameters = accountUsageParameters.extend({
  ...ownerQuery,
  organization: id("the id of an organization, `org_…`; only the accounts that belong to it now"),
  ...serverQuery,
  bucket: z.enum(operatorBuckets).default("day").meta({
    description: "minute (of at most one day, by default of the last five minutes), hour, day or month, in UTC",
  }),
  group_by: groupList(operatorGroups),
  outcome: z
    .enum(usageOutcomes)
    .optional()
    .meta({ description: `one of ${usageOutcomes.join(", ")}; only requests that ended so count` }),
});
const requestsQuery = requestParameters.extend({ ...ownerQuery, ...serverQuery });
const refusalsQuery = refusalQuery.extend({
  ...ownerQuery,
  key: requestParameters.shape.key,
  app: requestParameters.shape.app,
  model: requestParameters.shape.model,
});

const names = z.record(z.string(), z.string()).describe("Names of the accounts, credentials and apps above, by id.");
const account = z.string().describe("Id of the account.");
const ofAccount = { account, environment: z.enum(environments) };
const requestOfAny = requestShape.extend(ofAccount).meta({ id: "RequestOfAnyAccount" });
const requestList = requestListShape.extend({ data: z.array(requestOfAny), names }).meta({ id: "AllRequestList" });
const requestDetail = oneRequest.extend({ ...ofAccount, names }).meta({ id: "RequestDetailOfAnyAccount" });
const refusalList = z
  .object({
    object: z.literal("list"),
    data: z.array(refusalShape.extend({ account }).meta({ id: "RefusalOfAnyAccount" })),
    names,
  })
  .meta({ id: "AllRefusalList" });

const endpoint = adminEndpoints<AllAccountsDeps>();

export function allAccountsRoutes(deps: AllAccountsDeps): ScopedRoute[] {
  return [usage(deps), list(deps), retrieve(deps), refusals(deps)];
}

function usage(deps: AllAccountsDeps): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/admin/usage",
    access: "admin:manage",
    doc: {
      ...usageDoc,
      tag: "Administration",
      operationId: "getUsageOfAccounts",
      summary: "Retrieve the usage of all accounts",
      description:
        "Also groups by account, organization, person, model server, deployment and outcome. Sums by minute, and those by model server, deployment or outcome together with another group or filter than the model, are added up from the stored requests, so their period must not contain more than about a million requests. Buckets without requests are omitted. With `Accept: text/csv` the answer is all rows as CSV, with times in ISO 8601.",
      query: usageParameters,
      response: { ...usageDoc.response, json: allUsageReport },
      errors: ["permission_denied"],
    },
    async handle(exchange, principal) {
      requireOperator(principal);
      const asked = readQuery(usageParameters, exchange.req.target);
      const { account: accountId = null, person, model, outcome } = asked;
      const served = servedBy(asked, model);
      const isOfOne = accountId !== null || asked.key !== undefined || asked.app !== undefined || person !== undefined;
      const groups = asked.group_by ?? [];
      const hasTags = asked.tag !== undefined || groups.includes("tag");
      requireOwnerOfTags(isOfOne, hasTags);
      const ofParty = groups.find((group) => group === "person" || group === "organization");
      if (hasTags && ofParty !== undefined) {
        throw invalidRequest(`group_by: ${ofParty} cannot be combined with tags; \`${ofParty}\` is a filter too.`);
      }
      const isByRecord = asked.bucket === "minute" || served.upstream !== undefined || outcome !== undefined;
      if (groups.includes("tag") && (isByRecord || groups.some((group) => fromRecords.has(group))))
        throw invalidRequest(
          "group_by: tag cannot be combined with upstream, deployment, outcome or the bucket minute; `tag` is a filter too.",
        );
      const query = usageQuery({ ...asked, model: served.model }, principal, deps.clock.nowSeconds(), {
        forOperator: {
          ...ownerOf(asked, principal),
          ...(asked.organization === undefined ? {} : { organizationId: asked.organization }),
          ...(served.upstream === undefined ? {} : { upstream: served.upstream }),
          ...(outcome === undefined ? {} : { outcome }),
        },
      });
      return answerReport(deps, exchange, principal, asked, query, async (rows) => ({
        names: await deps.parties.names(
          rows
            .flatMap(({ groups: { account: of, organization, person: who, key, app } }) => [
              ...[of, organization, who, key, app],
            ])
            .filter(isText),
        ),
      }));
    },
  };
}

const fromRecords: ReadonlySet<string> = new Set(["upstream", "deployment", "outcome"]);

const list = endpoint("GET", "/v1/admin/requests", {
  operationId: "listRequestsOfAccounts",
  summary: "List the requests of all accounts",
  description:
    "Lists ended and refused requests, newest first: who made them, the outcome, the cost and the times, never their content. `upstream` finds the requests that the model server answered, and those whose attempts name it. A page reads a limited number of requests: if few of them match, it has fewer entries than `limit`, or none, and `next` continues.",
  query: requestsQuery,
  response: { description: "One page.", json: requestList },
  async answer({ deps, exchange, principal, query }) {
    const { upstream, model } = servedBy(query, query.model);
    const isOfOne = [query.account, query.key, query.app, query.person].some((one) => one !== undefined);
    requireOwnerOfTags(isOfOne, query.tag !== undefined);
    const filter = {
      ...matching(query),
      ...ownerOf(query, principal),
      ...(model === undefined ? {} : { model }),
      ...(upstream === undefined ? {} : { upstream }),
    };
    const { requests, ...page } = await requestPage(filter, query, { exchange, principal, deps });
    return { ...page, data: requests.map(ofAnyToWire), names: await namesOf(requests, deps) };
  },
});

const retrieve = endpoint("GET", "/v1/admin/requests/:id", {
  operationId: "retrieveRequestOfAccount",
  summary: "Retrieve one request of any account",
  description:
    "Includes the attempts with the names of the model servers. Never includes content: of an error message of a model server, only known phrases are shown, and no stored chat. If the request belongs to another account than the credential, this is recorded in the audit log, which the account's owners see.",
  parameters: [{ name: "id", in: "path", description: "Id of the request, the `x-request-id` of its answer." }],
  response: { description: "The request.", json: requestDetail },
  async answer({ deps, principal, id: requestId, origin }) {
    await allWrittenSoon(deps);
    const request = await deps.requestHistory.find(null, requestId);
    if (!request) {
      throw new GatewayError(
        "not_found",
        "There is no such request, or it has not ended yet; `GET /v1/admin/requests` lists those that have.",
      );
    }
    const { accountId } = request;
    if (accountId !== principal.account.id) {
      const about = { accountId, targetId: requestId, detail: {} };
      await deps.audit.append([auditEvent("request.viewed", principal, origin, about)]);
    }
    return {
      ...requestOfAnyToWire(request),
      chat: null,
      tool_content: null,
      names: await namesOf([request], deps),
    };
  },
});

const refusals = endpoint("GET", "/v1/admin/refusals", {
  operationId: "listRefusalsOfAccounts",
  summary: "List the requests of all accounts that limits refused",
  description: `Requests for models that were refused because of a rate limit, a quota or missing capacity, by hour, newest first, at most ${maxRefusals} rows.`,
  query: refusalsQuery,
  response: { description: "The counts.", json: refusalList },
  async answer({ deps, exchange, principal, query }) {
    const { key, app, model } = query;
    const asked = {
      ...ownerOf(query, principal),
      ...(key === undefined ? {} : { keyId: key }),
      ...(app === undefined ? {} : { appId: app }),
      ...(model === undefined ? {} : { model }),
      ...hoursOf(query, deps.clock.nowSeconds()),
    };
    await writtenSoon(deps.refusalCounts);
    const counts = await listInTurn(exchange, principal, () => deps.refusalStore.list(asked, maxRefusals));
    return {
      object: "list",
      data: counts.map((count) => ({ ...refusalToWire(count), account: count.accountId })),
      names: await namesOf(counts, deps),
    };
  },
});

interface AskedOwner {
  account?: string | undefined;
  environment?: UsageQuery["environment"] | undefined;
  person?: string | undefined;
}

function ownerOf(
  { account: accountId, environment, person }: AskedOwner,
  principal: Principal,
): Pick<UsageQuery, "accountId" | "environment" | "personId"> {
  return {
    accountId: accountId ?? null,
    environment: environment ?? principal.environment,
    ...(person === undefined ? {} : { personId: person }),
  };
}

/**
 * Returns the model server and model that match all three filters `upstream`, `deployment` and `model`. Throws
 * `invalid_request` if the filters contradict each other.
 */
function servedBy(
  { upstream, deployment }: { upstream?: string | undefined; deployment?: string | undefined },
  model: string | undefined,
) {
  if (deployment === undefined) return { upstream, model };
  const [, server, ofServer] = /^([^/]+)\/(.+)$/s.exec(deployment) ?? [];
  if (server === undefined) {
    throw invalidRequest("deployment: must be a model server and a model, as `upstream/model`.");
  }
  if ((upstream ?? server) === server && (model ?? ofServer) === ofServer) return { upstream: server, model: ofServer };
  throw invalidRequest("deployment: names another model server or model than `upstream` and `model`.");
}

function requireOwnerOfTags(isOfOne: boolean, hasTags: boolean): void {
  if (isOfOne || !hasTags) return;
  throw invalidRequest("tag: tags belong to an account; give `account`, `person`, `key` or `app` as well.");
}

function ofAnyToWire(request: PastRequest): z.infer<typeof requestOfAny> {
  const { accountId, environment, model } = request;
  const isNamed = !isRefused(request) || model === null || mayNameModel(model);
  return {
    ...toWire(request),
    ...(isNamed ? {} : { model: null, error_message: null }),
    account: accountId,
    environment,
  };
}

/** Returns a request with its attempts, without any content. */
export function requestOfAnyToWire(request: PastRequest) {
  return {
    ...ofAnyToWire(request),
    usage_details: detailsToWire(request, true),
    trail: publicTrail(trailToWire(request, true)),
  };
}

function namesOf(
  of: readonly { accountId: string; keyId: string | null; appId: string | null }[],
  { parties }: Pick<AllAccountsDeps, "parties">,
): Promise<Record<string, string>> {
  return parties.names(of.flatMap(({ accountId, keyId, appId }) => [accountId, keyId, appId]).filter(isText));
}

function isText(id: string | null | undefined): id is string {
  return typeof id === "string";
}
