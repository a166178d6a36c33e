// The image is made, and run by an OCI runtime as those who run images should: nobody's root, nothing to write but its data.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { config, environment, user } from "../../scripts/release/image/config.ts";
import { makeImage } from "../../scripts/release/image/image.ts";
import { writeLayers } from "../../scripts/release/image/layers.ts";
import { makePackage } from "../../scripts/release/package.ts";
import { until } from "../support/headrace.ts";
import { freePort } from "../support/nginx-site.ts";
import { deploy, output, run, type Yaml } from "./tools.ts";

const name = `headrace-${process.pid}`;
let directory: string;
let size: number;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "headrace-deploy-"));
  await makePackage(directory);
  size = makeImage(directory);
}, 120_000);

afterAll(() => rm(directory, { recursive: true, force: true }));

const blob = (digest: string): Promise<Yaml> =>
  Bun.file(join(directory, "image", "blobs", digest.replace(":", "/"))).json();

test("keeps the image's download under 150 MB", () => {
  expect(size).toBeGreaterThan(50e6);
  expect(size).toBeLessThan(150e6);
});

test("builds the same layers from the same files", async () => {
  const index = await Bun.file(join(directory, "image", "index.json")).json();
  const described = await blob((await blob(index.manifests[0].digest)).config.digest);
  const again = join(directory, "again");
  const files = writeLayers(again, join(directory, "package"), Date.parse(described.created) / 1000);
  const digests = files.map(async (file) => {
    const hash = new Bun.CryptoHasher("sha256").update(await Bun.file(file).bytes());
    return `sha256:${hash.digest("hex")}`;
  });
  expect(await Promise.all(digests)).toEqual(described.rootfs.diff_ids);
  await rm(again, { recursive: true });
}, 60_000);

test("describes the image's name, start and health check", async () => {
  const index = await Bun.file(join(directory, "image", "index.json")).json();
  const manifest = await blob(index.manifests[0].digest);
  const { config: reported, architecture } = await blob(manifest.config.digest);
  expect(architecture).toBe("amd64");
  expect(reported).toMatchObject(config);
  expect(manifest.annotations).toMatchObject({
    "org.opencontainers.image.title": "Headrace",
    "org.opencontainers.image.licenses": "Apache-2.0",
    "org.opencontainers.image.version": packageJson.version,
    "org.opencontainers.image.revision": expect.stringMatching(/^[0-9a-f]{40}$/),
  });
});

/** The layout, unpacked and run, by programs that know the specification and not us. */
async function started(port: number) {
  const bundle = join(directory, "bundle");
  await output(["umoci", "unpack", "--image", `${join(directory, "image")}:${packageJson.version}`, bundle]);
  const spec: Yaml = await Bun.file(join(bundle, "config.json")).json();
  const data = join(directory, "volume");
  await mkdir(data);
  await output(["chown", `${user}:${user}`, data]);
  const own = { HEADRACE_HOST: "127.0.0.1", HEADRACE_PORT: port, HEADRACE_PUBLIC_URL: "https://ai.example.com" };
  spec.process.env.push(...Object.entries(own).map(([variable, value]) => `${variable}=${value}`));
  spec.process.rlimits = [];
  spec.process.terminal = false;
  spec.process.capabilities = {};
  spec.root.readonly = true;
  // It listens on loopback of this machine.
  spec.linux.namespaces = spec.linux.namespaces.filter(({ type }: Yaml) => type !== "network");
  const mounts = spec.mounts.filter(
    ({ destination }: Yaml) => !["/data", "/sys", "/sys/fs/cgroup"].includes(destination),
  );
  const temporary = { destination: "/tmp", type: "tmpfs", source: "tmpfs", options: ["nosuid", "nodev", "mode=1777"] };
  spec.mounts = [...mounts, temporary, { destination: "/data", type: "bind", source: data, options: ["bind", "rw"] }];
  await Bun.write(join(bundle, "config.json"), JSON.stringify(spec));
  const child = Bun.spawn(["runc", "--root", join(directory, "runc"), "run", "--bundle", bundle, name], {
    ...{ stdin: "ignore", stdout: Bun.file(join(directory, "log")), stderr: Bun.file(join(directory, "errors")) },
  });
  const within = (...command: string[]) => run(["runc", "--root", join(directory, "runc"), "exec", name, ...command]);
  return { child, data, within };
}

