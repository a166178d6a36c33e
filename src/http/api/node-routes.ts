// The endpoints for nodes: join, open the node's connection, and forward a request from another replica.
import type { Clock } from "../../base/clock.ts";
import type { NodeAcceptor } from "../../nodes/accept.ts";
import type { Enrolment } from "../../nodes/enrol.ts";
import { forwardPath } from "../../nodes/forward-wire.ts";
import { nodeConnectPath } from "../../nodes/tunnel/contract.ts";
import type { BodyLimits } from "../../requests/decode/parse-body.ts";
import { joinedShape, joinRequest } from "../../wire/nodes.ts";
import { readStrictBody } from "../content/strict-body.ts";
import { type ForwardedRequestDeps, forwardedRequest } from "../exchange/forwarded-request.ts";
import type { Answer, Exchange, MachineRoute, PublicRoute } from "../exchange/route.ts";
import { bodyErrors, originOf } from "./changes.ts";

export interface NodeRouteDeps extends ForwardedRequestDeps {
  enrolment: Pick<Enrolment, "join">;
  nodeAcceptor: Pick<NodeAcceptor, "upgrade">;
  clock: Clock;
}

/** Body limits for machines that have not joined yet. */
const bodyLimits: BodyLimits = { bodyBytes: 16_384, depth: 4 };

export function nodeRoutes(deps: NodeRouteDeps): (PublicRoute | MachineRoute)[] {
  return [
    {
      method: "POST",
      path: "/v1/nodes",
      access: "public",
      throttle: "machine",
      doc: {
        operationId: "joinAsNode",
        summary: "Join as a node, with a token from an operator",
        description:
          "`headrace node join` calls this endpoint. The machine creates a key pair and keeps the private key, with which it proves its identity at each connection. The token works only once.",
        tag: "Service",
        requestBody: joinRequest,
        example: { token: "hrn_…", name: "gpu-1", public_key: "A".repeat(43) },
        response: { description: "The node.", json: joinedShape },
        errors: [...bodyErrors, "permission_denied", "rate_limit_exceeded", "service_unavailable"],
      },
      handle: (exchange) => join(exchange, deps),
    },
    {
      method: "GET",
      path: nodeConnectPath,
      access: "machine",
      throttle: "machine",
      handle: (exchange) => deps.nodeAcceptor.upgrade(exchange),
    },
    {
      method: "POST",
      path: forwardPath,
      access: "machine",
      throttle: "signed",
      handle: (exchange) => forwardedRequest(exchange, deps),
    },
  ];
}

async function join(exchange: Exchange, deps: NodeRouteDeps): Promise<Answer> {
  const request = await readStrictBody(joinRequest, exchange.req, bodyLimits);
  return Response.json(await deps.enrolment.join(request, originOf(exchange, deps)));
}
