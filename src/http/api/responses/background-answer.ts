// Starts, streams and cancels background responses over HTTP.
import { fieldError, type GatewayError, invalidRequest } from "../../../base/errors.ts";
import type { BackgroundStore, StoredResponse } from "../../../domain/models/stored-response.ts";
import type { Principal } from "../../../domain/principal.ts";
import { tagHeader } from "../../../domain/usage/request-tags.ts";
import type { Authenticator } from "../../../policy/credentials/authenticate.ts";
import type { LongConnections } from "../../../policy/long-connections.ts";
import { priorityAsked, priorityHeader } from "../../../policy/request-priority.ts";
import type { DecodedRequest } from "../../../requests/decoded-request.ts";
import type { BackgroundRequest, BackgroundRuns } from "../../../responses/background/background-runs.ts";
import { EventSubscriber } from "../../../responses/background/event-subscriber.ts";
import type { Answer, Exchange } from "../../exchange/route.ts";
import { addLimitHeaders, type InferenceRouteDeps, logAsked, streamHeaders } from "../inference-answer.ts";
import { responseOwnerOf } from "../response-owner.ts";

export interface EventStreamDeps extends Pick<InferenceRouteDeps, "clock" | "stopping" | "heartbeatMs"> {
  authenticator: Pick<Authenticator, "still">;
  longConnections: Pick<LongConnections, "open">;
  background: Pick<BackgroundStore, "events" | "state" | "lastEvent" | "requestCancel">;
  backgroundRuns: BackgroundRuns;
}

/** Maximum milliseconds to wait until a cancelled response ends, because another replica may be running it. */
const stoppedMs = 5_000;
const pollMs = 100;

/**
 * Starts a background response. Answers with the queued response, or with a stream of its events. If the client leaves,
 * the response continues.
 */
export async function beginInBackground(
  exchange: Exchange,
  principal: Principal,
  request: DecodedRequest,
  deps: InferenceRouteDeps & EventStreamDeps,
): Promise<Answer> {
  logAsked(exchange, request);
  const { headers } = exchange.req;
  const message = exchange.message("background");
  message.line["model"] = exchange.line["model"];
  const begin: BackgroundRequest = {
    ...{ message, principal, request, limits: deps.requestLimits() },
    tagHeader: headers.get(tagHeader),
    priority: priorityAsked(headers.get(priorityHeader), principal),
    onLimits: (status) => addLimitHeaders(request.operation, status, exchange, deps),
  };
  const run = await deps.backgroundRuns.start(begin, deps).finally(() => {
    exchange.isOnLedger = message.isOnLedger;
  });
  if (request.stream) return streamEvents(exchange, principal, { id: run.id, after: -1 }, deps);
  return Response.json(run.queued);
}

/**
 * Streams the events of a response whose number is greater than `after`, including future events. Throws if no events
 * are stored.
 */
export async function streamStored(
  exchange: Exchange,
  principal: Principal,
  { id, background, status }: StoredResponse,
  after: number | undefined,
  deps: EventStreamDeps,
): Promise<Answer> {
  if (!background) throw neverStreamed();
  const isEnded = status !== "queued" && status !== "in_progress";
  if (isEnded && (await deps.background.lastEvent(id)) < 0) throw noEventsAnyMore();
  return streamEvents(exchange, principal, { id, after: after ?? -1 }, deps);
}

/**
 * Cancels a background response and waits for its end. Returns false if the response does not exist. A response that
 * has ended stays as it is. Reads no stored content, because that would require waiting for a turn.
 */
export async function cancelStored(
  principal: Principal,
  id: string,
  { background, backgroundRuns, clock }: EventStreamDeps,
): Promise<boolean> {
  const found = await background.requestCancel(responseOwnerOf(principal), id, clock.nowSeconds());
  if (!found) return false;
  if (!found.background) throw notInBackground();
  const run = backgroundRuns.find(id);
  run?.cancel();
  if (run) await Promise.race([run.ended, passed(stoppedMs)]);
  if (!isRunning(found)) return true;
  const untilMs = clock.monotonicMs() + stoppedMs;
  while (isRunning(await background.state(id, clock.nowSeconds())) && clock.monotonicMs() < untilMs) {
    await passed(pollMs);
  }
  return true;
}

function passed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function isRunning(state: Pick<StoredResponse, "status"> | undefined): boolean {
  return state?.status === "queued" || state?.status === "in_progress";
}

function streamEvents(
  exchange: Exchange,
  principal: Principal,
  { id, after }: { id: string; after: number },
  { authenticator, longConnections, background, backgroundRuns, stopping, heartbeatMs }: EventStreamDeps,
): Answer {
  let subscriber: EventSubscriber | undefined;
  const connection = longConnections.open({
    kind: "responseFollower",
    principal,
    watch: { holds: () => authenticator.still(principal), end: () => subscriber?.cutOff() },
  });
  exchange.releaseWhenOver(connection);
  return {
    status: 200,
    headers: streamHeaders,
    begin(client) {
      const running = () => backgroundRuns.find(id);
      const { polls } = backgroundRuns;
      const { clientGone } = exchange.req;
      subscriber = new EventSubscriber({
        id,
        after,
        client,
        clientGone,
        background,
        polls,
        running,
        stopping,
        heartbeatMs,
      });
      void subscriber.run();
    },
  };
}

function neverStreamed(): GatewayError {
  return fieldError(
    "stream",
    "must be false or left out: this response was not asked for in the background, so its events are not kept.",
  );
}

function noEventsAnyMore(): GatewayError {
  return fieldError(
    "stream",
    "must be false or left out: this response ended more than 10 minutes ago, and its events are kept no longer.",
  );
}

function notInBackground(): GatewayError {
  return invalidRequest(
    "This response was not asked for with `background: true`: it ends when the connection is closed that it was asked over.",
    { param: "response_id" },
  );
}
