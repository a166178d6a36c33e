// Anthropic's batch endpoints for Messages. A batch is created from one body that contains all requests. Its results
// are read as lines.
import { z } from "zod";
import { fieldError, GatewayError } from "../../../base/errors.ts";
import { isKeepable } from "../../../batches/input-lines.ts";
import { maxModels } from "../../../batches/validate-batch.ts";
import type { Batch } from "../../../domain/batches/batch.ts";
import type { Principal } from "../../../domain/principal.ts";
import type { StoredFiles } from "../../../files/stored-files.ts";
import { validate } from "../../../requests/decode/validation.ts";
import {
  deletedMessageBatch,
  messageBatch,
  messageBatchList,
  messageBatchRequest,
  messageBatchToWire,
} from "../../../wire/batches.ts";
import { readJsonBody } from "../../content/body.ts";
import { readKnownQuery } from "../../content/query.ts";
import type { Exchange, ScopedRoute } from "../../exchange/route.ts";
import { madeBy } from "../files/file-routes.ts";
import { sendBytes } from "../files/send-bytes.ts";
import { keptRoutes } from "../kept-routes.ts";
import { responseOwnerOf } from "../response-owner.ts";
import { type BatchRouteDeps, batchNotFound, begin, newBatch } from "./batch-routes.ts";

const route = keptRoutes({
  ...{ base: "/v1/messages/batches", tag: "Batches", noun: "batch" },
  errorForm: "anthropic",
});

export interface MessageBatchRouteDeps extends BatchRouteDeps {
  storedFiles: StoredFiles;
  /** Returns the maximum number of requests in a batch. A reload may change it. */
  mostRequests(): number;
  /** The public base URL of the server, without `/v1`. */
  installationUrl(): string;
}

const endpoint = "/v1/messages";
/** Anthropic API reference, "List Message Batches". */
const query = z.object({
  limit: z.coerce.number().int().min(1).max(1_000).default(20).meta({
    description: "a whole number from 1 to 1000: the maximum number of batches",
  }),
  after_id: z.string().min(1).max(200).optional().meta({ description: "the last_id of a page, to get the next page" }),
  before_id: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .meta({ description: "the first_id of a page, to get the previous page" }),
});

export function messageBatchRoutes(deps: MessageBatchRouteDeps): ScopedRoute[] {
  return [createRoute(deps), listRoute(deps), ...oneRoutes(deps)];
}

function createRoute(deps: MessageBatchRouteDeps): ScopedRoute {
  return route(
    "POST",
    "",
    {
      operationId: "createMessageBatch",
      summary: "Create a batch of Messages",
      description:
        "The requests are answered within 24 hours, while model servers have slots that no other request needs. An invalid request gets an error as its own result.",
      requestBody: messageBatchRequest,
      response: { description: "The batch.", json: messageBatch },
      errors: ["invalid_request", "rate_limit_exceeded", "request_too_large", "unsupported_media_type"],
    },
    async (exchange, principal) => {
      const { body } = await readJsonBody(exchange.req, deps.requestLimits());
      validate(messageBatchRequest, body);
      const { requests } = body as z.infer<typeof messageBatchRequest>;
      requireOwnIds(requests);
      requireFew(requests, deps.mostRequests());
      const inputFileId = await keepLines(requests, principal, deps);
      const batch = newBatch(principal, deps.clock, {
        ...{ form: "anthropic", endpoint, inputFileId, metadata: null, keepSeconds: null },
      });
      try {
        const begun = await begin({ ...batch, total: requests.length }, principal, deps);
        return Response.json(toWire(begun, deps));
      } catch (error) {
        // If no batch was created from the file, the file is deleted, because it counts towards the account's storage.
        await deps.files.hide(responseOwnerOf(principal), inputFileId, deps.clock.nowSeconds());
        throw error;
      }
    },
  );
}

function listRoute(deps: MessageBatchRouteDeps): ScopedRoute {
  return route(
    "GET",
    "",
    {
      operationId: "listMessageBatches",
      summary: "List batches of Messages",
      query,
      response: { description: "One page, newest first.", json: messageBatchList },
    },
    async ({ req }, principal) => {
      const { limit, after_id: after, before_id: before } = readKnownQuery(query, req.target);
      const page = { form: "anthropic" as const, after, before, limit: limit + 1 };
      const found = await deps.batches.list(responseOwnerOf(principal), page);
      if (!found) throw fieldError(after === undefined ? "before_id" : "after_id", "must be the id of a batch.");
      const isBefore = after === undefined && before !== undefined;
      const data = (isBefore ? found.slice(-limit) : found.slice(0, limit)).map((batch) => toWire(batch, deps));
      const ids = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
      return Response.json({ data, has_more: found.length > limit, ...ids });
    },
  );
}

