// The JSON of a model in lists. Each entry has OpenAI's members, Anthropic's members, and the gateway's own.

import { z } from "zod";
import { byCapability } from "../../../domain/models/capabilities.ts";
import type { Model } from "../../../domain/models/model.ts";
import { priceToWire } from "../../../domain/models/price-text.ts";
import { dateOf, shutdownDate, unixSeconds } from "../../../wire/parts.ts";
import { priceShape } from "../../../wire/price.ts";

export const capabilitiesShape = z
  .object(byCapability(() => z.boolean().optional()))
  .optional()
  .describe("Omitted if unknown.");
export const contextShape = z
  .int()
  .optional()
  .describe("Context length in tokens, prompt and answer together. Omitted if unknown.");

export const modelShape = z
  .object({
    id: z.string(),
    object: z.literal("model"),
    created: unixSeconds,
    owned_by: z.string(),
    capabilities: capabilitiesShape,
    context_length: contextShape,
    shutdown_date: shutdownDate
      .optional()
      .describe("Date (UTC) on which the model ends, as its upstreams announced it. Omitted if they announced none."),
    price: priceShape.optional().describe("USD per million tokens. Omitted if the model has no price."),
    alias_of: z.string().optional().describe("For an alias: id of its model."),
    type: z.literal("model"),
    display_name: z.string().describe("The same as `id`."),
    created_at: z.string().describe("`created` as RFC 3339."),
    max_input_tokens: z.int().optional().describe("`context_length`, with Anthropic's name."),
    max_tokens: z.int().optional().describe("Maximum value of `max_tokens`: `context_length`."),
  })
  .meta({ id: "Model" });

/** A model under one of its listed names: the id or an alias. */
export interface ListedModel {
  name: string;
  model: Model;
}

export function modelEntry({ name, model }: ListedModel): z.infer<typeof modelShape> {
  const { id, created, ownedBy, capabilities, context, shutdownAt, price } = model;
  return {
    id: name,
    ...{ object: "model", created, owned_by: ownedBy },
    ...(capabilities ? { capabilities } : {}),
    ...(context === undefined ? {} : { context_length: context }),
    ...(shutdownAt === undefined ? {} : { shutdown_date: dateOf(shutdownAt) }),
    ...(price ? { price: priceToWire(price) } : {}),
    ...(name === id ? {} : { alias_of: id }),
    ...{ type: "model", display_name: name, created_at: rfc3339(created) },
    ...(context === undefined ? {} : { max_input_tokens: context, max_tokens: context }),
  };
}

/** The last second of the year 9999, as the latest time in an entry. Upstreams may report any number as a time. */
const lastSecond = 253_402_300_799;

function rfc3339(seconds: number): string {
  return new Date(Math.min(seconds, lastSecond) * 1000).toISOString().replace(".000Z", "Z");
}
