// Replicas and nodes of two versions in one network: whichever of them holds a node's connection, a request reaches it.
import { afterEach, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import releases from "../../deploy/releases.json" with { type: "json" };
import { joinGateway } from "../../src/nodes/join-gateway.ts";
import { writeNodeIdentity } from "../../src/storage/files/node-files.ts";
import { earlierVersion, missingHistory, today, type Version } from "../support/earlier-programs.ts";
import { until } from "../support/headrace.ts";
import {
  api,
  chat,
  type Meter,
  newPlace,
  type Place,
  runVersion,
  startMeter,
  startVersion,
} from "../support/installation.ts";
import { long } from "../support/long.ts";
import { sharedPostgres } from "../support/postgres.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const stack: AsyncDisposable[] = [];

afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function disposed<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

async function placed(env: Record<string, string> = {}): Promise<Place> {
  const place = await newPlace(env);
  stack.push({ [Symbol.asyncDispose]: async () => rmSync(place.dataDir, { recursive: true, force: true }) });
  return place;
}

async function startReplica(version: Version, place: Place, { config }: Meter): Promise<ServerProcess> {
  const env = { ...place.env, HEADRACE_ADVERTISE_URL: `http://127.0.0.1:${place.port}` };
  return disposed(startVersion(version, { ...place, env }, { config, publicUrl: "https://ai.example.com" }));
}

/** A machine of that version, connected to that replica, with a model of its own. */
async function joinTo(gateway: ServerProcess, operator: string, version: Version, model: string, meter: Meter) {
  const { token } = await api(gateway.url, operator, "/v1/admin/node-tokens", { approved_models: [model] });
  const signal = AbortSignal.timeout(10_000);
  const identity = await joinGateway({ gatewayUrl: gateway.url, token, name: `of-${model}`, signal });
  const { dataDir } = await placed();
  writeNodeIdentity(dataDir, { ...identity, gateway_url: gateway.url });
  const config = join(dataDir, "headrace.yaml");
  writeFileSync(
    config,
    `upstreams: [{ name: up, url: "${meter.upstream.url}" }]
models: [{ id: ${model}, deployments: [{ upstream: up, model: upstream-model }] }]
`,
  );
  await disposed(startServerProcess({ main: version.main, config, dataDir }));
}

// hardening: O4
test.skipIf(missingHistory !== undefined).each(long ? releases : releases.slice(-1))(
  "answers requests at both replicas of $version and today's with a node of each",
  async (release) => {
    const earlier = earlierVersion(release);
    const meter = await disposed(startMeter());
    const database = { HEADRACE_DATABASE_URL: await (await sharedPostgres()).emptyDatabase() };
    const places = [await placed(database), await placed(database)] as const;
    const old = await startReplica(earlier, places[0], meter);
    const operator = (await runVersion(earlier, places[0], ["operator-key", "--quiet"])).stdout.trim();
    const own = await startReplica(today, places[1], meter);
    await joinTo(own, operator, earlier, "old-model", meter);
    await joinTo(old, operator, today, "new-model", meter);
    const { key } = await api(old.url, operator, "/v1/keys", { name: "k", scopes: ["chat:write"] });
    for (const { url } of [old, own]) {
      for (const model of ["old-model", "new-model"]) {
        await until(async () => (await chat(url, key, { model })).status === 200, `${model} answers at ${url}`);
        const { text } = await chat(url, key, { model, stream: true });
        expect(text).toEndWith("data: [DONE]\n\n");
      }
    }
    expect(meter.twice).toEqual([]);
  },
  120_000,
);