function oneRoutes(deps: MessageBatchRouteDeps): ScopedRoute[] {
  const { batches, batchRunner, clock, storedFiles } = deps;
  return [
    route(
      "GET",
      "/:id",
      {
        operationId: "retrieveMessageBatch",
        summary: "Retrieve a batch of Messages",
        response: { description: "The batch.", json: messageBatch },
        errors: ["not_found"],
      },
      async (exchange, principal) => Response.json(toWire(await find(exchange, principal, deps), deps)),
    ),
    route(
      "POST",
      "/:id/cancel",
      {
        operationId: "cancelMessageBatch",
        summary: "Cancel a batch of Messages",
        response: { description: "The batch.", json: messageBatch },
        errors: ["not_found"],
      },
      async (exchange, principal) => {
        const { id } = await find(exchange, principal, deps);
        const batch = await batches.cancel(responseOwnerOf(principal), id, clock.nowSeconds());
        if (!batch) throw batchNotFound(id);
        batchRunner.poll();
        return Response.json(toWire(batch, deps));
      },
    ),
    route(
      "DELETE",
      "/:id",
      {
        operationId: "deleteMessageBatch",
        summary: "Delete a batch of Messages",
        description: "Deletes a batch that has ended, with its results.",
        response: { description: "The batch is deleted.", json: deletedMessageBatch },
        errors: ["not_found", "invalid_request"],
      },
      async (exchange, principal) => {
        const { id, endedAt, outputFileId, inputFileId } = await find(exchange, principal, deps);
        const owner = responseOwnerOf(principal);
        if (endedAt === null) throw notEnded();
        // The batch is deleted after its files. If deleting a file fails, the client can repeat the deletion.
        for (const file of [outputFileId, inputFileId]) {
          if (file !== null) await deps.files.hide(owner, file, clock.nowSeconds());
        }
        await batches.delete(owner, id);
        return Response.json({ id, type: "message_batch_deleted" });
      },
    ),
    route(
      "GET",
      "/:id/results",
      {
        operationId: "readMessageBatchResults",
        summary: "Read the results of a batch of Messages",
        description: "One JSON object per line, in the order of the requests.",
        response: { description: "The results.", contentTypes: ["application/x-jsonl"] },
        errors: ["not_found", "service_unavailable"],
      },
      async (exchange, principal) => {
        const { outputFileId } = await find(exchange, principal, deps);
        if (outputFileId === null) {
          throw new GatewayError(
            "not_found",
            "The batch has no results yet: processing_status tells when it has ended.",
          );
        }
        return await sendBytes(storedFiles.readNamed(outputFileId), "application/x-jsonl", exchange.req.clientGone);
      },
    ),
  ];
}

function notEnded(): GatewayError {
  return new GatewayError("invalid_request", "The batch has not ended. Cancel it first, and wait for its end.");
}

/** Throws if two requests have the same id, because the client could not tell their results apart. */
function requireOwnIds(requests: readonly { custom_id: string }[]): void {
  const seen = new Map<string, number>();
  for (const [index, { custom_id: id }] of requests.entries()) {
    if (!isKeepable(id)) {
      throw fieldError(`requests[${index}].custom_id`, "must be without U+0000 and halves of characters.");
    }
    const before = seen.get(id);
    if (before !== undefined) {
      throw fieldError(`requests[${index}].custom_id`, `is that of requests[${before}] already; give each its own.`);
    }
    seen.set(id, index);
  }
}

/**
 * Throws if the batch has too many requests. This is checked now, because a Messages batch cannot report such an error
 * later.
 */
function requireFew(requests: z.infer<typeof messageBatchRequest>["requests"], mostRequests: number): void {
  if (requests.length > mostRequests) {
    throw fieldError("requests", `must be at most ${mostRequests} (batches.max_requests; got ${requests.length}).`);
  }
  const models = new Set(requests.map(({ params }) => params["model"]));
  if (models.size > maxModels) {
    throw fieldError("requests", `must ask for at most ${maxModels} models together (got ${models.size}).`);
  }
}

/** Stores the requests as lines of a hidden file, and returns the file's id. */
async function keepLines(
  requests: z.infer<typeof messageBatchRequest>["requests"],
  principal: Principal,
  { storedFiles }: MessageBatchRouteDeps,
): Promise<string> {
  const filename = "requests.jsonl";
  const purpose = "batch_requests" as const;
  const file = await storedFiles.begin(madeBy(principal), { filename, purpose, bytes: 0 });
  try {
    for (const { custom_id, params } of requests) {
      const line = JSON.stringify({ custom_id, method: "POST", url: endpoint, body: params });
      await file.write(Buffer.from(`${line}\n`));
    }
    return (await file.finish({ filename, purpose, keepSeconds: null })).id;
  } catch (error) {
    await file.abandon();
    throw error;
  }
}

async function find(
  { params }: Pick<Exchange, "params">,
  principal: Principal,
  { batches }: MessageBatchRouteDeps,
): Promise<Batch> {
  const id = params["id"] ?? "";
  const found = await batches.find(responseOwnerOf(principal), id);
  if (found?.form !== "anthropic") throw batchNotFound(id);
  return found;
}

function toWire(batch: Batch, { installationUrl }: MessageBatchRouteDeps) {
  return messageBatchToWire(batch, `${installationUrl()}/v1/messages/batches/${batch.id}/results`);
}
