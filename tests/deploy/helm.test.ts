// The chart of deploy/helm gives manifests that Kubernetes takes, says what is wrong with values, and is deploy/kubernetes
// in another form.
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { parse } from "yaml";
import { deployTools } from "../../scripts/test-programs.mjs";
import { readConfigFile } from "../../src/config/config.ts";
import {
  complaints,
  deploy,
  documents,
  output,
  plainManifests,
  root,
  run,
  temporaryDirectory,
  type Yaml,
} from "./tools.ts";
import { typeErrors } from "./typed.ts";

const chart = join(deploy, "helm", "headrace");
const image = { repository: "registry.example.com/headrace" };
const publicUrl = "https://ai.example.com";
const existing = { existing: { name: "headrace" } };
const token = "0123456789abcdef";
const labels = { release: "prometheus" };

/** Values that people have, by what they have. */
const valuesOf: Record<string, Yaml> = {
  "one replica with SQLite": { image, publicUrl },
  "replicas with secrets that there are": {
    ...{ image, publicUrl, replicas: 3, trustedProxies: ["10.0.0.0/8"] },
    ...{ secret: existing, postgresql: existing, valkey: existing, metrics: existing },
    config: parse(await Bun.file(join(deploy, "kubernetes", "headrace.yaml")).text()),
  },
  "what the guide shows": parse(
    /```yaml\n(# values\.yaml\n[^`]*)```/.exec(await Bun.file(join(root, "docs", "scaling.md")).text())?.[1] ?? "",
  ),
  "everything that there is": {
    ...{ image: { ...image, digest: `sha256:${"ab".repeat(32)}` }, imagePullSecrets: [{ name: "registry" }] },
    ...{ publicUrl: "https://ai.example.com:8443/", replicas: 2, secret: { value: "ab".repeat(32) } },
    postgresql: { url: "postgres://headrace:password@db.example.com/headrace" },
    valkey: { url: "rediss://default:password@cache.example.com:6379/0" },
    metrics: { token, podMonitor: { enabled: true, labels }, alerts: { enabled: true, labels } },
    ingress: { enabled: true, className: "nginx", tlsSecret: "tls", annotations: { "example.com/buffering": "off" } },
    ...{ service: { type: "LoadBalancer", port: 8080, annotations: { "example.com/scheme": "internal" } } },
    ...{ persistence: { size: "20Gi", storageClass: "fast" }, disruptionBudget: { maxUnavailable: "50%" } },
    ...{ stop: { lameDuckSeconds: 15, graceSeconds: 90 }, podAnnotations: { "example.com/team": "inference" } },
    ...{ nodeSelector: { "kubernetes.io/arch": "amd64" }, tolerations: [{ key: "gateways", operator: "Exists" }] },
    affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
    env: [{ name: "CLOUD_API_KEY", valueFrom: { secretKeyRef: { name: "cloud", key: "api-key" } } }],
  },
};
const everything = valuesOf["everything that there is"];

/** Runs helm with values, as JSON: helm reads YAML 1.1, in which "off" without its quotes is a boolean. */
function helm(args: readonly string[], values: Yaml) {
  return run([deployTools.helm, ...args, "--values", "-"], { input: JSON.stringify(values) });
}

async function rendered(values: Yaml, name = "headrace"): Promise<string> {
  const { code, stdout, stderr } = await helm(["template", name, chart], values);
  expect([code, stderr.replaceAll(/^level=INFO.*\n/gm, "")]).toEqual([0, ""]);
  return stdout;
}

async function refusal(values: Yaml): Promise<string> {
  const { code, stderr } = await helm(["template", "headrace", chart], values);
  expect(code).toBe(1);
  return stderr;
}

const named = (all: Yaml[], kind: string) => all.find((one) => one.kind === kind);
const container = (all: Yaml[]) => named(all, "StatefulSet").spec.template.spec.containers[0];

describe("the Helm chart renders valid manifests", () => {
  test.each(Object.entries(valuesOf))(
    "renders valid manifests for %s by Helm's rules and Kubernetes' schemas",
    async (_, values) => {
      const { code, stdout } = await helm(["lint", chart, "--strict"], values);
      expect([code, stdout.match(/\[(WARNING|ERROR)\].*/g)]).toEqual([0, null]);
      // The operator's resources are no part of Kubernetes; they have a test of their own.
      const manifests = documents(await rendered(values)).filter(({ apiVersion }) => !/^monitoring/.test(apiVersion));
      const text = manifests.map((one) => JSON.stringify(one)).join("\n---\n");
      expect(await Promise.all(["1.30", "1.37"].map((version) => complaints(text, version)))).toEqual(["", ""]);
    },
  );

  test("packages the chart with its alerts and the same manifests", async () => {
    await using directory = await temporaryDirectory();
    await output([deployTools.helm, "package", chart, "--destination", directory.path]);
    const version = parse(await Bun.file(join(chart, "Chart.yaml")).text()).version;
    const { stdout } = await helm(
      ["template", "headrace", join(directory.path, `headrace-${version}.tgz`)],
      everything,
    );
    expect(stdout).toBe(await rendered(everything));
    const alerts = parse(await Bun.file(join(deploy, "prometheus", "headrace-alerts.yaml")).text());
    expect(named(documents(stdout), "PrometheusRule").spec).toEqual(alerts);
  });

  test("gives the Prometheus operator's resources only published fields", async () => {
    const all = documents(await rendered(everything));
    for (const kind of ["PodMonitor", "PrometheusRule"]) {
      const name = `@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1/${kind}`;
      const types = `import type { I${kind} } from "${name}";\ntype Checked = I${kind};\n`;
      const resource = named(all, kind);
      expect(resource.metadata.labels).toMatchObject(labels);
      expect(await typeErrors(types, resource)).toEqual([]);
      resource.spec.selctor = {};
      expect((await typeErrors(types, resource)).join("\n")).toContain("selctor");
    }
    const [endpoint] = named(all, "PodMonitor").spec.podMetricsEndpoints;
    const { name, key } = endpoint.authorization.credentials;
    expect(named(all, "Secret").metadata.name).toBe(name);
    expect(named(all, "Secret").stringData[key]).toBe(token);
  });

  test("renders a valid Headrace configuration with variables from the right sources", async () => {
    for (const values of Object.values(valuesOf)) {
      const all = documents(await rendered(values, "eu"));
      const { data, metadata } = named(all, "ConfigMap");
      await using directory = await temporaryDirectory();
      const path = join(directory.path, "headrace.yaml");
      await Bun.write(path, data["headrace.yaml"]);
      await readConfigFile({ path, env: {} });
      expect(metadata.name).toBe("eu-headrace");
      const own = named(all, "Secret")?.stringData ?? {};
      for (const { valueFrom } of container(all).env) {
        if (valueFrom?.configMapKeyRef) expect(data).toHaveProperty([valueFrom.configMapKeyRef.key]);
        if (valueFrom?.secretKeyRef?.name === "eu-headrace") expect(own).toHaveProperty([valueFrom.secretKeyRef.key]);
      }
    }
  });
});

describe("wrong values of the Helm chart are refused by name", () => {
  test.each<[Yaml, string]>([
    [{ replica: 3 }, "replica"],
    [{ postgresql: { uri: "postgres://db/headrace" } }, "uri"],
    [{ metrics: { podMonitor: { enable: true } } }, "enable"],
    [{ replicas: 0 }, "/replicas"],
    [{ postgresql: { url: "mysql://db/headrace" } }, "/postgresql/url"],
    [{ publicUrl: "https://ai.example.com/v1" }, "/publicUrl"],
    [{ metrics: { token: "short" } }, "/metrics/token"],
  ])("refuses the chart value %j by name", async (values, name) => {
    const said = await refusal({ image, publicUrl, ...values });
    expect(said).toContain("specifications of the schema");
    expect(said).toContain(name);
  });

  test.each<[Yaml, string]>([
    [{ image: {} }, "image.repository: is missing"],
    [{ publicUrl: "" }, "publicUrl: is missing"],
    [{ replicas: 2 }, "replicas: is 2, and several replicas share PostgreSQL and Valkey"],
    [{ replicas: 2, postgresql: existing, secret: existing }, "Give postgresql and valkey, or 1 replica"],
    [{ postgresql: existing }, "secret: is missing"],
    [{ valkey: existing, secret: existing }, "postgresql: is missing"],
    [{ metrics: { podMonitor: { enabled: true } } }, "metrics.podMonitor: needs metrics.token"],
    [{ stop: { lameDuckSeconds: 30 } }, "stop.graceSeconds: is 60, and a stop takes up to 66 s"],
    [{ secret: existing, postgresql: existing, stop: { graceSeconds: 40 } }, "Give 41 or more"],
  ])("refuses the chart value %j and says what to do", async (values, message) => {
    expect(await refusal({ image, publicUrl, ...values })).toContain(message);
  });
});

test("describes every existing value in the chart's schema", async () => {
  const schema = await Bun.file(join(chart, "values.schema.json")).json();
  const values = parse(await Bun.file(join(chart, "values.yaml")).text());
  const unknown = (at: string, part: Yaml, rule: Yaml): string[] =>
    Object.entries<Yaml>(part).flatMap(([name, value]) => {
      const found = rule.properties?.[name];
      if (found === undefined) return rule.additionalProperties === false ? [`${at}${name}`] : [];
      return value === null || typeof value !== "object" || Array.isArray(value)
        ? []
        : unknown(`${at}${name}.`, value, found);
    });
  expect(unknown("", values, schema)).toEqual([]);
  expect(Object.keys(schema.properties).toSorted()).toEqual(["global", ...Object.keys(values)].toSorted());
});

test("names existing resources and the next step in the chart's notes", async () => {
  const notes = async (values: Yaml) => {
    const { stdout } = await helm(["install", "eu", chart, "--dry-run=client", "--namespace", "ai"], values);
    return stdout.split("NOTES:")[1] ?? "";
  };
  const small = await notes({ image, publicUrl });
  for (const line of [
    "rollout status statefulset/eu-headrace",
    "kubectl -n ai exec eu-headrace-0 -- headrace setup-link",
    "port-forward service/eu-headrace 7545:80",
    "SQLite on the volume data-eu-headrace-0",
  ]) {
    expect(small).toContain(line);
  }
  expect(await notes(everything)).not.toMatch(/port-forward|SQLite/);
});

test("renders the same manifests as deploy/kubernetes, except labels, checksums and generated map names", async () => {
  const labelled = ["labels", "matchLabels", "selector", "annotations", "namespace", "imagePullPolicy", "optional"];
  const bare = (value: Yaml): Yaml => {
    if (Array.isArray(value)) return value.map(bare);
    if (value === null || typeof value !== "object") {
      return typeof value === "string" ? value.replace(/^headrace-[a-z0-9]{10}$/, "headrace") : value;
    }
    const kept = Object.entries(value).filter(([name]) => !labelled.includes(name));
    return Object.fromEntries(kept.map(([name, part]) => [name, bare(part)]));
  };
  const comparable = (text: string) =>
    documents(text)
      .map((one) => {
        const { data, spec } = one;
        if (data) data["headrace.yaml"] = parse(data["headrace.yaml"]);
        // These are what the interface takes them for where nothing is said.
        if (one.kind === "Service") spec.type ??= "ClusterIP";
        const probe = spec?.template?.spec.containers[0].startupProbe;
        if (probe) probe.timeoutSeconds ??= 1;
        return bare(one);
      })
      .toSorted((a, b) => `${a.kind}${a.metadata.name}`.localeCompare(`${b.kind}${b.metadata.name}`));
  const values = valuesOf["replicas with secrets that there are"];
  expect(comparable(await rendered(values))).toEqual(comparable(await plainManifests()));
});
