// OpenAI's batch endpoints: create a batch from a file of requests, list, read and cancel batches.

import { randomUUID } from "node:crypto";
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { fieldError, GatewayError } from "../../../base/errors.ts";
import { longLived } from "../../../base/long-lived.ts";
import { shown } from "../../../base/text/shown.ts";
import type { BatchRunner } from "../../../batches/batch-runner.ts";
import { batchEndpoints } from "../../../batches/input-lines.ts";
import type { Batch, BatchForm, BatchStore } from "../../../domain/batches/batch.ts";
import type { FileStore } from "../../../domain/files/stored-file.ts";
import type { Principal } from "../../../domain/principal.ts";
import { requireScope } from "../../../policy/authorize.ts";
import type { Throttle } from "../../../policy/throttle.ts";
import type { BodyLimits } from "../../../requests/decode/parse-body.ts";
import { batchObject, batchRequest, batchToWire } from "../../../wire/batches.ts";
import { requireMetadata } from "../../../wire/stored-chats.ts";
import { readQuery, requireStorable } from "../../content/query.ts";
import { readStrictBody } from "../../content/strict-body.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import { fileNotFound, madeBy } from "../files/file-routes.ts";
import { keptRoutes } from "../kept-routes.ts";
import { listOf, pageOf, pageQuery } from "../list.ts";
import { responseOwnerOf } from "../response-owner.ts";

const route = keptRoutes({ base: "/v1/batches", tag: "Batches", noun: "batch" });

export interface BatchRouteDeps {
  batches: BatchStore;
  batchRunner: Pick<BatchRunner, "poll">;
  files: FileStore;
  throttle: Pick<Throttle, "require">;
  /** Returns the maximum number of unfinished batches of an account. A reload may change it. */
  openBatches(): number;
  clock: Clock;
  requestLimits(): BodyLimits;
}

const windowSeconds = longLived.batch.maxMs / 1_000;
const query = z.object(pageQuery);

export function batchRoutes(deps: BatchRouteDeps): ScopedRoute[] {
  const { batches, clock } = deps;
  return [
    createRoute(deps),
    route(
      "GET",
      "",
      {
        operationId: "listBatches",
        summary: "List batches",
        description: "Newest first, including batches of Messages.",
        query,
        response: { description: "One page.", json: listOf(batchObject, "BatchList") },
      },
      async ({ req }, principal) => {
        const { after, limit } = readQuery(query, req.target);
        const page = { form: undefined, after, before: undefined, limit: limit + 1 };
        const found = await batches.list(responseOwnerOf(principal), page);
        if (!found) throw fieldError("after", "must be the id of a batch, such as last_id of the page before.");
        return Response.json(pageOf(found.map(batchToWire), limit));
      },
    ),
    route(
      "GET",
      "/:id",
      {
        operationId: "retrieveBatch",
        summary: "Retrieve a batch",
        description: "Includes the number of answered requests and their usage.",
        response: { description: "The batch.", json: batchObject },
        errors: ["not_found"],
      },
      async ({ params }, principal) => Response.json(batchToWire(await findBatch(params["id"] ?? "", principal, deps))),
    ),
    route(
      "POST",
      "/:id/cancel",
      {
        operationId: "cancelBatch",
        summary: "Cancel a batch",
        description:
          "No further request is answered. Running requests are cancelled and not charged. The output has the earlier answers. A batch that has ended does not change.",
        response: { description: "The batch.", json: batchObject },
        errors: ["not_found"],
      },
      async ({ params }, principal) => {
        const id = params["id"] ?? "";
        const batch = await batches.cancel(responseOwnerOf(principal), id, clock.nowSeconds());
        if (!batch) throw batchNotFound(id);
        deps.batchRunner.poll();
        return Response.json(batchToWire(batch));
      },
    ),
  ];
}

