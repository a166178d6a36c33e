// The real program from the outside: first start, second start, the pasted curl, logs for machines, and starts that must fail.
import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { openaiClient } from "../support/clients.ts";
import { until } from "../support/headrace.ts";
import { makeWorkspace, startProgram, startServer, type Workspace } from "../support/program.ts";
import { canMount, fillDisk, smallDisk } from "../support/small-disk.ts";
import { answer, chat, demoModel } from "../support/tiny-demo.ts";
import { blocksOf } from "./guides/blocks.ts";
import { faultsOfTranscript } from "./guides/shapes.ts";

const keyPattern = /sk_dev_hr_[0-9A-Za-z]{36}/;

/** What a user's shell prints when the text is pasted. */
async function paste(command: string): Promise<string> {
  const shell = Bun.spawn(["sh", "-c", command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr, code] = await Promise.all([
    new Response(shell.stdout).text(),
    new Response(shell.stderr).text(),
    shell.exited,
  ]);
  if (code !== 0) throw new Error(`${command}\nended with ${code}: ${stderr}`);
  return stdout;
}

function expectStreamedAnswer(events: string): void {
  expect(events.trimEnd()).toEndWith("data: [DONE]");
  const chunks = events
    .split("\n\n")
    .filter((event) => event.startsWith("data: {"))
    .map((event) => JSON.parse(event.slice("data: ".length)));
  const content = chunks.map((entry) => entry.choices[0]?.delta.content ?? "").join("");
  // The pasted request does not pin the temperature, so the words may vary.
  expect(content.length).toBeGreaterThan(10);
  expect(chunks.every((entry) => entry.model === demoModel)).toBe(true);
}

function readCredentials(workspace: Workspace): { base_url: string; api_key: string } {
  return JSON.parse(readFileSync(join(workspace.dataDir, "credentials.json"), "utf8"));
}

test("prints a key once and a working streaming curl on the first start, and keeps key and data on the second", async () => {
  await using workspace = makeWorkspace();
  let key = "";
  {
    await using first = await startServer(workspace);
    const banner = first.stdout();
    key = keyPattern.exec(banner)?.[0] ?? "";
    expect(readCredentials(workspace)).toEqual({ base_url: first.baseUrl, api_key: key });
    expect(first.baseUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/v1$/);
    expect(banner).toContain(`listening url=${first.url}`);
    expect(banner).toContain(`${demoModel} (built-in)`);
    expect(banner).toContain(`${first.url}/docs`);
    const shown = blocksOf("README.md").find(({ text }) => text.includes("for this machine only"))?.text ?? "none";
    const asShown = banner.replaceAll(workspace.dataDir, "~/.local/share/headrace").replace(/setup\/\S+/, "setup/…");
    expect(faultsOfTranscript(`${shown}\n…`, [asShown])).toEqual([]);
    expect(statSync(join(workspace.dataDir, "credentials.json")).mode & 0o777).toBe(0o600);
    expect(statSync(join(workspace.dataDir, "secret")).mode & 0o777).toBe(0o600);
    expect(statSync(workspace.dataDir).mode & 0o777).toBe(0o700);
    expect(first.curl).toContain(key);
    expectStreamedAnswer(await paste(first.curl));
    first.signal("SIGTERM");
    expect(await first.exitCode()).toBe(0);
    // Only in the banner and its curl: no log line holds it.
    expect(first.stdout().split(key)).toHaveLength(3);
    expect(first.stderr()).not.toContain(key);
  }
  await using second = await startServer(workspace);
  expect(second.key).toBe(key);
  expect(second.stdout()).not.toMatch(keyPattern);
  expect(second.stdout()).toContain(`${key.slice(0, 10)}…${key.slice(-4)}`);
  expect(readCredentials(workspace)).toEqual({ base_url: second.baseUrl, api_key: key });
  expect(statSync(join(workspace.dataDir, "credentials.json")).mode & 0o777).toBe(0o600);
  expectStreamedAnswer(await paste(second.curl));
  expect((await openaiClient(second).chat.completions.create(chat)).choices[0]?.message.content).toBe(answer);
});

test("holds a request that arrives while the engine loads", async () => {
  await using workspace = makeWorkspace();
  await using program = startProgram(workspace, ["serve"]);
  const [, url = ""] = await program.says(/listening url=(\S+)/);
  const { api_key } = readCredentials(workspace);
  const completion = await openaiClient({ url, key: api_key }).chat.completions.create(chat);
  expect(completion.choices[0]?.message.content).toBe(answer);
});

test("prints only JSON objects in JSON format, without the key or the set-up link", async () => {
  await using workspace = makeWorkspace();
  await using program = startProgram(workspace, ["serve", "--log-format", "json"]);
  const [, url = ""] = await program.says(/"event":"listening","url":"([^"]+)"/);
  await program.says(/"event":"first_key"/);
  const key = readCredentials(workspace).api_key;
  expect(key).toMatch(keyPattern);
  await openaiClient({ url, key }).chat.completions.create(chat);
  await openaiClient({ url, key: `${key.slice(0, -1)}_` })
    .models.list()
    .catch(() => {});
  await fetch(`${url}/v1/models?api_key=${key}`, { headers: { "x-api-key": key } });
  await fetch(`${url}/v1/${key}`, { headers: { authorization: `Bearer ${key}` } });
  await program.says(/"route":"\/v1\/chat\/completions"/);
  program.signal("SIGTERM");
  expect(await program.exitCode()).toBe(0);
  const lines = program.stdout().split("\n").filter(Boolean);
  const entries = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(entries.every((entry) => typeof entry["event"] === "string" && typeof entry["time"] === "string")).toBe(true);
  expect(entries.map((entry) => entry["event"])).toContain("stopped");
  expect(entries.find((entry) => entry["event"] === "models")?.["models"]).toBe(demoModel);
  expect(program.stdout()).not.toContain(key);
  expect(program.stdout()).not.toContain(key.slice(10, -4));
  expect(entries.find((entry) => entry["event"] === "no_sign_in_yet")?.["detail"]).toContain("headrace setup-link");
  expect(program.stdout()).not.toContain("/setup/");
  expect(program.stderr()).toBe("");
});

