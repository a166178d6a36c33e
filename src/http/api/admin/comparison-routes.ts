// The operators' endpoint that compares a model with the models that share its traffic.
import { z } from "zod";
import type { Clock } from "../../../base/clock.ts";
import { fieldError, GatewayError } from "../../../base/errors.ts";
import { usdOf } from "../../../base/money.ts";
import { shown } from "../../../base/text/shown.ts";
import type { ModelPolicies } from "../../../domain/models/policies/model-policies.ts";
import type { ComparedSide, ComparisonKind, Comparisons } from "../../../domain/usage/comparison.ts";
import type { Catalog } from "../../../inference/models/catalog.ts";
import { type ComparisonWire, comparisonList } from "../../../wire/models.ts";
import type { ScopedRoute } from "../../exchange/route.ts";
import type { EndpointDeps } from "../endpoint.ts";
import { adminEndpoints } from "./admin-endpoint.ts";

export interface AdminComparisonDeps extends EndpointDeps {
  comparisons: Comparisons;
  catalog: Pick<Catalog, "find">;
  clock: Clock;
}

const endpoint = adminEndpoints<AdminComparisonDeps>();
const [defaultSeconds, maxSeconds] = [7 * 86_400, 31 * 86_400];
const time = (description: string) => z.coerce.number().int().min(0).optional().meta({ description });

export function adminComparisonRoutes(deps: AdminComparisonDeps): ScopedRoute[] {
  return [compare(deps)];
}

const compare = endpoint("GET", "/v1/admin/comparisons", {
  operationId: "compareModels",
  summary: "Compare a model with the models that receive a share of its requests",
  description:
    "Returns an entry for the model of `policies.shadow` and for each model of `policies.split`, from the usage records of all accounts. Comparisons store no answers.",
  query: z.object({
    model: z.string().min(1).meta({ description: "the id of the model whose requests are copied or split" }),
    start: time("Unix seconds; the first time that counts, by default a week before `end`"),
    end: time("Unix seconds; the end of the time that counts, not included, by default now"),
  }),
  response: { description: "The comparisons.", json: comparisonList },
  errors: ["model_not_found"],
  async answer({ deps: { comparisons, catalog, clock }, query: { model: name, ...span } }) {
    const model = catalog.find(name);
    if (!model) {
      throw new GatewayError(
        "model_not_found",
        `There is no model \`${shown(name)}\`. GET /v1/admin/models lists all.`,
        {
          param: "model",
        },
      );
    }
    const { start, end } = spanOf(span, clock.nowSeconds());
    const data: ComparisonWire[] = [];
    // The comparisons run one after the other, because each reads all records of the period.
    for (const { kind, other, percent } of sharesOf(model.policies)) {
      const found = await comparisons.compare({ model: model.id, other, kind, start, end });
      data.push({
        ...{ object: "comparison", kind, percent, start, end, partial: found.isPartial },
        own: sideToWire(model.id, found.own),
        other: sideToWire(other, found.other),
      });
    }
    return { object: "list", data };
  },
});

function spanOf(asked: { start?: number | undefined; end?: number | undefined }, now: number) {
  const { end = now + 1, start = Math.max(0, end - defaultSeconds) } = asked;
  if (start >= end) throw fieldError("start", `must be a time before \`end\`, ${end} (got ${start}).`);
  if (end - start > maxSeconds) {
    throw fieldError("start", `must be at most 31 days before \`end\`, from ${end - maxSeconds} on (got ${start}).`);
  }
  return { start, end };
}

function sharesOf({ shadow, split = [] }: ModelPolicies = {}) {
  const of = (kind: ComparisonKind, { model, percent }: { model: string; percent: number }) => ({
    ...{ kind, percent },
    other: model,
  });
  return [...(shadow ? [of("shadow", shadow)] : []), ...split.map((part) => of("split", part))];
}

function sideToWire(model: string, side: ComparedSide): ComparisonWire["own"] {
  return {
    model,
    requests: side.requests,
    errors: side.errors,
    prompt_tokens: side.promptTokens,
    completion_tokens: side.completionTokens,
    cost: side.nanoUsd === null ? null : usdOf(side.nanoUsd),
    first_token_ms: side.firstTokenMs,
    duration_ms: side.durationMs,
    tokens_per_second: side.tokensPerSecond,
    answer_tokens: side.answerTokens,
  };
}
