// How the real program ends: a signal lets open answers finish, refuses new ones, and the exit code is 0.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { openaiClient } from "../support/clients.ts";
import { until } from "../support/headrace.ts";
import { withinMs } from "../support/long.ts";
import { makeWorkspace, startServer } from "../support/program.ts";
import { chunk, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { chat, endless, endlessWord } from "../support/tiny-demo.ts";

// hardening: F29
test("finishes an open stream on SIGTERM, then exits with 0 and stops its engine", async () => {
  await using workspace = makeWorkspace();
  await using server = await startServer(workspace);
  const client = openaiClient(server);
  await client.chat.completions.create(chat);
  const children = descendants(server.pid);
  expect(children.length).toBeGreaterThanOrEqual(2);
  const stream = await client.chat.completions.create({ ...endless, stream: true });
  let words = 0;
  let reason: string | null = null;
  for await (const { choices } of stream) {
    if (choices[0]?.delta.content === endlessWord && words++ === 0) server.signal("SIGTERM");
    reason = choices[0]?.finish_reason ?? reason;
  }
  expect(words).toBe(endless.max_tokens);
  expect(reason).toBe("length");
  expect(await server.exitCode()).toBe(0);
  expect(server.stdout()).toMatch(/stopping signal=SIGTERM/);
  expect(server.stdout()).toMatch(/ stopped\n/);
  await until(() => children.every((pid) => !running(pid)), "no process is left behind");
});

// hardening: F29
test("drains a slow model server's stream while refusing new requests", async () => {
  let finish = () => {};
  await using upstream = await startUpstream((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "begin" }));
    finish = () => void res.end(`${chunk({ content: " end" })}${chunk({}, "stop")}data: [DONE]\n\n`);
  });
  await using workspace = makeWorkspace();
  await Bun.write(`${workspace.directory}/headrace.yaml`, upstreamYaml(upstream));
  await using server = await startServer(workspace, ["--no-demo"]);
  const client = openaiClient(server);
  const stream = await client.chat.completions.create({
    model: "upstream-model",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
  });
  let text = "";
  for await (const { choices } of stream) {
    text += choices[0]?.delta.content ?? "";
    if (text !== "begin") continue;
    server.signal("SIGTERM");
    await server.says(/stopping signal=SIGTERM/);
    await until(
      () =>
        fetch(`${server.url}/healthz`, { headers: { connection: "close" } }).then(
          () => false,
          () => true,
        ),
      "a new connection is refused",
    );
    finish();
  }
  expect(text).toBe("begin end");
  expect(await server.exitCode()).toBe(0);
});

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  test(`exits an idle server at once with code 0 on ${signal}, whatever connections are open`, async () => {
    await using workspace = makeWorkspace();
    await using server = await startServer(workspace);
    await openaiClient(server).models.list();
    const began = performance.now();
    server.signal(signal);
    expect(await server.exitCode()).toBe(0);
    expect(performance.now() - began).toBeLessThan(withinMs(5_000));
  });
}

/** Process ids of children and their children (Linux). */
function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return children.map(Number).flatMap((child) => [child, ...descendants(child)]);
}

function running(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