test("runs the image without root with only its data writable, streams an answer, and stops in time", async () => {
  const port = await freePort();
  const { child, data, within } = await started(port);
  try {
    const [, ...healthCheck] = config.Healthcheck.Test;
    await until(async () => (await within(...healthCheck)).code === 0, "it is healthy", 20_000);
    const rights = await within("sh", "-c", 'while read line; do echo "$line"; done < /proc/1/status');
    expect(rights.stdout).toMatch(new RegExp(`^Uid:\\s+${user}\\s+${user}\\s+${user}\\s+${user}$`, "m"));
    expect(rights.stdout).toMatch(/^CapEff:\s+0+$/m);
    expect(rights.stdout).toMatch(/^CapBnd:\s+0+$/m);
    const mounts = (await within("sh", "-c", 'while read line; do echo "$line"; done < /proc/self/mounts')).stdout;
    expect(mounts).toMatch(/^\S+ \/ \S+ ro,/m);
    for (const path of ["/opt/headrace/x", "/usr/local/bin/bun", "/etc/passwd"]) {
      const { code, stderr } = await within("sh", "-c", `: >> ${path}`);
      expect([code !== 0, stderr]).toEqual([true, expect.stringMatching(/Read-only file system|Permission denied/)]);
    }

    const key: Yaml = await Bun.file(join(data, "credentials.json")).json();
    const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.api_key}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "tiny-demo", stream: true, messages: [{ role: "user", content: "Who are you?" }] }),
    });
    expect(answer.status).toBe(200);
    const events = (await answer.text()).split("\n\n").filter((event) => event.startsWith("data: {"));
    expect(events.length).toBeGreaterThan(3);
    expect((await within("headrace", "--version")).stdout).toContain(packageJson.version);

    const written = await readdir(data, { recursive: true });
    expect(written).toContain("headrace.db");
    for (const file of written) expect([file, (await stat(join(data, file))).uid]).toEqual([file, user]);
  } finally {
    child.kill("SIGTERM");
  }
  expect(await Promise.race([child.exited, Bun.sleep(35_000)])).toBe(0);
}, 90_000);

test("builds an image with the same description from the Dockerfile", async () => {
  const dockerfile = await Bun.file(join(deploy, "Dockerfile")).text();
  const last = (dockerfile.split(/^FROM /m).at(-1) ?? "").replaceAll(/ *\\\n */g, " ");
  const { Interval, Timeout, StartPeriod, Test } = config.Healthcheck;
  const json = (words: readonly string[]) => JSON.stringify(words).replaceAll(",", ", ");
  const inSeconds = (nanoseconds: number) => `${nanoseconds / 1e9}s`;
  const times = `--interval=${inSeconds(Interval)} --timeout=${inSeconds(Timeout)} --start-period=${inSeconds(StartPeriod)}`;
  // The image that it builds on has a PATH with the same in it.
  const { PATH: _, ...set } = environment;
  for (const line of [
    `ENV ${Object.entries(set)
      .map(([variable, value]) => `${variable}=${value}`)
      .join(" ")}`,
    `USER ${config.User}`,
    `WORKDIR ${config.WorkingDir}`,
    `VOLUME ${Object.keys(config.Volumes).join(" ")}`,
    `EXPOSE ${Number.parseInt(Object.keys(config.ExposedPorts)[0] ?? "", 10)}`,
    `STOPSIGNAL ${config.StopSignal}`,
    `HEALTHCHECK ${times} CMD ${json(Test.slice(1))}`,
    `ENTRYPOINT ${json(config.Entrypoint)}`,
    `CMD ${json(config.Cmd)}`,
  ]) {
    expect(last.split("\n")).toContain(line);
  }
});
