// The real program at a real (pseudo) terminal: a conversation, Ctrl-C, questions before what cannot be undone, completion.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { chatScript, chunk, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

/** A bare container may have no pseudo-terminals: then there is nothing to sit down at. */
const atTerminal = test.skipIf(process.platform === "linux" && !existsSync("/dev/pts/ptmx"));
const launcher = join(import.meta.dir, "..", "..", "bin", "headrace.mjs");
let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream) });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

interface Person {
  types(text: string): void;
  /** Waits until what came since the last match matches. */
  sees(pattern: RegExp): Promise<string>;
  ends(): Promise<number>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** `headrace <args>` as a person starts it. */
function sitDown(...args: string[]): Person {
  let screen = "";
  let seen = 0;
  const decoder = new TextDecoder();
  const child = Bun.spawn(["node", launcher, ...args, "--data-dir", server.dataDir], {
    env: { PATH: process.env["PATH"] ?? "", HOME: server.dataDir, LANG: "C.UTF-8", NO_COLOR: "1", TERM: "xterm" },
    terminal: {
      cols: 100,
      rows: 30,
      data(_terminal, bytes) {
        screen += decoder.decode(bytes, { stream: true });
      },
    },
  });
  return {
    types: (text) => void child.terminal?.write(text),
    async sees(pattern) {
      const match = await until(() => pattern.exec(screen.slice(seen)), `${pattern} in ${JSON.stringify(screen)}`);
      seen += match.index + match[0].length;
      return match[0];
    },
    async ends() {
      await until(() => child.exitCode !== null, `the end of ${args.join(" ")}`);
      return child.exitCode ?? -1;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill("SIGKILL");
      await child.exited;
    },
  };
}

/** Ctrl-C, Ctrl-D and the key up. */
const [controlC, controlD, up] = ["\x03", "\x04", "\x1b[A"];

atTerminal("a conversation goes on over Ctrl-C, which ends the answer at the model server too", async () => {
  upstream.script(chatScript(["Good", " day"]));
  await using person = sitDown("chat");
  await person.sees(/upstream-model at .*\/help/);
  await person.sees(/> /);
  person.types("Hello\r");
  await person.sees(/Good day\r\n.*tokens in/);
  await person.sees(/> /);

  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "This never" }));
  });
  const before = upstream.requests.length;
  person.types("Go on\r");
  await person.sees(/This never/);
  person.types(controlC);
  await person.sees(/Stopped\./);
  await until(() => upstream.requests[before]?.abandoned, "the model server is told");
  await person.sees(/> /);

  upstream.script(chatScript(["Back", " again"]));
  // The last line of the history, with its end typed anew.
  person.types(`${up} now\r`);
  await person.sees(/Back again/);
  await person.sees(/> /);
  expect(upstream.requests.at(-1)?.body["messages"]).toEqual([
    { role: "user", content: "Hello" },
    { role: "assistant", content: "Good day" },
    { role: "user", content: "Go on" },
    { role: "assistant", content: "This never" },
    { role: "user", content: "Go on now" },
  ]);
  person.types(controlD);
  expect(await person.ends()).toBe(0);
});

atTerminal("several lines that are pasted are one question; Ctrl-C twice at the prompt ends", async () => {
  upstream.script(chatScript());
  await using person = sitDown("chat");
  await person.sees(/> /);
  person.types("first line\nsecond line\r");
  await person.sees(/Hello world/);
  await person.sees(/> /);
  expect(upstream.requests.at(-1)?.body["messages"]).toEqual([{ role: "user", content: "first line\nsecond line" }]);
  person.types(`abandoned${controlC}`);
  await person.sees(/\^C[\s\S]*> /);
  person.types(controlC);
  await person.sees(/Ctrl-C again[\s\S]*> /);
  person.types(controlC);
  expect(await person.ends()).toBe(0);
});

atTerminal("what cannot be undone is asked for, and Ctrl-C changes nothing", async () => {
  const key = await (await server.request("/v1/keys", { body: { name: "doomed" } })).json();
  const statusOf = async () => (await (await server.request(`/v1/keys/${key.id}`)).json()).status;
  await using hesitant = sitDown("keys", "revoke", "doomed");
  await hesitant.sees(/Revoke key "doomed" .*\[y\/N\] /);
  hesitant.types(controlC);
  await hesitant.sees(/Nothing was changed/);
  expect([await hesitant.ends(), await statusOf()]).toEqual([130, "active"]);
  await using resolute = sitDown("keys", "revoke", "doomed");
  await resolute.sees(/\[y\/N\] /);
  resolute.types("y\r");
  await resolute.sees(/is revoked\./);
  expect([await resolute.ends(), await statusOf()]).toEqual([0, "revoked"]);
});

test("includes serve and its options in the completion script of the program", async () => {
  const bash = Bun.spawnSync(["node", launcher, "completion", "bash"], { stdout: "pipe" }).stdout.toString();
  expect(bash).toContain("--public-url");
  expect(bash).toContain('"serve --mode"');
});

test("bypasses the environment's proxy for requests to this machine", async () => {
  let proxied = 0;
  const proxy = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch() {
      proxied += 1;
      return new Response("from the proxy");
    },
  });
  const address = `http://127.0.0.1:${proxy.port}`;
  const child = Bun.spawn(["node", launcher, "models", "--data-dir", server.dataDir], {
    env: { PATH: process.env["PATH"] ?? "", HTTP_PROXY: address, http_proxy: address },
    stdout: "pipe",
  });
  expect(await new Response(child.stdout).text()).toContain("upstream-model");
  expect([await child.exited, proxied]).toEqual([0, 0]);
  await proxy.stop(true);
});

atTerminal("Ctrl-C at a single answer ends the command with 130 and the request with it", async () => {
  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "This never" }));
  });
  const before = upstream.requests.length;
  await using person = sitDown("chat", "Go on");
  await person.sees(/This never/);
  person.types(controlC);
  // What a process writes just before its end does not always come through Bun's side of the terminal.
  expect(await person.ends()).toBe(130);
  await until(() => upstream.requests[before]?.abandoned, "the model server is told");
});

test("exits without an error if the reader of help closes early, as `| head -1` does", async () => {
  for (const args of ["--help", "serve --help", "keys create --help", "help"]) {
    const shell = Bun.spawn(["sh", "-c", `exec 3>&1; node ${launcher} ${args} 2>&3 | true`], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    });
    expect(await new Response(shell.stdout).text()).toBe("");
    await shell.exited;
  }
});

test("reports output that cannot be written, without a stack", async () => {
  const shell = Bun.spawn(["sh", "-c", `node ${launcher} completion bash > /dev/full`], {
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  expect(await new Response(shell.stderr).text()).toBe("error: The output cannot be written (ENOSPC).\n");
  expect(await shell.exited).toBe(1);
});
