// The commands of docs/questions.md, run as an operator runs them: each of the twenty questions has one command, and it works.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type CommandOutcome, runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople } from "../support/server-people.ts";

const page = readFileSync(join(import.meta.dir, "..", "..", "docs", "questions.md"), "utf8");
const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && line.includes("?"))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, question = "", command = ""]) => ({ question, command }));

let upstream: ScriptedUpstream;
let server: TestServer;
let operator: string;
/** What the examples of the page stand for in this installation. */
let actual: Record<string, string>;
/** A data directory that no server uses. */
let unused: string;

beforeAll(async () => {
  upstream = await startUpstream();
  server = await startHeadrace({ yaml: upstreamYaml(upstream).replace("name: up,", "name: vllm,") });
  operator = await makeOperatorKey(server.dataDir);
  const account = await json("accounts", "create", "Web shop");
  const { key, record } = await makeKey(account.id);
  const failed = await server.request("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${key}` },
    body: { model: "nope", messages: [{ role: "user", content: "Hi" }] },
  });
  const people = openServerPeople(server);
  const ada = await people.addPerson("ada");
  const [replica] = await json("replicas");
  const beside = (name: string) => join(server.dataDir, "..", name);
  const backup = beside("backup");
  unused = beside("moved");
  await succeed("backup", backup, "--include-secret", "--data-dir", server.dataDir);
  await succeed("restore", backup, "--data-dir", unused);
  actual = {
    "req_…": failed.headers.get("x-request-id") ?? "",
    "key_…": record,
    "acct_…": account.id,
    "rep_…": replica.id,
    "ada@example.com": ada.email,
    "/srv/headrace": unused,
    "/mnt/backups/headrace-20261128T031700Z": backup,
    "/var/lib/headrace/backups/before-schema-9-20261121T101500Z": backup,
  };
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** Runs a command as an operator at a terminal, who agrees to every question. */
function headrace(...args: string[]): Promise<CommandOutcome> {
  const env = { HEADRACE_BASE_URL: server.baseUrl, HEADRACE_API_KEY: operator, NO_COLOR: "1" };
  return runCommand(args, { env, isTTY: true, columns: 80, answers: ["y"] });
}

async function succeed(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await headrace(...args);
  expect({ args, code, said: code === 0 ? "" : stdout + stderr }).toEqual({ args, code: 0, said: "" });
  return stdout;
}

// biome-ignore lint/suspicious/noExplicitAny: the preparation says itself what it reads
const json = async (...args: string[]): Promise<any> => JSON.parse(await succeed(...args, "--json"));

async function makeKey(accountId: string): Promise<{ key: string; record: string }> {
  const made = await server.request(`/v1/admin/accounts/${accountId}/keys`, {
    method: "POST",
    headers: { authorization: `Bearer ${operator}` },
    body: { name: "Till", environment: "dev", scopes: ["chat:write"] },
  });
  const { key, id } = (await made.json()) as { key: string; id: string };
  return { key, record: id };
}

/** Returns the words of a command of the page, without `headrace`, for this installation. */
function words(command: string): string[] {
  const [, ...found] = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
  const args = found.map((word) => actual[word] ?? word);
  // Commands for local files need the directory of this test. Only the running server may keep its own.
  const isLocal = ["setup-link", "doctor", "restore", "secret"].includes(args[0] ?? "");
  if (!isLocal || args.includes("--data-dir")) return args;
  return [...args, "--data-dir", ["setup-link", "doctor"].includes(args[0] ?? "") ? server.dataDir : unused];
}

describe("the questions of operators", () => {
  test("have twenty answers", () => {
    expect(rows).toHaveLength(20);
  });

  test.each(rows.map(({ question, command }) => [question, command]))("%s %s", async (_, command) => {
    expect(command).toMatch(/^`headrace [^`]+`$/);
    const args = words(command.slice(1, -1));
    // Doctor finds the process of this test, which is not started as a server is.
    if (args[0] === "doctor") return expect((await headrace(...args)).stdout).toMatch(/ok +disk/);
    await succeed(...args, ...(args[0] === "top" ? ["--once"] : []));
    const [group = "", verb = "", ...which] = args;
    const undo = { drain: "undrain", suspend: "resume" }[verb];
    if (undo) await succeed(group, undo, ...which);
  });
});
