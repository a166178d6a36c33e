// Tests that names in policies that do not exist are logged once, again if they return, and never before all servers
// were asked.
import { expect, test } from "bun:test";
import type { Model } from "../../domain/models/model.ts";
import type { ModelPolicies } from "../../domain/models/policies/model-policies.ts";
import { PoliciesWithoutEffect } from "./policies-without-effect.ts";

function modelOf(id: string, policies: ModelPolicies = {}): Model {
  return {
    ...{ id, created: 1, ownedBy: "o", capabilities: undefined, context: undefined, price: undefined },
    ...{ environments: ["live"], deployments: [], policies },
  };
}

test("warns once about policies that name missing guardrails or models, or a model by its alias", () => {
  const received: unknown[] = [];
  let models = [
    modelOf("m", {
      ...{ guardrails: ["here", "gone"], shadow: { model: "second", percent: 1 }, split: [{ model: "n", percent: 1 }] },
      cache: {
        ...{ requests: "all", ttlSeconds: 1, priceFactor: 0 },
        semantic: { embeddingModel: "embedder", threshold: 1 },
      },
    }),
    modelOf("n"),
  ];
  const get = (id: string) => models.find((one) => one.id === id);
  const catalog = {
    complete: false,
    list: () => models,
    get,
    find: (id: string) => get(id === "second" ? "n" : id),
  };
  const policies = new PoliciesWithoutEffect({
    catalog,
    guardrails: () => [{ name: "here" }],
    log: {
      warn: (event, fields) => void received.push([event, fields?.["policy"], fields?.["names"], fields?.["detail"]]),
    },
  });
  policies.report();
  expect(received).toEqual([]);
  catalog.complete = true;
  policies.report();
  policies.report();
  expect(received.splice(0)).toEqual([
    ["policy_in_vain", "guardrails", "gone", "no guardrail of headrace.yaml: the model's requests are refused"],
    ["policy_in_vain", "shadow", "second", "an alias: name n itself; it gets none of the requests"],
    ["policy_in_vain", "cache", "embedder", "no model that is on offer: nothing is compared by meaning"],
  ]);
  models = [...models, modelOf("second"), modelOf("embedder")];
  policies.report();
  models = models.filter(({ id }) => id !== "n" && id !== "second");
  policies.report();
  expect(received.map((one) => (one as unknown[])[1])).toEqual(["shadow", "split"]);
});
