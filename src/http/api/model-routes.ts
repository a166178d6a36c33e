// Lists the models that a key may use, in the formats of OpenAI, Anthropic and Codex.
import { z } from "zod";
import { fieldError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Catalog } from "../../inference/models/catalog.ts";
import { requireModel, usableModel } from "../../policy/authorize.ts";
import { readKnownQuery } from "../content/query.ts";
import { isAnthropicClient, requestIdHeader } from "../exchange/anthropic-errors.ts";
import type { Exchange, ScopedRoute } from "../exchange/route.ts";
import { codexModelShape, codexModels } from "./models/codex-models.ts";
import { type ListedModel, modelEntry, modelShape } from "./models/model-entries.ts";

type ModelCatalog = Pick<Catalog, "find" | "list" | "whenComplete">;

const modelList = z
  .object({
    object: z.literal("list"),
    data: z.array(modelShape),
    has_more: z.boolean().describe("True if more entries follow. Always false without `anthropic-version`."),
    first_id: z.string().nullable().describe("Id of the first entry of the page. null if the page is empty."),
    last_id: z.string().nullable().describe("Id of the last entry of the page. null if the page is empty."),
    models: z
      .array(codexModelShape)
      .optional()
      .describe("For Codex: the first 500 models that can chat. Present if the request has `client_version`."),
  })
  .meta({ id: "ModelList" });

const maxAPage = 1000;
const paged = "Needs an `anthropic-version` header";
const pageQuery = z.object({
  limit: z.coerce
    .number()
    .int()
    .min(1)
    .max(maxAPage)
    .default(20)
    .meta({
      description: `a whole number from 1 to ${maxAPage}: the maximum number of entries. ${paged}; without it, all are listed`,
    }),
  after_id: z
    .string()
    .min(1)
    .optional()
    .meta({ description: `the id of the last entry of the previous page, to get the next page. ${paged}` }),
  before_id: z
    .string()
    .min(1)
    .optional()
    .meta({ description: `the id of the first entry of a page, to get the previous page. ${paged}` }),
  client_version: z.string().optional().meta({ description: "the version of Codex; the answer then has `models`" }),
});

export function modelRoutes({ catalog }: { catalog: Catalog }): ScopedRoute[] {
  return [listRoute(catalog), retrieveRoute(catalog)];
}

function listRoute(catalog: ModelCatalog): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/models",
    access: "models:read",
    errorForm: "asked",
    doc: {
      operationId: "listModels",
      summary: "List the models that the credential may use",
      description:
        "For clients of OpenAI's and Anthropic's APIs. Aliases are separate entries, except aliases that end in `*`. With an `anthropic-version` header the list has pages, and errors have Anthropic's format.",
      tag: "Models",
      query: pageQuery,
      response: { description: "The models.", json: modelList },
      errors: ["invalid_request"],
    },
    async handle(exchange, principal) {
      await catalog.whenComplete();
      const { limit, after_id: after, before_id: before, client_version: version } = queryOf(exchange);
      const all = listed(catalog, principal);
      const page = limit === undefined ? { items: all, hasMore: false } : pageOf(all, { limit, after, before });
      const data = page.items.map(modelEntry);
      return Response.json({
        ...{ object: "list", data, has_more: page.hasMore },
        ...{ first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null },
        ...(version === undefined ? {} : { models: codexModels(all) }),
      } satisfies z.infer<typeof modelList>);
    },
  };
}

function retrieveRoute(catalog: ModelCatalog): ScopedRoute {
  return {
    method: "GET",
    path: "/v1/models/*",
    access: "models:read",
    errorForm: "asked",
    doc: {
      operationId: "retrieveModel",
      summary: "Retrieve one model",
      description:
        "An id or alias with slashes works both unchanged and percent-encoded. With an `anthropic-version` header errors have Anthropic's format.",
      tag: "Models",
      parameters: [{ name: "model", in: "path", description: "Model ID or alias." }],
      response: { description: "The model.", json: modelShape },
      errors: ["model_not_found"],
    },
    async handle(exchange, principal) {
      const name = exchange.params["*"] ?? "";
      if (isAnthropicClient(exchange.req)) Object.assign(exchange.answerHeaders, requestIdHeader(exchange.requestId));
      if (!catalog.find(name)) await catalog.whenComplete();
      const found = catalog.find(name);
      // A model that the caller may not see gets the same error as a missing one.
      const model = requireModel(principal, found && usableModel(principal, found), name);
      return Response.json(modelEntry({ name, model }));
    },
  };
}

/**
 * Lists each model, followed by its aliases. Aliases that end in `*` are left out, because they stand for many names.
 */
function listed(catalog: ModelCatalog, principal: Principal): ListedModel[] {
  return catalog
    .list()
    .filter((model) => usableModel(principal, model))
    .flatMap((model) => {
      // An alias is left out if it leads to another model, which has the name as its id or alias too.
      const aliases = (model.aliases ?? []).filter((name) => !name.endsWith("*") && catalog.find(name) === model);
      return [model.id, ...aliases].map((name) => ({ name, model }));
    });
}

/**
 * Returns the paging parameters of an Anthropic client. Any other client gets the whole list, so its paging parameters
 * are ignored.
 */
function queryOf(exchange: Exchange): Partial<z.infer<typeof pageQuery>> {
  const { req, requestId, answerHeaders } = exchange;
  if (!isAnthropicClient(req)) return readKnownQuery(pageQuery.pick({ client_version: true }), req.target);
  Object.assign(answerHeaders, requestIdHeader(requestId));
  return readKnownQuery(pageQuery, req.target);
}

interface PageWanted {
  limit: number;
  after: string | undefined;
  before: string | undefined;
}

/**
 * Returns one page of the list (Anthropic API reference, "List Models"). Throws `invalid_request` for two
 * cursors or an unknown one.
 */
function pageOf(
  all: readonly ListedModel[],
  { limit, after, before }: PageWanted,
): { items: readonly ListedModel[]; hasMore: boolean } {
  if (after !== undefined && before !== undefined) {
    throw fieldError("before_id", "must not be there beside after_id; send one of the two.");
  }
  if (before !== undefined) {
    const end = positionOf(all, "before_id", before);
    const start = Math.max(0, end - limit);
    return { items: all.slice(start, end), hasMore: start > 0 };
  }
  const start = after === undefined ? 0 : positionOf(all, "after_id", after) + 1;
  return { items: all.slice(start, start + limit), hasMore: start + limit < all.length };
}

function positionOf(all: readonly ListedModel[], field: string, id: string): number {
  const index = all.findIndex(({ name }) => name === id);
  if (index >= 0) return index;
  throw fieldError(field, `there is no model ${shown(id)} in the list any more; begin anew without ${field}.`);
}
