// Tests the output of `headrace pull`, and its exit codes.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandOutcome, type CommandSurroundings, runCommand } from "../../../tests/fixtures/command-line.ts";
import { HubServer } from "../../../tests/fixtures/hub-server.ts";

let gguf: Uint8Array;
let server: HubServer;
let dataDir: string;

beforeAll(async () => {
  gguf = await readFile(new URL("../../../models/tiny-demo/tiny-demo.gguf", import.meta.url));
});

beforeEach(async () => {
  server = await HubServer.start();
  server.put("acme/tiny-GGUF", [
    { path: "Tiny-Q8_0.gguf", content: gguf },
    { path: "Tiny-F16.gguf", content: new Uint8Array([1]) },
  ]);
  dataDir = await mkdtemp(join(tmpdir(), "headrace-cli-pull-"));
});

afterEach(async () => {
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

afterAll(() => {
  gguf = new Uint8Array();
});

function pull(args: string[], surroundings: CommandSurroundings = {}): Promise<CommandOutcome> {
  const env = { HF_ENDPOINT: server.endpoint, ...surroundings.env };
  return runCommand(["pull", ...args, "--data-dir", dataDir], { ...surroundings, env });
}

describe("texts of headrace pull", () => {
  test("tells what was chosen and why, that it was verified, and the next step", async () => {
    const { code, stdout, stderr } = await pull(["hf:acme/tiny-GGUF"]);
    expect(stderr).toContain("Tiny-Q8_0.gguf (4.64 MB), as model tiny-q8_0\n");
    expect(stderr).toMatch(/^It needs 105 MB of memory and more for its context; .+ are free\.$/m);
    expect(stderr).toContain("Taken by preference (Q4_K_M, Q5_K_M, Q4_0, Q8_0, …); name another after a colon.\n");
    expect(stderr).toContain("100 %, 4.64 MB of 4.64 MB");
    expect(stderr).toContain("Checksum verified.");
    expect(stdout).toBe(
      "Model tiny-q8_0 is here.\n" +
        "  chat, completion, embeddings; 1024 tokens of context; 4.64 MB\n" +
        "  A running headrace serve serves it within a minute; else start one: headrace serve\n",
    );
    expect(code).toBe(0);
  });

  test("prints no control codes without a terminal, and updates one line on a terminal", async () => {
    const plain = await pull(["hf:acme/tiny-GGUF:Q8_0"]);
    expect(plain.stdout + plain.stderr).not.toContain("\x1b");
    await rm(dataDir, { recursive: true });
    const drawn = await pull(["hf:acme/tiny-GGUF:Q8_0"], { isTTY: true });
    expect(drawn.stderr).toContain("\r\x1b[2K");
    expect(drawn.stderr).toContain("━");
  });

  test("reports a lost connection and continues", async () => {
    server.faults = [{ cutAfterBytes: 1_000_000 }];
    const { code, stderr } = await pull(["hf:acme/tiny-GGUF"]);
    expect(code).toBe(0);
    expect(stderr).toContain(`The connection to ${server.storageHost} was lost (ECONNRESET); trying again in 1 s.\n`);
  });

  test("reports a second pull that downloaded nothing", async () => {
    await pull(["hf:acme/tiny-GGUF"]);
    const { stdout, stderr } = await pull(["hf:acme/tiny-GGUF"]);
    expect(stdout).toContain("Model tiny-q8_0 was here already");
    expect(stderr).not.toContain("%");
  });

  test("escapes terminal commands in a file's name", async () => {
    server.put("acme/tiny-GGUF", [{ path: "a\x1b[2Jb.gguf", content: gguf }]);
    const { code, stderr } = await pull(["hf:acme/tiny-GGUF"]);
    expect([code, stderr.includes("\x1b")]).toEqual([0, false]);
    expect((await pull(["hf:acme/tiny-GGUF:nope"])).stderr).not.toContain("\x1b");
  });
});

test("prints only events, one a line, to standard output with --json", async () => {
  const { code, stdout } = await pull(["hf:acme/tiny-GGUF", "--json"]);
  const events = stdout
    .trim()
    .split("\n")
    .map((line): { event: string } => JSON.parse(line));
  expect(code).toBe(0);
  // Repeated events are dropped, because a slow machine reports progress more than once.
  expect([...new Set(events.map((event) => event.event))]).toEqual(["selected", "progress", "verified", "done"]);
  expect(events[0]).toEqual({
    event: "selected",
    id: "tiny-q8_0",
    file: "Tiny-Q8_0.gguf",
    quantization: "Q8_0",
    bytes: gguf.length,
    parts: 1,
    chosen: true,
    least_memory_bytes: 104_636_352,
    fits: true,
  } as never);
  expect(events.at(-1)).toMatchObject({ id: "tiny-q8_0", context: 1024, tools: false, already_there: false });
});

test("prints a failure as an event with --json", async () => {
  const { code, stdout, stderr } = await pull(["hf:acme/none", "--json"]);
  expect(code).toBe(1);
  expect(JSON.parse(stdout)).toEqual({ event: "error", message: expect.stringContaining("no public repository") });
  expect(stderr).toStartWith("error: ");
});

describe("exit codes of headrace pull", () => {
  test("exits with 2 for an invalid source or id", async () => {
    expect((await pull(["qwen"])).code).toBe(2);
    expect((await pull(["hf:acme/tiny-GGUF", "--name", "A B"])).code).toBe(2);
    expect((await pull([])).code).toBe(2);
    expect(server.requests).toEqual([]);
  });

  test("exits with 1 offline and names the way without a network", async () => {
    const gone = await HubServer.start();
    await gone.stop();
    const { code, stderr } = await pull(["hf:acme/tiny-GGUF"], { env: { HF_ENDPOINT: "http://127.0.0.1:1" } });
    expect(code).toBe(1);
    expect(stderr).toBe(
      "error: Cannot reach 127.0.0.1:1 (ECONNREFUSED). Are you offline? A GGUF file that you already have can be served with: headrace serve --model ./file.gguf\n",
    );
  });

  test("exits with 2 for an invalid HF_ENDPOINT and shows no token", async () => {
    const { code, stderr } = await pull(["hf:a/b"], { env: { HF_ENDPOINT: "ftp://x", HF_TOKEN: "hf_secret" } });
    expect(code).toBe(2);
    expect(stderr).toContain("HF_ENDPOINT");
    expect(stderr).not.toContain("hf_secret");
  });
});

test("keeps the partial file on Ctrl-C, exits with 130, and prints the command that continues", async () => {
  server.faults = [{ stallAfterBytes: 2_000_000 }];
  const child = Bun.spawn(
    [
      process.execPath,
      "-e",
      `import { runCommand } from ${JSON.stringify(new URL("../../../tests/fixtures/command-line.ts", import.meta.url).pathname)};
       const { code, stderr } = await runCommand(process.argv.slice(1), { env: { HF_ENDPOINT: ${JSON.stringify(server.endpoint)} } });
       process.stderr.write(stderr, () => process.exit(code));`,
      "pull",
      "hf:acme/tiny-GGUF:Q8_0",
      "--data-dir",
      dataDir,
    ],
    { stdout: "ignore", stderr: "pipe" },
  );
  const part = join(dataDir, "models", "tiny-q8_0.gguf.part");
  const deadline = performance.now() + 20_000;
  while (!(existsSync(part) && Bun.file(part).size === 2_000_000) && performance.now() < deadline) await Bun.sleep(5);
  child.kill("SIGINT");
  const [stderr, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  expect(code).toBe(130);
  expect(stderr).toEndWith(
    `Interrupted. 2.00 MB are kept. To continue, run the same command again:\n  headrace pull hf:acme/tiny-GGUF:Q8_0 --data-dir ${dataDir}\n`,
  );
  server.requests.length = 0;
  const second = await pull(["hf:acme/tiny-GGUF:Q8_0"]);
  expect(second.stderr).toContain("Continuing at 2.00 MB.");
  expect(server.storageRequests()[0]?.range).toBe("bytes=2000000-");
});