/** A port that somebody else has, for the length of a test. */
async function occupyPort(): Promise<{ port: number; [Symbol.asyncDispose](): Promise<void> }> {
  const occupant = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => occupant.once("listening", resolve));
  const { port } = occupant.address() as AddressInfo;
  return {
    port,
    async [Symbol.asyncDispose]() {
      await new Promise((resolve) => occupant.close(resolve));
    },
  };
}

test("exits with code 1 and a remedy for a port in use", async () => {
  await using workspace = makeWorkspace();
  await using occupied = await occupyPort();
  await using program = startProgram(workspace, ["serve", "--port", String(occupied.port)]);
  expect(await program.exitCode()).toBe(1);
  expect(program.stderr()).toContain(`Port ${occupied.port} on 127.0.0.1 is in use`);
  expect(program.stderr()).toContain("--port 0");
  expect(program.stderr()).not.toMatch(/\bat .*\.ts:\d+/);
  expect(program.stdout()).not.toMatch(keyPattern);
});

test("shows the key on the next start after a first start that could not listen", async () => {
  await using workspace = makeWorkspace();
  {
    await using occupied = await occupyPort();
    await using failed = startProgram(workspace, ["serve", "--port", String(occupied.port)]);
    await until(() => failed.stderr().includes("is in use"), "it says that the port is in use");
  }
  await using program = startProgram(workspace, ["serve"]);
  await program.says(/Docs/);
  expect(program.stdout()).toMatch(keyPattern);
  expect(readCredentials(workspace).api_key).toMatch(keyPattern);
});

test("refuses a wrong headrace.yaml with file, line, field and fix, and exit code 1", async () => {
  await using workspace = makeWorkspace();
  writeFileSync(
    join(workspace.directory, "headrace.yaml"),
    "upstreams:\n  - name: up\n    url: ftp://example.com\nmodels:\n  - id: m\n    deployments: [{ upstream: up, wieght: 2 }]\n",
  );
  await using program = startProgram(workspace, ["serve"]);
  expect(await program.exitCode()).toBe(1);
  expect(program.stderr()).toMatch(/headrace\.yaml:3:\d+ {2}upstreams\[0\]\.url: .* Fix: /);
  expect(program.stderr()).toMatch(/headrace\.yaml:6:\d+ {2}models\[0\]\.deployments\[0\].*wieght.*weight/);
  expect(existsSync(workspace.dataDir)).toBe(false);
});

test("refuses unreadable YAML with file and line", async () => {
  await using workspace = makeWorkspace();
  writeFileSync(join(workspace.directory, "headrace.yaml"), 'port: 7545\nupstreams: [{ name: "up\n');
  await using program = startProgram(workspace, ["serve"]);
  expect(await program.exitCode()).toBe(1);
  expect(program.stderr()).toMatch(/headrace\.yaml:[23]:\d+/);
});

test("refuses an unknown flag with a hint and exit code 2", async () => {
  await using workspace = makeWorkspace();
  await using program = startProgram(workspace, ["serve", "--prot", "1"]);
  expect(await program.exitCode()).toBe(2);
  expect(program.stderr()).toContain("--port");
});

// hardening: F22
test.skipIf(!canMount)("reports a full disk with its path at the start, whatever could not be written", async () => {
  await using disk = smallDisk(2);
  await using workspace = makeWorkspace();
  const dataDir = join(disk.path, "data");
  const said: string[] = [];
  // Not even the directory, the lock, the secret; then half of the database, its log, the spool.
  for (const freeKilobytes of [0, 4, 8, 40, 400]) {
    rmSync(dataDir, { recursive: true, force: true });
    const room = join(disk.path, "room");
    writeFileSync(room, new Uint8Array(freeKilobytes * 1024));
    fillDisk(disk.path);
    rmSync(room);
    await using program = startProgram(workspace, ["serve", "--no-demo", "--data-dir", dataDir]);
    expect(await program.exitCode()).toBe(1);
    said.push(program.stderr());
    for (const name of readdirSync(disk.path)) if (name !== "data") rmSync(join(disk.path, name));
  }
  for (const text of said) {
    expect(text).toContain(`The disk of ${dataDir} is full`);
    expect(text).not.toContain("REDIS");
    expect(text.trim().split("\n")).toHaveLength(1);
  }
});