function createRoute(deps: BatchRouteDeps): ScopedRoute {
  return route(
    "POST",
    "",
    {
      operationId: "createBatch",
      summary: "Create a batch",
      description:
        "The requests of a file are answered within 24 hours, while model servers have slots that no other request needs. Each line is `{custom_id, method, url, body}`, with `endpoint` as its `url`.",
      requestBody: batchRequest,
      example: { input_file_id: "file-00", endpoint: "/v1/chat/completions", completion_window: "24h" },
      response: { description: "The batch, before its validation.", json: batchObject },
      errors: ["invalid_request", "not_found", "rate_limit_exceeded", "request_too_large", "unsupported_media_type"],
    },
    async ({ req }, principal) => {
      const body = await readStrictBody(batchRequest, req, deps.requestLimits());
      if (!batchEndpoints.has(body.endpoint)) {
        throw fieldError("endpoint", `must be one of ${[...batchEndpoints.keys()].join(", ")}.`);
      }
      requireStorable("input_file_id", body.input_file_id);
      const file = await deps.files.find(responseOwnerOf(principal), body.input_file_id, deps.clock.nowSeconds());
      if (!file) throw fileNotFound(body.input_file_id, "input_file_id");
      if (file.purpose !== "batch") {
        throw fieldError("input_file_id", `must be a file with the purpose batch (got ${file.purpose}).`);
      }
      const batch = newBatch(principal, deps.clock, {
        ...{ form: "openai", endpoint: body.endpoint, inputFileId: file.id },
        metadata: body.metadata ? requireMetadata(body.metadata) : null,
        keepSeconds: body.output_expires_after?.seconds ?? null,
      });
      return Response.json(batchToWire(await begin(batch, principal, deps)));
    },
  );
}

export function newBatch(
  principal: Principal,
  clock: Clock,
  given: Pick<Batch, "form" | "endpoint" | "inputFileId" | "metadata" | "keepSeconds">,
): Batch {
  const createdAt = clock.nowSeconds();
  const prefix: Record<BatchForm, string> = { openai: "batch_", anthropic: "msgbatch_" };
  return {
    id: `${prefix[given.form]}${randomUUID().replaceAll("-", "")}`,
    ...madeBy(principal),
    ...given,
    ...{ status: "validating", ending: null, createdAt, expiresAt: createdAt + windowSeconds },
    ...{ inProgressAt: null, finalizingAt: null, cancellingAt: null, endedAt: null },
    ...{ models: [], total: 0, completed: 0, failed: 0 },
    ...{ promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 },
    ...{ outputFileId: null, errorFileId: null, faults: [] },
  };
}

/** Stores a batch and starts its processing. Rejects with `rate_limit_exceeded` if the account has too many batches. */
export async function begin(
  batch: Batch,
  principal: Principal,
  {
    batches,
    batchRunner,
    throttle,
    openBatches,
  }: Pick<BatchRouteDeps, "batches" | "batchRunner" | "throttle" | "openBatches">,
): Promise<Batch> {
  requireScope(principal, "chat:write");
  await throttle.require("change", principal);
  const most = openBatches();
  if (!(await batches.create(batch, most))) {
    throw new GatewayError(
      "rate_limit_exceeded",
      `This account has ${most} batches that have not ended, the most that it may have. Retry when one of them has ended, or cancel one.`,
      { retryAfterSeconds: 60 },
    );
  }
  batchRunner.poll();
  return batch;
}

export async function findBatch(
  id: string,
  principal: Principal,
  { batches }: Pick<BatchRouteDeps, "batches">,
): Promise<Batch> {
  const found = await batches.find(responseOwnerOf(principal), id);
  if (!found) throw batchNotFound(id);
  return found;
}

/** Returns the error for an unknown batch. A deleted batch, and a batch of another owner, get the same error. */
export function batchNotFound(id: string): GatewayError {
  return new GatewayError("not_found", `There is no batch \`${shown(id)}\`. GET /v1/batches lists them.`, {
    param: "batch_id",
  });
}
