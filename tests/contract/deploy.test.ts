// What deploy/ says is true of this program: variables exist, commands are there, the files can be read by those who read them.
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseAllDocuments } from "yaml";
import { bunSettings } from "../../bin/bun-environment.mjs";
import packageJson from "../../package.json" with { type: "json" };
import { loadConfig, readConfigFile } from "../../src/config/config.ts";
import { options } from "../../src/config/options.ts";
import { runCommand } from "../fixtures/command-line.ts";

const root = join(import.meta.dir, "../..");
const deploy = join(root, "deploy");
const files = readdirSync(deploy, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(deploy, join(entry.parentPath, entry.name)));
const read = (name: string) => readFileSync(join(deploy, name), "utf8");

/** All documents of a file of YAML. */
function parsed(name: string): Yaml[] {
  return parseAllDocuments(read(name), { merge: true }).map((document) => {
    expect(document.errors, name).toEqual([]);
    return document.toJS() as Yaml;
  });
}

// biome-ignore lint/suspicious/noExplicitAny: files of others' formats, of which a few members are looked at.
type Yaml = any;

test.each(files)("uses only existing Headrace variables in %s", (name) => {
  const known = new Set(Object.values(options).flatMap(({ env }) => (env === undefined ? [] : [env])));
  const named = new Set(read(name).match(/\bHEADRACE_[A-Z_]+\b/g));
  expect([...named].filter((variable) => !known.has(variable))).toEqual([]);
});

// Templates of the chart become YAML with values: tests/deploy/helm.test.ts.
test.each(files.filter((name) => name.endsWith(".yaml") && !name.includes("/templates/")))(
  "parses %s as YAML",
  (name) => {
    expect(parsed(name).length).toBeGreaterThan(0);
  },
);

test.each(["headrace.yaml", "kubernetes/headrace.yaml"])("accepts %s as a configuration", async (name) => {
  await readConfigFile({ path: join(deploy, name), env: {} });
});

describe("the container image", () => {
  const dockerfile = read("Dockerfile");

  test("copies and builds only what exists", () => {
    const copied = [...dockerfile.matchAll(/^COPY(?: --chmod=\d+)? ([^-].*) \S+$/gm)].flatMap(([, from = ""]) =>
      from.split(" "),
    );
    expect(copied).toContain("deploy/health-check.ts");
    for (const path of copied) expect(existsSync(join(root, path)), path).toBe(true);
    expect(dockerfile).toContain("RUN node scripts/release.mjs");
    expect(existsSync(join(root, "scripts/release.mjs"))).toBe(true);
    expect(dockerfile).toContain("COPY --from=build /app/dist/release/package /opt/headrace");
    expect(read("headrace")).toContain("exec bun /opt/headrace/app/main.js");
  });

  test("starts Bun like the launcher, and not as root", () => {
    for (const [name, value] of Object.entries(bunSettings)) expect(dockerfile).toContain(`${name}=${value} `);
    expect(dockerfile).toMatch(/^USER 10001:10001$/m);
    expect(parsed("kubernetes/stateful-set.yaml")[0].spec.template.spec.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 10_001,
    });
  });

  test("checks the health of the configured server", async () => {
    const script = join(deploy, "health-check.ts");
    let status = 200;
    const server = Bun.serve({
      ...{ port: 0, hostname: "127.0.0.1" },
      fetch: ({ url }) => new Response("", { status: new URL(url).pathname === "/healthz" ? status : 404 }),
    });
    const check = () =>
      Bun.spawn([process.execPath, script], { env: { ...process.env, HEADRACE_PORT: String(server.port) } }).exited;
    expect(await check()).toBe(0);
    status = 503;
    expect(await check()).toBe(1);
    await server.stop(true);
    expect(await check()).toBe(1);
  });
});

const constant = (file: string, name: string) =>
  Number(new RegExp(`const ${name} = (\\d+)_000;`).exec(readFileSync(join(root, file), "utf8"))?.[1]);

/** The longest stop of a replica: it answers on, then it refuses, then open requests end. */
async function stopSeconds(): Promise<number> {
  const env = {
    ...{ HEADRACE_MODE: "production", HEADRACE_PUBLIC_URL: "https://ai.example.com", HEADRACE_SECRET: "ab".repeat(32) },
    HEADRACE_DATABASE_URL: "postgres://db.example.com/headrace",
  };
  const { lameDuckSeconds } = await loadConfig({ env, cwd: "/nonexistent" });
  expect(lameDuckSeconds).toBeGreaterThan(0);
  return (
    lameDuckSeconds + constant("src/server/serve.ts", "refusingMs") + constant("src/cli/serve/serve.ts", "drainMs")
  );
}

