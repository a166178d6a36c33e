// OpenAI's realtime API: a WebSocket relayed to a model server, with limits and usage for each response.

import { z } from "zod";
import { fieldError, GatewayError, invalidRequest } from "../../../base/errors.ts";
import { invalidApiKey } from "../../../base/invalid-api-key.ts";
import { shown } from "../../../base/text/shown.ts";
import type { Deployment, Model } from "../../../domain/models/model.ts";
import { loggedModel } from "../../../domain/models/model-patterns.ts";
import type { Principal } from "../../../domain/principal.ts";
import { tagHeader } from "../../../domain/usage/request-tags.ts";
import { ownDeployments } from "../../../inference/overflow/overflow.ts";
import { RealtimeSession } from "../../../inference/realtime/session.ts";
import { requireUnguarded } from "../../../inference/realtime/session-responses.ts";
import { stoppingError } from "../../../inference/stopping.ts";
import { requireModel, requireScope } from "../../../policy/authorize.ts";
import type { Authenticator } from "../../../policy/credentials/authenticate.ts";
import type { LongConnections, OpenLongConnection } from "../../../policy/long-connections.ts";
import type { OpenRequests, OpenSlot } from "../../../policy/open-requests.ts";
import { asksForWebSocket, checkUpgradeRequest, offeredProtocols } from "../../../websocket/handshake.ts";
import { WebSocketLink } from "../../../websocket/websocket-link.ts";
import { renderError, toGatewayError } from "../../../wire/errors.ts";
import { modelId } from "../../../wire/parts.ts";
import { apiKeyOf, authorizationOf } from "../../exchange/api-key-header.ts";
import type { Exchange, PlainAnswer, ScopedRoute, UpgradeAnswer } from "../../exchange/route.ts";
import type { InferenceRouteDeps } from "../inference-answer.ts";
import { noteRefused } from "../usage/refused-inference.ts";
import { noWebSocket, upgradeRequired } from "./websocket-answer.ts";

export interface RealtimeRouteDeps extends InferenceRouteDeps {
  authenticator: Pick<Authenticator, "authenticate">;
  openRequests: Pick<OpenRequests, "enter">;
  longConnections: Pick<LongConnections, "open">;
}

/** The subprotocol of OpenAI's browser clients. They send their key as another subprotocol. */
const protocol = "realtime";
const query = z.object({ model: modelId });

export function realtimeRoutes(deps: RealtimeRouteDeps): ScopedRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/realtime",
      access: "chat:write",
      doc: {
        operationId: "connectRealtime",
        summary: "Open a realtime session with a model",
        description:
          "A WebSocket with OpenAI's realtime events, relayed to an upstream of the model that supports it. Each response is admitted, counted and charged separately. If a limit refuses one, the client gets an `error` event and the connection closes. Browsers send the key as the subprotocol `openai-insecure-api-key.<key>` beside `realtime`. The connection ends after an hour, and after ten minutes of silence.",
        tag: "Inference",
        query,
        response: { status: 101, description: "The connection is a WebSocket." },
        otherResponses: noWebSocket,
        errors: [
          ...(["invalid_request", "model_not_found", "rate_limit_exceeded"] as const),
          ...(["insufficient_quota", "upstream_error", "service_unavailable"] as const),
        ],
      },
      handle: (exchange) => connect(exchange, deps),
      refused: (exchange, principal, error, durationMs) =>
        noteRefused("realtime", exchange, principal, error, durationMs, deps),
    },
  ];
}

async function connect(exchange: Exchange, deps: RealtimeRouteDeps): Promise<PlainAnswer | UpgradeAnswer> {
  const { req } = exchange;
  if (!asksForWebSocket(req)) return upgradeRequired("/v1/realtime", "as the clients of OpenAI's SDKs do");
  // A cookie does not authenticate here, because browsers send it with a WebSocket request of any page.
  const asks = credentialOf(exchange, deps);
  const holds = credentialOf(exchange, deps, true);
  const principal = await asks();
  const checked = checkUpgradeRequest(req, undefined);
  if ("problem" in checked) {
    Object.assign(exchange.answerHeaders, checked.headers);
    throw invalidRequest(checked.problem);
  }
  if (deps.stopping.begun) throw stoppingError();
  const name = nameIn(req.target);
  exchange.line["model"] = loggedModel(name);
  exchange.line["stream"] = true;
  if (!deps.catalog.find(name)) await deps.catalog.whenComplete();
  const model = requireModel(principal, deps.catalog.find(name), name);
  if (model.capabilities?.realtime === false) {
    throw fieldError("model", `\`${shown(name)}\` does not support realtime. GET /v1/models shows capabilities.`);
  }
  requireUnguarded(model);
  // Rejects if the caller's request limit is reached, before a connection is opened.
  await deps.admitter.refuseSpent(principal, { onLimits: () => {} });
  // The HTTP request ends when the session begins, so the session takes an open-request slot of its own.
  let slot: OpenSlot | undefined = deps.openRequests.enter(principal);
  let connection: OpenLongConnection | undefined;
  const over = () => {
    slot?.release();
    slot = undefined;
    connection?.release();
  };
  try {
    connection = deps.longConnections.open({ kind: "realtimeSession", principal });
  } catch (error) {
    over();
    throw error;
  }
  const session = await opened(exchange, { name, model, principal: asks, holds, over }, deps).catch(
    (error: unknown) => {
      over();
      throw error;
    },
  );
  const spoken = offeredProtocols(req).includes(protocol) ? { "sec-websocket-protocol": protocol } : {};
  const maxMessageBytes = deps.requestLimits().bodyBytes;
  return {
    status: 101,
    headers: { ...checked.headers, ...spoken },
    upgrade(channel) {
      new WebSocketLink(channel, {
        ...{ role: "server", kind: "text", maxMessageBytes, memoryAccount: req.memoryAccount },
        listen: (link) => session.listenToClient(link),
      });
    },
    abandoned() {
      session.abandon();
      over();
    },
  };
}

