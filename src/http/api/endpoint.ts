// Declares endpoints with their path, query, body, answer and handler. The declaration yields both the route and its
// OpenAPI description.
import type { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import type { ErrorCode } from "../../base/errors.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Scope } from "../../domain/scope.ts";
import type { Origin } from "../../policy/records/audit.ts";
import type { IdempotentRequests } from "../../policy/records/idempotent-requests.ts";
import type { BodyLimits } from "../../requests/decode/parse-body.ts";
import { readQuery } from "../content/query.ts";
import { readStrictBody } from "../content/strict-body.ts";
import type { Exchange, PersonPrincipal, PersonRoute, RouteDoc, ScopedRoute } from "../exchange/route.ts";
import { bodyErrors, noStore, originOf } from "./changes.ts";

export interface EndpointDeps {
  clock: Clock;
  /** Returns the limits of a request body. Called for every request, because a reload may change them. */
  requestLimits(): BodyLimits;
  /** Missing if endpoints are created without a server, as in tests. */
  idempotentRequests?: Pick<IdempotentRequests, "answer">;
}

/** A request whose query and body have not been read yet. */
export interface Request<Deps, Asker> {
  readonly deps: Deps;
  readonly exchange: Exchange;
  /** The authenticated caller. */
  readonly principal: Asker;
  /** Value of the first path parameter. Empty if the path has none. */
  readonly id: string;
}

/** The members of a request that a function needs to find the object named by the path. */
export type Named<Deps, Asker = Principal> = Pick<Request<Deps, Asker>, "deps" | "principal" | "id">;

/** A request with its validated query and body, for the handler. */
export interface Asked<Deps, Asker, Found, Query, Body> extends Request<Deps, Asker> {
  /** The value that `first` returned. */
  readonly found: Found;
  readonly query: Query;
  readonly body: Body;
  readonly origin: Origin;
}

interface Endpoint<Deps, Asker, Found, Query extends z.ZodObject, Body extends z.ZodObject, Shape, Answer extends Shape>
  extends Omit<RouteDoc, "tag"> {
  query?: Query;
  requestBody?: Body;
  /** True if a development server's first key may use the endpoint from the same machine, even without the scope. */
  ownMachine?: true;
  response: { description: string; json: z.ZodType<Shape> };
  /** True if the answer contains a secret and must not be cached. */
  showsSecret?: true;
  /** Runs before the query and body are read, to check the caller or to find the object in the path. */
  first?(request: Request<Deps, Asker>): Found | Promise<Found>;
  answer(asked: Asked<Deps, Asker, Found, z.output<Query>, z.output<Body>>): Answer | Promise<Answer>;
}

/** The common parts of the endpoints of a kind, such as the tag and the access check. */
interface Kind<Granted extends Principal, Asker, Route> {
  tag: RouteDoc["tag"];
  errors: readonly ErrorCode[];
  /**
   * Returns the caller, or throws if access is denied. `isOwner` is true if the endpoint is open to the owner of this
   * machine and the caller is the owner.
   */
  admit(principal: Granted, isOwner: boolean): Asker;
  route(parts: RouteParts<Granted>): Route;
}

interface RouteParts<Granted> {
  method: ScopedRoute["method"];
  path: string;
  doc: RouteDoc;
  ownMachine: true | undefined;
  handle(exchange: Exchange, principal: Granted): Promise<Response>;
}

/** Declares endpoints for callers with the scope `access`. `admit` may deny access to a principal by throwing. */
export function scopedEndpoints<Deps extends EndpointDeps>(
  access: Scope,
  {
    tag,
    errors = [],
    admit,
  }: Pick<Kind<Principal, void, never>, "tag"> & Partial<Pick<Kind<Principal, void, never>, "errors" | "admit">>,
) {
  return endpointsOf<Deps, Principal, Principal, ScopedRoute>({
    ...{ tag, errors },
    admit(principal, isOwner) {
      if (!isOwner) admit?.(principal, isOwner);
      return principal;
    },
    route: (parts) => ({ ...parts, access }),
  });
}

/** Declares endpoints for signed-in people only. */
export function personEndpoints<Deps extends EndpointDeps, Asker = PersonPrincipal>(
  kind: Pick<Kind<PersonPrincipal, Asker, never>, "tag" | "errors" | "admit">,
) {
  return endpointsOf<Deps, PersonPrincipal, Asker, PersonRoute>({
    ...kind,
    route: (parts) => ({ ...parts, access: "person" }),
  });
}

/** Returns a function that declares one endpoint. The declaration becomes a route once it gets its dependencies. */
function endpointsOf<Deps extends EndpointDeps, Granted extends Principal, Asker, Route>(
  kind: Kind<Granted, Asker, Route>,
) {
  return <
    Shape,
    const Answer extends Shape,
    Found = undefined,
    Query extends z.ZodObject = z.ZodObject,
    Body extends z.ZodObject = z.ZodObject,
  >(
    method: ScopedRoute["method"],
    path: string,
    { first, answer, ownMachine, showsSecret, ...doc }: Endpoint<Deps, Asker, Found, Query, Body, Shape, Answer>,
  ) => {
    const [, name = ""] = /[:*](\w*)/.exec(path) ?? [];
    const read = async ({ req }: Exchange, deps: Deps) => {
      if (!doc.requestBody || (doc.bodyIsOptional && !req.hasBody)) return {} as z.output<Body>;
      return readStrictBody(doc.requestBody, req, deps.requestLimits());
    };
    return (deps: Deps): Route =>
      kind.route({
        ...{ method, path, ownMachine },
        doc: {
          ...doc,
          ...(method === "POST" && { repeatable: true }),
          tag: kind.tag,
          errors: [...errorsOf(method, doc), ...kind.errors],
        },
        async handle(exchange, principal) {
          const isOwner = ownMachine === true && exchange.isOwnMachine(principal);
          const request = {
            deps,
            exchange,
            principal: kind.admit(principal, isOwner),
            id: exchange.params[name || "*"] ?? "",
          };
          const found = (await first?.(request)) as Found;
          const query = (doc.query ? readQuery(doc.query, exchange.req.target) : {}) as z.output<Query>;
          const body = await read(exchange, deps);
          const asked = { ...request, found, query, body, origin: originOf(exchange, deps) };
          const work = async () => answer(asked);
          const repeated = await repeatOf(method, asked, work, principal);
          const headers = { ...repeated?.headers, ...(showsSecret ? noStore : {}) };
          return repeated ? new Response(repeated.json, { headers }) : Response.json(await work(), { headers });
        },
      });
  };
}

/**
 * For a POST request with an idempotency key, returns the stored answer or runs `work`. Returns undefined for other
 * requests.
 */
async function repeatOf<Deps extends EndpointDeps, Asker>(
  method: ScopedRoute["method"],
  { deps, exchange, body }: Request<Deps, Asker> & { body: unknown },
  work: () => Promise<unknown>,
  principal: Principal,
) {
  const { req } = exchange;
  const key = method === "POST" ? req.headers.get("idempotency-key") : null;
  if (key === null || !deps.idempotentRequests) return undefined;
  const repeatable = { key, target: req.target, body };
  const { json, isRepeated } = await deps.idempotentRequests.answer(principal, repeatable, work);
  const type = { "content-type": "application/json" };
  return { json, headers: isRepeated ? { ...type, "idempotent-replayed": "true" } : type };
}

/**
 * Returns the errors of an endpoint. Includes `not_found` if the path names an object, except for PUT, which
 * creates it.
 */
function errorsOf(method: ScopedRoute["method"], { requestBody, parameters, errors = [] }: Omit<RouteDoc, "tag">) {
  return [
    ...(requestBody ? bodyErrors : []),
    ...(parameters && method !== "PUT" ? ["not_found" as const] : []),
    ...errors,
  ];
}