describe("Kubernetes", () => {
  const [set] = parsed("kubernetes/stateful-set.yaml");
  const pod = set.spec.template.spec;
  const [container] = pod.containers;

  test("gives each replica its own volume and a name of the headless service", () => {
    const services = parsed("kubernetes/services.yaml");
    expect(services.find(({ metadata }) => metadata.name === set.spec.serviceName).spec.clusterIP).toBe("None");
    expect(set.spec.volumeClaimTemplates.map(({ metadata }: Yaml) => metadata.name)).toEqual(["data"]);
    expect(container.volumeMounts).toContainEqual({ name: "data", mountPath: "/data" });
    for (const { spec } of services) expect(set.spec.template.metadata.labels).toMatchObject(spec.selector);
    const [budget] = parsed("kubernetes/disruption-budget.yaml");
    expect(set.spec.template.metadata.labels).toMatchObject(budget.spec.selector.matchLabels);
  });

  test("keeps service names out of Headrace's variables, and allows time to stop", async () => {
    expect(pod.enableServiceLinks).toBe(false);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan((await stopSeconds()) + 5);
  });

  test("does not restart a replica because its database is away", () => {
    expect(container.livenessProbe.httpGet.path).toBe("/healthz");
    expect(container.readinessProbe.httpGet.path).toBe("/readyz");
  });

  test("names only existing files in kustomization.yaml", () => {
    const [kustomization] = parsed("kubernetes/kustomization.yaml");
    const [generated] = kustomization.configMapGenerator;
    for (const name of [...kustomization.resources, ...generated.files]) {
      expect(existsSync(join(deploy, "kubernetes", name)), name).toBe(true);
    }
    const keys = [...generated.files, ...generated.literals.map((literal: string) => literal.split("=")[0])];
    const used = container.env.flatMap(({ valueFrom }: Yaml) => valueFrom?.configMapKeyRef?.key ?? []);
    for (const key of used) expect(keys).toContain(key);
  });
});

describe("compose", () => {
  const [compose] = parsed("compose.yaml");

  test("gives replicas equal settings except for their address, own volumes, and time to stop", async () => {
    const replicas = Object.entries<Yaml>(compose.services).filter(([name]) => name.startsWith("headrace-"));
    expect(replicas.length).toBe(2);
    const volumes = replicas.map(
      ([
        ,
        {
          volumes: [volume],
        },
      ]) => volume.split(":")[0],
    );
    expect(new Set(volumes).size).toBe(2);
    for (const volume of volumes) expect(Object.keys(compose.volumes)).toContain(volume);
    for (const [name, { environment, read_only, stop_grace_period }] of replicas) {
      expect(environment.HEADRACE_ADVERTISE_URL).toBe(`http://${name}:7545`);
      expect(environment).toMatchObject({
        ...replicas[0]?.[1].environment,
        HEADRACE_ADVERTISE_URL: expect.any(String),
      });
      expect(read_only).toBe(true);
      expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThan((await stopSeconds()) + 5);
    }
    for (const [name] of replicas) expect(read("nginx/compose.conf")).toContain(`server ${name}:7545`);
  });

  test("includes each requested variable in the example, and each mounted file", () => {
    const asked = new Set([...read("compose.yaml").matchAll(/\$\{([A-Z_]+)/g)].map(([, name]) => name));
    for (const name of asked) expect(read("compose.env.example")).toMatch(new RegExp(`^${name}=`, "m"));
    for (const [, path = ""] of read("compose.yaml").matchAll(/(\.\/[\w./-]+):/g)) {
      expect(existsSync(join(deploy, path)), path).toBe(true);
    }
  });
});

describe("systemd", () => {
  const unit = read("headrace.service");

  test("starts existing commands by systemd, with time to stop", async () => {
    const [, path = ""] = /^ExecStart=\/usr\/bin\/node \/opt\/headrace\/(\S+) serve$/m.exec(unit) ?? [];
    expect(existsSync(join(root, path))).toBe(true);
    expect(packageJson.scripts.build).toBe("node scripts/build.mjs");
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan((await stopSeconds()) + 5);
  });

  test("backs up the server's directory by its user with existing flags into a writable place", async () => {
    const backup = read("headrace-backup.service");
    const [, path = "", words = ""] =
      /^ExecStart=\/usr\/bin\/node \/opt\/headrace\/(\S+) backup (.*)$/m.exec(backup) ?? [];
    expect(existsSync(join(root, path))).toBe(true);
    const [folder = "", ...flags] = words.split(" ");
    const { stdout } = await runCommand(["backup", "--help"]);
    for (const flag of flags.filter((word) => word.startsWith("-"))) expect(stdout).toContain(`${flag} `);
    const writable = /^ReadWritePaths=(.*)$/m.exec(backup)?.[1]?.split(" ");
    const dataDir = /HEADRACE_DATA_DIR=(\S+)/.exec(unit)?.[1];
    expect(backup).toContain(`Environment=HEADRACE_DATA_DIR=${dataDir}`);
    expect(writable).toEqual([dataDir ?? "", folder]);
    for (const line of ["User=headrace", "Group=headrace", "EnvironmentFile=/etc/headrace/environment"]) {
      expect(`${unit}${backup}`.split(`\n${line}\n`)).toHaveLength(3);
    }
    expect(read("headrace-backup.timer")).toMatch(/^WantedBy=timers\.target$/m);
  });

  // Wherever systemd is: it knows all of its settings, and says which it does not.
  test.skipIf(Bun.which("systemd-analyze") === null)("passes systemd's check of our unit", async () => {
    const child = Bun.spawn(["systemd-analyze", "verify", join(deploy, "headrace.service")], {
      stderr: "pipe",
    });
    const said = await new Response(child.stderr).text();
    const ofOurs = said
      .split("\n")
      .filter((line) => line.includes("headrace.service") && !/Command .* is not executable/.test(line));
    expect(ofOurs).toEqual([]);
  });
});
