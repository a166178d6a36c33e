// Checks whether model servers fail real requests, as the running replicas report it in the database.
import { type AttemptCause, type AttemptReport, attemptText, mergedHealth } from "../domain/usage/attempt-health.ts";
import { SqlReplicaStore } from "../storage/tables/replica-store.ts";
import { type Check, type Finding, failure, ok } from "./finding.ts";
import type { Subject } from "./subject.ts";

const remedies: Readonly<Record<AttemptCause, string>> = {
  authentication: "Set the api_key of the upstream again: the server or the vendor refuses it.",
  quota: "Add credit to the account at the vendor, or raise its quota there.",
  rate_limit: "Raise the rate limit at the vendor, or set max_concurrency of the upstream lower.",
  overload: "Add capacity, or set max_concurrency of the upstream lower.",
  timeout: "See the log of the model server. If it only needs longer, raise timeout_seconds of the upstream.",
  dns: "Correct the host in the URL of the upstream, or the DNS of this machine.",
  tls: "Correct the certificate of the server, or the scheme in the URL of the upstream.",
  connection: "Start the model server, and check the URL of the upstream and firewalls.",
  not_http: "Check the port in the URL of the upstream: something else than an HTTP server answers there.",
  not_found: "Check the URL of the upstream and the model id of the deployment.",
  no_answer:
    "Check the URL of the upstream: the server, or a proxy before it, answers with something else than a model.",
  broke_off: "See the log of the model server and of proxies before it: answers end too early.",
  server_error: "See the log of the model server.",
};

export function attemptChecks({ database, server }: Pick<Subject, "database" | "server">): Check[] {
  if (!server) return [];
  const name = "requests";
  return [
    {
      name,
      async run() {
        const db = await database();
        if (!db) return undefined;
        const reports = (await new SqlReplicaStore(db).live()).flatMap(({ attempts }) => attempts ?? []);
        const findings = failures(reports, Date.now() / 1000);
        return findings.length > 0 ? findings : ok(name, "no upstream fails the requests of clients");
      },
    },
  ];
}

/** Returns a finding for each model that fails, or for the whole upstream if no single model does. */
function failures(reports: readonly AttemptReport[], nowSeconds: number): Finding[] {
  return [...Map.groupBy(reports, ({ upstream }) => upstream)].flatMap(([upstream, ofUpstream]) => {
    const failing = [...Map.groupBy(ofUpstream, ({ model }) => model)].flatMap(([model, found]) => {
      const health = mergedHealth(found);
      return health?.isFailing ? [{ model, health }] : [];
    });
    const ofModels = failing.filter(({ model }) => model !== null);
    return (ofModels.length > 0 ? ofModels : failing).map(({ model, health }) => {
      const said = attemptText(health, nowSeconds);
      const remedy = remedies[health.last?.cause ?? "server_error"];
      return failure(upstream, `is failing${model === null ? "" : ` with ${model}`}: ${said}`, remedy);
    });
  });
}
