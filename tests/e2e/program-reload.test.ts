// Editing headrace.yaml under the running program: a good edit takes effect, a broken one is refused and changes nothing.
import { expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openaiClient } from "../support/clients.ts";
import { makeWorkspace, startProgram, startServer } from "../support/program.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const messages = [{ role: "user" as const, content: "Hi" }];

// hardening: O10
test("adds and removes models by an edited file without a restart, and keeps the old configuration on a broken edit", async () => {
  await using upstream = await startUpstream();
  await using workspace = makeWorkspace();
  const file = join(workspace.directory, "headrace.yaml");
  const alias = (id: string) => `models:\n  - { id: ${id}, deployments: [{ upstream: up, model: upstream-model }] }\n`;
  writeFileSync(file, upstreamYaml(upstream, alias("first")));
  await using server = await startServer(workspace, ["--no-demo"]);
  const client = openaiClient(server);
  const ids = async () => (await client.models.list()).data.map((model) => model.id).sort();
  expect(await ids()).toEqual(["first", "upstream-model"]);
  await using maker = startProgram(workspace, ["operator-key", "--quiet", "--data-dir", workspace.dataDir]);
  expect(await maker.exitCode()).toBe(0);
  const headers = { authorization: `Bearer ${maker.stdout().trim()}` };
  const lastReload = async () => {
    const system = await (await fetch(`${server.url}/v1/admin/system`, { headers })).json();
    return system.configuration.last_reload;
  };
  expect(await lastReload()).toBeNull();

  writeFileSync(file, upstreamYaml(upstream, alias("second")));
  await server.says(/configuration_reloaded .*models=2/);
  expect(await ids()).toEqual(["second", "upstream-model"]);
  expect((await client.chat.completions.create({ model: "second", messages })).model).toBe("second");

  writeFileSync(file, upstreamYaml(upstream, alias("third").replace("upstream: up", "upstream: nowhere")));
  const [refusal] = await server.says(/configuration_refused .*/);
  expect(refusal).toMatch(/headrace\.yaml:4:\d+/);
  expect(refusal).not.toContain("sk-upstream-secret");
  const refused = await lastReload();
  expect(refused).toMatchObject({ result: "refused", needs_restart: [] });
  expect(refused.error).toMatch(/headrace\.yaml:4:\d+/);
  expect(refused.error).not.toContain("sk-upstream-secret");
  expect(await ids()).toEqual(["second", "upstream-model"]);
  expect((await client.chat.completions.create({ model: "second", messages })).model).toBe("second");

  writeFileSync(file, `${upstreamYaml(upstream, alias("fourth"))}port: 9\n`);
  await server.says(/configuration_needs_restart keys=port/);
  expect(await lastReload()).toMatchObject({ result: "ok", error: null, needs_restart: ["port"] });
  expect(await ids()).toEqual(["fourth", "upstream-model"]);
});

test("reads a configuration file created after the start, and changes nothing when it is deleted", async () => {
  await using upstream = await startUpstream();
  await using workspace = makeWorkspace();
  const file = join(workspace.directory, "headrace.yaml");
  await using server = await startServer(workspace);
  const client = openaiClient(server);
  const ids = async () => (await client.models.list()).data.map((model) => model.id).sort();
  writeFileSync(file, upstreamYaml(upstream));
  await server.says(/configuration_reloaded/);
  expect(await ids()).toEqual(["tiny-demo", "upstream-model"]);
  rmSync(file);
  server.signal("SIGHUP");
  await server.says(/configuration_refused .*does not exist/);
  expect(await ids()).toEqual(["tiny-demo", "upstream-model"]);
});

// hardening: F25
test("keeps the running configuration if the file is emptied by an editor or a full disk", async () => {
  await using upstream = await startUpstream();
  await using workspace = makeWorkspace();
  const file = join(workspace.directory, "headrace.yaml");
  writeFileSync(file, upstreamYaml(upstream));
  await using server = await startServer(workspace, ["--no-demo"]);
  const ids = async () => (await openaiClient(server).models.list()).data.map((model) => model.id);
  for (const nothing of ["", "# upstreams come here\n"]) {
    writeFileSync(file, nothing);
    server.signal("SIGHUP");
    await server.says(/configuration_refused .*headrace\.yaml:1:1 {2}the file is empty, .*holds \{\}/);
    expect(await ids()).toEqual(["upstream-model"]);
  }
  expect(server.stdout()).not.toContain("configuration_reloaded");
  writeFileSync(file, "{}\n");
  await server.says(/configuration_reloaded/);
  expect(await ids()).toEqual([]);
});

// hardening: F25
test("reads a configuration file only after it stops changing", async () => {
  await using upstream = await startUpstream();
  await using workspace = makeWorkspace();
  const file = join(workspace.directory, "headrace.yaml");
  const whole = upstreamYaml(upstream);
  writeFileSync(file, whole);
  await using server = await startServer(workspace, ["--no-demo"]);
  // Each write takes effect on its own where a change is taken at the first look.
  const endMs = performance.now() + 3_500;
  while (performance.now() < endMs) {
    writeFileSync(file, `upstreams: []\n# ${performance.now()}\n`);
    await Bun.sleep(20);
  }
  expect(server.stdout()).not.toContain("configuration_reloaded");
  writeFileSync(file, `${whole}# complete\n`);
  await server.says(/configuration_reloaded .*models=1/);
});

// hardening: O10
test("reloads at once on SIGHUP without interrupting an open stream", async () => {
  await using upstream = await startUpstream();
  await using workspace = makeWorkspace();
  writeFileSync(join(workspace.directory, "headrace.yaml"), upstreamYaml(upstream));
  await using server = await startServer(workspace);
  let finish = () => {};
  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write('data: {"choices":[{"index":0,"delta":{"content":"begin"}}]}\n\n');
    finish = () =>
      void res.end(
        'data: {"choices":[{"index":0,"delta":{"content":" end"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      );
  });
  const stream = await openaiClient(server).chat.completions.create({
    model: "upstream-model",
    messages,
    stream: true,
  });
  let text = "";
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? "";
    if (text !== "begin") continue;
    writeFileSync(join(workspace.directory, "headrace.yaml"), "upstreams: []\n");
    server.signal("SIGHUP");
    await server.says(/configuration_reloaded/);
    finish();
  }
  expect(text).toBe("begin end");
});