interface Asked {
  name: string;
  model: Model;
  principal(): Promise<Principal>;
  holds(): Promise<Principal>;
  over(): void;
}

/** Returns a function that authenticates the request's credential. `isCheck` is passed to the authenticator. */
function credentialOf(
  exchange: Exchange,
  { authenticator }: RealtimeRouteDeps,
  isCheck = false,
): () => Promise<Principal> {
  const { clientAddress, requestId, req } = exchange;
  const presented = {
    ...{ authorization: authorizationOf(req), apiKey: apiKeyOf(req.headers), clientAddress, requestId },
    whyNotLocal: () => exchange.whyNotLocal(),
    isCheck,
  };
  return async () => {
    if (presented.authorization === null && presented.apiKey === null) throw invalidApiKey("missing");
    const principal = await authenticator.authenticate(presented);
    requireScope(principal, "chat:write");
    return principal;
  };
}

/** Tries the deployments until one accepts the connection. If none does, rejects with the error of the last one. */
async function opened(exchange: Exchange, asked: Asked, deps: RealtimeRouteDeps): Promise<RealtimeSession> {
  const { name, model } = asked;
  const own = ownDeployments(model);
  const able = deps.router
    .order(model, workload)
    .filter((one) => own.includes(one) && one.engine.connectRealtime && one.engine.accepts !== false);
  if (able.length === 0) {
    const why = own.some(({ engine }) => engine.connectRealtime)
      ? new GatewayError("service_unavailable", `No server of \`${shown(name)}\` takes connections at the moment.`, {
          retryAfterSeconds: 10,
        })
      : fieldError("model", `\`${shown(name)}\` runs nowhere that has realtime: it is relayed to upstreams alone.`);
    throw why;
  }
  let failure: unknown;
  for (const deployment of able) {
    const session = sessionAt(deployment, exchange, asked, deps);
    try {
      await deployment.engine.connectRealtime?.(
        {
          ...{ requestId: exchange.requestId, model: deployment.model },
          maxMessageBytes: deps.requestLimits().bodyBytes,
        },
        (link) => session.listenToServer(link),
      );
      if (exchange.req.clientGone.cancelled) {
        session.abandon();
        throw exchange.req.clientGone.reason;
      }
      return session;
    } catch (error) {
      failure = error;
      if (exchange.req.clientGone.cancelled) break;
    }
  }
  throw failure;
}

function sessionAt(
  deployment: Deployment,
  exchange: Exchange,
  { name, model, principal, holds, over }: Asked,
  deps: RealtimeRouteDeps,
): RealtimeSession {
  return new RealtimeSession({
    deps,
    models: { name, model, deployment },
    ...{ principal, holds, over },
    line: () => exchange.message("websocket"),
    refused: (line, principal, error) => noteRefused("realtime", line, principal, error, line.durationNow(), deps),
    tagHeader: exchange.req.headers.get(tagHeader),
    memoryAccount: exchange.req.memoryAccount,
    errorOf: (error) => (JSON.parse(renderError(error)) as { error: Record<string, unknown> }).error,
    toGatewayError,
  });
}

/** The workload for routing. A realtime session begins without a prompt. */
const workload = { promptTokens: 0, maxCompletionTokens: undefined, width: 1, prefix: () => undefined };

/**
 * Returns the model in the query. Throws `invalid_request` for a missing or invalid model, and for an
 * unsupported parameter.
 */
function nameIn(target: string): string {
  const at = target.indexOf("?");
  const params = new URLSearchParams(at < 0 ? "" : target.slice(at + 1));
  for (const other of ["intent", "call_id"]) {
    if (!params.has(other)) continue;
    throw fieldError(other, "is not relayed: open a session with `?model=`, and have what is heard transcribed by it.");
  }
  const name = params.get("model");
  if (name !== null && name !== "" && name.length <= 256) return name;
  throw fieldError("model", "must be in the address: /v1/realtime?model=… with 1 to 256 characters.");
}
