// Which models a key may use.
import { z } from "zod";
import type { Model } from "../../domain/models/model.ts";
import type { Catalog } from "../../inference/models/catalog.ts";
import { mayUseModel, requireModel } from "../../policy/authorize.ts";
import { unixSeconds } from "../../wire/parts.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import { wholeListOf } from "./list.ts";

export const capabilitiesShape = z
  .object({ chat: z.boolean().optional(), completion: z.boolean().optional(), embeddings: z.boolean().optional() })
  .optional()
  .describe("Left out where nobody says.");
export const contextShape = z
  .int()
  .optional()
  .describe("Tokens of prompt and answer together. Left out where nobody says.");

const modelShape = z
  .object({
    id: z.string(),
    object: z.literal("model"),
    created: unixSeconds,
    owned_by: z.string(),
    capabilities: capabilitiesShape,
    context_length: contextShape,
  })
  .meta({ id: "Model" });

const modelList = wholeListOf(modelShape, "ModelList");

export function modelRoutes({ catalog }: { catalog: Catalog }): ScopedRoute[] {
  return [
    {
      method: "GET",
      path: "/v1/models",
      access: "models:read",
      doc: {
        operationId: "listModels",
        summary: "List the models that this key may use",
        tag: "Models",
        response: { description: "The models.", json: modelList },
      },
      async handle(_exchange, principal) {
        await catalog.whenComplete();
        const data = catalog
          .list()
          .filter((model) => mayUseModel(principal, model))
          .map(toWire);
        return Response.json({ object: "list", data });
      },
    },
    {
      method: "GET",
      path: "/v1/models/*",
      access: "models:read",
      doc: {
        operationId: "retrieveModel",
        summary: "Retrieve one model",
        description: "An id with slashes works as it is and percent-encoded.",
        tag: "Models",
        parameters: [{ name: "model", in: "path", description: "Model ID." }],
        response: { description: "The model.", json: modelShape },
        errors: ["model_not_found"],
      },
      async handle(exchange, principal) {
        const id = exchange.params["*"] ?? "";
        if (!catalog.find(id)) await catalog.whenComplete();
        return Response.json(toWire(requireModel(principal, catalog.find(id), id)));
      },
    },
  ];
}

function toWire(model: Model): z.infer<typeof modelShape> {
  return {
    id: model.id,
    object: "model",
    created: model.created,
    owned_by: model.ownedBy,
    ...(model.capabilities ? { capabilities: model.capabilities } : {}),
    ...(model.context === undefined ? {} : { context_length: model.context }),
  };
}
